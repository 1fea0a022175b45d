// The pages: which tables and charts stand on each.

import {samples, table as load, timeline} from './data.js';
import {boxes, curves, heatMap, histogram, roofline, stacked} from './chart.js';
import {h} from './dom.js';
import {difference, flames} from './flames.js';
import {count, percent, spaced, time, withUnit} from './format.js';
import {memory} from './memory.js';
import {BOUNDS, boundBy, CURVES, distinct, listOf, range, tables, text, value, where} from './rows.js';
import {address, state} from './state.js';
import {showTable} from './table.js';
import {Timeline} from './timeline.js';

// What a step's time goes to, in the order in which it is told apart.
const ROLES = [['kernel', 'c-computation'], ['memcpy', 'c-memory'], ['memset', 'c-wait'],
  ['communication', 'c-communication'], ['runtime', 'c-runtime'], ['data_loader', 'c-loader'],
  ['cpu_exec', 'c-operator'], ['other', 'c-idle']].map(([name, color]) => [name, color]);

const tile = (name, said, about) => said !== undefined
  && h('div', {class: 'tile'}, h('p', {class: 'value'}, said), h('p', {class: 'name'}, name), about && h('p', {class: 'note'}, about));

async function summary(context) {
  const {run, rank} = context;
  const [advice, variance, temporal, overview, steps, quality] = await Promise.all(
    ['recommendations', 'step_variance', 'temporal_breakdown', 'overview', 'profiler_steps', 'data_quality']
      .map((metric) => load(run, metric)));
  const of = (quantity, name) => where(variance, rank, (row) => text(variance, 'quantity', row) === quantity)
    .map((row) => value(variance, name, row));
  const numbers = distinct(where(steps, rank).map((row) => value(steps, 'step', row)));
  const durations = of('duration', 'mean');
  const exposed = of('communication', 'mean').map((one, n) => 100 * one / durations[n]);
  const events = run.ranks.reduce((sum, one) => sum + one.events, 0);
  const devices = where(temporal, rank);
  const tiles = h('div', {class: 'tiles'},
    tile('Ranks', count(run.ranks.length), `${count(events)} events`),
    tile('Steps', numbers.length > 0 ? count(numbers.length) : 'none', numbers.length > 0 ? `${Math.min(...numbers)} to ${Math.max(...numbers)}` : undefined),
    tile('Step time', range(durations, time), 'mean of each rank'),
    tile('Device busy', range(devices.map((row) => 100 - value(temporal, 'idle_time_pctg', row)), percent), 'from first to last device event'),
    tile('Device idle', range(devices.map((row) => value(temporal, 'idle_time_pctg', row)), percent), 'from first to last device event'),
    exposed.some((one) => one > 0) && tile('Exposed communication', range(exposed, percent), 'of step time'));
  const shown = [tiles];
  const problems = where(quality, undefined, (row) => text(quality, 'verdict', row) === 'problem').length;
  const lost = run.ranks.some(({about}) => Object.keys(about.lost ?? {}).length > 0);
  if (problems > 0 || lost) {
    shown.push(h('p', {class: 'warning'}, lost ? 'Events were lost while this was recorded. ' : '',
      problems > 0 ? `${count(problems)} checks of the data found problems. ` : '',
      h('a', {href: address('environment')}, 'Environment and data quality')));
  }
  const rows = where(advice, undefined);
  shown.push(h('section', {class: 'advice', 'aria-label': 'What to do'}, h('h2', {}, 'What to do'),
    rows.length === 0 ? h('p', {class: 'missing'}, 'No rule found anything to recommend.')
      : h('ol', {}, rows.slice(0, 5).map((row) => {
        const cost = value(advice, 'cost', row);
        return h('li', {}, h('h3', {}, text(advice, 'finding', row),
          cost && h('span', {class: 'cost'}, ` about ${time(cost)} of each rank`)),
        h('p', {}, text(advice, 'evidence', row)), h('p', {class: 'to-do'}, text(advice, 'advice', row)));
      }))));
  shown.push(roles(overview, rank, (row) => text(overview, 'step', row) === 'average', 'What the mean step was spent on', 'rank'));
  return [...shown, ...await tables(context, [
    ['overview', {title: 'The mean step', keep: (row) => text(overview, 'step', row) === 'average'}],
    ['gpu_utilization', {title: 'How well devices are used'}],
    ['temporal_breakdown', {title: 'Where device time goes'}],
    ['kernel_types', {title: 'Which work it is', sort: '-sum'}],
    ['comm_comp_overlap', {title: 'How much communication is hidden'}],
    ['recommendations', {title: 'Recommendations'}],
  ])];
}

