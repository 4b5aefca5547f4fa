// dom.js -- makes elements. Texts become text nodes: no text is ever read as HTML.

/// An element with properties ({class, text, on...: listener}, else attributes)
/// and children (nodes or texts; null is left out).
export function el(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

export function svg(tag, properties = {}, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag),
              properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'text') element.textContent = value;
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat().filter((child) => child !== null));
  return element;
}

export const byId = (id) => document.getElementById(id);

/// Makes the children of an element look like these, and changes only what
/// differs: a table that is drawn every two seconds keeps its focus, selection and
/// scrolling. Listeners of new nodes are lost: listen on the element instead. A node
/// with an attribute data-key stands for one thing: it is removed with it, and becomes
/// no other one.
export function show(element, ...children) {
  const next = el('div', {}, ...children);
  adapt(element, [...next.childNodes]);
}

const keyOf = (node) => node?.dataset?.key;

function adapt(element, wanted) {
  const keys = new Set(wanted.map(keyOf));
  const present = [...element.childNodes].filter((node) => {
    const stays = keyOf(node) === undefined || keys.has(keyOf(node));
    if (!stays) node.remove();
    return stays;
  });
  wanted.forEach((node, i) => {
    let old = present[i];
    if (keyOf(old) !== keyOf(node)) {
      const from = present.findIndex((other, k) => k > i && keyOf(node) !== undefined
                                                   && keyOf(other) === keyOf(node));
      const [moved] = from < 0 ? [node] : present.splice(from, 1);
      present.splice(i, 0, moved);
      element.insertBefore(moved, old ?? null);
      old = moved;
    }
    if (old === node) return;
    if (!old) element.append(node);
    else if (old.nodeName !== node.nodeName) old.replaceWith(node);
    else if (node.nodeType === Node.TEXT_NODE) {
      if (old.data !== node.data) old.data = node.data;
    } else {
      for (const {name} of [...old.attributes])
        if (!node.hasAttribute(name)) old.removeAttribute(name);
      for (const {name, value} of node.attributes)
        if (old.getAttribute(name) !== value) old.setAttribute(name, value);
      adapt(old, [...node.childNodes]);
    }
  });
  for (const old of present.slice(wanted.length)) old.remove();
}

/// Puts a text where screen readers announce it.
export function announce(text) {
  byId('announcer').textContent = text;
}

/// Copies a text, also where the page is not from a secure origin.
export async function copy(text) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = el('textarea', {class: 'offscreen', 'aria-hidden': 'true'});
  area.value = text;
  const before = document.activeElement;
  document.body.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
  before?.focus();
}

/// A button that copies what `text()` gives.
export function copyButton(text, label = 'Copy') {
  const button = el('button', {type: 'button', class: 'small', text: label});
  button.addEventListener('click', async () => {
    try {
      await copy(text());
      button.textContent = 'Copied';
    } catch {
      button.textContent = 'Not allowed';
    }
    setTimeout(() => { button.textContent = label; }, 1500);
  });
  return button;
}
