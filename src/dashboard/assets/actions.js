// Decisions, where http.actions is on: each is a form that asks for the token of the host once, and says what came of it.

import { ask, clean, el, load } from './app.js';

const KEY = 'gatewright token';
let known = null;

// Asks once whether there are actions here, and who the proxy says is asking.
export async function actions() {
  known = known || await ask('actions').catch(() => ({ actions: false }));
  return known;
}

export function hasActions() {
  return Boolean(known && known.actions);
}

async function send(path, body) {
  const response = await fetch(`/api/v1/${path}`, {
    method: 'POST', cache: 'no-store', body: JSON.stringify(body),
    headers: { accept: 'application/json', 'content-type': 'application/json', authorization: `Bearer ${sessionStorage.getItem(KEY)}` },
  });
  const value = await response.json().catch(() => null);
  if (response.status === 401) sessionStorage.removeItem(KEY);
  if (!response.ok) throw new Error((value && value.message) || `the daemon answers ${response.status}`);
  return value.message;
}

function field(label, name, key, attributes) {
  return el('label', {}, `${label} `, el('input', { name, 'data-key': `${key} ${name}`, autocomplete: 'off', spellcheck: 'false', ...attributes }));
}

// What was said last, by form: the answer stays when the page is made again.
const said = new Map();

// A form that decides something: a button, a reason if it takes one, and the token while this tab has none.
export function action(title, path, { reason = false } = {}) {
  if (!hasActions()) return null;
  const key = `${title} ${path}`;
  const answer = el('p', { class: 'quiet', role: 'status' }, said.get(key));
  const token = el('span', { class: 'token' }, field('Token of the host', 'token', key, { type: 'password', required: true }));
  const about = decodeURIComponent(path.split('/')[1]);
  const form = el('form', { class: 'action', 'aria-label': `${title} ${about}` },
    reason && field('Reason', 'reason', key, { maxlength: 500 }),
    sessionStorage.getItem(KEY) ? null : token,
    el('button', { type: 'submit', 'data-key': `do ${key}`, 'aria-label': `${title} ${about}` }, title), answer);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const given = Object.fromEntries(new FormData(form));
    if (given.token) sessionStorage.setItem(KEY, given.token.trim());
    const button = form.querySelector('button');
    button.disabled = true;
    try {
      said.set(key, await send(path, given.reason ? { reason: given.reason } : {}));
      form.querySelectorAll('input').forEach((input) => { input.value = ''; });
    } catch (error) {
      said.set(key, `Not done: ${error.message}`);
    }
    button.disabled = false;
    answer.textContent = clean(said.get(key));
    load(true);
  });
  return form;
}