// Bars of `overview`.
function roles(overview, rank, keep, title, by) {
  const rows = where(overview, rank, keep);
  const total = rows.reduce((sum, row) => sum + (value(overview, 'total', row) ?? 0), 0);
  if (rows.length === 0 || total === 0) {
    return undefined;
  }
  const parts = ROLES.filter(([name]) => rows.some((row) => value(overview, name, row) > 0));
  const ranks = distinct(rows.map((row) => value(overview, 'rank', row)));
  const bars = rows.map((row) => ({
    label: by === 'rank' ? `rank ${text(overview, 'rank', row)}`
      : ranks.length > 1 ? `${text(overview, 'step', row)} (${text(overview, 'rank', row)})` : `${text(overview, 'step', row)}`,
    parts: parts.map(([name]) => value(overview, name, row)),
  }));
  const says = parts.map(([name]) => `${spaced(name)} ${percent(100 * rows.reduce(
    (sum, row) => sum + value(overview, name, row), 0) / total)}`).join(', ');
  return stacked({title, says, table: 'overview', bars, parts: parts.map(([name, color]) => [spaced(name), color]),
    axis: by === 'rank' ? undefined : ranks.length > 1 ? 'step (rank)' : 'step'});
}

// Goes to what a rank did at a time, with as much before and after it.
function onTimeline(rank, ts, duration) {
  location.hash = address('timeline', {rank, from: ts - duration, span: duration * 3});
}

async function steps(context) {
  const {run, rank} = context;
  const [overview, own, slow] = await Promise.all(['overview', 'profiler_steps', 'slowest_step'].map((metric) => load(run, metric)));
  const shown = [roles(overview, rank, (row) => text(overview, 'step', row) !== 'average', 'What each step was spent on', 'step')];
  const durations = where(own, rank).map((row) => value(own, 'duration', row));
  if (durations.length > 4) {
    shown.push(histogram({title: 'How long steps take', table: 'profiler_steps', values: durations,
      says: `${count(durations.length)} steps, ${range(durations, time)}`}));
  }
  const first = where(slow, rank)[0];
  if (first !== undefined) {
    const names = where(slow, rank).slice(0, 3).map((row) => `${text(slow, 'name', row)} (+${time(value(slow, 'difference', row))})`);
    shown.push(h('p', {class: 'finding'}, `Step ${text(slow, 'step', first)} is the slowest of rank ${text(slow, 'rank', first)}. `
      + `What takes longer there than in the others: ${names.join(', ')}.`));
  }
  return [...shown, ...await tables(context, [
    ['overview', {title: 'Steps by what they were spent on'}],
    ['step_variance', {title: 'How much steps differ'}],
    ['slowest_step', {title: 'What makes the slowest step slow', sort: '-difference'}],
    ['profiler_steps', {title: 'Steps as they were marked', click: (row) => onTimeline(value(own, 'rank', row),
      ...['ts', 'duration'].map((name) => value(own, name, row)))}],
  ])];
}

// The columns of operators that matter most.
const OPERATOR = ['rank', 'name', 'input_shapes', 'stack', 'device_type', 'calls', 'self_device_time', 'device_time_total',
  'self_cpu_time', 'cpu_time_total', 'flops'];

