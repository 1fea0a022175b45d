// What pages make of tables.

import {cell, table as load} from './data.js';
import {spaced} from './format.js';
import {chosen, showTable} from './table.js';

// Colours of curves and parts, one after the other.
export const CURVES = ['c-computation', 'c-communication', 'c-memory', 'c-runtime', 'c-wait', 'c-loader', 'c-python', 'c-other'];

// What an edge of a critical path is bound by, and how it is shown.
export const BOUNDS = {cpu_bound: 'c-operator', gpu_compute_bound: 'c-computation', gpu_communication_bound: 'c-communication',
  gpu_kernel_launch_overhead: 'c-runtime', gpu_kernel_kernel_overhead: 'c-wait'};
export const boundBy = (name) => spaced(name || 'nothing');

// The rows of a table with a value in a column, of the chosen rank.
export const where = (table, rank, keep = () => true) =>
  table.missing ? [] : chosen(table, {rank, keep});

export const value = (table, name, row) => {
  const own = cell(table.column(name), row);
  return own === null ? null : Number(own);
};
export const text = (table, name, row) => cell(table.column(name), row);

export const distinct = (values) => [...new Set(values)];

// Tables, one under the other.
export async function tables(context, list) {
  const shown = [];
  for (const [n, [metric, options = {}]] of list.entries()) {
    const table = await load(context.run, metric);
    shown.push(showTable(table, {metric, main: n === 0, rank: context.rank,
      oneRank: context.run.ranks?.length === 1, ...options}));
  }
  return shown;
}

// The least and the greatest of values, as a text.
export function range(values, show) {
  const all = values.filter((one) => one !== null && Number.isFinite(one));
  if (all.length === 0) {
    return undefined;
  }
  const [least, most] = [show(Math.min(...all)), show(Math.max(...all))];
  return least === most ? least : `${least} to ${most}`;
}

// A table of rows that are objects.
export function listOf(metric, answers, columns, rows) {
  const made = columns.map(([name, type, unit, meaning]) => type === 'text'
    ? {name, type, unit, meaning, ...coded(rows.map((row) => row[name] ?? null))}
    : {name, type, unit, meaning, values: rows.map((row) => row[name] ?? null)});
  const byName = new Map(made.map((column) => [column.name, column]));
  return {metric, answers, rows: rows.length, of: rows.length, cut: null, columns: made,
    column: (name) => byName.get(name), get: (name, row) => cell(byName.get(name), row)};
}

function coded(values) {
  const texts = distinct(values.filter((one) => one !== null));
  const numbers = new Map(texts.map((one, n) => [one, n]));
  return {texts, values: values.map((one) => one === null ? null : numbers.get(one))};
}
