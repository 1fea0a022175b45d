// Asks a real browser who may read what `kymo open` serves.
//
//     cargo build && node tests/open_in_chromium.mjs
//
// Needs chromium and openssl (Debian: apt install chromium openssl), which is why it is not
// among the tests that `./test` runs; those send what a browser sends. Pages come from a
// server of this script under the names of the real ones, so that the browser itself says
// where they are from.

import {spawn, spawnSync} from 'node:child_process';
import {createHash} from 'node:crypto';
import {mkdtempSync, readFileSync, rmSync} from 'node:fs';
import https from 'node:https';
import {tmpdir} from 'node:os';
import {dirname, join} from 'node:path';
import {createInterface} from 'node:readline';
import {fileURLToPath} from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const kymo = process.argv[2] ?? join(root, 'target/debug/kymo');
const folder = mkdtempSync(join(tmpdir(), 'kymo-open-'));
const PATIENCE = 120_000;

function must(command, ...args) {
  const done = spawnSync(command, args, {encoding: 'utf8'});
  if (done.status !== 0) {
    throw new Error(`${command} failed: ${done.error ?? done.stderr}`);
  }
}

// What a page reports; it does so to where it came from.
const reports = [];
let waiting = null;

// A page that fetches `url`, plainly and so that browsers ask before, and reports.
const page = (url) => `<!doctype html><script>
(async () => {
  const attempt = async (what, options) => {
    try {
      const answer = await fetch(${JSON.stringify(url)}, options);
      const bytes = await answer.arrayBuffer();
      const digest = await crypto.subtle.digest('SHA-256', bytes);
      const hex = Array.from(new Uint8Array(digest), (b) => b.toString(16).padStart(2, '0'));
      return {what, status: answer.status, type: answer.type, bytes: bytes.byteLength,
              sha256: hex.join('')};
    } catch (error) {
      return {what, error: String(error)};
    }
  };
  const results = [
    await attempt('no-cors', {mode: 'no-cors'}),
    await attempt('asked first', {method: 'HEAD', headers: {'X-Asked': '1'}}),
    await attempt('plain', {}),
  ];
  await fetch('/report', {method: 'POST', body: JSON.stringify({origin, results})});
})();
</script>`;

let target = '';
must('openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
  '-days', '2', '-subj', '/CN=ui.perfetto.dev', '-keyout', join(folder, 'key'), '-out',
  join(folder, 'certificate'));
const server = https.createServer({
  key: readFileSync(join(folder, 'key')),
  cert: readFileSync(join(folder, 'certificate')),
}, (request, response) => {
  let body = '';
  request.on('data', (part) => { body += part; });
  request.on('end', () => {
    if (request.url === '/report') {
      reports.push(JSON.parse(body));
      waiting?.();
    }
    response.writeHead(200, {'Content-Type': 'text/html'});
    response.end(request.url === '/report' ? '' : page(target));
  });
});
await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
const here = server.address().port;

function open(trace) {
  const child = spawn(kymo, ['open', '--no-browser', '--port', '0', trace],
    {stdio: ['ignore', 'pipe', 'inherit'], env: {...process.env, SSH_CONNECTION: ''}});
  return new Promise((ready, failed) => {
    child.once('error', failed);
    createInterface({input: child.stdout}).once('line', (link) => {
      ready({child, url: decodeURIComponent(/url=([^&]*)/.exec(link)[1])});
    });
  });
}

function browse(address, ...more) {
  const profile = mkdtempSync(join(folder, 'profile-'));
  return spawn('chromium', ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic',
    '--no-first-run', '--disable-background-networking', '--disable-component-update',
    '--disable-sync', '--ignore-certificate-errors', `--user-data-dir=${profile}`,
    // The names lead here, and nowhere else.
    `--host-resolver-rules=MAP ui.perfetto.dev:443 127.0.0.1:${here},` +
    `MAP evil.example:443 127.0.0.1:${here},MAP rebound.example 127.0.0.1,` +
    'MAP * ~NOTFOUND,EXCLUDE 127.0.0.1',
    ...more, address], {stdio: ['ignore', 'pipe', 'ignore']});
}

// Shows a page of `origin` that fetches `url`; what it reports.
async function visit(origin, url) {
  target = url;
  const reported = new Promise((done, failed) => {
    waiting = done;
    setTimeout(() => failed(new Error(`${origin} did not report`)), PATIENCE).unref();
  });
  const browser = browse(origin);
  await reported;
  browser.kill('SIGKILL');
  return reports.pop();
}

// What the browser shows of a page.
async function dump(address) {
  const browser = browse(address, '--dump-dom');
  let text = '';
  for await (const part of browser.stdout) text += part;
  return text;
}

let failures = 0;
let served = null;
function check(what, good, seen) {
  console.log(`${good ? 'ok    ' : 'FAILED'} ${what}${good ? '' : `: ${JSON.stringify(seen)}`}`);
  failures += good ? 0 : 1;
}

try {
  const trace = join(folder, 'demo.pftrace');
  must(kymo, 'demo', '-o', trace);
  const bytes = readFileSync(trace);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const {child, url} = await open(trace);
  served = child;
  const ended = new Promise((done) => child.once('exit', done));

  const evil = await visit('https://evil.example', url);
  check('a page of another origin is one', evil.origin === 'https://evil.example', evil);
  const [opaque, asked, plain] = evil.results;
  check('it cannot read the trace', 'error' in plain, plain);
  check('nor anything about it', 'error' in asked, asked);
  check('nor see that there is something', opaque.error || opaque.type === 'opaque' &&
    opaque.bytes === 0, opaque);

  const rebound = await dump(url.replace('127.0.0.1', 'rebound.example'));
  check('nor can one whose name leads here', rebound.includes('Only pages of') &&
    !rebound.includes('kymograph'), rebound);
  check('the trace still waits for the UI', child.exitCode === null, child.exitCode);

  const ui = await visit('https://ui.perfetto.dev', url);
  check('a page of the UI is one', ui.origin === 'https://ui.perfetto.dev', ui);
  const [, first, whole] = ui.results;
  check('it may ask', first.status === 200, first);
  check('it reads the trace', whole.status === 200 && whole.sha256 === sha256, whole);
  check('then kymo ends', await ended === 0, child.exitCode);
} catch (error) {
  check('it runs', false, String(error));
} finally {
  served?.kill();
  server.close();
  server.closeAllConnections();
  rmSync(folder, {recursive: true, force: true, maxRetries: 5});
}
process.exit(failures === 0 ? 0 : 1);
