// Opens traces in Perfetto's UI as `kymo open` does, and takes pictures of them.
//
//     node tests/ui/pictures.mjs [--kymo KYMO] [--ui FOLDER|URL] [--to FOLDER] TRACE...
//
// Needs Node 20 and Chromium (Debian: apt install nodejs npm chromium; CHROMIUM names another).
// Not among the tests that `./test` runs: those ask trace_processor what the UI shows.
//
// --kymo  the command; target/release/kymo or target/debug/kymo otherwise
// --ui    where the UI is: a folder with its files, or an address. Otherwise
//         tests/.tools/ui, which `node tests/ui/build.mjs` builds, or else
//         https://ui.perfetto.dev
// --to    where pictures go: docs/images otherwise
//
// For each TRACE there are two pictures: NAME-open.png, what `kymo open` shows; and, of a job with
// several ranks, NAME-late.png: the collective for which others waited longest, and the main
// thread of the rank that they waited for.

import {spawn} from 'node:child_process';
import {existsSync, mkdirSync, readFileSync, statSync, writeFileSync} from 'node:fs';
import http from 'node:http';
import {basename, dirname, extname, join, normalize} from 'node:path';
import {createInterface} from 'node:readline';
import {fileURLToPath} from 'node:url';
import {parseArgs} from 'node:util';

import {Browser} from './browser.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const root = dirname(dirname(here));
const [WIDTH, HEIGHT, TALL] = [1600, 1000, 2000];

const {values, positionals: traces} = parseArgs({
  options: {kymo: {type: 'string'}, ui: {type: 'string'}, to: {type: 'string'}},
  allowPositionals: true,
});
const built = ['release', 'debug'].map((profile) => join(root, 'target', profile, 'kymo'));
const kymo = values.kymo ?? built.find(existsSync) ?? 'kymo';
const to = values.to ?? join(root, 'docs/images');
if (traces.length === 0) {
  console.error('usage: pictures.mjs [--kymo KYMO] [--ui FOLDER|URL] [--to FOLDER] TRACE...');
  process.exit(2);
}

const TYPES = {
  '.html': 'text/html', '.js': 'text/javascript', '.mjs': 'text/javascript', '.css': 'text/css',
  '.json': 'application/json', '.wasm': 'application/wasm', '.png': 'image/png',
  '.woff2': 'font/woff2', '.svg': 'image/svg+xml',
};

// Serves a folder on this machine; returns its address.
async function serve(folder) {
  const server = http.createServer((request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, 'http://x').pathname));
    const file = join(folder, path.endsWith('/') ? `${path}index.html` : path);
    if (!file.startsWith(folder) || !existsSync(file) || !statSync(file).isFile()) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, {'Content-Type': TYPES[extname(file)] ?? 'application/octet-stream'});
    response.end(readFileSync(file));
  });
  await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
  return {server, address: `http://127.0.0.1:${server.address().port}`};
}

// Has `kymo open` serve a trace; returns its link.
async function link(trace, ui) {
  const child = spawn(kymo, ['open', '--no-browser', '--ui', ui, trace],
    {stdio: ['ignore', 'pipe', 'pipe'], env: {...process.env, SSH_CONNECTION: ''}});
  let said = '';
  child.stderr.on('data', (part) => { said += part; });
  const ended = new Promise((_, reject) => {
    child.on('error', reject);
    child.on('exit', (code) => reject(new Error(`${kymo} open ended with ${code}: ${said}`)));
  });
  ended.catch(() => {});
  const lines = createInterface({input: child.stdout});
  const first = new Promise((ready) => lines.once('line', ready));
  return Promise.race([first, ended]);
}

// Waits until nothing is drawn any more, or for as long as a slow machine may take for it.
async function settled(browser) {
  await browser.value('document.fonts.ready.then(() => 0)');
  await browser.value(`Promise.race([
    window.waitForPerfettoIdle?.(1000), new Promise((ready) => setTimeout(ready, 10_000)),
  ]).then(() => 0)`);
}

async function open(browser, trace, ui) {
  await browser.send('Page.navigate', {url: 'about:blank'});
  await browser.send('Page.navigate', {url: await link(trace, ui)});
  await browser.until('Boolean(self.app?.trace)', 'the trace');
  await settled(browser);
  const problem = await browser.value(
    `document.querySelector('.pf-modal-dialog')?.innerText ?? ''`);
  if (problem) {
    throw new Error(`${trace}: the UI says: ${problem}`);
  }
}

async function save(browser, name) {
  await settled(browser);
  const file = join(to, `${name}.png`);
  writeFileSync(file, await browser.picture());
  console.log(file);
}

const run = (command, ...args) => `self.app.commands.runCommand(${
  [command, ...args].map((value) => JSON.stringify(value)).join(', ')})`;

