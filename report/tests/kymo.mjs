// The command, for scripts.

import {spawnSync} from 'node:child_process';
import {existsSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';

export const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
const built = ['release', 'debug'].map((profile) => join(root, 'target', profile, 'kymo'));
export const kymo = process.env.KYMO ?? built.find(existsSync) ?? 'kymo';

// Runs it.
export function run(...args) {
  const done = spawnSync(kymo, args, {encoding: 'utf8', maxBuffer: 1 << 30});
  if (done.error) {
    throw done.error;
  }
  return {status: done.status, stdout: done.stdout, stderr: done.stderr};
}

export function must(...args) {
  const done = run(...args);
  if (done.status !== 0) {
    throw new Error(`kymo ${args.join(' ')}: ${done.stderr}`);
  }
  return done.stdout;
}

// The documents that `kymo analyze A,B --format json` writes one behind the other.
export function documents(text) {
  return text.split(/(?<=^\]\}\n)/m).filter((one) => one.trim()).map((one) => JSON.parse(one));
}
