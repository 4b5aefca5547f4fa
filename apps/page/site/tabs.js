// tabs.js -- the sections of the page, as tabs with the keys of the ARIA pattern.
//
// The address's fragment names the tab, so that a reload and a bookmark keep it.
import {byId} from './dom.js';

/// @param opened(name) is called whenever another tab is shown
export function makeTabs(opened) {
  const tabs = [...document.querySelectorAll('[role=tab]')];
  const names = tabs.map((tab) => tab.id.replace('tab-', ''));

  function select(name, focus) {
    tabs.forEach((tab, i) => {
      const chosen = names[i] === name;
      tab.setAttribute('aria-selected', String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      byId(`panel-${names[i]}`).hidden = !chosen;
      if (chosen && focus) tab.focus();
    });
    document.title = `${byId(`tab-${name}`).textContent} - Shoal`;
    opened(name);
  }

  function fromAddress() {
    const name = location.hash.slice(1);
    select(names.includes(name) ? name : names[0], false);
  }

  tabs.forEach((tab, i) => {
    tab.addEventListener('click', () => go(i));
    tab.addEventListener('keydown', (event) => {
      const to = {ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0,
                  End: tabs.length - 1}[event.key];
      if (to === undefined) return;
      event.preventDefault();
      go((to + tabs.length) % tabs.length);
    });
  });

  function go(i) {
    history.replaceState(null, '', `#${names[i]}`);
    select(names[i], true);
  }

  window.addEventListener('hashchange', fromAddress);
  fromAddress();
}
