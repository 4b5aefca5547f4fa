// chat.js -- the section in which one talks with a model.
import {get, words} from './api.js';
import {MessageView} from './chat_message.js';
import {Conversation} from './conversation.js';
import {announce, byId, el, show} from './dom.js';

const OPTIONS = ['system', 'temperature', 'top_p', 'max_tokens'];

export function makeChat() {
  const talk = new Conversation();
  const log = byId('log'), input = byId('question'), note = byId('chat-note');
  let views = [];
  let models = null; // names of those that are served; null: not known yet
  let stop = null; // of the answer that comes

  // ---- what is shown

  function redraw() {
    views = talk.messages.map((message) => new MessageView(
      message, {edit, again: () => { void regenerate(); }}));
    log.replaceChildren(...views.map((view) => view.element));
    mark();
  }

  function mark() {
    const last = (role) => talk.messages.findLastIndex((m) => m.role === role);
    views.forEach((view, i) => view.setLast(
      !stop && i === last(talk.messages[i].role)));
    byId('chat-empty').hidden = views.length > 0 || models?.length === 0;
    byId('chat-begin').hidden = views.length > 0 || models?.length !== 0;
    byId('send').hidden = Boolean(stop);
    byId('stop').hidden = !stop;
    byId('new-chat').disabled = views.length === 0;
    log.setAttribute('aria-busy', String(Boolean(stop)));
    note.hidden = !talk.plain.has(talk.model);
  }

  /// Follows the text, unless the reader has scrolled up.
  function follow(change) {
    const end = document.scrollingElement;
    const near = end.scrollHeight - end.scrollTop - end.clientHeight < 120;
    change();
    if (near) end.scrollTop = end.scrollHeight;
  }

  // ---- what is done

  async function answer() {
    if (stop) return;
    stop = new AbortController();
    let view, due = false;
    const draw = () => {
      due = false;
      follow(() => view.draw());
    };
    const changed = (cut) => {
      if (cut !== undefined) view.message.cut = cut;
      if (!due) requestAnimationFrame(draw);
      due = true;
    };
    announce('The model answers');
    const done = await talk.answer(stop.signal, () => {
      follow(redraw);
      view = views.at(-1);
    }, changed);
    done.cut = false;
    stop = null;
    follow(redraw);
    announce({done: 'The answer is complete', stopped: 'Stopped'}[done.state]
             ?? 'The answer has failed');
  }

  async function send() {
    const content = input.value;
    if (!content.trim() || stop) return;
    if (!talk.model) {
      announce('No model is served');
      return;
    }
    talk.messages.push({role: 'user', content});
    input.value = '';
    fit();
    await answer();
    input.focus();
  }

  async function regenerate() {
    while (talk.messages.at(-1)?.role === 'assistant') talk.messages.pop();
    await answer();
  }

  /// Takes the last question back into the field.
  function edit() {
    const from = talk.messages.findLastIndex((m) => m.role === 'user');
    input.value = talk.messages[from].content;
    talk.messages.length = from;
    talk.save();
    redraw();
    fit();
    input.focus();
  }

  function fit() {
    input.style.height = 'auto';
    input.style.height = `${Math.min(input.scrollHeight + 2, 240)}px`;
  }

  // ---- models

  /// What a user without a model can do, and what comes.
  async function lookForOthers() {
    const [status, loads] = await Promise.all([get('/shoal/status'),
                                               get('/models/loads')]);
    byId('chat-load').hidden = !loads.allowed;
    byId('chat-serve').hidden = loads.allowed;
    const coming = [
      ...status.jobs.filter((j) => j.kind === 'serve' && j.state === 'running')
        .map((j) => `${j.name}${j.waiting ? ` (waits: ${j.waiting})` : ''}`),
      ...loads.loads.filter((l) => l.state !== 'failed').map((l) => l.model)];
    byId('chat-coming').hidden = coming.length === 0;
    byId('chat-coming').textContent = `On its way: ${coming.join(', ')}`;
    byId('node-name').textContent = status.name;
  }

  async function look() {
    const picker = byId('model');
    try {
      models = (await get('/v1/models')).data.map((model) => model.id);
      byId('model-error').textContent = '';
      if (!models.length) await lookForOthers();
    } catch (error) {
      byId('model-error').textContent = words(error);
      return;
    }
    if (!models.includes(talk.model)) talk.model = models[0] ?? talk.model;
    if (document.activeElement !== picker)
      show(picker, models.map((id) => el('option', {value: id, text: id})));
    picker.value = talk.model;
    picker.disabled = models.length === 0;
    mark();
  }

  // ---- controls

  for (const name of OPTIONS) {
    const field = byId(name.replace('_', '-'));
    field.value = talk[name];
    field.addEventListener('input', () => {
      talk[name] = field.validity.valid ? field.value : '';
      talk.save();
    });
  }
  byId('model').addEventListener('change', (event) => {
    talk.model = event.target.value;
    talk.save();
    mark();
  });
  byId('composer').addEventListener('submit', (event) => {
    event.preventDefault();
    void send();
  });
  input.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      void send();
    }
  });
  input.addEventListener('input', fit);
  byId('stop').addEventListener('click', () => {
    stop?.abort();
    input.focus();
  });
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && stop && !document.querySelector('dialog[open]'))
      stop.abort();
  });
  byId('new-chat').addEventListener('click', () => {
    stop?.abort();
    talk.clear();
    redraw();
    input.focus();
  });
  // What was coming when the page was left has stopped.
  for (const message of talk.messages)
    if (message.state === 'waiting' || message.state === 'coming')
      message.state = 'stopped';
  redraw();
  return {refresh: look};
}
