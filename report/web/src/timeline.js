// The timeline: threads, streams and their events on a canvas.
//
// What is drawn are pixels, not events: events that are less than a pixel wide are one, and the
// next one that matters is found by halving. So a frame takes as long for a million events as for
// a thousand.

import {details, inPerfetto} from './details.js';
import {h} from './dom.js';
import {count, niceStep, tick, time} from './format.js';
import {listen, pressed} from './input.js';
import {firstFrom, lanes} from './lanes.js';
import {drawPath, edgeAt, pathLegend} from './path.js';
import {note, state} from './state.js';

// The column of names, where there is room and where there is little.
const [WIDE, NARROW, ROOM] = [190, 96, 600];
const [AXIS, LINE, GROUP, GAP] = [28, 16, 24, 5];
// Levels of a row that are shown until it is opened.
const SHOWN = 14;
const LEAST = 20;

export class Timeline {
  // `ranks`: [{label, offset, data, file, rank, path}], `path`: the critical path, [[start, duration, name, bound]…].
  constructor(ranks) {
    this.sources = ranks.map(({data, ...rank}) => ({...rank, ...lanes(data)}));
    this.names = WIDE;
    this.end = Math.max(...this.sources.map((source) => source.offset + source.end), 1);
    this.view = {from: 0, span: this.end};
    this.scroll = 0;
    this.opened = new Set();
    this.pressed = new Set();
    this.selected = undefined;
    this.hits = undefined;
    this.layout();
    this.build();
    this.restore();
    this.showPerfetto();
  }

  // Where rows lie, from the top down.
  layout() {
    this.rows = [];
    let y = 0;
    for (const [s, source] of this.sources.entries()) {
      let group;
      if (source.path.length > 0) {
        this.rows.push({y, height: LINE + GAP, s, path: source.path,
          name: this.sources.length > 1 ? `path, ${source.label}` : 'critical path'});
        y += LINE + GAP;
      }
      for (const [r, row] of source.data.rows.entries()) {
        if (row.group !== group) {
          group = row.group;
          const name = this.sources.length > 1 ? `${source.label} · ${group}` : group;
          this.rows.push({y, height: GROUP, group: name});
          y += GROUP;
        }
        const all = source.levels[r].length;
        const key = `${s}.${r}`;
        const levels = this.opened.has(key) ? all : Math.min(all, SHOWN);
        this.rows.push({y, height: levels * LINE + GAP, s, r, row, levels, all, key});
        y += levels * LINE + GAP;
      }
    }
    this.tall = y;
  }

  build() {
    this.canvas = h('canvas', {class: 'timeline', tabindex: '0', role: 'application',
      'aria-label': 'Timeline. W and S zoom, A and D move, arrow keys scroll, slash searches, Tab leads to the details.'});
    this.context = this.canvas.getContext('2d');
    this.details = h('div', {class: 'details', 'aria-live': 'polite'});
    this.search = h('input', {type: 'search', placeholder: 'Search names', 'aria-label': 'Search the timeline',
      oninput: () => this.find(this.search.value), onkeydown: (event) => {
        if (event.key === 'Enter') this.next(event.shiftKey ? -1 : 1);
      }});
    this.found = h('span', {class: 'count', 'aria-live': 'polite'});
    const button = (name, label, act) => h('button', {type: 'button', 'aria-label': label, title: label, onclick: act}, name);
    this.element = h('section', {class: 'timeline-page', 'aria-label': 'Timeline'},
      h('div', {class: 'tools'}, this.search, this.found,
        button('Previous', 'Previous match', () => this.next(-1)), button('Next', 'Next match', () => this.next(1)),
        h('span', {class: 'space'}), button('−', 'Zoom out', () => this.zoom(1.6)), button('+', 'Zoom in', () => this.zoom(1 / 1.6)),
        button('Whole', 'Show everything', () => this.show(0, this.end)),
        h('button', {type: 'button', onclick: () => this.list?.()}, 'List what is in view'),
        this.perfetto = h('span')),
      this.canvas, pathLegend(this.sources), this.details);
    this.element.tabIndex = -1;
    listen(this);
    new ResizeObserver(() => this.resize()).observe(this.canvas);
  }

