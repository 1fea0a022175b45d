// Shows a trace that is larger than the memory: `node report/tests/view_in_little_memory.mjs TRACE MEGABYTES`.
//
// `kymo view` runs in a control group with so many megabytes, which needs root; its page, the tables and the
// timeline are asked for. Says how much memory its columns and other blocks took, and how long it was
// until the page was there. With so little that they have no room, the kernel would end it.

import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import {existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync} from 'node:fs';
import {createInterface} from 'node:readline';

import {kymo} from './kymo.mjs';

const [trace, megabytes] = process.argv.slice(2);
const first = existsSync('/sys/fs/cgroup/memory');
const group = `/sys/fs/cgroup/${first ? 'memory/' : ''}kymo-view-${process.pid}`;
mkdirSync(group);
writeFileSync(`${group}/${first ? 'memory.limit_in_bytes' : 'memory.max'}`, String(megabytes * 2 ** 20));
const began = performance.now();
const view = spawn('sh', ['-c', `echo $$ > ${group}/cgroup.procs && exec "$0" "$@"`, kymo, 'view', '--no-browser', trace],
  {stdio: ['ignore', 'pipe', 'pipe']});
let complaints = '';
view.stderr.on('data', (text) => { complaints += text; });
const ended = new Promise((done) => { view.on('exit', (code, signal) => done({code, signal})); });
// What it holds itself, and the part of files that the kernel keeps for it, in MiB.
const memory = () => {
  const stat = new Map(readFileSync(`${group}/memory.stat`, 'utf8').trim().split('\n').map((line) => line.split(' ')));
  return [first ? 'rss' : 'anon', first ? 'mapped_file' : 'file'].map((name) => Number(stat.get(name)) / 2 ** 20);
};
let most = [0, 0];
const watch = setInterval(() => { most = memory().map((now, n) => Math.max(now, most[n])); }, 50);
try {
  const link = await Promise.race([new Promise((found) => {
    createInterface({input: view.stdout}).once('line', found);
  }), ended]);
  assert.equal(typeof link, 'string', `kymo view ended: ${JSON.stringify(link)} ${complaints}`);
  const took = (performance.now() - began) / 1000;
  const page = await (await fetch(link)).text();
  const index = JSON.parse(/id="index">(.*?)<\/script>/s.exec(page)[1]);
  const [run] = index.runs;
  const blocks = [...Object.values(run.tables), ...run.ranks.map(({timeline}) => timeline)];
  let bytes = 0;
  for (const block of blocks) {
    const answer = await fetch(`${link}block-${index.live}-${block}`);
    assert.ok(answer.ok, `block ${block}: ${answer.status}`);
    bytes += (await answer.text()).length;
  }
  const events = run.ranks.reduce((sum, {events}) => sum + events, 0);
  console.log(`${trace}: ${events} events and ${blocks.length} blocks (${(bytes / 1e6).toFixed(1)} MB) after ${took.toFixed(1)} s in ${megabytes} MiB: `
    + `at most ${most[0].toFixed(0)} MiB of memory, and ${most[1].toFixed(0)} MiB of files in it`);
} finally {
  clearInterval(watch);
  view.kill();
  await ended;
  await new Promise((ready) => setTimeout(ready, 200));
  rmdirSync(group);
}
