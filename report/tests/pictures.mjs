// Takes a picture of each page of a report: `node report/tests/pictures.mjs REPORT.html [FOLDER]`.
//
// They go to docs/images otherwise, as report-PAGE.png. Those that are there are of four ranks of
// which one is late. Memory, modules and the flame graph are of a training that was recorded with them,
// and the page of two runs is of another report: `… --only diff`.

import {mkdirSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {parseArgs} from 'node:util';

import {root} from './kymo.mjs';
import {Page} from './page.mjs';

const {values, positionals: [report, folder]} = parseArgs({allowPositionals: true, options: {only: {type: 'string'}}});
const to = folder ?? join(root, 'docs/images');
mkdirSync(to, {recursive: true});
const page = new Page();
await page.start(1280, 860);
try {
  await page.open(report);
  for (const id of values.only ? [values.only] : await page.pages()) {
    await page.go(`#${id}`);
    await page.value('document.activeElement.blur(), new Promise((ready) => setTimeout(ready, 300)).then(() => 0)');
    const file = join(to, `report-${id}.png`);
    writeFileSync(file, await page.picture());
    console.log(file);
  }
} finally {
  await page.close();
}
