// A table that can be searched, sorted and saved.

import {cell} from './data.js';
import {h, save, unique} from './dom.js';
import {count, many, shown, spaced} from './format.js';
import {note, state} from './state.js';

const FIRST = 50;
const MORE = 500;
const DIFFERENCES = new Set(['difference', 'diff_duration', 'diff_counts', 'change']);

// What the address calls a choice of a table: the first one of a page needs no name.
const key = (options, name) => options.main ? name : `${options.metric}.${name}`;

// The rows that a filter leaves, in the order of a column.
export function chosen(table, {search, sort, rank, keep}) {
  const rows = [];
  const ranks = rank === undefined ? undefined : table.column('rank');
  const found = search ? matches(table, search.toLowerCase()) : undefined;
  for (let row = 0; row < table.rows; row += 1) {
    const ofRank = !ranks || ranks.values[row] === null || ranks.values[row] === rank;
    if (ofRank && (!found || found(row)) && (!keep || keep(row))) {
      rows.push(row);
    }
  }
  const column = sort && table.column(sort.replace(/^[-+]/, ''));
  if (!column) {
    return rows;
  }
  const down = sort.startsWith('-');
  const order = column.type === 'text' ? ranksOf(column.texts) : undefined;
  const value = (row) => {
    const own = column.values[row];
    return own === null ? null : order ? order[own] : Number(own);
  };
  return rows.sort((a, b) => {
    const [one, two] = [value(a), value(b)];
    if (one === null || two === null) {
      return one === two ? a - b : one === null ? 1 : -1;
    }
    return (down ? two - one : one - two) || a - b;
  });
}

function ranksOf(texts) {
  const sorted = texts.map((_, n) => n).sort((a, b) => texts[a] < texts[b] ? -1 : 1);
  const ranks = [];
  sorted.forEach((text, rank) => { ranks[text] = rank; });
  return ranks;
}

function matches(table, search) {
  const columns = table.columns.filter((column) => column.texts);
  const hits = columns.map((column) => column.texts.map((text) => text.toLowerCase().includes(search)));
  return (row) => columns.some((column, n) => hits[n][column.values[row]]);
}

