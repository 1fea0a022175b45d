// Asks a browser about reports: `node report/tests/in_chromium.mjs FOLDER`.
//
// FOLDER has reports, NAME.html, and beside each NAME.json, the tables that must be in it:
// [{"metric": "kernels", "table": {…}}…]. `pages_in_chromium.rs` makes them of traces of
// this repository. Needs Chromium (Debian: apt install chromium; CHROMIUM names another), and what
// `npm ci` puts into report/web.

import assert from 'node:assert/strict';
import {existsSync, readFileSync, readdirSync} from 'node:fs';
import {join} from 'node:path';

import {choicesWork, everyPage, tablesAre, tablesWork, timelineWorks} from './checks.mjs';
import {Page} from './page.mjs';

const folder = process.argv[2];
const page = new Page();
await page.start();
try {
  for (const name of readdirSync(folder).filter((name) => name.endsWith('.html')).sort()) {
    const file = join(folder, name);
    // Which elements there are depends little on the trace.
    await everyPage(page, file, {accessible: ['ranks.html', 'empty.html'].includes(name)});
    const expected = file.replace(/html$/, 'json');
    const cells = existsSync(expected) ? await tablesAre(page, JSON.parse(readFileSync(expected))) : 0;
    console.log(`${name}: every page, ${cells} cells of tables`);
    const uses = {
      'ranks.html': async () => {
        await tablesWork(page, file, {id: 'operators', metric: 'operators', column: 'self_cpu_time', search: 'aten'});
        await timelineWorks(page, file);
        await choicesWork(page, file);
      },
      'hostile.html': async () => {
        await page.go('#operators');
        assert.ok((await page.text()).includes('<script>window.hacked = 1</script>'), 'names are text');
        await page.go('#timeline');
        const names = await page.value('kymograph.timeline.sources[0].data.texts');
        assert.ok(names.includes('</script><img src=x onerror="window.hacked = 1">'), names.join());
        await page.value('kymograph.timeline.select({s: 0, n: 0})');
        assert.equal(await page.value('window.hacked === undefined'), true);
      },
    };
    await uses[name]?.();
    assert.deepEqual(page.complaints.splice(0), [], name);
  }
} finally {
  await page.close();
}
