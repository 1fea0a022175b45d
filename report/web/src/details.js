// What is known of the chosen slice, and the way to the same place in Perfetto's UI.

import {argumentsOf, index} from './data.js';
import {h} from './dom.js';
import {count, time} from './format.js';

// A link, or a command to copy, that opens the file of a rank at a time range of the page. A `short` one
// shows the command when it is asked for.
export function inPerfetto({rank, offset, file}, from, until, short = false) {
  const [start, end] = [from, until].map((at) => Math.max(0, Math.round(at - offset + rank.in_file)));
  const range = [start, Math.max(end, start + 1)];
  if (index.live !== null) {
    return [h('a', {class: 'button', href: `perfetto-${index.live}-${rank.source}-${range.join('-')}`, target: '_blank', rel: 'noopener'},
      'Open in Perfetto at this place')];
  }
  const plain = /^[\w./@%+=:,-]+$/.test(file);
  const command = h('code', {}, `kymo open ${plain ? file : `'${file.replaceAll("'", "'\\''")}'`} --at ${range.map((at) => `${at}ns`).join('..')}`);
  const said = h('span', {class: 'count', 'aria-live': 'polite'});
  command.hidden = short;
  return [command, ' ', h('button', {type: 'button', onclick: async () => {
    command.hidden = false;
    try {
      await navigator.clipboard.writeText(command.textContent);
      said.textContent = 'copied: run it where the file is';
    } catch {
      // Where the page may not reach the clipboard, its reader can.
      getSelection().selectAllChildren(command);
      said.textContent = 'selected: copy it by hand';
    }
  }}, 'Open in Perfetto at this place'), ' ', said];
}

const item = (name, ...value) => [h('dt', {}, name), h('dd', {}, value)];

// The arguments of an event, which come later.
function given(rank, n) {
  const list = h('dd', {}, 'loading');
  argumentsOf(rank, n).then((pairs) => {
    list.replaceChildren(...(pairs.length === 0 ? ['none'] : [h('dl', {class: 'arguments'}, pairs.map(([name, value]) => item(name, value)))]));
  }).catch((error) => { list.textContent = error.message; });
  return [h('dt', {}, 'Arguments'), list];
}

export function details(timeline) {
  if (timeline.edge) {
    const {s, start, duration, name, bound} = timeline.edge;
    return [h('h2', {}, name || 'Edge of the critical path'), h('dl', {}, item('Begins', time(start)), item('Takes', time(duration)),
      item('Bound by', bound), item('Row', `critical path of ${timeline.sources[s].label}`))];
  }
  if (!timeline.selected) {
    const rounded = timeline.sources.some(({data}) => data.grid > 1);
    return [h('p', {class: 'note'}, 'Click a slice for its details. W and S zoom, A and D move;'
      + ' with the mouse: drag, shift and drag for a range, ctrl and wheel.'
      + (rounded ? ' Times are rounded to 1 µs here, since there are so many; kymo report --exact leaves them as they are.' : ''))];
  }
  const {s, n} = timeline.selected;
  const source = timeline.sources[s];
  const {data, offset, rowOf, file, rank} = source;
  const row = data.rows[rowOf(n)];
  const start = data.starts[n] + offset;
  const link = (other, before) => h('li', {}, before, h('button', {type: 'button', class: 'link', onclick: () => {
    timeline.select({s, n: other});
    timeline.bring();
  }}, timeline.name({s, n: other})), ` ${time(data.durations[other])}`);
  const ends = timeline.arrows.map(([from, to]) => from === n ? link(to, 'launched ') : link(from, 'launched by '));
  const room = Math.max(data.durations[n], 1000);
  return [h('h2', {}, timeline.name(timeline.selected)), h('dl', {},
    item('Begins', time(start)), item('Takes', data.durations[n] < data.grid ? `less than ${time(data.grid)}` : time(data.durations[n])),
    data.grid > 1 && item('Rounded', `times on this timeline are rounded to ${time(data.grid)}; the tables are exact`),
    item('Kind', data.kinds[data.kindOf[data.names[n]]]),
    item('Row', `${row.group} › ${row.name}`), item('File', file),
    ends.length > 0 && item('Arrows', h('ul', {}, ends.slice(0, 20), ends.length > 20 && h('li', {}, `and ${count(ends.length - 20)} more`))),
    given(rank, n), item('In Perfetto', inPerfetto(source, start - room, start + data.durations[n] + room))),
  h('div', {class: 'tools'}, h('button', {type: 'button', onclick: () => timeline.focus()}, 'Zoom to it (F)'),
    h('button', {type: 'button', onclick: () => {
      timeline.search.value = timeline.name(timeline.selected);
      timeline.find(timeline.search.value);
    }}, 'Find all of this name'))];
}