const quoted = (value) => /[",\n\r]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;

export const csv = (table, rows) => [table.columns.map((column) => quoted(column.name)).join(','),
  ...rows.map((row) => table.columns.map((column) => {
    const value = cell(column, row);
    return value === null ? '' : quoted(String(value));
  }).join(','))].join('\n') + '\n';

export const json = (table, rows) => `${JSON.stringify({
  metric: table.metric,
  columns: table.columns.map(({name, unit, type}) => ({name, unit, type})),
  rows: rows.map((row) => Object.fromEntries(
    table.columns.map((column) => [column.name, cell(column, row)]))),
}, null, 1)}\n`;

// Shows a table. `options`: title, metric, main, rank, sort (the first order), keep (which rows),
// click (what a row does), first (columns that stand before the others), oneRank (whether all is of one).
export function showTable(table, options) {
  const title = options.title ?? table.metric;
  const id = unique('table');
  const heading = h('h2', {id: `${id}-title`}, title);
  const section = h('section', {class: 'table', 'data-metric': table.metric,
    'aria-labelledby': `${id}-title`}, heading);
  if (table.missing) {
    section.append(h('p', {class: 'missing'}, `Nothing here: ${table.missing}.`));
    return section;
  }
  section.append(h('p', {class: 'answers'}, `${sentence(table.answers)} `, h('code', {}, table.metric)));
  if (table.cut) {
    section.append(h('p', {class: 'cut'}, `${count(table.rows)} of ${count(table.of)} rows are in this`
      + ` page: ${table.cut}. All of them: `, h('code', {}, `kymo analyze ${table.metric} TRACE`)));
  }
  if (table.rows === 0) {
    section.append(h('p', {class: 'missing'}, 'Nothing to show in this trace.'));
    return section;
  }
  let limit = options.rows ?? FIRST;
  let wide = false;
  let rows = [];
  const own = (name) => state.query.get(key(options, name)) ?? undefined;
  const filled = table.columns.filter((column) => column.values.some((value) => value !== null));
  const hidden = table.columns.length - filled.length;
  const order = options.first ?? [];
  const place = (column) => order.includes(column.name) ? order.indexOf(column.name) : order.length;
  const columns = filled.filter((column) => !(options.oneRank && column.name === 'rank'))
    .sort((a, b) => place(a) - place(b));
  const formats = new Map(columns.map((column) => [column.name, shown(column)]));

  const search = h('input', {type: 'search', placeholder: 'Search', value: own('q') ?? '',
    'aria-label': `Search ${title}`, oninput: () => {
      note({[key(options, 'q')]: search.value});
      update();
    }});
  const counted = h('span', {class: 'count', 'aria-live': 'polite'});
  const saveAs = (kind, type, text) => h('button', {type: 'button', 'data-save': kind,
    'aria-label': `Save ${title} as ${kind.toUpperCase()}`,
    onclick: () => save(`${table.metric}.${kind}`, type, text(table, rows))}, kind.toUpperCase());
  const wrap = h('button', {type: 'button', 'aria-pressed': 'false', onclick: () => {
    wide = !wide;
    wrap.setAttribute('aria-pressed', String(wide));
    section.classList.toggle('wide', wide);
  }}, 'Whole names');
  const hasText = columns.some((column) => column.texts);
  section.append(h('div', {class: 'tools'}, hasText && search, counted,
    h('span', {class: 'space'}), hasText && wrap,
    saveAs('csv', 'text/csv', csv), saveAs('json', 'application/json', json)));

  const heads = columns.map((column) => {
    const {unit} = formats.get(column.name);
    const button = h('button', {type: 'button', title: column.meaning, onclick: () => {
      const now = own('sort') ?? options.sort;
      const first = column.type === 'text' ? '' : '-';
      const other = first === '-' ? '' : '-';
      const next = now === `${first}${column.name}` ? `${other}${column.name}` : `${first}${column.name}`;
      note({[key(options, 'sort')]: next});
      update();
    }}, spaced(column.name), unit && h('span', {class: 'unit'}, ` ${unit}`));
    return h('th', {scope: 'col', 'data-column': column.name,
      class: column.type === 'text' ? 'text' : 'number'}, button);
  });
  const body = h('tbody');
  const more = h('button', {type: 'button', class: 'more', onclick: () => {
    limit += MORE;
    update();
  }});
  section.append(h('div', {class: 'scroll', tabindex: '0', role: 'group',
    'aria-label': `${title}, scrolls`}, h('table', {'aria-labelledby': `${id}-title`},
    h('thead', {}, h('tr', {}, heads)), body)), more);
  if (hidden > 0) {
    section.append(h('p', {class: 'note'},
      `${hidden} column${hidden > 1 ? 's' : ''} without any value ${hidden > 1 ? 'are' : 'is'} not shown.`));
  }

  const line = (row, sorted, most) => {
    const cells = columns.map((column) => {
      const value = cell(column, row);
      if (value === null) {
        return h('td', {class: column.type === 'text' ? 'text none' : 'number none'}, '–');
      }
      const text = formats.get(column.name).show(value);
      const exact = column.type !== 'text' && text !== String(value)
        ? `${value}${column.unit && column.unit !== '1' ? ` ${column.unit}` : ''}` : undefined;
      const data = h('td', {class: column.type === 'text' ? 'text' : 'number',
        title: column.type === 'text' ? value : exact}, text);
      if (DIFFERENCES.has(column.name) && value !== 0) {
        data.classList.add(value > 0 ? 'worse' : 'better');
        data.prepend(value > 0 ? '+' : '');
      }
      if (column === sorted && most > 0 && column.type !== 'text' && value > 0) {
        data.classList.add('bar');
        data.style.setProperty('--part', `${Math.min(100, 100 * Number(value) / most)}%`);
      }
      return data;
    });
    const verdict = cell(table.column('verdict'), row);
    const tr = h('tr', {class: verdict === null ? undefined : `verdict-${String(verdict).replaceAll(' ', '-')}`}, cells);
    if (options.click) {
      tr.classList.add('click');
      tr.tabIndex = 0;
      tr.addEventListener('click', () => options.click(row));
      tr.addEventListener('keydown', (event) => {
        if (event.key === 'Enter') {
          options.click(row);
        }
      });
    }
    return tr;
  };

  function update() {
    const sort = own('sort') ?? options.sort;
    rows = chosen(table, {search: own('q'), sort, rank: options.rank, keep: options.keep});
    const sorted = sort && table.column(sort.replace(/^[-+]/, ''));
    let most = 0;
    if (sorted && sorted.type !== 'text') {
      for (const row of rows) {
        most = Math.max(most, Number(sorted.values[row] ?? 0));
      }
    }
    for (const head of heads) {
      const is = sorted && head.dataset.column === sorted.name;
      head.setAttribute('aria-sort', is ? (sort.startsWith('-') ? 'descending' : 'ascending') : 'none');
    }
    body.replaceChildren(...rows.slice(0, limit).map((row) => line(row, sorted, most)));
    counted.textContent = rows.length === table.rows ? many(rows.length, 'row')
      : `${count(rows.length)} of ${many(table.rows, 'row')}`;
    const left = rows.length - limit;
    more.hidden = left <= 0;
    more.textContent = `Show ${count(Math.min(left, MORE))} more of ${count(left)}`;
  }
  update();
  return section;
}

const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;
