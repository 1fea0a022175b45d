// Takes a picture of each page of a report: `node report/tests/pictures.mjs REPORT.html [FOLDER]`.
//
// They go to docs/images otherwise, as report-PAGE.png. Those that are there are of four ranks of
// which one is late. Others are of reports of their own, with `--only PAGE`: modules and the flame graph of
// trainings with Python functions, two runs of such, and memory of analysis/tests/data/cpu_with_memory.json.gz.

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
