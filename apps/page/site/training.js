// training.js -- the section that follows a training job: its curves and its end.
import {ask, get, wait, words} from './api.js';
import {averaged, Chart} from './chart.js';
import {byId, el, show} from './dom.js';
import {events} from './events.js';
import {clock, duration, number} from './format.js';

const RECENT = 20;        // steps whose pace gives the time that is left
const LINES_MAX = 50;     // of checkpoints, and of notices
const AGAIN_MS = 2000;

/// What a job's events have told.
export class Run {
  constructor() {
    this.steps = []; // of island 0, in order
    this.losses = [];
    this.checkpoints = [];
    this.notices = [];
    this.done = null;
  }

  take(event) {
    if (event.event === 'step' && !event.island) {
      // After a loss of peers, steps may be done again.
      while (this.steps.length && this.steps.at(-1).step >= event.step)
        this.steps.pop();
      this.steps.push(event);
    } else if (event.event === 'eval' && !event.island) {
      while (this.losses.length && this.losses.at(-1).step >= event.step)
        this.losses.pop();
      this.losses.push(event);
    } else if (event.event === 'checkpoint') {
      this.checkpoints.unshift(event);
      this.checkpoints.length = Math.min(this.checkpoints.length, LINES_MAX);
    }
    else if (event.event === 'view')
      this.notice(event, event.cause ?? event.plan, true);
    else if (event.event === 'notice') this.notice(event, event.text, event.waits);
    else if (event.event === 'done') this.done = event;
  }

  notice(event, text, strong) {
    if (text) this.notices.unshift({text, strong, at: event.unix_ms});
    this.notices.length = Math.min(this.notices.length, LINES_MAX);
  }

  /// Tokens/s of the newest steps, whose times are the tokens by the speed.
  pace() {
    const recent = this.steps.slice(-RECENT).filter((e) => e.tokens_per_s > 0);
    return recent.length / recent.reduce((sum, e) => sum + 1 / e.tokens_per_s, 0);
  }

  /// Seconds until the last step, at the pace of the newest ones.
  left(total) {
    const recent = this.steps.slice(-RECENT);
    const span = recent.length > 1
      ? recent.at(-1).unix_ms - recent[0].unix_ms : 0;
    const steps = recent.length > 1 ? recent.at(-1).step - recent[0].step : 0;
    return steps > 0 ? (total - recent.at(-1).step) * span / steps / 1000 : null;
  }
}

const line = (name, kind, list, field) => ({
  name, kind, points: list.filter((e) => Number.isFinite(e[field]))
    .map((e) => [e.step, e[field]])});

export function makeTraining() {
  const charts = {loss: new Chart('Loss', ''), lr: new Chart('Learning rate', ''),
                  speed: new Chart('Speed', ' tokens/s')};
  byId('charts').append(...Object.values(charts).map((chart) => chart.element));
  const picker = byId('train-job');
  let jobs = [], chosen = null, run = null, stop = null, due = false;

  function draw() {
    due = false;
    const job = jobs.find((each) => each.id === chosen);
    byId('train-body').hidden = !job;
    byId('train-empty').hidden = Boolean(job);
    if (!job) return;
    charts.loss.draw([line('training', 'first', run.steps, 'loss'),
                      line('held-out', 'second', run.losses, 'loss')]);
    charts.lr.draw([line('learning rate', 'first', run.steps, 'lr')]);
    const speed = line('speed', 'first', run.steps, 'tokens_per_s');
    charts.speed.draw([{...speed, points: averaged(speed.points)}]);
    const step = Math.max(run.steps.at(-1)?.step ?? 0, job.step);
    const progress = byId('train-progress');
    progress.max = Math.max(1, job.steps);
    progress.value = step;
    const left = job.state === 'running' && !run.done ? run.left(job.steps) : null;
    const facts = [['State', run.done?.state ?? job.state],
                   ['Step', `${step} of ${job.steps}`],
                   ['Time left', left === null ? '-' : `about ${duration(left)}`],
                   ['Loss', number(run.steps.at(-1)?.loss)],
                   ['Held-out loss', number(run.losses.at(-1)?.loss)],
                   ['Speed', run.steps.length
                     ? `${number(run.pace())} tokens/s` : '-'],
                   ['Peers', run.steps.at(-1)?.peers ?? '-']];
    const why = run.done?.cause ?? job.cause ?? job.waiting;
    if (why) facts.push(['Why', why]);
    show(byId('train-facts'), facts.map(([name, value]) =>
      el('div', {}, el('dt', {text: name}), el('dd', {text: String(value)}))));
    show(byId('checkpoints'), run.checkpoints.length ? run.checkpoints.map((c) =>
      el('li', {}, `step ${c.step} `, el('time', {text: clock(c.unix_ms)}),
         c.digest ? el('code', {text: ` ${c.digest.slice(0, 12)}`}) : null))
      : el('li', {text: 'None yet.'}));
    show(byId('train-notices'), run.notices.length ? run.notices.map((n) =>
      el('li', {class: n.strong ? 'strong' : null},
         el('time', {text: clock(n.at)}), ` ${n.text}`))
      : el('li', {text: 'None yet.'}));
  }

  const changed = () => {
    if (!due) setTimeout(draw, 100);
    due = true;
  };

  /// Follows a job until another is chosen or it has ended. A stream that is cut
  /// begins anew, from the job's first event.
  async function follow(id) {
    stop?.abort();
    stop = new AbortController();
    const {signal} = stop;
    chosen = id;
    run = new Run();
    changed();
    while (!signal.aborted && !run.done) {
      const next = new Run();
      try {
        const path = `/shoal/jobs/${encodeURIComponent(id)}/events`;
        const response = await ask(path, {signal});
        byId('train-error').textContent = '';
        // The curves stand until the new ones are as long.
        for await (const {data} of events(response)) {
          next.take(JSON.parse(data));
          if (next.steps.length >= run.steps.length) run = next;
          changed();
        }
        run = next;
      } catch (error) {
        if (signal.aborted) return;
        byId('train-error').textContent = words(error);
      }
      if (!run.done) await wait(AGAIN_MS, signal).catch(() => {});
    }
  }

  async function refresh() {
    let all;
    try {
      all = await get('/shoal/jobs');
      byId('train-error').textContent = '';
    } catch (error) {
      byId('train-error').textContent = words(error);
      return;
    }
    jobs = all.filter((job) => job.kind === 'train')
      .sort((a, b) => (b.state === 'running') - (a.state === 'running')
                      || (b.submitted_unix_ms ?? 0) - (a.submitted_unix_ms ?? 0));
    if (document.activeElement !== picker)
      show(picker, jobs.map((job) =>
        el('option', {value: job.id, text: `${job.name || job.id} (${job.state})`})));
    if (!jobs.some((job) => job.id === chosen)) {
      chosen = null;
      stop?.abort();
      if (jobs.length) void follow(jobs[0].id);
    }
    if (chosen) picker.value = chosen;
    changed();
  }

  picker.addEventListener('change', () => void follow(picker.value));
  return {refresh};
}
