// Builds Perfetto's UI into tests/.tools/ui, in the version of the trace_processor that the
// tests use: tests/ui/pictures.mjs opens traces in it, where https://ui.perfetto.dev cannot be
// reached or changes too often.
//
//     node tests/ui/build.mjs [--sources FOLDER]
//
// Needs Node 20, npm, Python 3 and git. Takes a minute: only the pages are built, from Perfetto's
// sources and the packages of package-lock.json; trace_processor is the one of
// `tests/oracle/setup`, which is of the same commit. What converts traces is left out.
//
// --sources  Perfetto's sources at that commit; fetched from GitHub otherwise

import {spawnSync} from 'node:child_process';
import {copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync,
  writeFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {parseArgs} from 'node:util';

const VERSION = 'v55.3';
const COMMIT = 'df2b6e4be1b2f6f799e72e0210d5981af6506436';
const REPOSITORY = 'https://github.com/google/perfetto';
// What the pages are made of.
const PARTS = ['/ui', '/protos', '/tools'];

const here = dirname(fileURLToPath(import.meta.url));
const packages = join(here, 'node_modules');
const tools = join(dirname(here), '.tools');
const to = join(tools, 'ui');
const {values} = parseArgs({options: {sources: {type: 'string'}}});

function must(cwd, command, ...args) {
  const done = spawnSync(command, args, {cwd, stdio: ['ignore', 'pipe', 'pipe'], encoding: 'utf8',
    maxBuffer: 1 << 28});
  if (done.status !== 0) {
    const said = done.error?.message ?? (done.stderr + done.stdout).slice(-2000);
    throw new Error(`${command} ${args.join(' ')}: ${said}`);
  }
  return done.stdout;
}

// Perfetto's sources in a folder of their own, since they are built in.
function sources() {
  const folder = join(tools, 'perfetto');
  const complete = join(folder, '.complete');
  if (existsSync(complete) && readFileSync(complete, 'utf8') === COMMIT) {
    return folder;
  }
  rmSync(folder, {recursive: true, force: true});
  mkdirSync(folder, {recursive: true});
  if (values.sources) {
    for (const part of PARTS) {
      const filter = (path) => !path.includes('node_modules');
      cpSync(join(values.sources, part), join(folder, part), {recursive: true, filter});
    }
  } else {
    must(folder, 'git', 'init', '--quiet');
    must(folder, 'git', 'sparse-checkout', 'set', '--no-cone', ...PARTS);
    must(folder, 'git', 'fetch', '--quiet', '--depth', '1', '--filter=blob:none', REPOSITORY, COMMIT);
    must(folder, 'git', 'checkout', '--quiet', COMMIT);
  }
  writeFileSync(complete, COMMIT);
  return folder;
}

// Files that Perfetto's own build makes before it bundles.
function generate(root) {
  const ui = join(root, 'ui');
  const gen = join(ui, 'src/gen');
  mkdirSync(gen, {recursive: true});
  for (const plugins of ['plugins', 'core_plugins']) {
    must(root, 'python3', 'tools/gen_ui_imports', `ui/src/${plugins}`, '--out', `ui/src/gen/all_${plugins}`);
  }
  const protos = ['ipc/consumer_port', 'ipc/wire_protocol', 'trace/perfetto/perfetto_metatrace',
    'perfetto_sql/structured_query', 'trace_processor/trace_processor'];
  must(root, join(packages, '.bin/pbjs'), '--force-number', '--no-delimited', '--no-verify',
    '--no-comments', '-t', 'static-module', '-w', 'commonjs', '-p', '.',
    '-o', join(gen, 'protos.js'), ...protos.map((name) => `protos/perfetto/${name}.proto`));
  writeFileSync(join(gen, 'perfetto_version.ts'),
    `export const VERSION = '${VERSION}';\nexport const SCM_REVISION = '${COMMIT.slice(0, 9)}';\n`);
  for (const left of ['proto_utils', 'traceconv']) {
    writeFileSync(join(gen, `${left}.js`),
      `export default () => Promise.reject(new Error('${left} was not built'));\n`);
  }
}

async function bundle(root) {
  const ui = join(root, 'ui');
  const {build} = await import(join(packages, 'esbuild/lib/main.js'));
  // The parsers of grammars are among the sources.
  const grammars = {
    name: 'grammars',
    setup: (build) => build.onResolve({filter: /\.grammar$/}, ({path, resolveDir}) => (
      {path: join(resolveDir, `${path}.js`)})),
  };
  await build({
    entryPoints: [join(ui, 'src/frontend/index.ts')],
    outfile: join(to, 'frontend_bundle.js'),
    bundle: true,
    format: 'iife',
    target: 'es2022',
    mainFields: ['browser', 'module', 'main'],
    define: {global: 'self'},
    nodePaths: [packages],
    plugins: [grammars],
    logLevel: 'error',
  });
  must(root, join(packages, '.bin/sass'), '--quiet', '--no-source-map',
    join(ui, 'src/assets/perfetto.scss'), join(to, 'perfetto.css'));
}

// trace_processor, fonts and pages.
function assets(root) {
  const given = join(root, 'ui/src/assets');
  const own = join(to, 'assets');
  mkdirSync(own, {recursive: true});
  for (const name of readdirSync(given).filter((name) => name.endsWith('.png'))) {
    copyFileSync(join(given, name), join(own, name));
  }
  for (const [from, name] of [
    ['@fontsource-variable/roboto/files/roboto-latin-wdth-normal.woff2', 'Roboto.woff2'],
    ['@fontsource/roboto-mono/files/roboto-mono-latin-400-normal.woff2', 'RobotoMono-Regular.woff2'],
    ['material-symbols/material-symbols-sharp.woff2', 'MaterialSymbolsOutlined.woff2'],
  ]) {
    copyFileSync(join(packages, from), join(own, name));
  }
  const processor = join(tools, 'trace-processor');
  copyFileSync(join(processor, 'trace_processor.wasm'), join(to, 'trace_processor.wasm'));
  const engine = readFileSync(join(processor, 'engine_bundle.node.js'), 'utf8');
  const wide = 'this.useMemory64 = hasMemory64Support();';
  if (!engine.includes(wide)) {
    throw new Error('trace_processor is another one than this was written for');
  }
  // The package has the one for 32 bits only.
  writeFileSync(join(to, 'engine_bundle.js'), engine.replace(wide, 'this.useMemory64 = false;'));
  const page = readFileSync(join(given, 'index.html'), 'utf8');
  writeFileSync(join(to, 'index.html'),
    page.replace(/data-perfetto_version='[^']*'/, `data-perfetto_version='{"stable":"."}'`));
  writeFileSync(join(to, 'manifest.json'), '{"resources":{}}');
  writeFileSync(join(to, 'stdlib_docs.json'), '[]');
}

must(here, join(dirname(here), 'oracle/setup'), 'trace');
const found = readFileSync(join(tools, 'trace-processor/trace_processor.wasm'), 'latin1');
if (!found.includes(`${VERSION}-${COMMIT.slice(0, 9)}`)) {
  throw new Error(`trace_processor is not of ${VERSION}: change VERSION and COMMIT`);
}
must(here, 'npm', 'ci', '--no-audit', '--no-fund', '--ignore-scripts');
const root = sources();
rmSync(to, {recursive: true, force: true});
mkdirSync(to, {recursive: true});
generate(root);
await bundle(root);
assets(root);
console.log(to);
