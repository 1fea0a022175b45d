// Writes a trace with many events: those of another one again and again, one copy behind the other,
// with steps numbered on, and times and durations that are not the same twice.
//
//     node report/tests/many.mjs TRACE.json.gz OUT.json.gz EVENTS

import {readFileSync, writeFileSync} from 'node:fs';
import {gunzipSync, gzipSync} from 'node:zlib';

const [from, to, wanted] = process.argv.slice(2);
const bytes = readFileSync(from);
const trace = JSON.parse(bytes[0] === 0x1f ? gunzipSync(bytes) : bytes);
const events = trace.traceEvents.filter(({ph, ts}) => ph === 'X' && Number(ts) > 0);
const others = trace.traceEvents.filter(({ph}) => ph === 'M');
const times = events.map(({ts}) => Number(ts));
const first = times.reduce((a, b) => Math.min(a, b));
const length = events.reduce((most, {ts, dur}) => Math.max(most, Number(ts) + Number(dur ?? 0)), 0) - first + 1000;
const correlations = events.reduce((most, {args}) => Math.max(most, Number(args?.correlation ?? 0)), 0) + 1;
const steps = new Set(events.map(({name}) => /^ProfilerStep#(\d+)/.exec(name)?.[1]).filter(Boolean)).size;

// The same numbers in each run.
let seed = 1;
const random = () => {
  seed = (seed * 48_271) % 2_147_483_647;
  return seed / 2_147_483_647;
};

const out = [...others.map((event) => JSON.stringify(event))];
for (let copy = 0, made = 0; made < Number(wanted); copy += 1) {
  for (const event of events) {
    // Durations shrink by a little, so that what lies within another event stays there.
    const dur = Math.max(0.001, Number(event.dur ?? 0) * (1 - 0.02 * random()));
    const args = event.args?.correlation === undefined ? event.args
      : {...event.args, correlation: Number(event.args.correlation) + copy * correlations};
    const name = event.name.replace(/^ProfilerStep#(\d+)/, (_, n) => `ProfilerStep#${Number(n) + copy * steps}`);
    out.push(JSON.stringify({...event, name, args, ts: Number((Number(event.ts) + copy * length).toFixed(3)), dur: Number(dur.toFixed(3))}));
    made += 1;
    if (made >= Number(wanted)) break;
  }
}
const {traceEvents: _, ...rest} = trace;
const head = JSON.stringify(rest).slice(0, -1);
writeFileSync(to, gzipSync(`${head}${head.length > 1 ? ',' : ''}"traceEvents":[\n${out.join(',\n')}\n]}`, {level: 1}));
