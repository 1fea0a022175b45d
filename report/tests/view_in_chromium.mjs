// Asks a browser about `kymo view`: `node report/tests/view_in_chromium.mjs TRACE`.
//
// A copy of TRACE is served; every page shows, data is loaded when it is needed, a slice has the arguments
// of the trace, Perfetto's UI gets the file and the place, the page follows the file, and other requests
// get nothing. Needs what `in_chromium.mjs` needs, and kymo in
// target/release or target/debug (KYMO names another).

import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import {copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import http from 'node:http';
import {tmpdir} from 'node:os';
import {basename, join} from 'node:path';
import {createInterface} from 'node:readline';
import {gunzipSync} from 'node:zlib';

import {everyPage, timelineWorks} from './checks.mjs';
import {kymo} from './kymo.mjs';
import {Page} from './page.mjs';

const folder = mkdtempSync(join(tmpdir(), 'kymo-view-'));
const trace = join(folder, basename(process.argv[2]));
copyFileSync(process.argv[2], trace);
// A UI of one's own may fetch from any port.
const UI = 'http://localhost:1';
const child = spawn(kymo, ['view', '--no-browser', '--ui', UI, folder], {stdio: ['ignore', 'pipe', 'inherit']});
const page = new Page();
try {
  const link = await new Promise((ready, failed) => {
    createInterface({input: child.stdout}).once('line', ready);
    child.once('exit', (code) => failed(new Error(`kymo view ended with ${code}`)));
  });
  const {host, port, pathname} = new URL(link);
  const ask = (path, headers = {}, method = 'GET', at = port) => new Promise((ready, failed) => {
    http.request({host: '127.0.0.1', port: at, path, method, headers: {Host: host, ...headers}}, (answer) => {
      const parts = [];
      answer.on('data', (part) => parts.push(part));
      answer.on('end', () => ready({status: answer.statusCode, headers: answer.headers, body: Buffer.concat(parts)}));
    }).on('error', failed).end();
  });
  const status = async (...words) => (await ask(...words)).status;
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

  // Details: what the trace has as arguments, and the place in Perfetto.
  const original = readFileSync(trace);
  const text = (trace.endsWith('.gz') ? gunzipSync(original) : original).toString();
  const about = await page.value('kymograph.timeline.sources[0].data.names.length');
  const named = await page.value(`(async () => {
    const t = kymograph.timeline;
    for (let n = 0; n < Math.min(${about}, 200); n += 1) {
      t.select({s: 0, n});
      for (let tries = 0; tries < 600 && t.details.querySelector('dl dl') === null && !t.details.innerText.includes('none'); tries += 1) {
        await new Promise((ready) => setTimeout(ready, 100));
      }
      const [name, value] = ['dt', 'dd'].map((tag) => t.details.querySelector('dl.arguments ' + tag)?.textContent);
      if (name) {
        return {name, value, href: t.details.querySelector('a.button').getAttribute('href'), start: t.sources[0].data.starts[n]};
      }
    }
  })()`);
  assert.ok(named && text.includes(JSON.stringify(named.name)) && text.includes(named.value), `arguments: ${JSON.stringify(named)}`);
  const {status: moved, headers: {location}} = await ask(`${pathname}${named.href}`);
  assert.equal(moved, 303);
  assert.ok(location.startsWith(`${UI}/#!/?url=http://127.0.0.1:`), location);
  const url = new URL(decodeURIComponent(/url=([^&]*)/.exec(location)[1]));
  const [from, to] = [/visStart=(-?\d+)/, /visEnd=(-?\d+)/].map((one) => BigInt(one.exec(location)[1]));
  assert.ok(from < to, location);
  const fetched = await ask(url.pathname, {Host: url.host, Origin: UI}, 'GET', url.port);
  assert.equal(fetched.status, 200);
  assert.ok(fetched.body.equals(original), 'the UI gets the file');
  assert.equal(await status(url.pathname, {Host: url.host, Origin: 'https://evil.example'}, 'GET', url.port), 403);
  assert.equal(await status(`${pathname}${named.href}`, {'Sec-Fetch-Site': 'cross-site'}), 403);
  assert.equal(await status(`${pathname}perfetto-0-99-0-5`), 404);

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
