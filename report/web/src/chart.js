// Charts as SVG. Each has a title, says in words what it shows, and leads to its table on the same
// page: `table` is the metric of that, where the numbers are and can be saved.

import {h, svg, unique} from './dom.js';
import {count, niceSize, niceStep, percent, shown, tick, time, withUnit} from './format.js';

const WIDTH = 960;
const [LEFT, RIGHT, TOP, BOTTOM] = [84, 22, 10, 34];

// Leads to the table that a chart is drawn from.
export const toTable = (title, metric) => h('button', {type: 'button', class: 'link to-table',
  'aria-label': `${title}: the table and its downloads`, onclick: () => {
    const section = document.querySelector(`section.table[data-metric="${CSS.escape(metric)}"]`);
    section?.scrollIntoView({block: 'start'});
    (section?.querySelector('button[data-save]') ?? section?.querySelector('h2'))?.focus({preventScroll: true});
  }}, 'Table, CSV, JSON');

// A frame around a drawing: heading, legend, and what a screen reader says.
export function figure(title, says, drawing, table, legend = []) {
  const id = unique('chart');
  drawing.setAttribute('role', 'img');
  drawing.setAttribute('aria-label', `${title}. ${says}`);
  return h('figure', {class: 'chart', 'aria-labelledby': id, 'data-table': table},
    h('h2', {id}, title), toTable(title, table),
    legend.length > 0 && h('ul', {class: 'legend'}, legend.map(([name, color]) =>
      h('li', {}, h('span', {class: `swatch ${color}`}), name))),
    drawing);
}

const canvas = (height, ...children) =>
  svg('svg', {viewBox: `0 0 ${WIDTH} ${height}`, class: 'plot'}, ...children);

const label = (x, y, text, anchor = 'middle', more = {}) =>
  svg('text', {x, y, 'text-anchor': anchor, ...more}, text);

const hint = (text) => svg('title', {}, text);

// Horizontal lines with what they stand for.
function grid(height, most, unit) {
  const nice = unit === 'bytes' ? niceSize : niceStep;
  const step = nice(most, 5) || 1;
  const y = (value) => TOP + (height - TOP - BOTTOM) * (1 - value / most);
  const lines = [];
  for (let value = 0; value <= most * 1.0001; value += step) {
    const text = unit === 'ns' ? tick(value, step) : unit === 'GB/s' ? `${count(value)} GB/s` : withUnit(value, unit);
    lines.push(svg('line', {class: 'grid', x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value)}),
      label(LEFT - 8, y(value) + 4, text, 'end'));
  }
  return {lines, y};
}

// Bars that consist of parts, side by side. `bars`: [{label, parts: [value…], note, click}],
// `parts`: [[name, color]…].
export function stacked({title, says, table, bars, parts, unit = 'ns', height = 260, axis}) {
  const sums = bars.map((bar) => bar.parts.reduce((sum, part) => sum + Math.max(0, part ?? 0), 0));
  const most = Math.max(...sums, 1e-9) * 1.02;
  const {lines, y} = grid(height, most, unit);
  const room = (WIDTH - LEFT - RIGHT) / bars.length;
  const thick = Math.min(56, Math.max(1, room * 0.72));
  const skip = Math.ceil(bars.length / 24);
  const drawn = bars.map((bar, n) => {
    const x = LEFT + room * (n + 0.5);
    let below = 0;
    const pieces = bar.parts.map((part, p) => {
      const value = Math.max(0, part ?? 0);
      const top = y(below + value);
      const rect = value > 0 && svg('rect', {class: parts[p][1], x: x - thick / 2, width: thick, y: top,
        height: Math.max(0, y(below) - top)}, hint(`${bar.label} · ${parts[p][0]}: ${withUnit(value, unit)}`
        + `, ${percent(100 * value / sums[n])} of ${withUnit(sums[n], unit)}`));
      below += value;
      return rect;
    });
    const under = n % skip === 0 && label(x, height - BOTTOM + 18, bar.label);
    return svg('g', bar.click ? {class: 'click', onclick: bar.click} : {}, pieces, under,
      bar.note && svg('text', {x, y: y(sums[n]) - 4, 'text-anchor': 'middle', class: 'noted'}, bar.note));
  });
  return figure(title, says, canvas(height, lines, drawn, axis && label((LEFT + WIDTH) / 2, height - 4, axis)),
    table, parts);
}