async function operators(context) {
  const roof = await load(context.run, 'roofline');
  return [...await tables(context, [['operators', {title: 'Operators', sort: '-self_device_time', first: OPERATOR}]]),
    roofs(roof, context.rank), ...await tables(context, [
      ['roofline', {title: 'How near operators come to what the device can do', main: false, sort: '-device_time'}],
      ['operators_by_shape', {title: 'Operators by shape', sort: '-self_device_time', first: OPERATOR}],
      ['operators_by_stack', {title: 'Operators by stack', sort: '-self_device_time', first: OPERATOR}],
      ['aten_delay', {title: 'How long operators take to reach the device', sort: '-avg_aten_op_launch_delay'}],
      ['frequent_sequences', {title: 'Sequences of kernels that come again and again', sort: '-gpu_kernel_duration'}],
      ['user_annotations', {title: 'Annotations', sort: '-sum'}],
      ['antipatterns', {title: 'What the program does at a cost and need not', sort: '-host_time'}],
    ].map(([metric, options]) => [metric, {main: false, ...options}]))];
}

function roofs(table, rank) {
  const rows = where(table, rank, (row) => !['(all)', '(without rule)'].includes(text(table, 'operator', row))
    && value(table, 'intensity', row) > 0 && value(table, 'flops_per_second', row) > 0);
  if (rows.length === 0) {
    return undefined;
  }
  const most = Math.max(...rows.map((row) => value(table, 'device_time', row)));
  // The roofs that the table measures by: it has the part of each that was reached.
  const roofs = new Map();
  for (const row of rows) {
    const [achieved, peak, roof] = ['flops_per_second', 'of_peak', 'of_roof'].map((name) => value(table, name, row));
    if (peak > 0) {
      const name = text(table, 'precision', row);
      const own = roofs.get(name) ?? {name, peak: 100 * achieved / peak};
      if (roof > 0 && text(table, 'bound', row) === 'memory') {
        own.bandwidth = 100 * achieved / roof / value(table, 'intensity', row);
        own.ridge = own.peak / own.bandwidth;
      }
      roofs.set(name, own);
    }
  }
  const points = rows.map((row) => {
    const bound = text(table, 'bound', row);
    const near = value(table, 'of_roof', row);
    return {x: value(table, 'intensity', row), y: value(table, 'flops_per_second', row),
      part: value(table, 'device_time', row) / most,
      color: bound === 'compute' ? 'c-computation' : bound === 'memory' ? 'c-memory' : 'c-other',
      text: `${text(table, 'operator', row)} (${text(table, 'precision', row)}): ${withUnit(value(table, 'flops_per_second', row), '')}FLOP/s`
        + `, ${time(value(table, 'device_time', row))}${near === null ? '' : `, ${percent(near)} of its roof`}`};
  });
  return roofline({title: 'Roofline', table: 'roofline', points, roofs: [...roofs.values()],
    says: `${points.length} operators by what they compute for each byte, and per second; the larger, the more device time`});
}

async function kernels(context) {
  const {run, rank} = context;
  const durations = await load(run, 'kernel_durations');
  const rows = where(durations, rank).slice(0, 15);
  const chart = rows.length > 0 && boxes({title: 'How long the runs of the longest kernels take', table: 'kernel_durations',
    says: 'quartiles of each kernel on a logarithmic axis',
    rows: rows.map((row) => ({name: text(durations, 'name', row), note: `, ${count(value(durations, 'count', row))} runs`,
      five: ['min', '25%', '50%', '75%', 'max'].map((name) => value(durations, name, row))}))});
  const [first, ...rest] = await tables(context, [
    ['kernels', {title: 'Kernels', sort: '-total_duration'}],
    ['kernel_durations', {title: 'How kernels’ durations are distributed', sort: '-sum'}],
    ['kernels_by_operator', {title: 'Kernels by operator and launch', sort: '-total_duration'}],
    ['kernel_breakdown', {title: 'Kernels by kind, folded', sort: '-sum'}],
  ]);
  return [first, chart, ...rest];
}

const modules = (context) => tables(context, [['modules', {title: 'Modules of the model'}]]);

