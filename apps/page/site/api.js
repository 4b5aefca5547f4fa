// api.js -- asks the node that this page comes from, with the user's API key.
//
// The key is kept for this tab only (sessionStorage) and sent as a header, never
// in an address. An answer 401 asks for it once, whoever has made the request.
import {events} from './events.js';

const KEY = 'shoal.key';
let askForKey = async () => false;
let asked = null; // the dialog that is open

/// @param ask  asks the user, stores the key by setKey(); false: none was given
export function onKeyNeeded(ask) { askForKey = ask; }
export const setKey = (key) => sessionStorage.setItem(KEY, key);
export const forgetKey = () => sessionStorage.removeItem(KEY);
export const hasKey = () => sessionStorage.getItem(KEY) !== null;

export class ApiError extends Error {
  constructor(status, message, retryAfter = 0) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/// Sends a request; throws ApiError for an answer that is not 2xx, and TypeError
/// where there is none.
export async function ask(path, {method = 'GET', body, headers = {}, signal} = {}) {
  for (;;) {
    const key = sessionStorage.getItem(KEY);
    const response = await fetch(path, {
      method, signal, cache: 'no-store', credentials: 'omit', redirect: 'error',
      headers: {...(key ? {Authorization: `Bearer ${key}`} : {}),
                ...(body === undefined ? {} : {'Content-Type': 'application/json'}),
                ...headers},
      body: body === undefined ? undefined : JSON.stringify(body)});
    if (response.ok) return response;
    const error = await errorOf(response);
    if (response.status !== 401) throw error;
    // Another request may have got a key meanwhile.
    if (sessionStorage.getItem(KEY) !== key) continue;
    asked ??= askForKey().finally(() => { asked = null; });
    if (!await asked) throw error;
  }
}

export const get = async (path, signal) => (await ask(path, {signal})).json();
export const post = async (path, body) =>
  (await ask(path, {method: 'POST', body})).json().catch(() => ({}));

export const remove = async (path) =>
  (await ask(path, {method: 'DELETE'})).json().catch(() => ({}));

async function errorOf(response) {
  let message = `the node answered with status ${response.status}`;
  try {
    const said = await response.json();
    message = said.error?.message ?? said.message ?? message;
  } catch { /* it is not JSON: the status must do */ }
  return new ApiError(response.status, message,
                      Number(response.headers.get('Retry-After')) || 0);
}

/// What an error says to the user.
export function words(error) {
  return error instanceof ApiError
    ? error.message : 'This node does not answer. The page tries again.';
}

export const wait = (ms, signal) => new Promise((resolve, reject) => {
  const stop = () => { clearTimeout(timer); reject(signal.reason); };
  const timer = setTimeout(() => {
    signal?.removeEventListener('abort', stop);
    resolve();
  }, ms);
  signal?.addEventListener('abort', stop, {once: true});
});

// A node that was killed is started again within this time, or the stream of its
// proxy goes on at another one.
const PATIENCE_MS = 60000;

/// The events of a stream of the model API, as {id, data}, until [DONE]. A stream
/// that is cut is asked for again, with its Idempotency-Key and the id of the last
/// event, and goes on there: nobody notices but `onCut(true)`, then onCut(false).
/// If it has to begin anew, {again: true} comes first.
export async function* resumed(path, body, signal, onCut = () => {}) {
  const key = [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, '0')).join('');
  let last = null, since = 0, pause = 200, begun = false;
  for (;;) {
    let failure;
    try {
      const headers = {'Idempotency-Key': key,
                       ...(last === null ? {} : {'Last-Event-ID': last})};
      const response = await ask(path, {method: 'POST', body, headers, signal});
      for await (const event of events(response)) {
        if (since) onCut(false);
        since = 0;
        pause = 200;
        if (event.data === '[DONE]') return;
        const error = JSON.parse(event.data).error;
        if (error)
          throw new ApiError(error.code === 'unavailable' ? 503 : 500, error.message);
        begun = true;
        yield event;
        last = event.id ?? last;
      }
      failure = new TypeError('the stream was cut');
    } catch (error) {
      failure = error;
    }
    signal?.throwIfAborted();
    // Of a model that still trains, another version may answer: 410, or an event.
    const anew = failure.message.includes('without Last-Event-ID');
    if (anew) last = null;
    // Refusals stand, except of a node that starts or has too much to do.
    const passes = failure instanceof TypeError || failure.status === 429
                   || failure.status === 503 || anew;
    since ||= Date.now();
    if (!passes || Date.now() - since > PATIENCE_MS) throw failure;
    onCut(true);
    if (begun && last === null) yield {again: true};
    await wait(Math.max(pause, (failure.retryAfter ?? 0) * 1000), signal);
    pause = Math.min(pause * 2, 3000);
  }
}
