// One sync on one cluster, what waits for approval, rollouts and rounds.

import { address, announce, ask, command, count, el, load, state, table, time } from './app.js';
import { action, hasActions } from './actions.js';
import { short } from './fleet.js';

function fact(name, ...value) {
  return value.flat(Infinity).some(Boolean) ? [el('dt', {}, name), el('dd', {}, value)] : [];
}

function pod({ ready, wanted }) {
  return el('span', { class: ready >= wanted ? 'ok' : 'failed' }, `${ready} of ${count(wanted, 'pod')} ready`);
}

// A hold: what it is about, what would be done, and what to type.
function hold(it, level = 'h4') {
  const steps = it.steps.map(({ action, object }) => el('li', {}, el('b', {}, action), ' ', object));
  return el('article', { class: 'hold' },
    el(level, {}, state('held'), ` by guard ${it.guard}`, it.since && el('small', {}, ' ', time(it.since, (age) => `for ${age}`))),
    el('p', {}, it.message),
    it.units.length > 0 && el('p', {}, `${count(it.units.length, 'unit')}: ${it.units.join(', ')}`),
    steps.length > 0 && el('details', { 'data-key': `steps ${it.command} ${it.guard} ${it.units[0] || ''}`, open: steps.length <= 10 },
      el('summary', {}, `${count(steps.length + it.more, 'step')} would be taken`),
      el('ul', {}, steps, it.more > 0 && el('li', {}, `… ${it.more} more`))),
    el('p', { class: 'quiet' }, it.hint),
    it.command && command(it.command),
    it.command && action('Approve', `approvals/${encodeURIComponent(it.command.split(' ').pop())}`, { reason: true }));
}

function difference({ path, by, lines, more }) {
  const side = ({ sign, text }) => el(sign === '+' ? 'ins' : 'del', {}, el('span', { class: 'hidden' }, sign === '+' ? 'added ' : 'removed '), text);
  return [el('dt', {}, path, by && el('small', {}, ` ${by}`)), el('dd', {}, lines.map(side), more > 0 && `… ${count(more, 'line')} more`)];
}

function object(it) {
  const name = it.namespace ? `${it.namespace}/${it.name}` : it.name;
  const quiet = it.state === 'keep';
  const what = [...it.tags, it.message].filter(Boolean).join('; ');
  const details = [it.differences.map(difference), it.fields.map((text) => el('dd', {}, text))].flat(Infinity);
  return el('li', { class: quiet ? 'quiet' : 'other' }, el('b', {}, quiet ? 'as it should be' : it.state), ' ', it.kind, ' ', el('bdi', {}, name),
    it.since && el('small', {}, ' ', time(it.since, (age) => `for ${age}`)), what && el('span', {}, ` – ${what}`), it.place && el('small', {}, ` ${it.place}`),
    details.length > 0 && el('dl', { class: 'differences' }, details));
}

function unit(it) {
  const where = [it.addresses.join(', '), it.ports.length > 0 && `port${it.ports.length === 1 ? '' : 's'} ${it.ports.join(', ')}`].filter(Boolean).join(', ');
  const isFine = it.state === 'current' || it.state === 'changed';
  return el('details', { 'data-key': `unit ${it.unit}`, open: !isFine },
    el('summary', { 'data-key': `summary ${it.unit}` }, state(it.state), ' ', el('strong', {}, el('bdi', {}, it.unit)), ' ', it.pods && pod(it.pods), where && el('small', {}, ` ${where}`),
      it.since && el('small', {}, ' ', time(it.since, (age) => `for ${age}`)), it.message && el('span', { class: 'message' }, it.message)),
    it.objects.length > 0 ? el('ul', {}, it.objects.map(object), it.more > 0 && el('li', {}, `… ${it.more} more`))
      : el('p', { class: 'quiet' }, 'Nothing is known of its objects: the last round had nothing to say of them.'));
}

function roundRow(it, withTarget) {
  const clusters = it.more > 0 ? `${it.clusters.join(', ')} and ${it.more} more` : it.clusters.join(', ');
  return el('tr', {},
    el('th', { scope: 'row' }, time(it.started)),
    withTarget && el('td', {}, it.sync), withTarget && el('td', {}, it.clusters.length === 1 ? el('a', { href: address(it.sync, it.clusters[0]), 'data-key': it.name }, clusters) : clusters),
    el('td', {}, el('code', { title: it.revision }, short(it.revision)), it.cause && el('small', {}, ` ${it.cause}`)),
    el('td', {}, it.did, it.problems && `, ${it.problems}`), el('td', {}, outcome(it.exit)),
    el('td', {}, it.run && el('code', {}, it.run)));
}