async function timelines(context) {
  const {run, rank} = context;
  const wanted = run.ranks.filter((one) => one.timeline !== null && (rank === undefined || one.rank === rank));
  if (wanted.length === 0) {
    return [h('p', {class: 'missing'}, 'There are no events to show.')];
  }
  const path = await load(run, 'critical_path');
  const edges = (own) => where(path, own, (row) => value(path, 'duration', row) > 0).map((row) =>
    [value(path, 'ts', row), value(path, 'duration', row), text(path, 'name', row), text(path, 'bound_by', row)]);
  const ranks = await Promise.all(wanted.map(async (one) => ({label: `rank ${one.rank}`, offset: one.offset,
    file: one.file, rank: one, path: edges(one.rank), data: await timeline(one)})));
  const shown = new Timeline(ranks);
  const listed = h('div', {});
  shown.list = () => {
    const {all, events} = shown.inView(500);
    const rows = events.map(({s, n, row, start, duration}) => ({s, n, start, duration,
      name: shown.name({s, n}), row: `${ranks[s].data.rows[row].group} › ${ranks[s].data.rows[row].name}`}));
    const table = listOf('in_view', 'which events are in view on the timeline, the longest first', [
      ['name', 'text', '', 'the event'], ['row', 'text', '', 'where it lies'],
      ['start', 'int', 'ns', 'when it begins'], ['duration', 'int', 'ns', 'how long it takes']], rows);
    table.of = all;
    table.cut = all > events.length ? 'the longest ones' : null;
    listed.replaceChildren(showTable(table, {title: 'In view', metric: 'in_view', click: (row) => {
      shown.select({s: rows[row].s, n: rows[row].n});
      shown.bring();
    }}));
  };
  shown.describe();
  context.timeline = shown;
  return [shown.element, listed];
}

async function distributed(context) {
  const {run, rank} = context;
  const [table, marked] = await Promise.all(['distributed', 'profiler_steps'].map((metric) => load(run, metric)));
  const shown = [];
  const measure = state.query.get('measure') ?? 'communication';
  const rows = where(table, undefined, (row) => /^-?\d+$/.test(text(table, 'step', row) ?? ''));
  const ranks = distinct(rows.map((row) => value(table, 'rank', row))).sort((a, b) => a - b);
  const numbers = distinct(rows.map((row) => Number(text(table, 'step', row)))).sort((a, b) => a - b);
  if (ranks.length > 0 && numbers.length > 0) {
    const at = new Map(rows.map((row) => [`${value(table, 'rank', row)} ${text(table, 'step', row)}`, value(table, measure, row)]));
    const measures = ['computation', 'overlapping', 'communication', 'other', 'data_transfer', 'synchronizing'];
    shown.push(h('p', {class: 'switch', role: 'group', 'aria-label': 'What the map shows'}, measures.map((name) =>
      h('a', {href: address('distributed', {measure: name}), 'aria-current': name === measure ? 'true' : undefined}, spaced(name)))));
    shown.push(heatMap({title: `Ranks and steps: ${spaced(measure)}`, table: 'distributed', says: `${ranks.length} ranks, ${numbers.length} steps`,
      rows: ranks.map((own) => `rank ${own}`), columns: numbers.map((step) => `step ${step}`),
      cell: (r, c) => at.get(`${ranks[r]} ${numbers[c]}`) ?? null, click: (r, c) => {
        const row = where(marked, ranks[r], (one) => value(marked, 'step', one) === numbers[c])[0];
        if (row !== undefined) {
          onTimeline(ranks[r], value(marked, 'ts', row), value(marked, 'duration', row));
        }
      }}));
    const parts = [['computation', 'c-computation'], ['overlapping', 'c-memory'], ['communication', 'c-communication'], ['other', 'c-idle']];
    const means = where(table, rank, (row) => text(table, 'step', row) === 'all');
    if (means.length > 0) {
      shown.push(stacked({title: 'How ranks share their mean step', table: 'distributed', parts, says: `${means.length} ranks`,
        bars: means.map((row) => ({label: `rank ${text(table, 'rank', row)}`, parts: parts.map(([name]) => value(table, name, row))}))}));
    }
  }
  return [...shown, ...await tables(context, [
    ['distributed', {title: 'How steps divide'}],
    ['stragglers', {title: 'Who waits for whom', sort: '-waited_for'}],
    ['collectives', {title: 'Collectives', sort: '-wait_sum'}],
    ['distributed_operations', {title: 'Collectives by kind', sort: '-total_latency'}],
    ['comm_comp_overlap', {title: 'How much communication is hidden'}],
  ])];
}

