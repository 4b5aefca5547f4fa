// markdown.js -- shows a model's Markdown, which nobody trusts.
//
// It only ever makes elements of a fixed set and text nodes, so that no text can
// become a script, a style or an attribute: HTML in the text is shown as it is.
// Links lead to http and https only; images become links, since a page that loads
// what a model names would tell others of the conversation.
//
// Cost: linear in the text, but for nesting, which `depth_max` bounds.
import {copyButton, el} from './dom.js';

const DEPTH_MAX = 12;
const LINE_MAX = 20000; // a longer line has no marks

/// @returns a fragment with the blocks of the text
export function markdown(text) {
  const out = document.createDocumentFragment();
  blocks(text.replace(/\r\n?/g, '\n').split('\n'), out, 0);
  return out;
}

// Each takes time that is linear in the line.
const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([^`\s]*)(?:[ \t][^`]*)?$/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+(\S.*)$/;
const RULE = /^ {0,3}([-*_])(\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])( +|$)/;
const DIVIDER = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

/// A heading's text without the marks that may end it.
function without_marks(text) {
  let end = text.trimEnd().length, marks = end;
  while (marks > 0 && text[marks - 1] === '#') marks -= 1;
  if (marks === 0 || (marks < end && /\s/.test(text[marks - 1]))) end = marks;
  return text.slice(0, end).trimEnd();
}

function blocks(lines, out, depth) {
  if (depth > DEPTH_MAX) {
    out.append(el('p', {text: lines.join('\n')}));
    return;
  }
  for (let i = 0; i < lines.length;) {
    const line = lines[i];
    const match = line.length > LINE_MAX ? null : FENCE.exec(line);
    if (line.trim() === '') i += 1;
    else if (match) i = fence(lines, i, match, out);
    else if (HEADING.test(line)) {
      const [, marks, text] = HEADING.exec(line);
      // The page's own headings end at the third level.
      out.append(inline(el(`h${Math.min(6, marks.length + 3)}`),
                        without_marks(text)));
      i += 1;
    } else if (RULE.test(line)) {
      out.append(el('hr'));
      i += 1;
    } else if (QUOTE.test(line)) i = quote(lines, i, out, depth);
    else if (ITEM.test(line)) i = list(lines, i, out, depth);
    else if (isTable(lines, i)) i = table(lines, i, out);
    else i = paragraph(lines, i, out);
  }
}

function fence(lines, i, [, mark, language], out) {
  const end = new RegExp(`^ {0,3}${mark[0]}{${mark.length},}\\s*$`);
  const body = [];
  for (i += 1; i < lines.length && !end.test(lines[i]); i += 1)
    body.push(lines[i]);
  const text = body.join('\n');
  out.append(el('div', {class: 'code'},
    el('div', {class: 'code-head'}, el('span', {text: language || 'text'}),
       copyButton(() => text, 'Copy code')),
    el('pre', {tabindex: '0', 'aria-label': `Code, ${language || 'text'}`},
       el('code', {text}))));
  return i + 1;
}

function quote(lines, i, out, depth) {
  const inside = [];
  for (; i < lines.length && QUOTE.test(lines[i]); i += 1)
    inside.push(lines[i].replace(QUOTE, ''));
  const element = el('blockquote');
  blocks(inside, element, depth + 1);
  out.append(element);
  return i;
}

function list(lines, i, out, depth) {
  const [, indent, first] = ITEM.exec(lines[i]);
  const ordered = /\d/.test(first);
  const element = el(ordered ? 'ol' : 'ul',
                     ordered ? {start: String(parseInt(first, 10))} : {});
  while (i < lines.length) {
    const match = ITEM.exec(lines[i]);
    if (!match || match[1].length > indent.length + 1
        || /\d/.test(match[2]) !== ordered || RULE.test(lines[i])) break;
    if (match[1].length < indent.length) break;
    const width = match[0].length;
    const inside = [lines[i].slice(width)];
    for (i += 1; i < lines.length; i += 1) {
      const line = lines[i];
      const deeper = line.search(/\S/);
      if (deeper < 0) {
        const next = lines[i + 1] ?? '';
        if (next.search(/\S/) < Math.min(width, 2) && !ITEM.test(next)) break;
      } else if (deeper <= indent.length + 1 && (ITEM.test(line) || deeper === 0)
                 && (ITEM.test(line) || FENCE.test(line) || HEADING.test(line)
                     || lines[i - 1].trim() === '')) break;
      inside.push(deeper < 0 ? '' : line.slice(Math.min(deeper, width)));
    }
    const item = el('li');
    blocks(inside, item, depth + 1);
    // A short item is not a paragraph.
    if (item.firstChild?.nodeName === 'P')
      item.firstChild.replaceWith(...item.firstChild.childNodes);
    element.append(item);
    while (i < lines.length && lines[i].trim() === '' && ITEM.test(lines[i + 1] ?? ''))
      i += 1;
  }
  out.append(element);
  return i;
}

