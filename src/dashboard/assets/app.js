// The dashboard: one page, whose views are made of the JSON documents under /api/v1. It asks for things to be shown; what
// people decide here, where they may, is in actions.js.
// Texts of others become nodes of text and nothing else: there is no place here where one is read as HTML.

import { actions } from './actions.js';
import { fleet } from './fleet.js';
import { approvals, rollouts, rounds, target } from './details.js';

const views = { fleet, approvals, rollouts, rounds, target };
const main = document.getElementById('main');
const live = document.getElementById('live');
const news = document.getElementById('news');

// Pauses between two questions: after news, and where nobody brings news.
const REST = 1000;
const POLL = 10000;
const RETRY = 60000;

// Characters that cannot be seen, or turn others around, are shown as what they are.
const HOSTILE = /[\p{Cc}\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff\u{e0000}-\u{e007f}]/gu;

export function clean(text) {
  return String(text).replace(HOSTILE, (character) => `\\u{${character.codePointAt(0).toString(16)}}`);
}

// Makes an element: attributes by name, `on` for listeners; a child is a node or a text, and nothing where it is missing.
export function el(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === 'on') Object.entries(value).forEach(([event, listener]) => element.addEventListener(event, listener));
    else if (value === true) element.setAttribute(name, '');
    else if (value !== undefined && value !== false && value !== null) element.setAttribute(name, clean(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false || child === '') continue;
    element.append(child instanceof Node ? child : document.createTextNode(clean(child)));
  }
  return element;
}

const SIGNS = {
  ok: '✓', current: '✓', changed: '✓', done: '✓', healthy: '✓', drift: '≠', different: '≠', pending: '≠', held: '▲', waiting: '…',
  going: '…', suspended: '‖', stopped: '■', failed: '✗', unhealthy: '✗', halted: '✗', returned: '↶', unreachable: '⚡', unknown: '?',
};

// A state, told by a sign and a word; the color only repeats it.
export function state(word, number) {
  const sign = el('span', { class: 'sign', 'aria-hidden': 'true' }, SIGNS[word] || '•');
  return el('span', { class: `state ${word}` }, sign, number === undefined ? word : `${number.toLocaleString('en')} ${word}`);
}

export function count(number, thing) {
  return `${number.toLocaleString('en')} ${thing}${number === 1 ? '' : 's'}`;
}

const UNITS = [['d', 86400], ['h', 3600], ['min', 60], ['s', 1]];

function age(text) {
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(text)) / 1000));
  const [unit, size] = UNITS.find(([, size]) => seconds >= size) || ['s', 1];
  return `${Math.floor(seconds / size)} ${unit}`;
}

// A time as it is told: how long ago, and in full where the mouse rests.
export function time(text, words = (age) => `${age} ago`) {
  const element = el('time', { datetime: text, title: text.replace('T', ' ').replace(/(\.\d+)?Z$/, ' UTC') }, words(age(text)));
  element.retell = () => { element.textContent = words(age(text)); };
  return element;
}

setInterval(() => document.querySelectorAll('time').forEach((element) => element.retell && element.retell()), 15000);

export function address(sync, cluster) {
  return `#/target/${encodeURIComponent(sync)}/${encodeURIComponent(cluster)}`;
}

// A command to be typed: it is not this page that carries it out.
export function command(text) {
  const said = el('span', { class: 'quiet', role: 'status' });
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      said.textContent = 'copied';
    } catch {
      said.textContent = 'select it and copy it';
    }
  };
  const button = el('button', { type: 'button', 'data-key': `copy ${text}`, 'aria-label': `Copy ${text}`, on: { click: copy } }, 'Copy');
  return el('p', { class: 'command' }, el('code', {}, text), button, said);
}

// A table with a caption, in a place of its own to scroll.
export function table(caption, heads, rows, attributes) {
  const head = heads.map((text) => el('th', { scope: 'col' }, text));
  const body = el('table', attributes, el('caption', {}, caption), el('thead', {}, el('tr', {}, head)), el('tbody', {}, rows));
  return el('div', { class: 'wide', tabindex: '0', role: 'group', 'aria-label': caption }, body);
}

export async function ask(path, parameters) {
  const given = Object.entries(parameters || {}).filter(([, value]) => value !== '' && value !== undefined && value !== null);
  const query = new URLSearchParams(given).toString();
  const response = await fetch(`/api/v1/${path}${query ? `?${query}` : ''}`, { cache: 'no-store', headers: { accept: 'application/json' } });
  const value = await response.json().catch(() => null);
  if (!response.ok) throw new Error((value && value.message) || `the daemon answers ${response.status}`);
  return value;
}

