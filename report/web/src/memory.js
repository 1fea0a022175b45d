// The page of memory.

import {table as load} from './data.js';
import {curves} from './chart.js';
import {count, spaced, time, withUnit} from './format.js';
import {CURVES, distinct, tables, text, value, where} from './rows.js';
import {showTable} from './table.js';

export async function memory(context) {
  const {run, rank} = context;
  const [curve, events, timeline] = await Promise.all(['memory_curve', 'memory_events', 'memory_timeline'].map((metric) => load(run, metric)));
  const shown = [];
  const rows = where(curve, rank);
  for (const device of distinct(rows.map((row) => text(curve, 'device', row)))) {
    const ranks = distinct(rows.map((row) => value(curve, 'rank', row))).slice(0, 8);
    const series = ranks.flatMap((own, n) => ['allocated', 'reserved'].map((name, second) => ({
      name: ranks.length > 1 ? `${name}, rank ${own}` : name, color: CURVES[(n * 2 + second) % CURVES.length],
      points: rows.filter((row) => text(curve, 'device', row) === device && value(curve, 'rank', row) === own
        && value(curve, name, row) !== null).map((row) => [value(curve, 'ts', row), value(curve, name, row)])})))
      .filter(({points}) => points.length > 0 && points.some(([, much]) => much !== 0));
    if (series.length === 0) {
      continue;
    }
    const used = series.find(({name}) => name.startsWith('allocated'))?.points ?? [];
    const peak = used.reduce((best, point) => !best || point[1] > best[1] ? point : best, undefined);
    shown.push(curves({title: `Memory of ${device}`, table: 'memory_curve', unit: 'bytes', series,
      says: peak ? `at most ${withUnit(peak[1], 'bytes')} allocated, at ${time(peak[0])}` : '',
      marks: peak ? [[peak[0], peak[1], `peak ${withUnit(peak[1], 'bytes')}`]] : []}));
    shown.push(byCategory(timeline, rank ?? ranks[0], device));
    shown.push(byCaller(events, rank ?? ranks[0], device));
    if (peak) {
      shown.push(alive(events, rank ?? ranks[0], device, peak[0]));
    }
  }
  return [...shown, ...await tables(context, [
    ['memory_statistics', {title: 'Memory by operator', sort: '-allocation_size'}],
    ['memory_events', {title: 'Allocations', sort: '-size'}],
    ['memory_timeline', {title: 'Memory over time by what it is for'}],
    ['memory_curve', {title: 'Memory over time'}],
    ['memory_bandwidth_summary', {title: 'How fast copies moved memory'}],
  ])];
}

const CATEGORIES = [['before_trace', 'c-other'], ['parameter', 'c-operator'], ['optimizer_state', 'c-python'], ['input', 'c-loader'],
  ['activation', 'c-computation'], ['gradient', 'c-communication'], ['temporary', 'c-runtime'], ['other', 'c-wait']];

// What memory was used for at each moment.
function byCategory(timeline, rank, device) {
  const points = new Map();
  for (const row of where(timeline, rank, (row) => text(timeline, 'device', row) === device)) {
    const name = text(timeline, 'category', row);
    if (!points.has(name)) {
      points.set(name, []);
    }
    points.get(name).push([value(timeline, 'ts', row), value(timeline, 'allocated', row)]);
  }
  const shown = CATEGORIES.filter(([name]) => points.get(name)?.some(([, much]) => much !== 0));
  if (shown.length === 0) {
    return undefined;
  }
  const most = (name) => points.get(name).reduce((most, [, much]) => Math.max(most, much), 0);
  return curves({title: `Memory of ${device} by what it is for`, table: 'memory_timeline', unit: 'bytes',
    says: `rank ${rank}; at most ${shown.map(([name]) => `${spaced(name)} ${withUnit(most(name), 'bytes')}`).join(', ')}`,
    series: shown.map(([name, color]) => ({name: spaced(name), color, points: points.get(name)}))});
}

// What was allocated at each moment, by what had it allocated.
function byCaller(events, rank, device) {
  const changes = new Map();
  for (const row of where(events, rank, (row) => text(events, 'device', row) === device)) {
    const [size, from, to] = ['size', 'allocation_ts', 'release_ts'].map((name) => value(events, name, row));
    const name = text(events, 'caller', row) ?? text(events, 'operator', row) ?? 'no operator';
    if (!changes.has(name)) {
      changes.set(name, []);
    }
    changes.get(name).push([from ?? 0, size], ...(to === null ? [] : [[to, -size]]));
  }
  const curve = (list) => {
    let sum = 0;
    const points = list.sort(([a], [b]) => a - b).map(([at, change]) => [at, sum += change]);
    // Of each stretch, where it is highest.
    const wide = Math.ceil(points.length / 400);
    return wide <= 1 ? points : Array.from({length: Math.ceil(points.length / wide)}, (_, n) =>
      points.slice(n * wide, (n + 1) * wide).reduce((most, point) => point[1] > most[1] ? point : most));
  };
  const largest = [...changes].map(([name, list]) => [name, Math.max(...curve(list).map(([, much]) => much))]).sort((a, b) => b[1] - a[1]).map(([name]) => name);
  if (largest.length < 2) {
    return undefined;
  }
  const rest = largest.slice(7).flatMap((name) => changes.get(name));
  const series = [...largest.slice(0, 7).map((name) => [name, changes.get(name)]), ...(rest.length > 0 ? [['others', rest]] : [])];
  return curves({title: `Memory of ${device} by what allocated it`, table: 'memory_events', unit: 'bytes',
    says: `rank ${rank}${events.cut ? `, of ${count(events.rows)} allocations: ${events.cut}` : ''}; the table of allocations has the same`,
    series: series.map(([name, list], n) => ({name, color: CURVES[n % CURVES.length], points: curve(list)}))});
}

// What was allocated at a moment.
function alive(events, rank, device, at) {
  const keep = (row) => text(events, 'device', row) === device
    && (value(events, 'allocation_ts', row) ?? -Infinity) <= at && (value(events, 'release_ts', row) ?? Infinity) > at;
  if (where(events, rank, keep).length === 0) {
    return undefined;
  }
  return showTable({...events, metric: 'memory_events'}, {title: `What was alive at the peak of ${device}`, metric: `peak.${device}`,
    rank, keep, sort: '-size', rows: 10, first: ['category', 'operator', 'caller', 'size']});
}