async function idle(context) {
  const {run, rank} = context;
  const causes = await load(run, 'idle_causes');
  const rows = where(causes, rank);
  const shown = [];
  if (rows.length > 0) {
    const names = distinct(rows.map((row) => text(causes, 'cause', row)));
    const sums = new Map();
    for (const row of rows) {
      const key = `${value(causes, 'rank', row)} ${text(causes, 'cause', row)}`;
      sums.set(key, (sums.get(key) ?? 0) + value(causes, 'idle_time', row));
    }
    const parts = names.map((name, n) => [spaced(name), [...CURVES, 'c-operator', 'c-annotation', 'c-idle'][n % 11]]);
    const ranks = distinct(rows.map((row) => value(causes, 'rank', row)));
    shown.push(stacked({title: 'What the host did while devices were idle', table: 'idle_causes', parts,
      says: names.join(', '), bars: ranks.map((own) => ({label: `rank ${own}`, parts: names.map((name) => sums.get(`${own} ${name}`) ?? 0)}))}));
  }
  return [...shown, ...await tables(context, [
    ['idle_causes', {title: 'Why devices were idle', sort: '-idle_time', click: (row) => onTimeline(value(causes, 'rank', row),
      ...['longest_ts', 'longest'].map((name) => value(causes, name, row)))}],
    ['idle_time', {title: 'Why streams were idle', sort: '-idle_time'}],
    ['idle_intervals', {title: 'Gaps between activities'}],
    ['queue_length_summary', {title: 'How many launches waited'}],
    ['blocked_on_queue', {title: 'How long queues were full'}],
  ])];
}

async function critical(context) {
  const {run, rank} = context;
  const table = await load(run, 'critical_path_summary');
  const rows = where(table, rank);
  const shown = [];
  if (rows.length > 0) {
    const names = distinct(rows.filter((row) => value(table, 'duration', row) > 0).map((row) => text(table, 'bound_by', row)));
    const ranks = distinct(rows.map((row) => value(table, 'rank', row)));
    const at = (own, name) => rows.find((row) => value(table, 'rank', row) === own && text(table, 'bound_by', row) === name);
    const parts = names.map((name) => [boundBy(name), BOUNDS[name] ?? 'c-other']);
    shown.push(stacked({title: 'What the critical path of a step is bound by', table: 'critical_path_summary', parts, says: names.join(', '),
      bars: ranks.map((own) => ({label: `rank ${own}`, parts: names.map((name) => {
        const row = at(own, name);
        return row === undefined ? 0 : value(table, 'duration', row);
      })}))}));
    shown.push(whatIf(table, rows, names));
    const first = where(await load(run, 'critical_path'), rank)[0];
    shown.push(first !== undefined && h('p', {}, h('a', {href: address('timeline')}, 'The path on the timeline')));
  }
  return [...shown, ...await tables(context, [
    ['critical_path_summary', {title: 'The path by what it is bound by', sort: '-duration'}],
    ['critical_path', {title: 'The path, edge by edge'}],
  ])];
}

