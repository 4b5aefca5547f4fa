// jobs.js -- the section with all jobs: submits them and ends them.
import {get, post, words} from './api.js';
import {announce, byId, el, show} from './dom.js';
import {age, number} from './format.js';

const EXAMPLE = `# A small model on texts of the node that this page comes from.
# "shoal train --example" prints all keys.
[data]
paths = ["/path/to/texts"]

[model]
hidden_size = 128
intermediate_size = 352
num_hidden_layers = 4
num_attention_heads = 4
num_key_value_heads = 2
max_position_embeddings = 256

[training]
steps = 800
seq_len = 128
local_batch_size = 4
global_batch_size = 16

[optimizer]
lr = 3e-3
`;

function row(job, allowed) {
  const running = job.state === 'running';
  const cell = (label, ...inside) => el('td', {'data-label': label}, inside);
  const why = job.cause ?? job.waiting;
  const done = job.kind === 'train' ? `${job.step} of ${job.steps}` : '-';
  return el('tr', {},
    el('th', {scope: 'row'}, job.name || job.id, el('br'),
       el('code', {class: 'quiet', text: job.id})),
    cell('Kind', job.kind),
    cell('State', el('span', {class: `state ${/^[a-z]+$/.test(job.state) ? job.state : ''}`,
                              text: job.ending && running ? 'ending' : job.state})),
    cell('Step', done),
    cell('Speed', job.tokens_per_s && running
      ? `${number(job.tokens_per_s)} tokens/s` : '-'),
    cell('Submitted', age(job.submitted_unix_ms), job.user ? ` by ${job.user}` : ''),
    cell('Why', why || '-'),
    cell('End', allowed && running && !job.ending
      ? el('button', {type: 'button', class: 'small danger', 'data-cancel': job.id,
                      'aria-label': `Cancel ${job.name || job.id}`, text: 'Cancel'})
      : '-'));
}

export function makeJobs() {
  let jobs = [];

  async function refresh() {
    let allowed;
    try {
      [jobs, {allowed}] = await Promise.all([get('/shoal/jobs'), get('/models/loads')]);
    } catch (error) {
      byId('jobs-error').textContent = words(error);
      return;
    }
    byId('jobs-error').textContent = '';
    jobs.sort((a, b) => (b.state === 'running') - (a.state === 'running')
                        || (b.submitted_unix_ms ?? 0) - (a.submitted_unix_ms ?? 0));
    byId('jobs-empty').hidden = jobs.length > 0;
    byId('jobs-table').hidden = jobs.length === 0;
    show(byId('jobs'), jobs.map((job) => row(job, allowed)));
    byId('submit-form').hidden = !allowed;
    byId('submit-off').hidden = allowed;
  }

  // ---- ending one

  const dialog = byId('cancel-dialog');
  let asked = null;
  byId('jobs').addEventListener('click', (event) => {
    asked = event.target.closest('[data-cancel]')?.dataset.cancel;
    if (!asked) return;
    const job = jobs.find((each) => each.id === asked);
    byId('cancel-text').textContent =
      `The ${job.kind === 'serve' ? 'model' : 'training job'} "${job.name || job.id}" `
      + `ends for all peers. ${job.kind === 'train'
        ? 'Its newest checkpoint is kept.' : 'Requests to it are refused then.'}`;
    dialog.showModal();
  });
  byId('cancel-yes').addEventListener('click', async () => {
    dialog.close();
    try {
      await post(`/shoal/jobs/${encodeURIComponent(asked)}/cancel`, {});
      announce('The job ends');
    } catch (error) {
      byId('jobs-error').textContent = words(error);
    }
    await refresh();
  });
  byId('cancel-no').addEventListener('click', () => dialog.close());

  // ---- submitting one

  const text = byId('run-file'), result = byId('submit-result');
  byId('example').addEventListener('click', () => {
    text.value = EXAMPLE;
    text.focus();
  });
  byId('submit-form').addEventListener('submit', async (event) => {
    event.preventDefault();
    const button = byId('submit-job');
    button.disabled = true;
    result.className = '';
    result.textContent = 'Submitting...';
    try {
      const name = byId('job-name').value.trim();
      const job = await post('/shoal/jobs', {kind: 'train', run: text.value,
                                             ...(name ? {name} : {})});
      result.textContent = `Submitted${job.id ? ` as ${job.id}` : ''}. `
                           + 'The Training tab shows its curves.';
    } catch (error) {
      result.className = 'error';
      result.textContent = words(error);
    }
    button.disabled = false;
    await refresh();
  });

  return {refresh};
}
