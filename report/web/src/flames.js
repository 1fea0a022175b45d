// The pages with flame graphs: of one run, and of two beside each other.

import {cell, index, kindsOfNames, table as load} from './data.js';
import {h} from './dom.js';
import {differences, flame, moduleTree, tree} from './flame.js';
import {percent, time} from './format.js';
import {listOf, tables, text, value} from './rows.js';
import {address, state} from './state.js';
import {showTable} from './table.js';

// What a flame graph has boxes for: the address's name, what it is called, which kinds of frames.
const FRAMES = [['all', 'Whole stacks'], ['operators', 'Operators', ['operator', 'annotation', 'step']],
  ['modules', 'Modules'], ['python', 'Python', ['python']]];
const SIDES = [['host', 'Host time'], ['device', 'Device time']];

// Which of them the address names, and links to all of them.
function flameChoices(page) {
  const of = state.query.get('of');
  const query = page === 'diff' && of !== null ? {of} : {};
  const [frames, side] = [['frames', FRAMES], ['side', SIDES]].map(([name, all]) =>
    all.find(([own]) => own === state.query.get(name)) ?? all[0]);
  const group = (label, name, all, now, other) => h('p', {class: 'switch', role: 'group', 'aria-label': label}, all.map((own) =>
    h('a', {href: address(page, {...query, ...other, [name]: own[0]}), 'aria-current': own === now ? 'true' : undefined}, own[1])));
  return {frames, side, links: [group('What has boxes', 'frames', FRAMES, frames, {side: side[0]}),
    group('Which time', 'side', SIDES, side, {frames: frames[0]})]};
}

// The tree of a run; an element that says why there is none.
async function flameTree(run, rank, [frames, , kinds], [side]) {
  const table = await load(run, frames === 'modules' ? 'modules' : 'stacks');
  if (table.missing || table.rows === 0) {
    return {none: h('p', {class: 'missing'}, `Nothing here: ${table.missing ?? 'there are no stacks'}.`)};
  }
  const nothing = 'Nothing of the trace took any of this time.';
  if (frames === 'modules') {
    const root = moduleTree(table, `${side}_duration`, rank);
    return root.total > 0 ? {root, kind: () => 'c-annotation'} : {none: h('p', {class: 'missing'}, nothing)};
  }
  let keep;
  if (kinds) {
    const ranks = run.ranks.filter((one) => rank === undefined || one.rank === rank);
    const pairs = (await Promise.all(ranks.map(kindsOfNames))).flat();
    // A stack has its names with `;` between them.
    const kept = new Set(pairs.filter(([, kind]) => kinds.includes(kind)).map(([name]) => name.replaceAll(';', ',')));
    keep = (name) => kept.has(name);
  }
  const root = tree(table, `${side}_time`, rank, keep);
  if (root.children.size === 0) {
    return {none: h('p', {class: 'missing'}, frames === 'python' ? 'Nothing here: no Python functions were recorded (with_stack=True, '
      + 'or kymo record --python functions).' : nothing)};
  }
  return {root, cut: table.cut};
}

export async function flames(context) {
  const {run, rank} = context;
  const {frames, side, links} = flameChoices('flame');
  const {root, kind, none, cut} = await flameTree(run, rank, frames, side);
  const title = `${side[1]} by ${{all: 'stack', operators: 'operator', modules: 'module', python: 'Python function'}[frames[0]]}`;
  const own = frames[0] === 'modules' ? 'modules' : 'stacks';
  const list = [['stacks', {title: 'Stacks', sort: `-${side[0]}_time`}], ['modules', {title: 'Modules of the model'}]];
  return [links, none ?? flame({title, root, kind, metric: own}),
    cut && h('p', {class: 'cut'}, `Not all stacks are in this page: ${cut}.`),
    ...await tables(context, list.sort(([name]) => name === own ? -1 : 1))];
}

const DIFFERENCES = [['stack', 'text', '', 'the frames from the outermost inwards, with ; between them'],
  ['base_time', 'int', 'ns', 'how long it takes in the first run, with all that it calls'],
  ['test_time', 'int', 'ns', 'how long it takes in the second run'],
  ['diff_duration', 'int', 'ns', 'how much longer that is'],
  ['base_share', 'float', '%', 'its part of the first run'],
  ['test_share', 'float', '%', 'its part of the second run'],
  ['change', 'float', '%', 'points by which its part is larger in the second run']];

export async function difference() {
  if (index.comparisons.length === 0) {
    return [h('p', {class: 'missing'}, 'There is one run. Two are compared by ', h('code', {}, 'kymo report BASE TEST'), ': folders, or files with ',
      h('code', {}, '--each'), '.')];
  }
  const number = Math.min(Number(state.query.get('of') ?? 0) || 0, index.comparisons.length - 1);
  const chosenOne = index.comparisons[number];
  const name = (n) => index.runs[n].name || `run ${n + 1}`;
  const choice = h('label', {class: 'choice'}, 'Compared ', h('select', {onchange: (event) => {
    location.hash = address('diff', {of: event.target.value});
  }}, index.comparisons.map(({base, test}, n) => h('option', {value: n, selected: n === number}, `${name(base)} → ${name(test)}`))));
  const {frames, side, links} = flameChoices('diff');
  const [regressions, base, test] = await Promise.all([load(chosenOne, 'regressions'),
    ...[chosenOne.base, chosenOne.test].map((n) => flameTree(index.runs[n], undefined, frames, side))]);
  const shown = [choice];
  if (!regressions.missing && regressions.rows > 0) {
    const [verdict, change] = ['verdict', 'change'].map((column) => cell(regressions.column(column), 0));
    shown.push(h('p', {class: 'finding'}, `${text(regressions, 'kind', 0)} ${text(regressions, 'name', 0)}: ${time(value(regressions, 'base', 0))} → `
      + `${time(value(regressions, 'test', 0))}${change === null ? '' : `, ${change > 0 ? '+' : ''}${percent(change)}`}: ${verdict}`));
  }
  const context = {run: chosenOne};
  shown.push(...await tables(context, [
    ['diff', {title: 'By name', sort: '-diff_duration', first: ['name', 'diff_duration', 'base_total_duration', 'test_total_duration']}],
    ['regressions', {title: 'Whether steps became slower'}],
    ['diff_tree', {title: 'Module by module'}],
  ]));
  const none = base.none ?? test.none;
  shown.push(h('h2', {}, 'Flame graphs'), links, none ?? [
    h('p', {class: 'note'}, 'Boxes are as wide as their share of the run; the colour says whether that share is larger (red, +) or smaller (green, −) than in the other run.'),
    h('div', {class: 'beside'}, [[chosenOne.base, base.root, test.root], [chosenOne.test, test.root, base.root]].map(([n, root, compared]) =>
      flame({title: `${side[1]} of ${name(n)}`, root, compared, metric: 'flame_differences'}))),
    showTable(listOf('flame_differences', 'how much larger the share of each stack is in the second run, the largest difference first', DIFFERENCES,
      differences(base.root, test.root)), {title: 'Stacks of both runs', metric: 'flame_differences', sort: undefined, rows: 20})]);
  return shown;
}
