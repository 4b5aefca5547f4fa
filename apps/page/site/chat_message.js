// chat_message.js -- a message as an element: text, thoughts, numbers, actions.
import {words} from './api.js';
import {copyButton, el} from './dom.js';
import {number} from './format.js';
import {markdown} from './markdown.js';

export class MessageView {
  /// @param actions {edit, again}: what the buttons do
  constructor(message, actions) {
    this.message = message;
    const own = message.role === 'user';
    this.body = el('div', {class: 'text'});
    this.thoughts = el('div', {class: 'text'});
    this.fold = el('details', {class: 'thoughts', hidden: true},
                   el('summary', {text: 'Thoughts'}), this.thoughts);
    this.numbers = el('span', {class: 'numbers'});
    this.error = el('p', {class: 'error', role: 'alert', hidden: true});
    this.edit = el('button', {type: 'button', class: 'small', text: 'Edit',
                              onclick: actions.edit});
    this.again = el('button', {type: 'button', class: 'small', text: 'Regenerate',
                               onclick: actions.again});
    this.element = el('li', {class: own ? 'message own' : 'message'},
      el('h3', {text: own ? 'You' : 'Model'}), this.fold, this.body, this.error,
      el('div', {class: 'actions'}, copyButton(() => message.content),
         own ? this.edit : this.again, this.numbers));
    this.draw();
  }

  /// @param last  whether it can be edited or made again
  setLast(last) {
    this.edit.hidden = this.again.hidden = !last;
  }

  draw() {
    const m = this.message;
    if (m.role === 'user') {
      this.body.replaceChildren(el('p', {class: 'typed', text: m.content}));
      return;
    }
    if (m.plain) this.body.replaceChildren(el('p', {class: 'typed', text: m.content}));
    else this.body.replaceChildren(markdown(m.content));
    this.fold.hidden = !m.reasoning;
    this.thoughts.replaceChildren(markdown(m.reasoning ?? ''));
    const busy = m.state === 'waiting' || m.state === 'coming';
    this.element.classList.toggle('busy', busy);
    this.numbers.textContent = numbers(m);
    this.error.hidden = !m.error;
    // After a reload an error is no longer more than its words.
    if (m.error instanceof Error) m.error = words(m.error);
    this.error.textContent = m.error ?? '';
  }
}

function numbers(m) {
  const parts = [];
  if (m.first !== undefined) parts.push(`first token ${number(m.first)} s`);
  if (m.tokens) {
    parts.push(`${m.tokens} tokens`);
    const rest = m.seconds - m.first;
    if (m.tokens > 1 && rest > 0)
      parts.push(`${number((m.tokens - 1) / rest)} tokens/s`);
  }
  if (m.state === 'stopped') parts.push('stopped');
  if (m.finish === 'length') parts.push('ended at the length limit');
  if (m.state === 'waiting') parts.push('waiting for the first token');
  if (m.cut) parts.push('connection lost, resuming');
  return parts.join(' \u00b7 ');
}
