// app.js -- begins the page: its sections, the key, and what is asked how often.
import {forgetKey, hasKey, onKeyNeeded, setKey} from './api.js';
import {makeChat} from './chat.js';
import {byId} from './dom.js';
import {makeJobs} from './jobs.js';
import {makeModels} from './models.js';
import {makeShoal} from './shoal.js';
import {makeTabs} from './tabs.js';
import {makeTraining} from './training.js';

const PERIOD_MS = {chat: 3000, models: 1000, shoal: 2000, training: 2000,
                   jobs: 2000};

let declined = false; // who has said no is not asked again by each look

async function askForKey() {
  byId('enter-key').hidden = false;
  if (declined) return false;
  const dialog = byId('key-dialog');
  byId('key-error').hidden = !hasKey();
  byId('key').value = '';
  dialog.returnValue = '';
  dialog.showModal();
  await new Promise((resolve) => {
    dialog.addEventListener('close', resolve, {once: true});
  });
  declined = dialog.returnValue !== 'given';
  byId('enter-key').hidden = !declined;
  byId('forget-key').hidden = !hasKey();
  return !declined;
}

onKeyNeeded(askForKey);
byId('key-form').addEventListener('submit', (event) => {
  event.preventDefault();
  const key = byId('key').value.trim();
  if (!key) return;
  setKey(key);
  byId('key').value = '';
  byId('key-dialog').close('given');
});
byId('key-cancel').addEventListener('click', () => byId('key-dialog').close(''));
byId('enter-key').addEventListener('click', () => {
  declined = false;
  void refresh();
});
byId('forget-key').hidden = !hasKey();
byId('forget-key').addEventListener('click', () => {
  forgetKey();
  location.reload();
});

const sections = {chat: makeChat(), models: makeModels(), shoal: makeShoal(),
                  training: makeTraining(), jobs: makeJobs()};
let shown = 'chat', timer = 0, turn = 0;

/// Asks what the shown section needs, then again after its period: never twice at
/// once, and not while nobody looks.
async function refresh() {
  const mine = ++turn;
  clearTimeout(timer);
  try {
    if (!document.hidden) await sections[shown].refresh();
  } catch (error) {
    console.error(error); // the next look may find what this one did not
  }
  if (mine === turn) timer = setTimeout(refresh, PERIOD_MS[shown]);
}

makeTabs((name) => {
  shown = name;
  void refresh();
});
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) void refresh();
});