// The exit codes that a round of `sync` ends with.
function outcome(exit) {
  return { 0: state('ok'), 3: state('held'), 4: state('unreachable') }[exit] || state('failed');
}

function roundTable(caption, rounds, withTarget) {
  if (rounds.length === 0) return el('p', {}, 'No round has said anything new yet.');
  const heads = ['Began', ...(withTarget ? ['Sync', 'Clusters'] : []), 'Revision', 'What it did', 'Result', 'Name, for undo'];
  return table(caption, heads, rounds.map((it) => roundRow(it, withTarget)));
}

export function target([sync = '', cluster = '']) {
  const question = { q: '', state: '', from: 0 };
  const again = (change) => { Object.assign(question, { from: 0 }, change); return load(); };
  let typed = null;
  const input = (event) => { clearTimeout(typed); typed = setTimeout(() => again({ q: event.target.value.trim() }), 200); };
  const search = el('input', { type: 'search', name: 'q', autocomplete: 'off', spellcheck: 'false', on: { input } });
  const states = el('select', { name: 'state', on: { change: (event) => again({ state: event.target.value }) } }, ['', 'failed', 'unhealthy', 'held', 'different', 'pending', 'changed', 'current', 'pruned'].map((it) => el('option', { value: it }, it || 'any')));
  const form = el('form', { role: 'search', 'aria-label': 'Units', on: { submit: (event) => event.preventDefault() } },
    el('label', {}, 'Unit ', search), el('label', {}, 'State ', states));
  const own = `syncs/${encodeURIComponent(sync)}`;
  const path = `${own}/clusters/${encodeURIComponent(cluster)}`;
  return {
    title: `${sync} on ${cluster}`,
    parts: [form],
    load: () => Promise.all([ask(path, question), ask('rounds', { sync, cluster, limit: 10 })]),
    render: ([it, history]) => {
      announce(`${it.sum.status}; ${count(it.matching, 'unit')}`);
      const button = (key, text, from) => el('button', { type: 'button', 'data-key': key, disabled: from === undefined, on: { click: () => again({ from }) } }, text);
      return [
        el('dl', { class: 'facts' },
          fact('Status', state(it.sum.status), it.sum.since && [' ', time(it.sum.since, (age) => `for ${age}`)]),
          fact('Suspended', it.suspended),
          fact('Last round', it.sum.finished && [time(it.sum.finished), `, ${it.sum.state}`, it.cause && ` (${it.cause})`]),
          fact('Revision', it.sum.revision && el('code', {}, it.sum.revision), it.nextRevision && ` – ${short(it.nextRevision)} waits until this one is rolled out`),
          fact('Source', it.staleSource && `could not be read: ${it.staleSource}`),
          fact('Objects', it.sum.drift > 0 ? `${count(it.sum.drift, 'object')} not as the source says` : 'as the source says', it.sum.changed > 0 && `, ${it.sum.changed} changed in the last round`),
          fact('Labels', Object.entries(it.labels).map(([key, value]) => `${key}=${value}`).join(' '))),
        hasActions() && el('div', { class: 'actions' }, it.suspended ? action('Resume', `${own}/resume`) : [action('Reconcile', `${own}/reconcile`), action('Suspend', `${own}/suspend`, { reason: true })]),
        it.error && el('div', { class: 'hold' }, el('h3', {}, state('failed'), ' The round ended early'), el('p', {}, it.error.message), it.error.hint && el('p', { class: 'quiet' }, it.error.hint)),
        it.holds.length > 0 && [el('h3', {}, 'Held'), it.holds.map((one) => hold(one))],
        it.problems.length > 0 && [el('h3', {}, 'Problems in the source'), el('ul', {}, it.problems.map((one) => el('li', {}, one.message, one.hint && el('small', {}, ` ${one.hint}`))))],
        it.notes.length > 0 && [el('h3', {}, 'Notes'), el('ul', {}, it.notes.map((one) => el('li', {}, one)))],
        el('h3', {}, `Units: ${Object.entries(it.states).map(([word, number]) => `${number} ${word}`).join(', ') || 'none known'}`),
        el('div', { class: 'units' }, it.units.map(unit)),
        (it.from > 0 || it.next) && el('nav', { class: 'pages', 'aria-label': 'Pages of units' }, button('before', 'Previous', it.from > 0 ? Math.max(0, it.from - 50) : undefined),
          el('span', {}, `${it.from + 1}–${it.from + it.units.length} of ${it.matching}`), button('next', 'Next', it.next)),
        roundTable('Rounds', history.rounds, false),
        el('p', {}, el('a', { href: '#/rounds', 'data-key': 'all rounds' }, 'All rounds'), ' · ', el('a', { href: '#/rollouts', 'data-key': 'rollouts' }, 'Rollouts')),
      ];
    },
  };
}