// Rows of a query in the UI, as objects; integers as texts.
const query = (browser, sql, columns) => browser.value(`(async () => {
  const rows = [];
  const result = await self.app.trace.engine.query(${JSON.stringify(sql)});
  for (const it = result.iter({}); it.valid(); it.next()) {
    rows.push(Object.fromEntries(${JSON.stringify(columns)}.map((c) => [c, String(it.get(c))])));
  }
  return rows;
})()`);

// The rank for which the others waited longest in all, and of its collectives the one for which
// they did: how long, from when to when. Collectives of a rank come in their order; the third
// quarter of them is far from the beginning, where ranks wait for other reasons.
const LATE = `
  WITH collective AS MATERIALIZED (
    SELECT g.ts, g.ts + g.dur AS ended, p.pid, p.name AS process,
           row_number() OVER (PARTITION BY g.upid, g.name ORDER BY g.ts) AS number, g.name
    FROM gpu_slice g JOIN process p USING (upid) WHERE g.name GLOB 'ncclDevKernel*'
  ), met AS MATERIALIZED (
    SELECT name, number, min(ts) AS first, max(ts) AS last, max(ended) AS ended, count(*) AS ranks
    FROM collective GROUP BY name, number
  ), waited AS MATERIALIZED (
    SELECT m.last - m.first AS waited, m.first, m.ended, c.pid, c.process,
           ntile(4) OVER (ORDER BY m.first) AS quarter
    FROM met m JOIN collective c ON (c.name, c.number, c.ts) = (m.name, m.number, m.last)
    WHERE m.ranks > 1
  )
  SELECT *, sum(waited) OVER (PARTITION BY pid) AS waited_in_all FROM waited
  WHERE quarter = 3 ORDER BY waited_in_all DESC, waited DESC LIMIT 1`;

// Where the late process was while the others waited: the operator that took longest of those that
// call no others, and the main thread.
const late = (pid, from, to) => `
  SELECT s.id, s.name, t.name AS thread FROM slice s JOIN thread_track tt ON tt.id = s.track_id
  JOIN thread t USING (utid) JOIN process p USING (upid)
  WHERE p.pid = ${pid} AND t.tid = p.pid AND s.name GLOB 'aten::*'
    AND s.ts < ${to} AND s.ts + s.dur > ${from}
  ORDER BY s.dur DESC LIMIT 1`;

async function pictures(browser, trace, ui) {
  const name = basename(trace).replace(/\..*$/, '');
  await browser.resize(WIDTH, HEIGHT);
  await open(browser, trace, ui);
  await browser.value(`void ${run('dev.perfetto.ToggleLeftSidebar')}`);
  await browser.value(`void ${run('dev.perfetto.ToggleDrawer')}`);
  await save(browser, `${name}-open`);

  const [met] = await query(browser, LATE, ['waited', 'waited_in_all', 'first', 'ended', 'pid', 'process']);
  if (!met) {
    console.error(`${trace}: no collectives of several ranks`);
    return;
  }
  const [step] = await query(browser, `
    SELECT max(s.ts) AS ts FROM slice s JOIN process_track t ON t.id = s.track_id
    JOIN process p USING (upid)
    WHERE s.name GLOB 'ProfilerStep#*' AND s.ts < ${met.first} AND p.pid = ${met.pid}`, ['ts']);
  const from = /^[0-9]+$/.test(step?.ts) ? step.ts : met.first;
  console.error(`${trace}: ${met.process} came last, by ${met.waited_in_all / 1e6} ms in all`);
  await browser.resize(WIDTH, TALL);
  await browser.value(`void self.app.trace.timeline.panSpanIntoView(${from}n, ${met.ended}n,
    {align: 'zoom', margin: 0.02, animation: 'step'})`);
  const [slow] = await query(browser, late(met.pid, from, met.ended), ['id', 'name', 'thread']);
  if (slow) {
    console.error(`${trace}: in ${slow.name}`);
    const row = `select id from slice where id = ${slow.id}`;
    await browser.value(`${run('dev.perfetto.PinSliceTracksFromSqlQuery', row)}.then(() => 0)`);
    // Its details say whose it is.
    await browser.value(`void self.app.trace.selection.selectSqlEvent('slice', ${slow.id},
      {switchToCurrentSelectionTab: true})`);
    await browser.value(`void ${run('dev.perfetto.ToggleDrawer')}`);
  }
  await save(browser, `${name}-late`);
}

mkdirSync(to, {recursive: true});
const own = join(root, 'tests/.tools/ui');
const given = values.ui ?? (existsSync(own) ? own : 'https://ui.perfetto.dev');
const served = /^https?:/.test(given) ? undefined : await serve(given);
const browser = new Browser();
try {
  await browser.open(WIDTH, HEIGHT);
  // Hints that would cover the rows.
  await browser.send('Page.addScriptToEvaluateOnNewDocument', {source: `
    for (const key of ['cookieAck', 'dismissedPanningHint']) localStorage.setItem(key, 'true');`});
  for (const trace of traces) {
    await pictures(browser, trace, served?.address ?? given.replace(/\/$/, ''));
  }
} finally {
  await browser.close();
  served?.server.close();
}
