// Where one is: `#operators?run=1&sort=-self_device_time`. All of it stands in the address, so that
// a link leads to the same place.

const listeners = [];

function read() {
  const [page, query] = decode(location.hash.slice(1));
  return {page: page || 'summary', query: new URLSearchParams(query)};
}

function decode(hash) {
  const at = hash.indexOf('?');
  return at < 0 ? [hash, ''] : [hash.slice(0, at), hash.slice(at + 1)];
}

export let state = read();

// What chooses data, and stays when another page is opened.
const CHOICES = ['run', 'rank'];

export function address(page, query = {}) {
  const params = new URLSearchParams();
  for (const name of CHOICES) {
    if (state.query.has(name)) {
      params.set(name, state.query.get(name));
    }
  }
  for (const [name, value] of Object.entries(query)) {
    params.set(name, value);
  }
  const text = params.toString();
  return `#${page}${text ? `?${text}` : ''}`;
}

// Notes something in the address, without going anywhere. An undefined value is taken away.
export function note(changes) {
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === null || value === '') {
      state.query.delete(name);
    } else {
      state.query.set(name, value);
    }
  }
  const text = state.query.toString();
  try {
    history.replaceState(null, '', `#${state.page}${text ? `?${text}` : ''}`);
  } catch {
    // Where the page may not change its address, it works without.
  }
}

// Goes somewhere.
export function go(changes) {
  note(changes);
  listeners.forEach((listener) => listener(state));
}

export function onChange(listener) {
  listeners.push(listener);
}

addEventListener('hashchange', () => {
  state = read();
  listeners.forEach((listener) => listener(state));
});
