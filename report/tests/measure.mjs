// What reports cost: `node report/tests/measure.mjs TRACE...`, for docs/BENCHMARKS.md.
//
// For each TRACE: the size of the page, without data and for a million events; the time that `kymo
// report` takes, by the clock and of processors, beside that of `kymo analyze` and of `kymo analyze` with
// all metrics of the page, in turns; when the page paints first, when the summary is there, how long the
// timeline takes to come, and its frames while it is zoomed and moved, beside a page with nothing but a
// word. The best of several runs. A report in place of a TRACE is only opened. `many.mjs` makes traces with a million events. On a machine with other
// work, UNDER='chrt -r 5' lets the command go first, and INSTRUCTIONS=1 counts instructions, too, of
// which a busy machine needs no more (Debian: apt install valgrind).

import {mkdtempSync, rmSync, statSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {spawnSync} from 'node:child_process';
import {join, resolve} from 'node:path';

import {kymo, must} from './kymo.mjs';
import {Page} from './page.mjs';

const RUNS = 3;
const folder = mkdtempSync(join(tmpdir(), 'kymo-measure-'));

// Seconds by the clock, and of processors.
function cost(...args) {
  const script = 'TIMEFORMAT="%R %U %S"; time "$@" >/dev/null 2>&1';
  const under = (process.env.UNDER ?? '').split(' ').filter((word) => word !== '');
  const {stderr} = spawnSync('bash', ['-c', script, 'bash', ...under, kymo, ...args], {encoding: 'utf8'});
  const [clock, user, system] = stderr.trim().split(' ').map(Number);
  return {clock, processors: user + system};
}

const least = (runs, name) => Math.min(...runs.map((run) => run[name]));

// The least of several runs of each command, which take turns.
function inTurns(commands) {
  const runs = commands.map(() => []);
  for (let n = 0; n < RUNS; n += 1) {
    commands.forEach((args, at) => runs[at].push(cost(...args)));
  }
  return runs.map((own, at) => ({clock: least(own, 'clock'), processors: least(own, 'processors'), instructions: instructions(...commands[at])}));
}

// Billions of instructions, where they are asked for.
function instructions(...args) {
  if (!process.env.INSTRUCTIONS) {
    return undefined;
  }
  const {stderr} = spawnSync('valgrind', ['--tool=callgrind', '--callgrind-out-file=/dev/null', kymo, ...args], {encoding: 'utf8', maxBuffer: 1 << 30});
  return Number(/I\s+refs:\s+([\d,]+)/.exec(stderr)[1].replaceAll(',', '')) / 1e9;
}

const said = ({clock, processors, instructions: many}) => `${clock.toFixed(2)} s (${processors.toFixed(2)} s)${many ? `, ${many.toFixed(2)} G instructions` : ''}`;
const times = (one, other) => `× ${(one.clock / other.clock).toFixed(2)} (× ${(one.processors / other.processors).toFixed(2)})`
  + (one.instructions ? `, × ${(one.instructions / other.instructions).toFixed(2)} instructions` : '');

// What it costs to make a report.
async function costsOf(trace, file) {
  const making = ['report', trace, '--force', '-q', '-o', file];
  must(...making);
  await page.open(file);
  const metrics = await page.value('Object.keys(kymograph.index.runs[0].tables)');
  const [analyze, report, all] = inTurns([['analyze', trace], making, ['analyze', metrics.join(), trace, '--format', 'json']]);
  return `by the clock (of processors): kymo report ${said(report)}
    kymo analyze ${said(analyze)}: ${times(report, analyze)}
    kymo analyze, ${metrics.length} metrics ${said(all)}: ${times(report, all)}`;
}

const empty = join(folder, 'empty.json');
writeFileSync(empty, '{"schemaVersion": 1, "traceEvents": []}');
const bare = join(folder, 'empty.html');
must('report', empty, '-q', '-o', bare);
console.log(`without data: ${(statSync(bare).size / 1e3).toFixed(0)} kB`);

// With what a page of a word costs, which is what the browser and the machine take.
const trivial = join(folder, 'trivial.html');
writeFileSync(trivial, '<!doctype html><html lang="en"><title>-</title><main><h1>word</h1></main><script>window.kymograph = {}</script></html>');

const page = new Page();
await page.start();
await page.browser.send('Page.addScriptToEvaluateOnNewDocument', {source: `
  new MutationObserver((_, observer) => {
    if (document.querySelector('main h1') && !document.querySelector('main[aria-busy]')) {
      window.shownAt = performance.now();
      observer.disconnect();
    }
  }).observe(document, {subtree: true, childList: true, attributes: true});`});
try {
  const painted = [];
  for (let n = 0; n < RUNS; n += 1) {
    await page.open(trivial);
    await page.browser.until('performance.getEntriesByName("first-contentful-paint").length > 0', 'the first paint');
    painted.push(await page.value('performance.getEntriesByName("first-contentful-paint")[0].startTime'));
  }
  console.log(`first paint of a page of a word: ${Math.min(...painted).toFixed(0)} ms`);
  for (const trace of process.argv.slice(2)) {
    const made = trace.endsWith('.html');
    const file = made ? resolve(trace) : join(folder, 'report.html');
    const costs = made ? 'a report that was there' : await costsOf(trace, file);
    const size = statSync(file).size;
    const loads = [];
    for (let n = 0; n < RUNS; n += 1) {
      await page.open(file);
      const [paint, shown] = await page.value(`[performance.getEntriesByName('first-contentful-paint')[0]?.startTime, window.shownAt]`);
      const began = await page.value('performance.now()');
      await page.value('location.hash = "#timeline", 0');
      await page.browser.until('kymograph.timeline?.drawn !== undefined', 'the timeline');
      const timeline = await page.value('performance.now()') - began;
      const frames = await page.value(`(async () => {
        const t = kymograph.timeline; const took = [];
        for (let n = 0; n < 120; n += 1) {
          n < 60 ? t.zoom(0.93) : t.pan(t.view.span * 0.02);
          await new Promise((ready) => requestAnimationFrame(ready));
          t.draw();
          took.push(t.drawn);
        }
        return took.sort((a, b) => a - b);
      })()`);
      loads.push({paint, shown, timeline, middle: frames[60], most: frames[118]});
    }
    const events = await page.value('kymograph.index.runs.flatMap((run) => run.ranks).reduce((sum, {events}) => sum + events, 0)');
    console.log(`${trace}: ${events} events, ${(size / 1e6).toFixed(2)} MB, ${(size / events).toFixed(2)} bytes for each
  ${costs}
  first paint ${least(loads, 'paint').toFixed(0)} ms, summary ${least(loads, 'shown').toFixed(0)} ms, timeline after ${least(loads, 'timeline').toFixed(0)} ms
  frames ${least(loads, 'middle').toFixed(1)} ms in the middle, ${least(loads, 'most').toFixed(1)} ms for the second longest of 120`);
  }
} finally {
  await page.close();
  rmSync(folder, {recursive: true, force: true});
}
