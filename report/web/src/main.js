// Puts the page together: navigation, choices, keys, and the page that the address names.

import {follow, index, objects, table} from './data.js';
import {h} from './dom.js';
import {PAGES} from './pages.js';
import {address, go, onChange, state} from './state.js';

const main = document.getElementById('main');

function chosenRun() {
  const number = Number(state.query.get('run') ?? 0);
  return index.runs[number] ?? index.runs[0];
}

function chosenRank(run) {
  const text = state.query.get('rank');
  return text !== null && run.ranks.some(({rank}) => String(rank) === text) ? Number(text) : undefined;
}

let shows = 0;
async function show() {
  shows += 1;
  const mine = shows;
  const page = PAGES.find(({id}) => id === state.page) ?? PAGES[0];
  document.querySelectorAll('#pages a').forEach((link) => {
    link.dataset.page === page.id ? link.setAttribute('aria-current', 'page') : link.removeAttribute('aria-current');
    link.href = address(link.dataset.page);
  });
  // On narrow screens not all fit.
  const own = document.querySelector('#pages [aria-current]');
  const list = own.closest('ul');
  list.scrollLeft = own.offsetLeft - list.offsetLeft - (list.clientWidth - own.offsetWidth) / 2;
  choices();
  main.setAttribute('aria-busy', 'true');
  const run = chosenRun();
  const context = {index, run, rank: chosenRank(run)};
  let shown;
  try {
    shown = await page.show(context);
  } catch (error) {
    shown = [h('p', {class: 'warning'}, `This page cannot be shown: ${error.message}`)];
    console.error(error);
  }
  if (mine === shows) {
    main.className = `page-${page.id}`;
    main.replaceChildren(h('h1', {}, page.name), ...shown.flat(Infinity).filter(Boolean));
    main.removeAttribute('aria-busy');
    window.kymograph.timeline = context.timeline;
    if (context.timeline) {
      context.timeline.canvas.focus({preventScroll: true});
    }
  }
}

// Which run and which rank is shown, where there are several.
function choices() {
  const run = chosenRun();
  const select = (label, name, options, now) => h('label', {class: 'choice'}, label,
    h('select', {onchange: (event) => go({[name]: event.target.value, ...(name === 'run' ? {rank: undefined} : {}), slice: undefined})},
      options.map(([value, text]) => h('option', {value, selected: String(value) === String(now)}, text))));
  const shown = [];
  if (index.runs.length > 1) {
    shown.push(select('Run ', 'run', index.runs.map(({name}, n) => [n, name || `run ${n + 1}`]), index.runs.indexOf(run)));
  }
  if (run.ranks.length > 1) {
    shown.push(select('Rank ', 'rank', [['', 'all'], ...run.ranks.map(({rank}) => [rank, rank])], chosenRank(run) ?? ''));
  }
  document.getElementById('choices').replaceChildren(...shown);
  const files = run.ranks.map(({file}) => file);
  document.getElementById('about').textContent = files.length === 1 ? files[0] : `${files.length} ranks, ${files[0]} and others`;
  if (index.plugin) {
    document.getElementById('about').append(' · by the rules of the TensorBoard plugin');
  }
}

function theme(wanted) {
  document.documentElement.dataset.theme = wanted;
  try {
    localStorage.setItem('kymo-theme', wanted);
  } catch {
    // A page that may not keep anything begins as the system wants it.
  }
  window.kymograph.timeline?.redraw();
}

function rememberedTheme() {
  try {
    return localStorage.getItem('kymo-theme');
  } catch {
    return null;
  }
}

const KEYS = [['/', 'search'], ['[ and ]', 'page before, page after'], ['w s', 'timeline: zoom in, out'], ['a d', 'timeline: left, right'],
  ['f', 'timeline: zoom to the slice'], ['n p', 'timeline: next match, match before'], ['Home', 'timeline: everything'],
  ['drag, pinch', 'timeline: move, zoom'], ['ctrl + wheel', 'timeline: zoom'], ['shift + drag', 'timeline: zoom to a range'], ['?', 'these keys']];
const keys = h('dialog', {'aria-label': 'Keys'}, h('h2', {}, 'Keys'),
  h('dl', {class: 'keys'}, KEYS.map(([key, what]) => [h('dt', {}, h('kbd', {}, key)), h('dd', {}, what)])),
  h('form', {method: 'dialog'}, h('button', {}, 'Close')));
keys.querySelector('form').addEventListener('submit', (event) => {
  event.preventDefault();
  keys.close();
});

function pressed(event) {
  if (event.target.closest('input, select, textarea, dialog') || event.ctrlKey || event.metaKey || event.altKey) {
    return;
  }
  const at = PAGES.findIndex(({id}) => id === state.page);
  const acts = {
    '/': () => main.querySelector('input[type=search]')?.focus(),
    '?': () => keys.showModal(),
    '[': () => { location.hash = address(PAGES[(at + PAGES.length - 1) % PAGES.length].id); },
    ']': () => { location.hash = address(PAGES[(at + 1) % PAGES.length].id); },
  };
  if (acts[event.key]) {
    event.preventDefault();
    acts[event.key]();
  } else if ('wasdfnp'.includes(event.key) && window.kymograph.timeline && event.target !== window.kymograph.timeline.canvas) {
    window.kymograph.timeline.canvas.focus();
    window.kymograph.timeline.key(event);
  }
}

// For scripts in the console: the rows of a table as `kymo analyze --format json` has them.
window.kymograph = {
  index,
  table: async (metric, run = 0) => objects(await table(index.runs[run], metric)),
  comparison: async (metric, number = 0) => objects(await table(index.comparisons[number], metric)),
};

const dark = rememberedTheme() ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
document.documentElement.dataset.theme = dark;
document.getElementById('theme').addEventListener('click', () =>
  theme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'));
document.getElementById('help').addEventListener('click', () => keys.showModal());
document.getElementById('pages').append(h('ul', {}, PAGES.filter(({id}) => id !== 'diff' || index.runs.length > 1).map(({id, name}) =>
  h('li', {}, h('a', {href: address(id), 'data-page': id}, name)))));
document.body.append(keys);
document.addEventListener('keydown', pressed);
onChange(show);
show();
follow();