// Sliders: how much shorter the longest path of the ranks would be at most.
function whatIf(table, rows, names) {
  const paths = distinct(rows.map((row) => value(table, 'rank', row)));
  const said = h('output', {class: 'said'});
  const sliders = names.map((name) => {
    const parts = new Map(rows.filter((row) => text(table, 'bound_by', row) === name)
      .map((row) => [value(table, 'rank', row), value(table, 'duration', row)]));
    const shown = h('span', {class: 'factor'}, '100 %');
    const input = h('input', {type: 'range', min: '0', max: '100', value: '100', oninput: () => update()});
    return {parts, input, shown, row: h('label', {}, h('span', {class: 'slider'}, boundBy(name)), input, shown)};
  });
  const longest = (factor) => paths.map((rank) => [sliders.reduce((sum, slider) => sum + (slider.parts.get(rank) ?? 0) * factor(slider), 0), rank])
    .reduce((most, one) => one[0] > most[0] ? one : most);
  const whole = longest(() => 1);
  const of = ([, rank]) => paths.length > 1 ? `The longest path, that of rank ${rank},` : 'The path';
  const update = () => {
    sliders.forEach(({input, shown}) => { shown.textContent = `${input.value} %`; });
    const now = longest(({input}) => Number(input.value) / 100);
    said.textContent = now[0] === whole[0] ? `${of(whole)} takes ${time(whole[0])}.`
      : `${of(now)} would take ${time(now[0])}, ${percent(100 * (whole[0] - now[0]) / whole[0])} less than ${time(whole[0])}. That is the `
        + 'most to gain: another path may become the longest one; kymo analyze critical_path_summary --scale NAME=FACTOR looks for it.';
  };
  update();
  return h('section', {class: 'what-if', 'aria-label': 'What if'}, h('h2', {}, 'What if these took less?'),
    sliders.map(({row}) => row), said);
}

async function counters(context) {
  const {run, rank} = context;
  const shown = [];
  for (const own of run.ranks.filter((one) => rank === undefined || one.rank === rank)) {
    const found = await samples(own);
    for (const [n, series] of (found?.series ?? []).slice(0, 60).entries()) {
      const points = series.times.map((at, m) => [at + own.offset, series.values[m]]).filter(([, much]) => much !== null);
      if (points.length === 0) {
        continue;
      }
      const name = [run.ranks.length > 1 && `rank ${own.rank}`, series.owner, series.name].filter(Boolean).join(' · ');
      const values = points.map(([, much]) => much);
      shown.push(curves({title: name, table: 'samples', unit: series.unit === 'bytes' || series.unit === 'ns' ? series.unit : '', height: 150,
        says: `${count(series.of)} samples, ${range(values, (much) => withUnit(much, series.unit === 'bytes' ? 'bytes' : ''))} ${series.unit}`,
        series: [{name: series.unit || 'value', color: CURVES[n % CURVES.length], points}]}));
    }
  }
  const all = (await Promise.all(run.ranks.map(async (own) => (await samples(own))?.series.map((series) => ({
    rank: own.rank, owner: series.owner, counter: series.name, unit: series.unit, samples: series.of,
    least: Math.min(...series.values.filter((one) => one !== null)), greatest: Math.max(...series.values.filter((one) => one !== null)),
    last: series.values.at(-1)})) ?? []))).flat();
  const list = listOf('counters_of_the_trace', 'which counters the trace has', [['rank', 'int', '', 'the rank'],
    ['owner', 'text', '', 'whose it is'], ['counter', 'text', '', 'the counter'], ['unit', 'text', '', 'its unit'],
    ['samples', 'int', '', 'how many samples'], ['least', 'float', '', 'the least value'],
    ['greatest', 'float', '', 'the greatest value'], ['last', 'float', '', 'the last value']], all);
  for (const [metric, keys, measure, unit, title] of [['queue_length', ['pid', 'stream'], 'queue_length', '', 'Launches that waited, by stream'],
    ['memory_bandwidth', ['name'], 'memory_bw_gbps', 'GB/s', 'Bandwidth of copies']]) {
    const table = await load(run, metric);
    const rows = where(table, rank ?? run.ranks[0].rank);
    const names = distinct(rows.map((row) => keys.map((key) => text(table, key, row)).join(' '))).slice(0, 8);
    if (rows.length > 1) {
      shown.push(curves({title, table: metric, unit, says: names.join(', '), height: 200, series: names.map((name, n) => ({
        name: metric === 'queue_length' ? `stream ${name.split(' ')[1]} of device ${name.split(' ')[0]}` : name, color: CURVES[n % CURVES.length],
        points: rows.filter((row) => keys.map((key) => text(table, key, row)).join(' ') === name)
          .map((row) => [value(table, 'ts', row), value(table, measure, row)])}))}));
    }
  }
  const each = (await Promise.all(run.ranks.map(async (own) => (await samples(own))?.series.flatMap(({owner, name, unit, times, values}) =>
    times.map((at, n) => ({rank: own.rank, owner, counter: name, unit, ts: at + own.offset, value: values[n]}))) ?? []))).flat();
  const points = listOf('samples', 'the samples that the curves are drawn from', [['rank', 'int', '', 'the rank'],
    ['owner', 'text', '', 'whose it is'], ['counter', 'text', '', 'the counter'], ['unit', 'text', '', 'its unit'],
    ['ts', 'int', 'ns', 'when'], ['value', 'float', '', 'the value']], each);
  return [...shown, all.length > 0 && showTable(list, {title: 'Counters of the trace', metric: 'counters_of_the_trace', main: true}),
    each.length > 0 && showTable(points, {title: 'Samples of the counters', metric: 'samples', rows: 10, rank}),
    ...await tables(context, [['queue_length', {title: 'Launches that waited', main: false}],
      ['memory_bandwidth', {title: 'Bandwidth of copies'}], ['cupti_counters', {title: 'Counters of kernels'}]])];
}

