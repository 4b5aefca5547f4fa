// traffic.js -- who sends how much to whom in the whole shoal, as a matrix and as a
// list with what it is for.
//
// The node asks its peers for that whenever somebody looks: /shoal/traffic.
import {byId, el, show} from './dom.js';
import {bytes} from './format.js';

const MATRIX_MAX = 12; // peers; of more only the list is shown
const LIST_MAX = 20;

const rate = (value) => (value === null ? 'measuring' : `${bytes(value)}/s`);
const nameOf = (status, id) =>
  status.peers.find((peer) => peer.id === id)?.name || id.slice(0, 8);

function purpose(status, flow) {
  const names = flow.jobs.map(({job}) => (job === '' ? 'files'
    : status.jobs.find((each) => each.id === job)?.name || job));
  return names.join(', ') || '-';
}

function matrix(status, traffic) {
  const flows = new Map(traffic.flows.map((f) => [`${f.from} ${f.to}`, f]));
  const most = Math.max(1, ...traffic.flows.map((f) => f.bytes_per_s ?? 0));
  const silent = new Set(traffic.silent);
  const cell = (from, to) => {
    if (from.id === to.id) return el('td', {class: 'none', text: '\u2013'});
    const flow = flows.get(`${from.id} ${to.id}`);
    if (!flow && silent.has(from.id) && silent.has(to.id))
      return el('td', {class: 'none', text: '?'});
    const value = flow ? flow.bytes_per_s : 0;
    const part = (value ?? 0) / most;
    const heat = part > 0.5 ? 4 : part > 0.1 ? 3 : part > 0.01 ? 2 : value > 0 ? 1 : 0;
    return el('td', {class: `rate heat-${heat}`, text: rate(value)});
  };
  return el('table', {},
    el('caption', {class: 'offscreen', text: 'Traffic from each peer to each other'}),
    el('thead', {}, el('tr', {}, el('th', {scope: 'col', text: 'from \\ to'}),
      status.peers.map((peer) => el('th', {scope: 'col', text: nameOf(status, peer.id)})))),
    el('tbody', {}, status.peers.map((from) => el('tr', {},
      el('th', {scope: 'row', text: nameOf(status, from.id)}),
      status.peers.map((to) => cell(from, to))))));
}

function row(status, flow) {
  const cell = (label, text) => el('td', {'data-label': label, text});
  return el('tr', {},
    el('th', {scope: 'row'},
       `${nameOf(status, flow.from)} \u2192 ${nameOf(status, flow.to)}`),
    cell('Rate', rate(flow.bytes_per_s)), cell('Sent', bytes(flow.bytes)),
    cell('For', purpose(status, flow)));
}

/// Shows an answer of /shoal/traffic.
export function showTraffic(status, traffic) {
  const small = status.peers.length > 1 && status.peers.length <= MATRIX_MAX;
  byId('traffic').hidden = !small;
  if (small) show(byId('traffic'), matrix(status, traffic));
  const flows = traffic.flows.slice(0, LIST_MAX);
  byId('flows-table').hidden = flows.length === 0;
  show(byId('flows'), flows.map((flow) => row(status, flow)));
  const rest = traffic.flows.length - flows.length + traffic.more;
  const said = [];
  if (status.peers.length < 2)
    said.push('This node is alone: nothing goes between peers.');
  else if (!flows.length) said.push('No peer has sent tensors or files to another one.');
  if (rest) said.push(`And ${rest} pairs with less traffic.`);
  if (traffic.silent.length)
    said.push(`No answer from ${traffic.silent.map((id) => nameOf(status, id)).join(', ')}: `
              + 'a question mark is a pair of them.');
  byId('traffic-note').textContent = said.join(' ');
}
