// conversation.js -- what was said, and how to ask for more; kept for this tab.
import {ApiError, resumed} from './api.js';

const STORE = 'shoal.chat';
const NONE = {model: '', system: '', temperature: '', top_p: '', max_tokens: '',
              messages: []};

/// The options are texts, as typed: "" leaves it to the model.
export class Conversation {
  constructor() {
    try {
      Object.assign(this, NONE, JSON.parse(sessionStorage.getItem(STORE)) ?? {});
    } catch {
      Object.assign(this, NONE);
    }
    this.messages = [...this.messages];
    this.plain = new Set(); // models without a chat template
  }

  save() {
    const kept = Object.fromEntries(
      Object.keys(NONE).map((name) => [name, this[name]]));
    try {
      sessionStorage.setItem(STORE, JSON.stringify(kept));
    } catch { /* it is full: the conversation lasts until the page is left */ }
  }

  clear() {
    this.messages = [];
    this.save();
  }

  body(plain) {
    const said = this.messages
      .filter((m) => m.content || m.role === 'user')
      .map(({role, content}) => ({role, content}));
    if (this.system.trim())
      said.unshift({role: 'system', content: this.system});
    const body = {model: this.model, stream: true,
                  stream_options: {include_usage: true,
                                   continuous_usage_stats: true}};
    for (const name of ['temperature', 'top_p', 'max_tokens'])
      if (this[name] !== '') body[name] = Number(this[name]);
    if (!plain) return {...body, messages: said};
    // Such a model continues a text. Few tokens are the default of that path.
    return {max_tokens: 256, ...body,
            prompt: said.map((m) => m.content).join('\n')};
  }

  /// Asks for the next message and fills it while it comes.
  /// @param begun  called with the message, empty so far; again if it is asked for
  ///               by the other path
  /// @param changed  called after each piece; changed(true) while it is cut
  async answer(signal, begun, changed) {
    const message = {role: 'assistant', content: '', reasoning: '', state: 'waiting'};
    const plain = message.plain = this.plain.has(this.model);
    const path = plain ? '/v1/completions' : '/v1/chat/completions';
    const body = this.body(plain);
    this.messages.push(message);
    begun(message);
    const begin = performance.now();
    const seconds = () => (performance.now() - begin) / 1000;
    try {
      for await (const event of resumed(path, body, signal, changed)) {
        if (event.again) {
          message.content = message.reasoning = '';
          continue;
        }
        take(message, JSON.parse(event.data), seconds);
        changed();
      }
      message.state = 'done';
    } catch (error) {
      if (error instanceof ApiError && error.status === 400 && !plain
          && !message.content
          && /no chat template|chat template is broken/.test(error.message)) {
        this.plain.add(this.model);
        this.messages.pop();
        return this.answer(signal, begun, changed);
      }
      message.state = signal.aborted ? 'stopped' : 'failed';
      if (!signal.aborted) message.error = error;
    }
    message.seconds = seconds();
    this.save();
    return message;
  }
}

/// Adds an event of either API to a message.
function take(message, event, seconds) {
  const choice = event.choices?.[0];
  const delta = choice?.delta ?? {content: choice?.text};
  const thought = delta.reasoning_content ?? '';
  if ((delta.content || thought) && message.state === 'waiting') {
    message.state = 'coming';
    message.first = seconds();
  }
  message.content += delta.content ?? '';
  message.reasoning += thought;
  if (choice?.finish_reason) message.finish = choice.finish_reason;
  if (event.usage) message.tokens = event.usage.completion_tokens;
  message.seconds = seconds();
}
