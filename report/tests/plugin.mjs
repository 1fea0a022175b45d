// Compares pages with views of the TensorBoard plugin: `node report/tests/plugin.mjs VIEWS DATA`.
//
// VIEWS has what the plugin served for each set of traces, as `analysis/tests/make_tensorboard_goldens.py`
// writes it: SET/as_is (torch-tb-profiler 0.4.3) and SET/final (the last state of its source). DATA has
// the traces. A report of each is made with `--compat`, and each view is looked up in the tables of the
// page that corresponds to it. Needs what `survey.mjs` needs.

import assert from 'node:assert/strict';
import {existsSync, mkdtempSync, readFileSync, readdirSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

import {must} from './kymo.mjs';
import {Page} from './page.mjs';

const [views, data] = process.argv.slice(2);
if (!data) {
  console.error('usage: plugin.mjs VIEWS DATA');
  process.exit(2);
}

let compared = 0;
let excepted = 0;
const differences = [];
function same(what, theirs, ours, apart = 0) {
  compared += 1;
  const near = typeof theirs === 'number' && typeof ours === 'number'
    && Math.abs(theirs - ours) <= apart + 1e-9 * Math.abs(theirs);
  if (theirs !== ours && !near) {
    differences.push(`${what}: the plugin has ${theirs}, the page ${ours}`);
  }
}

// Columns of a row: [what the plugin calls it, our column, our unit in theirs, how far apart they may be].
function cells(what, theirs, row, columns) {
  for (const [key, column, unit, apart] of columns) {
    const value = theirs[key];
    if (value !== undefined) {
      const own = row?.[column];
      same(`${what} ${column}`, value, typeof own === 'number' ? own / unit : own ?? null, apart);
    }
  }
}

const byKey = (rows, key) => new Map(rows.map((row) => [key(row), row]));
const [US, MS, ROUNDED, KIB] = [1e3, 1e6, 0.51, 1024];

function overview(theirs, rows) {
  const roles = ['kernel', 'memcpy', 'memset', 'communication', 'runtime', 'data_loader', 'cpu_exec', 'other', 'total'];
  const steps = [...theirs.steps_names, 'average'];
  same('steps', steps.join(), rows.map(({step}) => step).join());
  const costs = [...theirs.steps_costs, theirs.avg_costs];
  rows.forEach((row, n) => roles.forEach((role, at) => same(`step ${row.step} ${role}`, Number(costs[n]?.[at]), row[role] / US, 1)));
}

function devices(theirs, rows) {
  same('devices', theirs.gpu_ids.join(), rows.map(({device}) => device).join());
  for (const row of rows) {
    for (const [key, column, unit] of [['gpu_utilization', 'utilization', 100], ['est_sm_efficiency', 'sm_efficiency', 100], ['est_occupancy', 'occupancy', 1]]) {
      same(`device ${row.device} ${column}`, theirs[key][row.device] ?? null, row[column] === null ? null : row[column] / unit, 2e-5 * Math.abs(row[column]));
    }
  }
}

function operators(theirs, rows) {
  const list = Array.isArray(theirs) ? theirs : theirs.data;
  same('rows', list.length, rows.length);
  const ours = byKey(rows, ({name, input_shapes: shapes}) => `${name} ${shapes ?? ''}`);
  for (const row of list) {
    cells(row.name, row, ours.get(`${row.name} ${row.input_shape ?? ''}`), [['calls', 'calls', 1, 0],
      ['tc_eligible', 'tensor_cores_eligible', 1, 0],
      ...[['device_self_duration', 'self_device_time'], ['device_total_duration', 'device_time_total'], ['host_self_duration', 'self_cpu_time'],
        ['host_total_duration', 'cpu_time_total']].map(([key, column]) => [key, column, US, ROUNDED + 1e-4 * (row[key] ?? 0)]),
      ['tc_self_ratio', 'tensor_cores_self', 1, 0.0051], ['tc_total_ratio', 'tensor_cores_total', 1, 0.0051]]);
  }
}

function kernels(theirs, rows) {
  const list = theirs.data.rows;
  same('rows', list.length, rows.length);
  const ours = byKey(rows, ({name}) => name);
  for (const row of list) {
    const own = ours.get(row[0]);
    // It goes by a list of names, which lacks some kernels.
    if (own && row[1] !== own.tensor_cores) {
      excepted += 1;
    }
    cells(row[0], row, own, [[2, 'calls', 1, 0], [3, 'total_duration', US, ROUNDED], [4, 'mean_duration', US, 1],
      [5, 'max_duration', US, ROUNDED], [6, 'min_duration', US, ROUNDED], [7, 'mean_blocks_per_sm', 1, 0.00501], [8, 'mean_occupancy', 1, 0.00501]]);
  }
}

function kernelsByOperator(theirs, rows) {
  const list = theirs.data.rows;
  same('rows', list.length, rows.length);
  const ours = byKey(rows, (row) => [row.name, row.operator ?? 'None', row.grid ?? 'None', row.block ?? 'None', row.registers ?? 0,
    row.shared_memory ?? 0, row.operator_eligible].join('|'));
  for (const row of list) {
    cells(`${row[1]} ${row[0]}`, row, ours.get([0, 1, 2, 3, 4, 5, 7].map((at) => row[at]).join('|')), [[8, 'calls', 1, 0],
      [9, 'total_duration', US, ROUNDED], [10, 'mean_duration', US, ROUNDED], [11, 'max_duration', US, 0.0011], [12, 'min_duration', US, 0.0011],
      [13, 'mean_blocks_per_sm', 1, 0.00501], [14, 'mean_occupancy', 1, 0.00501]]);
  }
}

const byDevice = (view) => Object.entries(view.rows).flatMap(([device, rows]) => rows.map((row) => [device, ...row]));

function memoryStatistics(theirs, rows) {
  const list = byDevice(theirs);
  same('rows', list.length, rows.length);
  const ours = byKey(rows, ({device, operator}) => `${device} ${operator}`);
  for (const row of list) {
    cells(`${row[0]} ${row[1]}`, row, ours.get(`${row[0]} ${row[1]}`), [[2, 'calls', 1, 0], [3, 'size_increase', KIB, 0.00501],
      [4, 'self_size_increase', KIB, 0.00501], [5, 'allocation_count', 1, 0], [6, 'self_allocation_count', 1, 0],
      [7, 'allocation_size', KIB, 0.00501], [8, 'self_allocation_size', KIB, 0.00501]]);
  }
}

// Curves and lists of events are cut in the page: what is there must be theirs.
const among = (theirs, columns) => (view, rows) => {
  const list = theirs(view);
  const known = new Map();
  for (const row of list) {
    const key = columns.map(([at, , , digits]) => typeof row[at] === 'number' ? row[at].toFixed(digits) : row[at]).join('|');
    known.set(key, (known.get(key) ?? 0) + 1);
  }
  same('rows', true, (rows.length > 0) === (list.length > 0) && rows.length <= list.length);
  for (const row of rows) {
    const key = columns.map(([, column, unit, digits]) => typeof row[column] === 'number' ? (row[column] / unit).toFixed(digits) : row[column]).join('|');
    same(`a row ${key}`, true, known.has(key));
  }
};
const MIB = 1_048_576;
const memoryCurve = among(byDevice, [[0, 'device', 1, 0], [2, 'allocated', MIB, 6], [3, 'reserved', MIB, 6]]);
const memoryEvents = among(byDevice, [[0, 'device', 1, 0], [1, 'operator', 1, 0], [2, 'size', KIB, 0]]);

// View, page, metric, comparison.
const VIEWS = [
  ['overview', 'summary', 'overview', overview], ['overview', 'steps', 'overview', overview],
  ['gpu_metrics', 'summary', 'gpu_utilization', devices],
  ['operator_by_name', 'operators', 'operators', operators],
  ['operator_by_name_input', 'operators', 'operators_by_shape', operators],
  ['kernel_by_name', 'kernels', 'kernels', kernels],
  ['kernel_by_properties_and_op', 'kernels', 'kernels_by_operator', kernelsByOperator],
  ['memory_stats', 'memory', 'memory_statistics', memoryStatistics],
  ['memory_curve', 'memory', 'memory_curve', memoryCurve],
  ['memory_events', 'memory', 'memory_events', memoryEvents],
];

function distributed(theirs, ranks, rows, operations) {
  const ours = byKey(rows, ({rank, step}) => `${rank} ${step}`);
  for (const [view, columns] of [['steps_to_overlap', ['computation', 'overlapping', 'communication', 'other']],
    ['steps_to_wait', ['data_transfer', 'synchronizing']]]) {
    for (const [step, workers] of Object.entries(theirs[view].data)) {
      for (const [worker, values] of Object.entries(workers)) {
        const own = ours.get(`${ranks[Number(worker.replace('worker', ''))]} ${step}`);
        columns.forEach((column, n) => same(`${step} ${worker} ${column}`, values[n], own ? own[column] / US : null, step === 'all' ? 1.01 : ROUNDED));
      }
    }
  }
  const all = byKey(operations, ({rank, operation}) => `${rank} ${operation}`);
  for (const [worker, {rows: list}] of Object.entries(theirs.comm_ops.data)) {
    for (const row of list) {
      cells(`${worker} ${row[0]}`, row, all.get(`${ranks[Number(worker.replace('worker', ''))]} ${row[0]}`), [[1, 'calls', 1, 0], [2, 'total_size', 1, 0],
        [3, 'avg_size', 1, 0.5], [4, 'total_latency', US, ROUNDED], [5, 'avg_latency', US, ROUNDED], [6, 'data_transfer', US, ROUNDED], [7, 'avg_data_transfer', US, ROUNDED]]);
    }
  }
}

function difference(theirs, rows) {
  const ours = byKey(rows, ({path, operator}) => `${path} ${operator ?? ''}`);
  const walk = (piece, path) => {
    for (const [side, own] of [['left', 'base'], ['right', 'test']]) {
      cells(`${path} ${side}`, piece[side], ours.get(`${path} `), [['name', `${own}_name`, 1, 0], ['duration', `${own}_duration`, US, ROUNDED],
        ['device_duration', `${own}_device_duration`, US, ROUNDED], ['total_duration', `${own}_total_duration`, US, ROUNDED]]);
      for (const operator of piece[side].aggs) {
        cells(`${path} ${side} ${operator.name}`, operator, ours.get(`${path} ${operator.name}`), [['calls', `${own}_calls`, 1, 0],
          ['host_duration', `${own}_duration`, US, ROUNDED], ['device_duration', `${own}_device_duration`, US, ROUNDED],
          ['self_host_duration', `${own}_self_duration`, US, ROUNDED], ['self_device_duration', `${own}_self_device_duration`, US, ROUNDED]]);
      }
    }
    piece.children.forEach((child, n) => walk(child, `${path}-${n}`));
  };
  walk(theirs, '0');
}

// The traces of a set, as words of the command.
function traces(set) {
  const stem = set.replace('_2rank', '');
  const found = [[`${set}`], [`${set}.json.gz`], [`${stem}_rank0.json.gz`, `${stem}_rank1.json.gz`]]
    .map((names) => names.map((name) => join(data, name)));
  return found.find((paths) => paths.every((path) => existsSync(path)));
}

const folder = mkdtempSync(join(tmpdir(), 'kymo-plugin-'));
const page = new Page();
await page.start();
try {
  for (const set of readdirSync(views).sort()) {
    for (const [label, tool] of [['as_is', 'tensorboard'], ['final', 'tensorboard-last']]) {
      const words = traces(set);
      const at = join(views, set, label);
      if (!words || !existsSync(at)) {
        console.log(`skipped  ${set}/${label}: no traces`);
        continue;
      }
      const before = compared;
      const file = join(folder, `${set}.${label}.html`);
      must('report', ...words, '--compat', tool, '-q', '-o', file);
      await page.open(file);
      const read = (name) => JSON.parse(readFileSync(join(at, `${name}.json`), 'utf8'));
      const table = async (metric, run, rank) => {
        const rows = await page.value(`kymograph.table('${metric}', ${run})`);
        return rank === undefined ? rows : rows.filter((row) => row.rank === rank);
      };
      const onPage = async (id, metric) => {
        await page.go(`#${id}`);
        assert.ok(await page.value(`document.querySelector('section[data-metric="${metric}"]') !== null`), `${metric} stands on ${id}`);
      };
      const runs = await page.value('kymograph.index.runs.map((run) => run.ranks.map(({rank}) => rank))');
      const many = runs.length > 1;
      for (const [run, ranks] of runs.entries()) {
        for (const [worker, rank] of ranks.entries()) {
          for (const [view, id, metric, compare] of VIEWS) {
            const name = `worker${worker}${many ? `.span${run + 1}` : ''}.${view}`;
            if (existsSync(join(at, `${name}.json`))) {
              await onPage(id, metric);
              const start = differences.length;
              compare(read(name), await table(metric, run, rank));
              differences.slice(start).forEach((one, n) => { differences[start + n] = `${set}/${label} ${name}: ${one}`; });
            }
          }
        }
      }
      if (existsSync(join(at, 'ALL.distributed.spandefault.json'))) {
        await onPage('distributed', 'distributed');
        distributed(read('ALL.distributed.spandefault'), runs[0], await table('distributed', 0), await table('distributed_operations', 0));
      }
      if (many && existsSync(join(at, 'diff.first_vs_second.json'))) {
        await onPage('diff', 'diff_tree');
        difference(read('diff.first_vs_second'), await page.value('kymograph.comparison("diff_tree")'));
      }
      console.log(`${set}/${label}: ${compared - before} values`);
    }
  }
} finally {
  await page.close();
  rmSync(folder, {recursive: true, force: true});
}
differences.slice(0, 40).forEach((one) => console.log(one));
console.log(`${compared} values compared, ${differences.length} differ, ${excepted} kernels whose names the plugin does not know`);
process.exit(differences.length ? 1 : 0);