// Curves that hold their value until the next point. `series`: [{name, color, points: [[time, value]…]}].
export function curves({title, says, table, series, unit, height = 240, marks = []}) {
  const all = series.flatMap(({points}) => points);
  const start = Math.min(...all.map(([x]) => x));
  const end = Math.max(...all.map(([x]) => x), start + 1);
  const most = Math.max(...all.map(([, value]) => value), 1e-9) * 1.04;
  const {lines, y} = grid(height, most, unit);
  const x = (at) => LEFT + (WIDTH - LEFT - RIGHT) * (at - start) / (end - start);
  const paths = series.map(({name, color, points}) => {
    let path = '';
    let last;
    for (const [at, value] of points) {
      path += last === undefined ? `M${x(at).toFixed(1)} ${y(value).toFixed(1)}`
        : `H${x(at).toFixed(1)}V${y(value).toFixed(1)}`;
      last = value;
    }
    return svg('path', {class: `curve ${color}`, d: `${path}H${x(end).toFixed(1)}`}, hint(name));
  });
  const peaks = marks.map(([at, value, text]) => svg('g', {},
    svg('circle', {class: 'peak', cx: x(at), cy: y(value), r: 4}, hint(text)),
    label(Math.min(Math.max(x(at), LEFT + 60), WIDTH - 80), Math.max(y(value) - 8, 12), text)));
  return figure(title, says, canvas(height, lines, paths, peaks, timeAxis(x, start, end, height)),
    table, series.map(({name, color}) => [name, color]));
}

function timeAxis(x, start, end, height) {
  const step = niceStep(end - start, 8);
  const ticks = [];
  for (let at = Math.ceil(start / step) * step; at <= end; at += step) {
    ticks.push(svg('line', {class: 'tick', x1: x(at), x2: x(at), y1: height - BOTTOM, y2: height - BOTTOM + 5}),
      label(x(at), height - BOTTOM + 20, tick(at, step)));
  }
  return ticks;
}

// How values are distributed: {name, least, quarter, half, most quarter, greatest}, a line each.
export function boxes({title, says, table, rows, unit = 'ns'}) {
  const [wide, line] = [380, 22];
  const height = TOP + line * rows.length + BOTTOM;
  const [least, most] = [Math.max(1, Math.min(...rows.map((row) => row.five[0]))),
    Math.max(...rows.map((row) => row.five[4]), 2)];
  const [from, to] = [Math.floor(Math.log10(least)), Math.ceil(Math.log10(most) + 1e-9)];
  const x = (value) => wide + 24 + (WIDTH - wide - RIGHT - 50) * (Math.log10(Math.max(value, 10 ** from)) - from) / Math.max(1, to - from);
  const ticks = [];
  for (let power = from; power <= to; power += 1) {
    ticks.push(svg('line', {class: 'grid', x1: x(10 ** power), x2: x(10 ** power), y1: TOP, y2: height - BOTTOM}),
      label(x(10 ** power), height - BOTTOM + 18, unit === 'ns' ? tick(10 ** power, 10 ** power) : withUnit(10 ** power, unit)));
  }
  const drawn = rows.map(({name, five, note}, n) => {
    const y = TOP + line * n + line / 2;
    const said = ['least', 'quarter', 'median', 'three quarters', 'greatest']
      .map((what, at) => `${what} ${withUnit(five[at], unit)}`).join(', ');
    const short = name.length > 52 ? `${name.slice(0, 51)}…` : name;
    return svg('g', {}, label(wide - 8, y + 4, short, 'end'),
      svg('line', {class: 'whisker', x1: x(five[0]), x2: x(five[4]), y1: y, y2: y}),
      svg('rect', {class: 'box c-computation', x: x(five[1]), width: Math.max(2, x(five[3]) - x(five[1])), y: y - 6, height: 12}),
      svg('line', {class: 'median', x1: x(five[2]), x2: x(five[2]), y1: y - 7, y2: y + 7}),
      svg('rect', {class: 'target', x: 0, width: WIDTH, y: y - line / 2, height: line}, hint(`${name}: ${said}${note ?? ''}`)));
  });
  return figure(title, says, canvas(height, ticks, drawn), table);
}

// How often values lie between two: bars of equal width.
export function histogram({title, says, table, values, unit = 'ns'}) {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const bins = Math.min(40, Math.max(5, Math.ceil(Math.sqrt(values.length) * 2)));
  const wide = (most - least) / bins || 1;
  const counts = new Array(bins).fill(0);
  for (const value of values) {
    counts[Math.min(bins - 1, Math.floor((value - least) / wide))] += 1;
  }
  const bars = counts.map((many, n) => ({label: time(least + n * wide), parts: [many]}));
  return stacked({title, says, table, bars, parts: [['steps', 'c-computation']], unit: '', height: 200});
}

