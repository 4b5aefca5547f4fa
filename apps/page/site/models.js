// models.js -- the section with the served models: where their stages lie, how far
// those are that are being loaded; loads, cancels and unloads.
import {get, post, remove, words} from './api.js';
import {announce, byId, el, show} from './dom.js';
import {age, bytes} from './format.js';

const layers = (stage) => (stage.last_layer < stage.first_layer
  ? 'no layers' : `layers ${stage.first_layer}-${stage.last_layer}`);

/// What a model does now, and whether all is well.
function stateOf(job, load) {
  const ready = load?.pipelines.filter((p) => p.ready).length ?? 0;
  const all = job.pipelines ?? load?.pipelines.length ?? 1;
  if (job.ending) return ['leaving', 'ending: requests under way are answered'];
  if (job.waiting) return ['joining', `waits: ${job.waiting}`];
  if (!ready)
    return ['joining', 'peers fetch their layers: '
                       + `0 of ${all} ${all === 1 ? 'pipeline' : 'pipelines'} ready`];
  return ['running', all === 1 ? 'ready' : `ready: ${ready} of ${all} pipelines`];
}

function stages(status, job) {
  const places = job.places ?? [];
  const name = (id) => status.peers.find((p) => p.id === id)?.name || id.slice(0, 8);
  return places.flatMap((pipeline, i) => pipeline.map((stage, k) => el('li', {},
    places.length > 1 ? `pipeline ${i}, ` : '', pipeline.length > 1 ? `stage ${k}: ` : '',
    `${layers(stage)} on ${name(stage.id)}`)));
}

function row(status, job, allowed) {
  const load = status.serving?.find((each) => each.job === job.id);
  const [kind, text] = stateOf(job, load);
  const sum = (field) => (load?.pipelines ?? []).reduce((n, p) => n + p[field], 0);
  const cell = (label, ...inside) => el('td', {'data-label': label}, inside);
  const where = stages(status, job);
  return el('tr', {'data-key': job.id},
    el('th', {scope: 'row'}, job.name || job.id),
    cell('State', el('span', {class: `state ${kind}`, text})),
    cell('Stages', where.length ? el('ul', {class: 'bare'}, where) : '-'),
    cell('Requests', `${sum('running')} running, ${sum('waiting')} waiting`),
    cell('Cache', sum('pages_max')
      ? `${Math.round(100 * sum('pages') / sum('pages_max'))} % used` : '-'),
    cell('Since', age(job.submitted_unix_ms), job.user ? ` by ${job.user}` : ''),
    cell('Unload', allowed && !job.ending
      ? el('button', {type: 'button', class: 'small danger', 'data-unload': job.name,
                      'aria-label': `Unload ${job.name}`, text: 'Unload'})
      : '-'));
}

function loadLine(load, allowed) {
  const name = load.as && load.as !== load.model ? `${load.model} as ${load.as}`
                                                 : load.model;
  const line = {'data-key': load.id};
  const button = (text) => (allowed
    ? el('button', {type: 'button', class: 'small', 'data-load': load.id,
                    'data-model': name, 'aria-label': `${text} ${name}`, text})
    : null);
  if (load.state === 'failed')
    return el('li', {...line, class: 'bad'}, `${name} was not loaded: ${load.error} `,
              button('Dismiss'));
  if (load.state === 'ending')
    return el('li', line, `${name}: ends, since it was cancelled`);
  const done = load.state === 'waiting' ? 'begins'
    : load.all ? `${load.activity}: ${Math.round(100 * load.done / load.all)} %`
      : load.done ? `${load.activity}: ${bytes(load.done)}` : load.activity;
  const bar = el('progress', {max: 100, 'aria-label': `Progress of ${name}`,
    value: load.all ? Math.round(100 * load.done / load.all) : null});
  return el('li', line, `${name}: ${done}`, load.notice ? ` (${load.notice})` : '', bar,
            ' ', button('Cancel'));
}

/// A second click within this time is the end of a double click: the line below may
/// have taken the place of the first one.
const DOUBLE_CLICK_MS = 500;

export function makeModels() {
  let status = null, allowed = null, wrong = '';

  /// Does what a click asks for, and shows why not until the next one.
  async function act(what, why = () => true) {
    wrong = '';
    try {
      await what();
    } catch (error) {
      if (why(error)) wrong = words(error);
    }
    await refresh();
  }

  async function refresh() {
    let loads;
    try {
      [status, loads] = await Promise.all([get('/shoal/status'), get('/models/loads')]);
    } catch (error) {
      byId('models-error').textContent = words(error);
      return;
    }
    byId('models-error').textContent = [wrong, status.waiting ?? '']
      .filter((text) => text).join(' ');
    allowed = loads.allowed;
    byId('load-form').hidden = !allowed;
    byId('load-off').hidden = allowed;
    const models = status.jobs.filter((j) => j.kind === 'serve' && j.state === 'running');
    byId('models-empty').hidden = models.length + loads.loads.length > 0;
    byId('models-table').hidden = models.length === 0;
    show(byId('models'), models.map((job) => row(status, job, allowed)));
    show(byId('loads'), loads.loads.map((load) => loadLine(load, allowed)));
  }

  // ---- loading one

  const result = byId('load-result');
  byId('load-form').addEventListener('submit', async (event) => {
    event.preventDefault();
    const field = (id) => byId(id).value.trim();
    const body = {model: field('load-model')};
    if (field('load-as')) body.as = field('load-as');
    if (field('load-stages')) body.stages = Number(field('load-stages'));
    if (field('load-quantize')) body.quantize = field('load-quantize');
    result.className = '';
    result.textContent = `Loading ${body.model}...`;
    const asked = post('/models/load', body);
    byId('load-model').value = byId('load-as').value = '';
    setTimeout(() => void refresh(), 200);
    try {
      const {model, notice} = await asked;
      result.textContent = `${model} is uploaded: peers fetch their layers now.`
                           + (notice ? ` ${notice}` : '');
    } catch (error) {
      result.className = 'error';
      result.textContent = `${body.model} was not loaded: ${words(error)}`;
    }
    await refresh();
  });

  // ---- cancelling that

  const cancelling = new Set(); // ids
  let clicked = -DOUBLE_CLICK_MS;
  byId('loads').addEventListener('click', async (event) => {
    const button = event.target.closest('[data-load]');
    if (!button) return;
    if (event.detail > 0) { // by a pointer, not by a key
      const before = clicked;
      clicked = event.timeStamp;
      if (clicked - before < DOUBLE_CLICK_MS) return;
    }
    const {load, model} = button.dataset;
    if (cancelling.has(load)) return;
    cancelling.add(load);
    await act(async () => {
      await remove(`/models/loads/${encodeURIComponent(load)}`);
      announce(`the load of ${model} is cancelled`);
    }, (error) => error.status !== 404); // it has just ended
    cancelling.delete(load);
  });

  // ---- unloading one

  const dialog = byId('unload-dialog');
  let asked = null;
  byId('models').addEventListener('click', (event) => {
    asked = event.target.closest('[data-unload]')?.dataset.unload;
    if (!asked) return;
    byId('unload-text').textContent = `"${asked}" is unloaded by all peers. Requests `
      + 'under way are answered; new ones are refused.';
    dialog.showModal();
  });
  byId('unload-yes').addEventListener('click', async () => {
    dialog.close();
    await act(async () => {
      await post('/models/unload', {model: asked});
      announce(`${asked} is being unloaded`);
    });
  });
  byId('unload-no').addEventListener('click', () => dialog.close());

  return {refresh};
}
