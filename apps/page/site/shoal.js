// shoal.js -- the section that shows the peers: what each holds, and how much
// goes between them.
import {get, words} from './api.js';
import {announce, byId, el, show} from './dom.js';
import {bytes, clock, number} from './format.js';
import {showTraffic} from './traffic.js';

const LOG = 'shoal.peers'; // changes that this page has seen
const LOG_MAX = 100;

/// What a peer computes for jobs: "tiny: layers 0-5 (replica 0)".
function work(status, peer) {
  return status.jobs.filter((job) => job.state === 'running').flatMap((job) => {
    const places = job.places ?? [];
    return places.flatMap((stages, replica) => stages
      .filter((stage) => stage.id === peer.id)
      .map((stage) => `${job.name}: layers ${stage.first_layer}-${stage.last_layer}`
                      + (places.length > 1 ? ` (copy ${replica})` : '')
                      + (job.tokens_per_s ? `, ${number(job.tokens_per_s)} tokens/s` : '')));
  });
}

const sum = (peer, field) =>
  (peer.devices ?? []).reduce((all, device) => all + (device[field] ?? 0), 0);

function row(status, peer) {
  const own = peer.id === status.self;
  const lines = work(status, peer);
  const flops = sum(peer, 'mflops');
  const cell = (label, ...inside) => el('td', {'data-label': label}, inside);
  return el('tr', {},
    el('th', {scope: 'row'}, peer.name || peer.id.slice(0, 8),
       own ? el('span', {class: 'badge', text: 'this node'}) : null),
    cell('State', el('span', {class: `state ${/^[a-z]+$/.test(peer.state) ? peer.state : ''}`,
                              text: peer.state})),
    cell('Holds', lines.length ? el('ul', {class: 'bare'},
      lines.map((line) => el('li', {text: line})))
      : (peer.witness ? 'votes only' : 'nothing')),
    cell('Memory', sum(peer, 'memory_bytes') ? bytes(sum(peer, 'memory_bytes')) : '-'),
    cell('Disk', sum(peer, 'disk_bytes') ? bytes(sum(peer, 'disk_bytes')) : '-'),
    cell('Speed', flops ? `${number(flops / 1000)} GFLOP/s` : '-'),
    cell('Address', el('code', {text: peer.addresses?.[0] ?? '-'})));
}

export function makeShoal() {
  let before = null;
  let log = [];
  try {
    log = JSON.parse(sessionStorage.getItem(LOG)) ?? [];
  } catch { /* it begins anew */ }

  function note(text, bad) {
    log.unshift({text, bad, at: Date.now()});
    log.length = Math.min(log.length, LOG_MAX);
    sessionStorage.setItem(LOG, JSON.stringify(log));
    announce(text);
  }

  function compare(status) {
    const now = new Map(status.peers.map((peer) => [peer.id, peer]));
    for (const [id, old] of before ?? []) {
      const peer = now.get(id);
      if (!peer)
        note(old.state === 'leaving' ? `${old.name} has left`
                                     : `${old.name} is gone`, old.state !== 'leaving');
      else if (peer.incarnation !== old.incarnation)
        note(`${peer.name} was started again`, false);
      else if (peer.state !== old.state)
        note(`${peer.name} is ${peer.state}`, peer.state === 'unreachable');
    }
    for (const [id, peer] of now)
      if (before && !before.has(id)) note(`${peer.name} has joined`, false);
    before = now;
  }

  async function refresh() {
    let status;
    try {
      status = await get('/shoal/status');
    } catch (error) {
      byId('shoal-error').textContent = words(error);
      return;
    }
    byId('shoal-error').textContent = status.waiting ?? '';
    byId('node-name').textContent = status.name;
    compare(status);
    const active = status.peers.filter((peer) => peer.state === 'active').length;
    byId('shoal-summary').textContent =
      `${status.peers.length} ${status.peers.length === 1 ? 'peer' : 'peers'}, ${active} active; view ${status.epoch}; `
      + `seen by ${status.name}`;
    show(byId('peers'), status.peers.map((peer) => row(status, peer)));
    show(byId('changes'), log.length ? log.map(({text, bad, at}) => el('li', {
      class: bad ? 'bad' : null}, el('time', {text: clock(at)}), ` ${text}`))
      : el('li', {text: 'None so far.'}));
    // Peers are asked for it, which may take a moment longer.
    try {
      showTraffic(status, await get('/shoal/traffic'));
    } catch (error) {
      byId('traffic-note').textContent = words(error);
    }
  }

  return {refresh};
}
