// page_rules.js -- what is wrong with the page as it is shown now, for people who
// read it by keyboard, by ear, or with weak eyes. The script's result is a list.
const wrong = [];
const modal = document.querySelector('dialog:modal'); // the rest is inert then
const seen = (e) => e.getClientRects().length > 0 && (!modal || modal.contains(e))
  && e.checkVisibility() && getComputedStyle(e).visibility === 'visible' && !e.closest('.offscreen, .skip');
const say = (e, what) => wrong.push(`${e.localName}#${e.id}.${e.className}: ${what}`);

// Names.
for (const e of document.querySelectorAll('input, select, textarea, progress'))
  if (seen(e) && !e.labels?.length && !e.ariaLabel) say(e, 'has no label');
for (const e of document.querySelectorAll('button, a, summary, [role=tab], [role=img]'))
  if (seen(e) && !e.textContent.trim() && !e.getAttribute('aria-label'))
    say(e, 'has no name');
for (const e of document.querySelectorAll('img'))
  if (!e.hasAttribute('alt')) say(e, 'has no alt');
for (const attribute of ['aria-controls', 'aria-labelledby', 'aria-describedby'])
  for (const e of document.querySelectorAll(`[${attribute}]`))
    if (!document.getElementById(e.getAttribute(attribute)))
      say(e, `${attribute} names nothing`);
const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
if (new Set(ids).size !== ids.length) wrong.push('an id is there twice');

// Structure. A list with a role of its own is no list any more.
for (const e of document.querySelectorAll('li'))
  if (e.parentElement.matches('[role]:not([role=list])') || !e.parentElement.matches('ul, ol'))
    say(e, 'is in no list');
if (document.querySelectorAll('h1').length !== 1) wrong.push('not one h1');
if (document.querySelectorAll('main').length !== 1) wrong.push('not one main');
if (!document.documentElement.lang) wrong.push('no language');
const tabs = [...document.querySelectorAll('[role=tab]')];
if (tabs.filter((e) => e.ariaSelected === 'true').length !== 1)
  wrong.push('not one tab is selected');
if (tabs.filter((e) => e.tabIndex === 0).length !== 1)
  wrong.push('not one tab stop among tabs');
let level = 1;
for (const e of document.querySelectorAll('h1, h2, h3, h4, h5, h6')) {
  if (e.closest('[hidden], dialog')) continue;
  const next = Number(e.localName[1]);
  if (next > level + 1) say(e, `follows h${level}`);
  level = next;
}

// Contrast: of texts 4.5, of borders of controls 3.
const channels = (text) => text.match(/[\d.]+/g).map(Number);
const luminance = (color) => {
  const [r, g, b] = color.slice(0, 3).map((c) => {
    c /= 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (a, b) => {
  const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p);
  return (x + 0.05) / (y + 0.05);
};
const behind = (e) => {
  for (; e; e = e.parentElement) {
    const color = channels(getComputedStyle(e).backgroundColor);
    if (color.length === 3 || color[3] === 1) return color;
  }
  return [255, 255, 255];
};
let texts = 0;
for (const e of document.body.querySelectorAll('*')) {
  const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  if (!seen(e) || (!own && !e.matches('input, textarea, select'))) continue;
  texts += 1;
  const style = getComputedStyle(e);
  const ink = e.closest('svg') ? style.fill : style.color;
  const found = contrast(channels(ink), behind(e));
  if (found < 4.5) say(e, `contrast ${found.toFixed(2)}`);
  if (e.matches('input, textarea, select, button:not([role=tab]):not(:disabled)')) {
    const edge = Math.max(contrast(channels(style.borderTopColor), behind(e.parentElement)),
                          contrast(channels(style.backgroundColor), behind(e.parentElement)));
    if (edge < 3) say(e, `edge ${edge.toFixed(2)}`);
  }
}
if (texts < (modal ? 3 : 20)) wrong.push(`only ${texts} texts were seen`);

// Focus, width, targets.
for (const e of document.querySelectorAll('button, select, input, textarea, summary, a')) {
  if (!seen(e) || e.disabled || e.tabIndex < 0) continue;
  e.focus({focusVisible: true, preventScroll: true});
  const style = getComputedStyle(e);
  if (document.activeElement !== e) say(e, 'takes no focus');
  else if (style.outlineStyle === 'none' || parseFloat(style.outlineWidth) < 2
           || contrast(channels(style.outlineColor), behind(e.parentElement)) < 3)
    say(e, 'its focus is not seen');
  if (e.getBoundingClientRect().height < 24) say(e, 'is too low to be hit');
}
if (document.scrollingElement.scrollWidth > innerWidth)
  wrong.push(`wider than the window: ${document.scrollingElement.scrollWidth}`);
return wrong;