function group(it) {
  const clusters = it.clusters.map((cluster, index) => [index > 0 && ', ', el('a', { href: address(it.sync, cluster), 'data-key': `${it.token} ${cluster}` }, cluster)]);
  const approved = it.approved.map((one) => el('li', {}, `on ${one.cluster}, until ${one.until.replace('T', ' ').replace('Z', ' UTC')}`, one.reason && `: ${one.reason}`));
  return el('section', {},
    el('h3', {}, `${it.sync} on ${count(it.clusters.length + it.moreClusters, 'cluster')}`),
    el('p', {}, clusters, it.moreClusters > 0 && ` and ${it.moreClusters} more`),
    hold(it.hold),
    approved.length > 0 && [el('p', {}, 'Approved already, for the next round:'), el('ul', {}, approved)]);
}

export function approvals() {
  return {
    title: 'Approvals',
    load: () => ask('approvals'),
    render: (data) => {
      announce(`${data.total} waiting`);
      const more = data.total - data.groups.length;
      return [
        el('p', { class: 'quiet' }, hasActions() ? 'Look at what would be done before you approve it. The next round of the sync takes the steps.' : 'This page changes nothing: look at what would be done, and type the command on a host of gatewright.'),
        data.total === 0 && el('p', {}, 'Nothing waits for approval.'), data.groups.map(group), more > 0 && el('p', {}, `… ${more} more`),
      ];
    },
  };
}

function names(word, { total, names: some }) {
  return total > 0 && el('li', {}, state(word, total), ' ', el('small', {}, some.slice(0, 12).join(', '), total > Math.min(some.length, 12) && ' …'));
}

function wave(it, index, waves) {
  const failed = it.failed.map((one) => el('li', {}, state(one.returned ? 'returned' : 'halted'), ` on ${one.cluster}: ${one.why}`));
  return el('li', {}, waves.length > 1 && el('strong', {}, `Wave ${index + 1}`), it.approval && el('small', {}, ' a person agrees first'),
    el('ul', {}, names('healthy', it.healthy), names('going', it.going), names('waiting', it.waiting), failed, it.others > 0 && el('li', { class: 'quiet' }, `${count(it.others, 'cluster')} without it`)));
}

function rollout(it) {
  const units = it.units.join(', ') + (it.moreUnits > 0 ? ` and ${it.moreUnits} more` : '');
  return el('article', { class: 'rollout' }, el('h4', {}, el('code', { title: it.revision }, short(it.revision)), ' ', el('small', {}, time(it.since, (age) => `for ${age}`))),
    el('p', {}, units), el('ol', { class: 'waves' }, it.waves.map(wave)));
}

export function rollouts() {
  return {
    title: 'Rollouts',
    load: () => ask('rollouts'),
    render: (data) => {
      const open = data.syncs.reduce((sum, it) => sum + it.rollouts.length, 0);
      announce(count(open, 'rollout'));
      return [
        data.syncs.length === 0 && el('p', {}, 'Nothing is under way.'),
        data.syncs.map((it) => el('section', {}, el('h3', {}, it.sync), it.paused && el('p', { class: 'hold' }, it.paused), it.error && el('p', { class: 'failed' }, it.error),
          it.rollouts.map(rollout), it.more > 0 && el('p', {}, `… ${it.more} more`))),
      ];
    },
  };
}

export function rounds() {
  const question = { sync: '', cluster: '', before: '', limit: 30 };
  const again = (change) => { Object.assign(question, { before: '' }, change); return load(); };
  const field = (name, label) => el('label', {}, `${label} `, el('input', { name, autocomplete: 'off', spellcheck: 'false', on: { change: (event) => again({ [name]: event.target.value.trim() }) } }));
  const form = el('form', { role: 'search', 'aria-label': 'Rounds', on: { submit: (event) => event.preventDefault() } }, field('sync', 'Sync'), field('cluster', 'Cluster'));
  return {
    title: 'Rounds',
    parts: [el('p', { class: 'quiet' }, 'Rounds that changed something or said something new.'), form],
    load: () => ask('rounds', question),
    render: (data) => {
      announce(count(data.rounds.length, 'round'));
      return [
        roundTable('The newest first', data.rounds, true),
        el('nav', { class: 'pages', 'aria-label': 'Pages of rounds' },
          el('button', { type: 'button', 'data-key': 'newest', disabled: question.before === '', on: { click: () => again({}) } }, 'Newest'),
          el('button', { type: 'button', 'data-key': 'older', disabled: !data.next, on: { click: () => again({ before: data.next }) } }, 'Older')),
      ];
    },
  };
}
