// The matrix of clusters and syncs, the worst first.

import { address, announce, ask, count, el, load, state, table, time } from './app.js';

const STATUSES = ['unreachable', 'failed', 'unhealthy', 'held', 'drift', 'stopped', 'waiting', 'suspended', 'unknown', 'ok'];

// Kept while other views are shown.
const question = { q: '', status: '', sync: '', order: 'worst', from: 0 };

function again(change) {
  Object.assign(question, { from: 0 }, change);
  return load();
}

function choice(name, label, options) {
  const choices = options.map(([value, text]) => el('option', { value, selected: question[name] === value }, text));
  const select = el('select', { name, on: { change: (event) => again({ [name]: event.target.value }) } }, choices);
  return el('label', {}, label, ' ', select);
}

function form() {
  let typed = null;
  const input = (event) => {
    clearTimeout(typed);
    typed = setTimeout(() => again({ q: event.target.value.trim() }), 200);
  };
  const search = el('input', { type: 'search', name: 'q', placeholder: 'name or key=value', autocomplete: 'off', spellcheck: 'false', value: question.q, on: { input } });
  return el('form', { role: 'search', 'aria-label': 'Clusters', on: { submit: (event) => event.preventDefault() } },
    el('label', {}, 'Cluster ', search),
    choice('status', 'Status', [['', 'any'], ...STATUSES.map((it) => [it, it])]),
    el('label', {}, 'Sync ', el('select', { name: 'sync', on: { change: (event) => again({ sync: event.target.value }) } }, el('option', { value: '' }, 'all'))),
    choice('order', 'Order', [['worst', 'worst first'], ['name', 'by name']]));
}

// The syncs to choose from are known with the first answer.
function offer(form, syncs) {
  const select = form.elements.sync;
  const names = syncs.map(({ name }) => name);
  if ([...select.options].slice(1).map((it) => it.value).join() === names.join()) return;
  select.replaceChildren(el('option', { value: '' }, 'all'), ...names.map((value) => el('option', { value, selected: value === question.sync }, value)));
}

// Fingerprints of commits and directories are long, and begin unlike.
export function short(revision) {
  return /^[0-9a-f]{16,}$/.test(revision) ? revision.slice(0, 10) : revision;
}

function statuses(all) {
  return el('ul', { class: 'states' }, STATUSES.filter((it) => all[it]).map((it) => el('li', {}, state(it, all[it]))));
}

function sync({ name, source, mode, clusters, statuses: all, revisions, waiting, finished, suspended, trouble }) {
  const isReport = mode === 'report';
  const known = revisions.map(([revision, number]) => el('div', {}, el('code', { title: revision }, short(revision)),
    revisions.length > 1 && ` on ${number}`));
  return el('tr', {},
    el('th', { scope: 'row' }, name, isReport && el('small', {}, ' only reports'), suspended && el('small', {}, suspended)),
    el('td', {}, source, trouble && el('div', { class: 'why failed' }, trouble)), el('td', {}, known.length ? known : '–'), el('td', { class: 'number' }, clusters.toLocaleString('en')),
    el('td', {}, statuses(all)), el('td', {}, waiting > 0 ? el('a', { href: '#/approvals', 'data-key': `waiting ${name}` }, count(waiting, 'hold')) : '–'),
    el('td', {}, finished ? time(finished) : '–'));
}

// The few words under a status: the reason, and since when.
function reason(cell) {
  const guards = cell.guards.length > 0 && `guard ${cell.guards.join(', ')}`;
  const drift = cell.drift > 0 && `${count(cell.drift, 'object')} differ${cell.drift === 1 ? 's' : ''}`;
  const message = ['unreachable', 'failed', 'unhealthy'].includes(cell.status) && cell.message;
  const parts = [message, guards, drift].filter(Boolean);
  if (parts.length === 0 && cell.findings > 0 && cell.message) parts.push(cell.message);
  return parts.join('; ');
}

function cell(it, cluster) {
  if (!it) return el('td', { class: 'none' }, el('span', { class: 'hidden' }, 'not selected'));
  const why = reason(it);
  const link = el('a', { href: address(it.sync, cluster), 'data-key': `${it.sync}/${cluster}`, 'aria-label': `${it.sync} on ${cluster}: ${it.status}` }, state(it.status));
  return el('td', {}, link, it.since && el('small', {}, ' ', time(it.since, (age) => `for ${age}`)), why && el('div', { class: 'why' }, why),
    it.finished && el('small', { class: 'last' }, el('code', { title: it.revision }, short(it.revision)), ' · ', time(it.finished)));
}

function row({ cluster, labels, cells }, syncs) {
  const told = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
  const by = new Map(cells.map((it) => [it.sync, it]));
  return el('tr', {}, el('th', { scope: 'row' }, cluster, told.length > 0 && el('small', {}, told.slice(0, 4).join(' '))),
    syncs.map((name) => cell(by.get(name), cluster)));
}

function pages({ matching, from, rows, next }) {
  const to = (key, text, place) => el('button', { type: 'button', 'data-key': key, disabled: place === undefined, on: { click: () => again({ from: place }) } }, text);
  const before = from > 0 ? Math.max(0, from - Math.max(rows.length, 50)) : undefined;
  const words = rows.length === 0 ? 'no cluster' : `${(from + 1).toLocaleString('en')}–${(from + rows.length).toLocaleString('en')} of ${count(matching, 'cluster')}`;
  return el('nav', { class: 'pages', 'aria-label': 'Pages of clusters' }, to('before', 'Previous', before), el('span', {}, words), to('next', 'Next', next));
}

function render(data, controls) {
  offer(controls, data.syncs);
  const totals = {};
  for (const { statuses: all } of data.syncs) {
    for (const [status, number] of Object.entries(all)) totals[status] = (totals[status] || 0) + number;
  }
  const filters = STATUSES.filter((it) => totals[it]).map((it) => el('li', {}, el('button', {
    type: 'button', 'data-key': `status ${it}`, 'aria-pressed': String(question.status === it),
    on: { click: () => { controls.elements.status.value = question.status === it ? '' : it; again({ status: controls.elements.status.value }); } },
  }, state(it, totals[it]))));
  const waiting = data.syncs.reduce((sum, it) => sum + it.waiting, 0);
  const used = new Set(data.rows.flatMap((it) => it.cells.map((cell) => cell.sync)));
  const syncs = data.syncs.map(({ name }) => name).filter((name) => used.has(name));
  announce(`${count(data.matching, 'cluster')}; ${STATUSES.filter((it) => totals[it]).map((it) => `${totals[it]} ${it}`).join(', ')}`);
  return [
    waiting > 0 && el('p', { class: 'waits' }, el('a', { href: '#/approvals', 'data-key': 'approvals' }, `${count(waiting, 'hold')} wait${waiting === 1 ? 's' : ''} for approval`)),
    el('ul', { class: 'filters', 'aria-label': 'Syncs on clusters by status' }, filters),
    table('Clusters by syncs', ['Cluster', ...syncs], data.rows.map((it) => row(it, syncs)), { class: 'matrix' }),
    pages(data),
    table('Syncs', ['Sync', 'Source', 'Revision', 'Clusters', 'Status', 'Waiting', 'Last round'], data.syncs.map(sync)),
  ];
}

export function fleet() {
  const controls = form();
  return { title: 'Fleet', parts: [controls], load: () => ask('fleet', question), render: (data) => render(data, controls) };
}
