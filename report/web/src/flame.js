// Flame graphs: a box for each stack of the metric `stacks`, or each module, as wide as its time, with
// what it calls on it. The colour says what it is, or how its share differs from another run's.

import {toTable} from './chart.js';
import {h, svg} from './dom.js';
import {count, percent, withUnit} from './format.js';

const [LINE, WIDTH] = [19, 1200];

const node = (name, parent) => ({name, self: 0, total: 0, count: 0, children: new Map(), parent});

function childOf(parent, name) {
  let child = parent.children.get(name);
  if (!child) {
    child = node(name, parent);
    parent.children.set(name, child);
  }
  return child;
}

// The tree of a table of stacks, weighted by a column. Of frames that `keep` leaves out, the time is
// their callers'.
export function tree(table, column, rank, keep = () => true) {
  const root = node('all');
  const kept = new Map();
  const wanted = (name) => {
    if (!kept.has(name)) {
      kept.set(name, keep(name));
    }
    return kept.get(name);
  };
  const [stacks, weights, counts] = ['stack', column, 'count'].map((name) => table.column(name));
  const ranks = table.column('rank');
  for (let row = 0; row < table.rows; row += 1) {
    const weight = weights.values[row];
    if (!(weight > 0) || (rank !== undefined && ranks.values[row] !== rank)) {
      continue;
    }
    let at = root;
    at.total += weight;
    for (const name of stacks.texts[stacks.values[row]].split(';').filter(wanted)) {
      at = childOf(at, name);
      at.total += weight;
    }
    at.self += weight;
    at.count += counts.values[row] ?? 0;
  }
  return root;
}

// The tree of the metric `modules`: what a module takes without those in it is its own.
export function moduleTree(table, column, rank) {
  const root = node('all');
  const [paths, totals, counts, ranks] = ['path', column, 'occurrences', 'rank'].map((name) => table.column(name));
  for (let row = 0; row < table.rows; row += 1) {
    if (rank === undefined || ranks.values[row] === rank) {
      const own = paths.texts[paths.values[row]].split(' > ').reduce(childOf, root);
      own.total += totals.values[row] ?? 0;
      own.count += counts.values[row] ?? 0;
    }
  }
  const settle = (at) => {
    const below = [...at.children.values()].reduce((sum, child) => sum + settle(child), 0);
    at.total = Math.max(at.total, below);
    at.self = at.total - below;
    return at.total;
  };
  settle(root);
  return root;
}

// What a name is, told by how it looks.
function kindOf(name) {
  if (name.startsWith('nn.Module')) return 'c-annotation';
  if (/\.py\(\d+\)|<built-in/.test(name)) return 'c-python';
  if (/^(cu|hip|ze|gaudi)[A-Z]/.test(name)) return 'c-runtime';
  if (/::/.test(name) || /Backward\d*$/.test(name)) return 'c-operator';
  return 'c-annotation';
}

// The part of the whole that a node of another tree, at the same place, has.
function shareIn(other, node) {
  const path = [];
  for (let at = node; at.parent; at = at.parent) {
    path.push(at.name);
  }
  let there = other;
  for (const name of path.reverse()) {
    there = there?.children.get(name);
  }
  return (there?.total ?? 0) / (other.total || 1);
}

// Each stack of either of two trees with its time in both, and how much larger its share is in the
// second: what the colours of two flame graphs say.
export function differences(base, test) {
  const rows = [];
  const [whole, other] = [base.total || 1, test.total || 1];
  const visit = (one, two, path) => {
    const [before, now] = [one?.total ?? 0, two?.total ?? 0];
    if (path.length > 0) {
      rows.push({stack: path.join(';'), base_time: before, test_time: now, diff_duration: now - before,
        base_share: 100 * before / whole, test_share: 100 * now / other, change: 100 * (now / other - before / whole)});
    }
    for (const name of new Set([...(one?.children.keys() ?? []), ...(two?.children.keys() ?? [])])) {
      visit(one?.children.get(name), two?.children.get(name), [...path, name.replaceAll(';', ',')]);
    }
  };
  visit(base, test, []);
  return rows.sort((a, b) => Math.abs(b.change) - Math.abs(a.change));
}

