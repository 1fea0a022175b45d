// Asks a browser about reports of real traces: `node report/tests/survey.mjs FOLDER`.
//
// FOLDER has traces, and folders of the ranks of jobs or of several runs. Each of them, a trace without
// events and one without devices becomes a report by the command; each of its pages must show without
// complaint, request or accessibility violation, and its tables must be those of `kymo analyze --format
// json`. Needs what `in_chromium.mjs` needs, and kymo in target/release or target/debug (KYMO names
// another).

import {mkdtempSync, readdirSync, rmSync, statSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

import {choicesWork, everyPage, tablesAre, tablesWork, timelineWorks} from './checks.mjs';
import {documents, must, root, run} from './kymo.mjs';
import {Page} from './page.mjs';

const folder = process.argv[2];
if (!folder) {
  console.error('usage: survey.mjs FOLDER');
  process.exit(2);
}

const isTrace = (name) => /\.(json|pftrace|perfetto-trace)(\.gz|\.zst)?$/.test(name);
const cases = [];
for (const name of readdirSync(folder).sort()) {
  const path = join(folder, name);
  if (statSync(path).isDirectory()) {
    const traces = readdirSync(path).filter(isTrace);
    const ranks = traces.every((one) => /rank\d/.test(one)) || traces.some((one) => one.includes('.pt.trace.'));
    cases.push(...(ranks ? [[path]] : traces.map((one) => [join(path, one)])));
  } else if (/rank0\.json/.test(name)) {
    cases.push([path, path.replace('rank0', 'rank1')]);
  } else if (isTrace(name) && !/rank[1-9]\.json/.test(name)) {
    cases.push([path]);
  }
}
const to = mkdtempSync(join(tmpdir(), 'kymo-survey-'));
const empty = join(to, 'empty.json');
writeFileSync(empty, '{"schemaVersion": 1, "traceEvents": []}');
cases.push([empty]);
// Of the host alone, with allocations.
cases.push([join(root, 'analysis/tests/data/cpu_with_memory.json.gz')]);

const metrics = must('analyze', '--list').trim().split('\n').map((line) => line.split(' ')[0]);
const page = new Page();
await page.start();
let failed = 0;
try {
  for (const traces of cases) {
    const file = join(to, 'report.html');
    try {
      must('report', ...traces, '--force', '-q', '-o', file);
      await everyPage(page, file);
      const runs = await page.value('kymograph.index.runs.map((run) => run.ranks.map(({file}) => file))');
      const inPage = await page.value('[...Object.keys(kymograph.index.runs[0].tables), ...Object.keys(kymograph.index.runs[0].missing)]');
      let cells = 0;
      for (const [number, files] of runs.entries()) {
        const words = runs.length === 1 ? traces : files.map((name) => join(traces[0], name));
        const said = run('analyze', inPage.filter((name) => metrics.includes(name)).join(','), ...new Set(words), '--format', 'json');
        const found = new Map(documents(said.stdout).map((one) => [one.metric, one]));
        cells += await tablesAre(page, inPage.map((metric) => ({run: number, metric, table: found.get(metric) ?? null})));
      }
      if (runs.length === 2) {
        const sides = runs.map(([name]) => join(traces[0], name));
        for (const metric of ['diff', 'diff_tree', 'regressions']) {
          const said = run('analyze', metric, ...sides, '--format', 'json');
          cells += await tablesAre(page, [{comparison: 0, metric, table: documents(said.stdout)[0] ?? null}]);
        }
      }
      if (await page.value('kymograph.index.runs[0].ranks.some(({events}) => events > 0)')) {
        await timelineWorks(page, file);
        await choicesWork(page, file);
      }
      if (await page.value(`kymograph.table('operators').then((rows) => rows.some(({name}) => name.includes('aten')) && rows.some(({name}) => !name.includes('aten')))`)) {
        await tablesWork(page, file, {id: 'operators', metric: 'operators', column: 'self_cpu_time', search: 'aten'});
      }
      console.log(`ok      ${traces.join(' ')}: ${runs.length} runs, ${cells} cells`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED  ${traces.join(' ')}: ${error.message}`);
      page.complaints.splice(0);
      page.requests.splice(0);
    }
  }
} finally {
  await page.close();
  rmSync(to, {recursive: true, force: true});
}
console.log(`${cases.length} reports, ${failed} failed`);
process.exit(failed ? 1 : 0);