  key(event) {
    pressed(this, event);
  }

  get width() {
    return Math.max(1, this.canvas.clientWidth - this.names);
  }

  get height() {
    return this.canvas.clientHeight;
  }

  timeAt(x) {
    return this.view.from + (x - this.names) / this.width * this.view.span;
  }

  zoom(factor, x = this.names + this.width / 2) {
    const at = this.timeAt(Math.max(x, this.names));
    const span = Math.min(this.end * 1.02, Math.max(LEAST, this.view.span * factor));
    this.show(at - (at - this.view.from) * span / this.view.span, span);
  }

  pan(by) {
    this.show(this.view.from + by, this.view.span);
  }

  show(from, span) {
    span = Math.min(this.end * 1.02, Math.max(LEAST, span));
    this.view = {from: Math.max(-span * 0.02, Math.min(from, this.end - span * 0.9)), span};
    this.remember();
    this.redraw();
  }

  scrollBy(by) {
    this.scroll = Math.max(0, Math.min(this.scroll + by, this.tall - this.height + AXIS + 40));
    this.redraw();
  }

  // Notes the place in the address when it has not changed for a while.
  remember() {
    clearTimeout(this.later);
    this.later = setTimeout(() => {
      if (this.element.isConnected) {
        note({from: Math.round(this.view.from), span: Math.round(this.view.span)});
        this.showPerfetto();
      }
    }, 200);
  }

  // The way to what is in view in Perfetto, in the file of what is chosen or in the middle.
  showPerfetto() {
    const middle = this.scroll + (this.height - AXIS) / 2;
    const row = this.rows.findLast((one) => !one.group && one.y <= middle) ?? this.rows.find((one) => !one.group);
    const source = this.sources[this.selected?.s ?? row?.s ?? 0];
    this.perfetto.replaceChildren(...inPerfetto(source, this.view.from, this.view.from + this.view.span, true));
  }

  restore() {
    const number = (name) => Number(state.query.get(name) ?? NaN);
    const [from, span] = [number('from'), number('span')];
    if (Number.isFinite(from) && span > 0) {
      this.view = {from, span: Math.min(span, this.end * 1.02)};
    }
    const [s, n] = (state.query.get('slice') ?? '').split('.').map(Number);
    if (this.sources[s] && n >= 0 && n < this.sources[s].data.count) {
      this.select({s, n});
    }
    if (state.query.get('q')) {
      this.search.value = state.query.get('q');
      this.find(this.search.value);
    }
  }

  resize() {
    const ratio = devicePixelRatio || 1;
    this.names = this.canvas.clientWidth < ROOM ? NARROW : WIDE;
    [this.canvas.width, this.canvas.height] = [this.canvas.clientWidth * ratio, this.canvas.clientHeight * ratio];
    this.draw();
  }

  redraw() {
    if (!this.waiting) {
      this.waiting = true;
      requestAnimationFrame(() => {
        this.waiting = false;
        this.draw();
      });
    }
  }

  colors() {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(`--${name}`).trim();
    this.theme = {text: of('text'), soft: of('soft'), line: of('line'), back: of('back'), panel: of('panel'), select: of('select'),
      kinds: this.sources.map(({data}) => data.kinds.map((kind) => of(`c-${kind}`))), ink: of('ink')};
  }

  draw() {
    const began = performance.now();
    const {context: g} = this;
    this.colors();
    const ratio = devicePixelRatio || 1;
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.fillStyle = this.theme.back;
    g.fillRect(0, 0, this.names + this.width, this.height);
    g.font = '12px system-ui, sans-serif';
    g.textBaseline = 'middle';
    this.places = new Map();
    g.save();
    g.beginPath();
    g.rect(0, AXIS, this.names + this.width, this.height - AXIS);
    g.clip();
    for (const row of this.rows) {
      const y = row.y + AXIS - this.scroll;
      if (y + row.height >= AXIS && y < this.height) {
        row.group ? this.drawGroup(row, y) : row.path ? drawPath(this, row, y, LINE) : this.drawRow(row, y);
      }
    }
    this.drawArrows();
    g.restore();
    this.drawAxis();
    this.drawn = performance.now() - began;
  }

