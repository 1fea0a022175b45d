// Asks a browser about `kymo view`: `node report/tests/view_in_chromium.mjs TRACE`.
//
// A copy of TRACE is served; every page shows, data is loaded when it is needed, the page follows the
// file, and other requests get nothing. Needs what `in_chromium.mjs` needs, and kymo in
// target/release or target/debug (KYMO names another).

import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import {copyFileSync, mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import http from 'node:http';
import {tmpdir} from 'node:os';
import {basename, join} from 'node:path';
import {createInterface} from 'node:readline';

import {everyPage, timelineWorks} from './checks.mjs';
import {kymo} from './kymo.mjs';
import {Page} from './page.mjs';

const folder = mkdtempSync(join(tmpdir(), 'kymo-view-'));
const trace = join(folder, basename(process.argv[2]));
copyFileSync(process.argv[2], trace);
const child = spawn(kymo, ['view', '--no-browser', folder], {stdio: ['ignore', 'pipe', 'inherit']});
const page = new Page();
try {
  const link = await new Promise((ready, failed) => {
    createInterface({input: child.stdout}).once('line', ready);
    child.once('exit', (code) => failed(new Error(`kymo view ended with ${code}`)));
  });
  const {host, port, pathname} = new URL(link);
  const status = (path, headers = {}, method = 'GET') => new Promise((ready, failed) => {
    http.request({host: '127.0.0.1', port, path, method, headers: {Host: host, ...headers}}, (answer) => {
      answer.resume();
      ready(answer.statusCode);
    }).on('error', failed).end();
  });
  assert.equal(await status(pathname), 200);
  assert.equal(await status('/'), 404);
  assert.equal(await status(`${pathname}block-0-99999`), 404);
  assert.equal(await status(`${pathname}block-9-0`), 410);
  assert.equal(await status(pathname, {Host: `evil.example:${port}`}), 403);
  assert.equal(await status(pathname, {Origin: 'https://evil.example'}), 403);
  assert.equal(await status(pathname, {'Sec-Fetch-Site': 'cross-site'}), 403);
  assert.equal(await status(pathname, {}, 'POST'), 405);

  await page.start();
  await everyPage(page, link, {accessible: false});
  await timelineWorks(page, link);
  assert.equal(await page.value('document.querySelectorAll("script[type=\\"text/plain\\"]").length'), 0, 'data comes on demand');

  const events = await page.value('kymograph.index.runs[0].ranks[0].events');
  assert.ok(events > 0);
  writeFileSync(trace.replace(/\.gz$/, '').replace(/(\.json|\.pftrace)$/, '2.json'),
    '{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "later", "pid": 1, "tid": 1, "ts": 1, "dur": 5}]}');
  await page.browser.until('window.kymograph?.index.runs.flatMap((run) => run.ranks).length === 2', 'the new trace');
  console.log(`${link}: every page, and what came later`);
} finally {
  await page.close();
  child.kill();
  rmSync(folder, {recursive: true, force: true});
}