async function environment(context) {
  const {run} = context;
  const files = run.ranks.map((one) => ({rank: one.rank, file: one.file, ...one.about}));
  const facts = [];
  for (const {rank, file, ...about} of files) {
    for (const [name, what] of Object.entries(about)) {
      if (name === 'metadata' || name === 'lost' || name === 'clock' || name === 'categories' || name === 'packets') {
        for (const [key, one] of Object.entries(what)) {
          facts.push({rank, file, about: name, what: key, value: String(one)});
        }
      } else if (name === 'devices') {
        for (const device of what) {
          facts.push({rank, file, about: 'device', what: `${device.number} ${device.name}`, value: `${count(device.activities)} activities on ${device.queues.length} queues`});
        }
      } else if (name === 'processes') {
        for (const process of what) {
          facts.push({rank, file, about: 'process', what: `${process.pid} ${process.name}`, value: `${count(process.events)} events of ${process.threads} threads${process.host ? ` on ${process.host}` : ''}`});
        }
      } else if (name === 'warnings') {
        for (const warning of what) {
          facts.push({rank, file, about: 'warning', what: warning.what, value: `${count(warning.count)} times`});
        }
      } else {
        facts.push({rank, file, about: 'file', what: name, value: String(what)});
      }
    }
  }
  const list = listOf('environment', 'what the files say about where they were recorded, and what was lost', [
    ['rank', 'int', '', 'the rank'], ['file', 'text', '', 'the file'], ['about', 'text', '', 'what it is about'],
    ['what', 'text', '', 'what it is'], ['value', 'text', '', 'what the file says']], facts);
  return [...await tables(context, [['data_quality', {title: 'Whether the data can be trusted'}]]),
    showTable(list, {title: 'Files, processes, devices', metric: 'environment', rank: context.rank, rows: 100}),
    ...await tables(context, [['validate', {title: 'Rules of PyTorch’s trace validator', main: false}], ['violations', {title: 'What breaks them'}]])];
}

export const PAGES = [
  ['summary', 'Summary', summary], ['steps', 'Steps', steps], ['operators', 'Operators', operators],
  ['kernels', 'Kernels', kernels], ['modules', 'Modules', modules], ['timeline', 'Timeline', timelines],
  ['flame', 'Flame graph', flames], ['memory', 'Memory', memory], ['distributed', 'Distributed', distributed],
  ['idle', 'Idle', idle], ['critical', 'Critical path', critical], ['counters', 'Counters', counters],
  ['diff', 'Two runs', difference], ['environment', 'Environment', environment],
].map(([id, name, show]) => ({id, name, show}));


