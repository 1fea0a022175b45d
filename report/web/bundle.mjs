// Puts the front end into one script and one style, as `dist/` has them, with the content security
// policy that allows these two alone.
//
//     npm ci && node bundle.mjs [FOLDER]
//
// The result is checked in; `cargo test -p kymograph-report` compares it with a new one.

import {createHash} from 'node:crypto';
import {mkdirSync, writeFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';

import {build} from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const to = process.argv[2] ?? join(here, 'dist');

async function made(entry) {
  const {outputFiles} = await build({
    entryPoints: [join(here, 'src', entry)],
    bundle: true,
    minify: true,
    format: 'iife',
    target: 'es2022',
    charset: 'utf8',
    legalComments: 'none',
    logLevel: 'error',
    write: false,
  });
  const text = outputFiles[0].text;
  if (/<\/(script|style)|<!--/i.test(text)) {
    throw new Error(`${entry} has something in it that would end its element`);
  }
  return text;
}

const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

const script = await made('main.js');
const style = await made('page.css');
mkdirSync(to, {recursive: true});
writeFileSync(join(to, 'page.js'), script);
writeFileSync(join(to, 'page.css'), style);
writeFileSync(join(to, 'policy.txt'), `default-src 'none'; script-src ${hash(script)}; `
  + `style-src ${hash(style)}; base-uri 'none'; form-action 'none'\n`);
