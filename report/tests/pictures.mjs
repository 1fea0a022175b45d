// Takes the pictures in docs/images, report-PAGE.png: `node report/tests/pictures.mjs DATA [FOLDER]`.
//
// DATA has the traces that are named here; each page is shown of one that has something to show there. FOLDER
// is another place for the pictures. Needs what `in_chromium.mjs` needs, and kymo in target/release or
// target/debug (KYMO names another).

import {mkdirSync, mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

import {must, root} from './kymo.mjs';
import {Page} from './page.mjs';

const [data, folder] = process.argv.slice(2);
if (!data) {
  console.error('usage: pictures.mjs DATA [FOLDER]');
  process.exit(2);
}
const PICTURES = [
  // Four ranks of which one is late.
  [join(data, 'ddp_4ranks'), ['summary', 'steps', 'operators', 'timeline', 'distributed', 'idle', 'critical', 'counters', 'environment']],
  // With Python functions and modules.
  [join(data, 'gpt_1gpu.pt.trace.json.gz'), ['kernels', 'modules', 'flame']],
  // Two runs.
  [join(data, 'resnet50_workers0'), ['diff']],
  // With allocations.
  [join(root, 'analysis/tests/data/cpu_with_memory.json.gz'), ['memory']],
];

const to = folder ?? join(root, 'docs/images');
mkdirSync(to, {recursive: true});
const made = mkdtempSync(join(tmpdir(), 'kymo-pictures-'));
const page = new Page();
await page.start(1280, 860);
try {
  for (const [trace, ids] of PICTURES) {
    const report = join(made, 'report.html');
    must('report', trace, '--force', '-q', '-o', report);
    await page.open(report);
    for (const id of ids) {
      await page.go(`#${id}`);
      await page.value('document.activeElement.blur(), new Promise((ready) => setTimeout(ready, 300)).then(() => 0)');
      const file = join(to, `report-${id}.png`);
      writeFileSync(file, await page.picture());
      console.log(file);
    }
  }
} finally {
  await page.close();
  rmSync(made, {recursive: true, force: true});
}