export function announce(text) {
  if (news.textContent !== text) news.textContent = text;
}

// What is shown: the view, and the number of the last question, so that an answer that comes late is not shown.
let shown = { view: null, hash: '', asked: 0, last: '' };

function route() {
  const [name, ...parts] = location.hash.replace(/^#\/?/, '').split('?')[0].split('/').map((part) => {
    try { return decodeURIComponent(part); } catch { return part; }
  });
  return { name: views[name] ? name : 'fleet', parts };
}

export function show() {
  if (location.hash === '#main') return main.focus();
  const { name, parts } = route();
  const view = views[name](parts);
  const isFirst = shown.view === null;
  shown = { view, hash: location.hash, asked: shown.asked, last: '' };
  document.title = `${view.title} – gatewright`;
  for (const link of document.querySelectorAll('nav a')) {
    if (link.hash === `#/${name}`) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  view.result = el('div', { class: 'result' }, el('p', { class: 'quiet' }, 'Loading …'));
  main.replaceChildren(el('h2', { tabindex: '-1' }, view.title), ...(view.parts || []), view.result);
  if (!isFirst) main.querySelector('h2').focus({ preventScroll: true });
  if (!isFirst) scrollTo(0, 0);
  return load();
}

// Asks again, and shows what is other than before. What is open stays open, and the keyboard stays where it is.
export async function load(isDecided) {
  const { view } = shown;
  const asked = ++shown.asked;
  let parts;
  let text;
  try {
    const [data] = await Promise.all([view.load(), actions()]);
    if (asked !== shown.asked || view !== shown.view) return;
    text = JSON.stringify(data, (key, value) => (key === 'version' ? undefined : value));
    if (text === shown.last && !isDecided) return;
    parts = view.render(data);
  } catch (error) {
    if (asked !== shown.asked || view !== shown.view) return;
    text = `failed ${error.message}`;
    parts = [el('p', { class: 'failed', role: 'alert' }, `Cannot show this: ${error.message}`)];
    if (text === shown.last) return;
  }
  shown.last = text;
  const open = new Map([...view.result.querySelectorAll('details[data-key]')].map((it) => [it.dataset.key, it.open]));
  const focus = view.result.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  const typed = new Map([...view.result.querySelectorAll('input[data-key]')].map((it) => [it.dataset.key, it.value]));
  const places = new Map([...view.result.querySelectorAll('.wide')].map((it) => [it.getAttribute('aria-label'), it.scrollLeft]));
  view.result.replaceChildren(...parts.flat(Infinity).filter(Boolean));
  for (const it of view.result.querySelectorAll('details[data-key]')) {
    if (open.has(it.dataset.key)) it.open = open.get(it.dataset.key);
  }
  for (const it of view.result.querySelectorAll('input[data-key]')) it.value = typed.get(it.dataset.key) || '';
  for (const it of view.result.querySelectorAll('.wide')) it.scrollLeft = places.get(it.getAttribute('aria-label')) || 0;
  if (focus) {
    const next = [...view.result.querySelectorAll('[data-key]')].find((it) => it.dataset.key === focus);
    (next || main).focus({ preventScroll: true });
  }
}

// News come as events; they say that there is something, and it is asked for. Who looks elsewhere need not know yet.
let due = null;
let missed = false;

function refresh() {
  if (document.hidden) { missed = true; return; }
  if (due === null) due = setTimeout(() => { due = null; load(); }, REST);
}

function tell(word, title) {
  live.replaceChildren(el('span', { class: `state ${word === 'live' ? 'ok' : 'held'}`, title }, el('span', { class: 'sign', 'aria-hidden': 'true' }, word === 'live' ? '●' : '○'), word));
}

function listen() {
  const source = new EventSource('/api/v1/events');
  source.addEventListener('open', () => { tell('live', 'News are shown as they come'); refresh(); });
  source.addEventListener('change', refresh);
  source.addEventListener('error', () => {
    tell('not live', `Asked again every ${POLL / 1000} seconds`);
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, RETRY);
  });
  setInterval(() => { if (source.readyState !== EventSource.OPEN && !document.hidden) load(); }, POLL);
}

document.addEventListener('visibilitychange', () => { if (!document.hidden && missed) { missed = false; load(); } });
document.querySelector('.skip').addEventListener('click', (event) => { event.preventDefault(); main.focus(); });
addEventListener('hashchange', show);
show();
listen();
