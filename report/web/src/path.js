// Critical paths on the timeline: a row for each rank, by what its edges are bound by.

import {h} from './dom.js';
import {BOUNDS, boundBy, distinct} from './rows.js';

const bounds = (sources) => distinct(sources.flatMap(({path}) => path.map(([, , , bound]) => bound)));

// Which colour is what, where there is a path.
export function pathLegend(sources) {
  const shown = bounds(sources);
  return shown.length > 0 && h('ul', {class: 'legend', 'aria-label': 'Critical path'}, h('li', {}, 'Critical path:'),
    shown.map((bound) => h('li', {}, h('span', {class: `swatch ${BOUNDS[bound] ?? 'c-other'}`}), boundBy(bound))));
}

export function drawPath(timeline, row, y, line) {
  const {context: g, view, theme, width, names} = timeline;
  g.fillStyle = theme.text;
  g.textAlign = 'left';
  g.fillText(row.name, 8, y + line / 2);
  const style = getComputedStyle(document.documentElement);
  const colors = new Map(bounds(timeline.sources).map((bound) => [bound, style.getPropertyValue(`--${BOUNDS[bound] ?? 'c-other'}`)]));
  for (const edge of row.path) {
    const [start, duration, , bound] = edge;
    const x = names + (start - view.from) / view.span * width;
    const wide = duration / view.span * width;
    if (x + wide >= names && x < names + width) {
      const left = Math.max(x, names);
      g.fillStyle = colors.get(bound);
      g.fillRect(left, y + 2, Math.max(1, Math.min(x + wide, names + width) - left), line - 2);
      if (timeline.edge?.edge === edge) {
        g.strokeStyle = theme.select;
        g.lineWidth = 2;
        g.strokeRect(left + 1, y + 3, Math.max(1, Math.min(x + wide, names + width) - left - 2), line - 4);
      }
    }
  }
}

// The edge at a place of the canvas.
export function edgeAt(timeline, x, y, axis) {
  const down = y - axis + timeline.scroll;
  const row = timeline.rows.find((one) => one.path && down >= one.y && down < one.y + one.height);
  if (!row || x < timeline.names) {
    return undefined;
  }
  const pixel = timeline.view.span / timeline.width;
  const when = timeline.timeAt(x);
  const away = ([start, duration]) => Math.max(start - when, when - start - duration, 0);
  const edge = row.path.filter((one) => away(one) <= 2 * pixel).sort((a, b) => away(a) - away(b) || b[1] - a[1])[0];
  return edge && {s: row.s, edge, start: edge[0], duration: edge[1], name: edge[2], bound: boundBy(edge[3])};
}