  drawAxis() {
    const {context: g, view, theme, width} = this;
    g.fillStyle = theme.panel;
    g.fillRect(0, 0, this.names + width, AXIS);
    const step = niceStep(view.span, width / 120);
    g.fillStyle = theme.soft;
    g.textAlign = 'left';
    for (let at = Math.ceil(view.from / step) * step; at <= view.from + view.span; at += step) {
      const x = this.names + (at - view.from) / view.span * width;
      g.fillRect(x, AXIS - 8, 1, 8);
      g.fillText(tick(at, step), x + 4, AXIS / 2);
    }
    if (this.range) {
      const [a, b] = [...this.range].sort((one, two) => one - two);
      g.globalAlpha = 0.2;
      g.fillStyle = theme.select;
      g.fillRect(a, 0, b - a, this.height);
      g.globalAlpha = 1;
      g.fillStyle = theme.text;
      g.fillText(time((b - a) / width * view.span), a + 4, AXIS / 2);
    }
    g.fillStyle = theme.line;
    g.fillRect(0, AXIS - 1, this.names + width, 1);
  }

  drawGroup(row, y) {
    const {context: g, theme} = this;
    g.fillStyle = theme.panel;
    g.fillRect(0, y, this.names + this.width, row.height);
    g.fillStyle = theme.text;
    g.textAlign = 'left';
    g.font = '600 12px system-ui, sans-serif';
    g.fillText(row.group, 8, y + row.height / 2);
    g.font = '12px system-ui, sans-serif';
  }

  drawRow(row, y) {
    const {context: g, theme} = this;
    const {data, levels} = this.sources[row.s];
    g.fillStyle = theme.text;
    g.textAlign = 'left';
    const more = row.all > SHOWN ? (this.opened.has(row.key) ? '▾ ' : '▸ ') : '';
    g.fillText(fit(g, `${more}${row.row.name}`, this.names - 16), 8, y + LINE / 2);
    g.fillStyle = theme.line;
    g.fillRect(0, y + row.height - 1, this.names + this.width, 1);
    g.fillRect(this.names - 1, y, 1, row.height);
    g.save();
    g.beginPath();
    g.rect(this.names, y, this.width, row.height);
    g.clip();
    for (let level = 0; level < row.levels; level += 1) {
      const top = y + level * LINE;
      if (top + LINE >= AXIS && top < this.height) {
        this.drawLevel(row.s, data, levels[row.r][level], top);
      }
    }
    g.restore();
  }

  drawLevel(s, data, list, y) {
    const {context: g, view, theme, hits} = this;
    const {starts, durations, names} = data;
    const from = view.from - this.sources[s].offset;
    const scale = this.width / view.span;
    const until = from + view.span;
    const kinds = theme.kinds[s];
    let at = Math.max(0, firstFrom(starts, list, from) - 1);
    // Events that are less than a pixel wide, one pixel after the other: a single box.
    let [thin, thinEnd, thinColor] = [-1, -1, ''];
    const flush = () => {
      if (thin >= 0) {
        g.fillStyle = thinColor;
        g.fillRect(this.names + thin, y, thinEnd - thin, LINE - 1);
        thin = -1;
      }
    };
    while (at < list.length) {
      const event = list[at];
      const start = starts[event];
      if (start > until) {
        break;
      }
      const x = (start - from) * scale;
      const wide = durations[event] * scale;
      if (x + wide < 0) {
        at += 1;
        continue;
      }
      const name = names[event];
      const hit = !hits || hits[s][name];
      const color = hit ? kinds[data.kindOf[name]] : theme.line;
      if (wide < 1.5) {
        const pixel = Math.max(0, Math.floor(x));
        if (thin >= 0 && pixel <= thinEnd && color === thinColor) {
          thinEnd = pixel + 1;
        } else {
          flush();
          [thin, thinEnd, thinColor] = [pixel, pixel + 1, color];
        }
        at = firstFrom(starts, list, from + (pixel + 1) / scale, at + 1);
        continue;
      }
      flush();
      const left = Math.max(x, -2);
      const right = Math.min(x + wide, this.width + 2);
      g.fillStyle = color;
      g.fillRect(this.names + left, y, Math.max(1, right - left - (wide > 3 ? 1 : 0)), LINE - 1);
      if (right - left > 26) {
        g.fillStyle = hit ? theme.ink : theme.soft;
        g.fillText(fit(g, data.texts[name], right - left - 8), this.names + left + 4, y + LINE / 2);
      }
      if (this.selected && this.selected.n === event && this.selected.s === s) {
        g.strokeStyle = theme.select;
        g.lineWidth = 2;
        g.strokeRect(this.names + left + 1, y + 1, right - left - 3, LINE - 3);
      }
      at += 1;
    }
    flush();
  }