// `metric` is the table on the same page that has the numbers.
export function flame({title, root, metric, unit = 'ns', compared, kind = kindOf, id}) {
  let focus = root;
  let search = '';
  const drawing = svg('svg', {class: 'flame', role: 'group', 'aria-label': `${title}: boxes are as wide as their time; the table below has the same`});
  const said = h('p', {class: 'said', 'aria-live': 'polite'});
  const input = h('input', {type: 'search', placeholder: 'Search', 'aria-label': `Search ${title}`, oninput: () => {
    search = input.value.toLowerCase();
    draw();
  }});
  const whole = h('button', {type: 'button', onclick: () => zoom(root)}, 'Whole');

  function zoom(node) {
    focus = node;
    draw();
  }

  function describe(node) {
    const share = node.total / (root.total || 1);
    const before = compared ? `, in the other run ${percent(100 * shareIn(compared, node))}` : '';
    return `${node.name}: ${withUnit(node.total, unit)}, ${percent(100 * share)}${before}; itself `
      + `${withUnit(node.self, unit)}${node.count ? `, ${count(node.count)} times` : ''}`;
  }

  function color(node) {
    if (!compared) {
      return node.parent ? kind(node.name) : 'c-other';
    }
    const change = node.total / (root.total || 1) - shareIn(compared, node);
    return Math.abs(change) < 0.002 ? 'c-same' : change > 0 ? 'c-worse' : 'c-better';
  }

  function draw() {
    const boxes = [];
    let deepest = 0;
    let found = 0;
    const box = (node, x, width, above) => {
      deepest = Math.max(deepest, above);
      const hit = search && node.name.toLowerCase().includes(search);
      found += hit ? node.self : 0;
      const shown = Math.floor((width - 6) / 6.6);
      const text = shown < 3 ? '' : node.name.length > shown ? `${node.name.slice(0, shown - 1)}…` : node.name;
      const opacity = compared ? 0.35 + Math.min(0.65, 12 * Math.abs(node.total / (root.total || 1) - shareIn(compared, node))) : 1;
      boxes.push(svg('g', {class: `box ${color(node)}${hit ? ' hit' : ''}`, tabindex: width > 20 ? '0' : undefined,
        role: 'button', 'aria-label': describe(node), onclick: () => zoom(node),
        onkeydown: (event) => { if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); zoom(node); } },
        onpointerenter: () => { said.textContent = describe(node); },
        onfocus: () => { said.textContent = describe(node); }},
      svg('rect', {x, y: above * LINE, width: Math.max(0.5, width - 1), height: LINE - 1, 'fill-opacity': opacity}),
      text && svg('text', {x: x + 4, y: above * LINE + 13}, text), svg('title', {}, describe(node))));
      let from = x;
      const children = [...node.children.values()].sort((a, b) => b.total - a.total);
      for (const child of children) {
        const wide = width * child.total / node.total;
        if (wide >= 0.7) {
          box(child, from, wide, above + 1);
        }
        from += wide;
      }
    };
    const above = [];
    for (let node = focus.parent; node; node = node.parent) {
      above.unshift(node);
    }
    above.forEach((node, n) => boxes.push(svg('g', {class: 'box around', role: 'button', tabindex: '0',
      'aria-label': `back to ${node.name}`, onclick: () => zoom(node),
      onkeydown: (event) => { if (event.key === 'Enter') zoom(node); }},
    svg('rect', {x: 0, y: n * LINE, width: WIDTH - 1, height: LINE - 1}), svg('text', {x: 4, y: n * LINE + 13}, node.name))));
    box(focus, 0, WIDTH, above.length);
    drawing.setAttribute('viewBox', `0 0 ${WIDTH} ${(deepest + 1) * LINE}`);
    drawing.replaceChildren(...boxes);
    whole.disabled = focus === root;
    said.textContent = search ? `${withUnit(found, unit)} in boxes with “${input.value}” (without what they call)` : describe(focus);
  }
  draw();
  return h('section', {class: 'flames', id, 'data-table': metric}, h('h2', {}, title),
    h('div', {class: 'tools'}, input, whole, toTable(title, metric)), said, h('div', {class: 'flame-box'}, drawing));
}
