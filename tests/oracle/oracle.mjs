// Loads a trace into Perfetto's trace_processor and answers SQL about it, one trace after
// another.
//
//   node oracle.mjs ASSETS
//   node oracle.mjs ASSETS --serve PORT
//
// ASSETS is the directory that `setup` unpacked. With --serve the trace comes over HTTP, as
// to `trace_processor_shell server http`: POST /parse and /notify_eof. Every line in and out is one JSON value:
//
//   out  {"ready": true}
//   in   {"load": "TRACE"}                          another trace takes the place of the last
//   out  {"ready": true}                            or {"error": "…"}
//   in   "SELECT ..."
//   out  {"columns": ["a", …], "rows": [[…], …]}    or {"error": "…"}
//   in   null                                       (of a server)
//   out  {"received": 4711, "ended": 1}             bytes since the last end, and ends
//
// Ends when its input does. What trace_processor logs goes to stderr.
import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import vm from 'node:vm';

const [assets, mode, port] = process.argv.slice(2);
const CHUNK = 8 << 20;

// stdout belongs to the answers.
console.log = console.info = console.debug = console.error;
// The glue is older than the engine and says so at every query.
console.warn = (first, ...rest) =>
  /^Unexpected QueryResult/.test(String(first)) || console.error(first, ...rest);

const say = (line) => process.stdout.write(line + '\n');

// The bundle was made for a web worker. These edits let it run here; each must apply, so
// that another version of the bundle fails at once.
function bundleForNode() {
  const edits = [
    // Only the 32-bit module is in the package.
    ['this.useMemory64 = hasMemory64Support();', 'this.useMemory64 = false;'],
    // The module's bytes are handed over instead of fetched.
    ['locateFile: (s) => s,', 'wasmBinary: globalThis.oracleWasm, locateFile: (s) => s,'],
    // The bridge is reached directly instead of by messages.
    ['const selfWorker = self;', 'const selfWorker = {};'],
    ['const wasmBridge = new', 'const wasmBridge = globalThis.oracleBridge = new'],
  ];
  return edits.reduce((source, [from, to]) => {
    if (source.split(from).length !== 2) throw new Error(`the bundle has changed: ${from}`);
    return source.replace(from, () => to);
  }, readFileSync(path.join(assets, 'engine_bundle.node.js'), 'utf8'));
}

async function startEngine() {
  globalThis.WorkerGlobalScope = class {};
  globalThis.self = { location: { href: pathToFileURL(assets).href + '/' } };
  globalThis.oracleWasm = readFileSync(path.join(assets, 'trace_processor.wasm'));
  vm.runInThisContext(bundleForNode(), { filename: 'engine_bundle.node.js' });
  const bridge = globalThis.oracleBridge;
  while (bridge.reqBufferAddr === 0) await new Promise((again) => setTimeout(again, 1));

  const { EngineBase } = await import(pathToFileURL(path.join(assets, 'engine.mjs')).href);
  class Engine extends EngineBase {
    id = 'oracle';
    mode = 'WASM';
    port = { postMessage: (bytes) => this.onRpcResponseBytes(bytes) };
    rpcSendRequestBytes(bytes) {
      this.port.onmessage({ data: bytes });
    }
  }
  const engine = new Engine();
  bridge.initialize(engine.port);
  return engine;
}

// As a new engine is configured.
const DEFAULTS = {
  cropTrackEvents: false,
  ingestFtraceInRawTable: true,
  analyzeTraceProtoContent: false,
  ftraceDropUntilAllCpusValid: true,
};
let loaded = 0;

async function load(engine, file) {
  if (loaded++ > 0) await engine.resetTraceProcessor(DEFAULTS);
  const fd = openSync(file, 'r');
  for (;;) {
    const chunk = new Uint8Array(CHUNK);
    const length = readSync(fd, chunk, 0, CHUNK, null);
    if (length === 0) break;
    await engine.parse(chunk.subarray(0, length));
  }
  closeSync(fd);
  await engine.notifyEof();
}

// What was received so far.
const served = { received: 0, ended: 0 };

// One request at a time, as the server that this stands for.
async function serve(engine, port) {
  let last = Promise.resolve();
  const server = createServer((request, response) => {
    const pieces = [];
    request.on('data', (piece) => pieces.push(piece));
    request.on('end', () => {
      last = last.then(async () => {
        const [status, body] = await take(engine, request, Buffer.concat(pieces));
        response.writeHead(status, { 'Content-Length': body.length });
        response.end(body);
      });
    });
  });
  server.keepAliveTimeout = 0;
  await new Promise((listening) => server.listen(port, '127.0.0.1', listening));
  return server.address().port;
}

async function take(engine, request, body) {
  if (request.method !== 'POST') return [404, 'what?'];
  try {
    if (request.url === '/parse') {
      await engine.parse(new Uint8Array(body));
      served.received += body.length;
    } else if (request.url === '/notify_eof') {
      await engine.notifyEof();
      served.received = 0;
      served.ended += 1;
    } else {
      return [404, 'what?'];
    }
    return [200, ''];
  } catch (error) {
    const text = Buffer.from(String(error?.message ?? error).slice(0, 100));
    return [200, Buffer.concat([Buffer.from([0x12, text.length]), text])];
  }
}

// SQL integers arrive as BigInt and reals as number; JSON keeps them apart by the point.
function cell(value) {
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'number' && Number.isInteger(value)) {
    const text = String(value);
    return text.includes('e') ? text : text + '.0';
  }
  if (typeof value === 'number' && !Number.isFinite(value)) return JSON.stringify(String(value));
  if (value instanceof Uint8Array) return JSON.stringify(Buffer.from(value).toString('hex'));
  return JSON.stringify(value);
}

async function answer(engine, sql) {
  const result = await engine.query(sql);
  const columns = result.columns();
  // The glue's row object carries its own methods among the columns.
  const taken = columns.find((name) => ['next', 'valid', 'get', '_impl'].includes(name));
  if (taken) throw new Error(`a column cannot be called '${taken}': rename it with AS`);
  const rows = [];
  for (const row = result.iter({}); row.valid(); row.next()) {
    rows.push(`[${columns.map((name) => cell(row[name])).join()}]`);
  }
  return `{"columns":${JSON.stringify(columns)},"rows":[${rows.join()}]}`;
}

try {
  const engine = await startEngine();
  const listens = mode === '--serve' ? await serve(engine, Number(port)) : null;
  say(JSON.stringify({ ready: true, port: listens }));
  for await (const line of createInterface({ input: process.stdin })) {
    try {
      const asked = JSON.parse(line);
      if (asked === null) {
        say(JSON.stringify(served));
      } else if (typeof asked === 'string') {
        say(await answer(engine, asked));
      } else {
        await load(engine, asked.load);
        say(JSON.stringify({ ready: true }));
      }
    } catch (error) {
      say(JSON.stringify({ error: String(error?.message ?? error) }));
    }
  }
} catch (error) {
  say(JSON.stringify({ error: String(error?.stack ?? error) }));
  process.exitCode = 1;
}
// Connections that are kept would keep the process.
process.exit();