  // The middle of an event on the canvas, also where it is not in view.
  place(s, n) {
    const {data, rowOf, depths, offset} = this.sources[s];
    const r = rowOf(n);
    const row = this.rows.find((one) => one.s === s && one.r === r);
    const x = (at) => this.names + (at + offset - this.view.from) / this.view.span * this.width;
    const level = Math.min(depths[n], row.levels - 1);
    const y = row.y + AXIS - this.scroll + level * LINE + LINE / 2;
    return {start: x(data.starts[n]), end: x(data.starts[n] + data.durations[n]), y, row, level};
  }

  drawArrows() {
    if (!this.selected) {
      return;
    }
    const {context: g, theme} = this;
    const {s} = this.selected;
    g.strokeStyle = theme.select;
    g.fillStyle = theme.select;
    g.lineWidth = 1.5;
    for (const [from, to] of this.arrows.slice(0, 200)) {
      const [a, b] = [this.place(s, from), this.place(s, to)];
      g.beginPath();
      g.moveTo(a.start, a.y);
      const bend = Math.max(20, Math.abs(b.start - a.start) / 3);
      g.bezierCurveTo(a.start + bend, a.y, b.start - bend, b.y, b.start, b.y);
      g.stroke();
      g.beginPath();
      g.moveTo(b.start, b.y);
      g.lineTo(b.start - 7, b.y - 4);
      g.lineTo(b.start - 7, b.y + 4);
      g.fill();
    }
  }

  // The event at a place of the canvas.
  at(x, y) {
    if (x < this.names || y < AXIS) {
      return undefined;
    }
    const down = y - AXIS + this.scroll;
    const row = this.rows.find((one) => one.row && down >= one.y && down < one.y + one.levels * LINE);
    if (!row) {
      return undefined;
    }
    const source = this.sources[row.s];
    const {starts, durations} = source.data;
    const list = source.levels[row.r][Math.floor((down - row.y) / LINE)];
    const pixel = this.view.span / this.width;
    const when = this.timeAt(x) - source.offset;
    let best;
    for (let place = Math.max(0, firstFrom(starts, list, when - 2 * pixel) - 1); place < list.length; place += 1) {
      const n = list[place];
      if (starts[n] > when + 2 * pixel) break;
      const away = Math.max(starts[n] - when, when - starts[n] - durations[n], 0);
      if (away <= 2 * pixel && (!best || away < best.away)) best = {s: row.s, n, away};
    }
    return best;
  }

  hover() {
    const event = this.at(...this.mouse);
    const edge = event ? undefined : edgeAt(this, ...this.mouse, AXIS);
    this.canvas.title = event ? `${this.name(event)}\n${time(this.sources[event.s].data.durations[event.n])}`
      : edge ? `${edge.name}\n${time(edge.duration)}, ${edge.bound}` : '';
    this.canvas.style.cursor = event || edge ? 'pointer' : 'default';
  }

  click(x, y) {
    this.canvas.focus();
    if (x < this.names) {
      const down = y - AXIS + this.scroll;
      const row = this.rows.find((one) => one.row && down >= one.y && down < one.y + one.height);
      if (row && row.all > SHOWN) {
        this.opened.has(row.key) ? this.opened.delete(row.key) : this.opened.add(row.key);
        this.layout();
        this.redraw();
      }
      return;
    }
    const event = this.at(x, y);
    this.select(event, event ? undefined : edgeAt(this, x, y, AXIS));
  }