function cells(line) {
  const out = [''];
  let code = false;
  const text = line.trim().replace(/^\|/, '').replace(/\|$/, '');
  for (let k = 0; k < text.length; k += 1) {
    if (text[k] === '\\' && text[k + 1] === '|') {
      out[out.length - 1] += '|';
      k += 1;
    } else if (text[k] === '|' && !code) out.push('');
    else {
      if (text[k] === '`') code = !code;
      out[out.length - 1] += text[k];
    }
  }
  return out.map((cell) => cell.trim());
}

const isTable = (lines, i) =>
  lines[i].includes('|') && lines[i].length <= LINE_MAX
  && (lines[i + 1]?.length ?? LINE_MAX) < 1000
  && lines[i + 1].includes('-') && DIVIDER.test(lines[i + 1])
  && cells(lines[i]).length === cells(lines[i + 1]).length;

function table(lines, i, out) {
  const sides = cells(lines[i + 1]).map((cell) =>
    cell.endsWith(':') ? (cell.startsWith(':') ? 'middle' : 'right') : '');
  const row = (line, tag) => el('tr', {}, sides.map((side, k) =>
    inline(el(tag, {class: side || null, scope: tag === 'th' ? 'col' : null}),
           cells(line)[k] ?? '')));
  const body = el('tbody');
  const head = el('thead', {}, row(lines[i], 'th'));
  for (i += 2; i < lines.length && lines[i].includes('|'); i += 1)
    body.append(row(lines[i], 'td'));
  out.append(el('div', {class: 'wide', tabindex: '0', role: 'region',
                        'aria-label': 'Table'}, el('table', {}, head, body)));
  return i;
}

function paragraph(lines, i, out) {
  const inside = [];
  do {
    inside.push(lines[i]);
    i += 1;
  } while (i < lines.length && lines[i].trim() !== ''
           && !FENCE.test(lines[i]) && !HEADING.test(lines[i])
           && !QUOTE.test(lines[i]) && !ITEM.test(lines[i])
           && !RULE.test(lines[i]) && !isTable(lines, i));
  out.append(inline(el('p'), inside.join('\n')));
  return i;
}

// One alternative a mark; each has a bound or cannot run over its own end mark.
const MARKS = new RegExp([
  '\\\\([!-/:-@\\[-`{-~])',                          // 1: an escape
  '(`+)([^`]+|[^`][^]*?[^`])\\2(?!`)',               // 2, 3: code
  '!?\\[([^\\[\\]]{0,500})\\]\\(\\s*<?([^\\s()<>]{1,2000}(?:\\([^\\s()<>]{0,500}\\)[^\\s()<>]{0,500})?)>?(?:\\s+"[^"\\n]{0,300}")?\\s*\\)', // 4, 5
  '<?(https?://[^\\s<>"\'`]{1,2000}[^\\s<>"\'`.,:;!?)\\]*_])>?', // 6: an address
  '\\*\\*(?=\\S)([^*]{1,5000}?(?:\\*[^*]{1,2000}\\*[^*]{0,2000}?)?)\\*\\*',  // 7
  '(?<![\\p{L}\\p{N}_])__(?=\\S)([^_]{1,5000})__(?![\\p{L}\\p{N}_])', // 8
  '\\*(?=[^\\s*])([^*]{1,5000})\\*',                // 9
  '(?<![\\p{L}\\p{N}_])_(?=[^\\s_])([^_]{1,5000})_(?![\\p{L}\\p{N}_])', // 10
  '~~(?=\\S)([^~]{1,5000})~~',                        // 11
  '( {2,}|\\\\)\\n',                                  // 12: a line's end
].join('|'), 'gu');

/// Appends a line's text with its marks; @returns the element.
function inline(element, text, depth = 0) {
  if (text.length > LINE_MAX || depth > DEPTH_MAX) {
    element.append(text);
    return element;
  }
  let end = 0;
  for (const match of text.matchAll(MARKS)) {
    element.append(text.slice(end, match.index));
    end = match.index + match[0].length;
    const [whole, escaped, , code, label, target, address, strong, strong2,
           em, em2, gone] = match;
    const into = (tag, inside) => inline(el(tag), inside, depth + 1);
    if (escaped !== undefined) element.append(escaped);
    else if (code !== undefined)
      element.append(el('code', {text: code.replace(/^ (.*\S.*) $/, '$1')}));
    else if (target !== undefined) element.append(link(target, label, whole, depth));
    else if (address !== undefined) element.append(link(address, address, whole, 99));
    else if (strong ?? strong2) element.append(into('strong', strong ?? strong2));
    else if (em ?? em2) element.append(into('em', em ?? em2));
    else if (gone !== undefined) element.append(into('del', gone));
    else element.append(el('br'));
  }
  element.append(text.slice(end));
  return element;
}

/// A link, or the text as it is where it leads elsewhere than to the web.
function link(target, label, whole, depth) {
  let url;
  try {
    url = new URL(target);
  } catch {
    return document.createTextNode(whole);
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    return document.createTextNode(whole);
  return inline(el('a', {href: url.href, target: '_blank',
                         rel: 'noopener noreferrer nofollow'}),
                label || url.href, depth + 1 + DEPTH_MAX * (depth > DEPTH_MAX));
}