// Cells in lines and columns, the darker the more. `cell(row, column)` gives a value or null.
export function heatMap({title, says, table, rows, columns, cell, unit = 'ns', click}) {
  const [wide, line] = [90, 26];
  const values = rows.flatMap((_, r) => columns.map((_, c) => cell(r, c))).filter((v) => v !== null);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  // One unit for all cells.
  const {unit: chosen, show} = shown({name: '', type: 'float', unit, values});
  const said = (value) => `${show(value)}${chosen ? ` ${chosen}` : ''}`;
  const room = Math.min(90, (WIDTH - wide - RIGHT) / columns.length);
  const height = TOP + line * rows.length + 26;
  const skip = Math.ceil(30 / room);
  const drawn = rows.map((row, r) => svg('g', {}, label(wide - 8, TOP + line * r + 17, row, 'end'),
    columns.map((column, c) => {
      const value = cell(r, c);
      const part = value === null ? 0 : most > least ? (value - least) / (most - least) : 0.5;
      const rect = svg('rect', {class: `cell${value === null ? ' none' : ''}${click ? ' click' : ''}`, x: wide + room * c, y: TOP + line * r,
        width: Math.max(1, room - 2), height: line - 2, onclick: click && (() => click(r, c))},
      hint(`${row}, ${column}: ${value === null ? 'no value' : said(value)}`));
      rect.style.setProperty('--heat', String(0.08 + 0.92 * part));
      const text = room > 62 && value !== null && svg('text', {class: part > 0.55 ? 'on-dark' : 'on-light',
        x: wide + room * (c + 0.5) - 1, y: TOP + line * r + 16, 'text-anchor': 'middle'}, said(value));
      return [rect, text];
    })));
  const under = columns.map((column, c) => c % skip === 0
    && label(wide + room * (c + 0.5), height - 8, column));
  return figure(title, says, canvas(height, drawn, under), table);
}

// Points on two logarithmic axes under roofs: lines of [x, y] pairs.
export function roofline({title, says, table, points, roofs, height = 380}) {
  const xs = points.map((point) => point.x);
  const ys = [...points.map((point) => point.y), ...roofs.map((roof) => roof.peak)];
  const [x0, x1] = [Math.floor(Math.log10(Math.min(...xs))), Math.ceil(Math.log10(Math.max(...xs, ...roofs.map((roof) => roof.ridge ?? 0))) + 0.2)];
  const [y0, y1] = [Math.floor(Math.log10(Math.min(...points.map((point) => point.y)))), Math.ceil(Math.log10(Math.max(...ys)) + 0.05)];
  const x = (value) => LEFT + (WIDTH - LEFT - RIGHT) * (Math.log10(value) - x0) / (x1 - x0);
  const y = (value) => TOP + (height - TOP - BOTTOM) * (1 - (Math.log10(value) - y0) / (y1 - y0));
  const lines = [];
  for (let power = x0; power <= x1; power += 1) {
    lines.push(svg('line', {class: 'grid', x1: x(10 ** power), x2: x(10 ** power), y1: TOP, y2: height - BOTTOM}),
      label(x(10 ** power), height - BOTTOM + 16, 10 ** power < 1e6 ? String(Number((10 ** power).toPrecision(1))) : withUnit(10 ** power, '')));
  }
  for (let power = y0; power <= y1; power += 1) {
    lines.push(svg('line', {class: 'grid', x1: LEFT, x2: WIDTH - RIGHT, y1: y(10 ** power), y2: y(10 ** power)}),
      label(LEFT - 8, y(10 ** power) + 4, flops(10 ** power), 'end'));
  }
  const roof = roofs.map(({name, peak, bandwidth}) => {
    const parts = [];
    const ridge = bandwidth ? peak / bandwidth : 10 ** x0;
    if (bandwidth) {
      const from = Math.max(10 ** x0, 10 ** y0 / bandwidth);
      parts.push(`M${x(from)} ${y(from * bandwidth)}L${x(ridge)} ${y(peak)}`);
    } else {
      parts.push(`M${x(ridge)} ${y(peak)}`);
    }
    return svg('g', {}, svg('path', {class: 'roof', d: `${parts.join('')}H${WIDTH - RIGHT}`}, hint(name)),
      label(WIDTH - RIGHT - 4, y(peak) - 5, name, 'end'));
  });
  const dots = points.map((point) => svg('circle', {class: `dot ${point.color}`, cx: x(point.x), cy: y(point.y),
    r: 3 + 9 * Math.sqrt(point.part)}, hint(point.text)));
  return figure(title, says, canvas(height, lines, roof, dots,
    label((LEFT + WIDTH) / 2, height - 4, 'FLOPs per byte')), table, [['bound by computing', 'c-computation'],
    ['bound by memory', 'c-memory'], ['device not known', 'c-other']]);
}

const flops = (value) => {
  const names = [[1e15, 'P'], [1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k'], [1, '']];
  const [size, name] = names.find(([size]) => value >= size * 0.999) ?? names.at(-1);
  return `${Math.round(value / size)} ${name}FLOP/s`;
};