  name({s, n}) {
    const {data} = this.sources[s];
    return data.texts[data.names[n]];
  }

  // `edge`: one of a critical path instead.
  select(event, edge) {
    this.selected = event;
    this.edge = edge;
    note({slice: event && `${event.s}.${event.n}`});
    this.arrows = [];
    if (event) {
      const {launchedBy, count: many} = this.sources[event.s].data;
      if (launchedBy[event.n] >= 0) {
        this.arrows.push([launchedBy[event.n], event.n]);
      }
      for (let n = 0; n < many; n += 1) {
        if (launchedBy[n] === event.n) this.arrows.push([event.n, n]);
      }
    }
    this.describe();
    this.redraw();
  }

  describe() {
    this.details.replaceChildren(...details(this));
  }

  // Shows the selected event, with some room around it.
  focus() {
    if (this.selected) {
      const {s, n} = this.selected;
      const {data, offset} = this.sources[s];
      const span = Math.max(data.durations[n] * 3, 1000);
      this.show(data.starts[n] + offset - (span - data.durations[n]) / 2, span);
      this.bring();
    }
  }

  // Moves until the selected event is in view.
  bring() {
    const {s, n} = this.selected;
    const {offset, data, rowOf, depths} = this.sources[s];
    const row = this.rows.find((one) => one.s === s && one.r === rowOf(n));
    if (depths[n] >= row.levels) {
      this.opened.add(row.key);
      this.layout();
    }
    const {start, end, y} = this.place(s, n);
    if (end < this.names || start > this.names + this.width) {
      this.show(data.starts[n] + offset - this.view.span / 2, this.view.span);
    }
    if (y < AXIS + LINE || y > this.height - LINE) {
      this.scrollBy(y - this.height / 2);
    }
    this.redraw();
  }

  find(text) {
    note({q: text});
    const wanted = text.toLowerCase();
    this.matches = [];
    if (!wanted) {
      this.hits = undefined;
      this.found.textContent = '';
      this.redraw();
      return;
    }
    this.hits = this.sources.map(({data}) =>
      Uint8Array.from(data.texts, (name) => name.toLowerCase().includes(wanted)));
    for (const [s, {data, offset}] of this.sources.entries()) {
      for (let n = 0; n < data.count; n += 1) {
        if (this.hits[s][data.names[n]]) this.matches.push({s, n, at: data.starts[n] + offset});
      }
    }
    this.matches.sort((a, b) => a.at - b.at);
    this.found.textContent = `${count(this.matches.length)} found`;
    this.redraw();
  }

  next(direction) {
    if (!this.matches?.length) {
      return;
    }
    const now = this.matches.findIndex(({s, n}) => s === this.selected?.s && n === this.selected?.n);
    const at = now < 0 ? 0 : (now + direction + this.matches.length) % this.matches.length;
    this.select(this.matches[at]);
    this.found.textContent = `${count(at + 1)} of ${count(this.matches.length)}`;
    this.bring();
  }

  // The longest events in view, for a table.
  inView(most) {
    const found = [];
    for (const [s, {data, offset, rowOf}] of this.sources.entries()) {
      const [from, until] = [this.view.from - offset, this.view.from + this.view.span - offset];
      for (let n = 0; n < data.count; n += 1) {
        if (data.starts[n] < until && data.starts[n] + data.durations[n] > from) {
          found.push({s, n, duration: data.durations[n], start: data.starts[n] + offset, row: rowOf(n)});
        }
      }
    }
    const all = found.length;
    found.sort((a, b) => b.duration - a.duration);
    return {all, events: found.slice(0, most)};
  }
}

// What of a text there is room for.
function fit(g, text, room) {
  const most = Math.floor(room / 5);
  if (most < 2) {
    return '';
  }
  const short = text.length > most * 2 ? text.slice(0, most * 2) : text;
  if (short === text && g.measureText(text).width <= room) {
    return text;
  }
  let [low, high] = [0, short.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (g.measureText(`${short.slice(0, middle)}…`).width <= room) low = middle; else high = middle - 1;
  }
  return low > 0 ? `${short.slice(0, low)}…` : '';
}
