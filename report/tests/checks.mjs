// What must hold of every report, and what its pages do when they are used.

import assert from 'node:assert/strict';
import {existsSync, mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

// Every page of a report: it shows something, nothing is complained of, nothing is asked of a
// network, and axe-core finds nothing wrong.
export async function everyPage(page, file, {accessible = true} = {}) {
  await page.open(file);
  for (const id of await page.pages()) {
    await page.go(`#${id}`);
    const text = await page.text();
    assert.ok(text.length > 20 && !text.includes('cannot be shown'), `${file}#${id}: ${text.slice(0, 200)}`);
    assert.ok(!/\b(undefined|NaN|\[object)\b/.test(text), `${file}#${id} shows ${/.{0,60}\b(undefined|NaN|\[object).{0,40}/.exec(text)}`);
    await chartsHaveTables(page, `${file}#${id}`);
    if (accessible) {
      assert.deepEqual(await page.violations(), [], `${file}#${id}: accessibility`);
    }
  }
  assert.deepEqual(page.complaints.splice(0), [], `${file}: complaints`);
  assert.deepEqual(page.asked(), [], `${file}: requests`);
}

// Every chart has its table on the same page, and every table saves the rows that it shows, as CSV
// and as JSON.
async function chartsHaveTables(page, where) {
  const found = await page.value(`(async () => {
    const sections = [...document.querySelectorAll('main section.table')];
    const without = [...document.querySelectorAll('main figure.chart, main .flames, main svg')]
      .filter((one) => !sections.some((section) => section.dataset.metric === one.closest('[data-table]')?.dataset.table
        && section.querySelectorAll('button[data-save]').length === 2)).map((one) => one.querySelector('h2')?.textContent ?? one.outerHTML.slice(0, 80));
    const saved = [];
    const own = URL.createObjectURL;
    let blob;
    URL.createObjectURL = (given) => { blob = given; return 'data:,'; };
    const click = HTMLAnchorElement.prototype.click;
    HTMLAnchorElement.prototype.click = () => {};
    try {
      for (const section of sections.filter((one) => one.querySelector('table'))) {
        const texts = {};
        for (const button of section.querySelectorAll('button[data-save]')) {
          button.click();
          texts[button.dataset.save] = await blob.text();
        }
        const rows = Number(/^[\\d,]+/.exec(section.querySelector('.count').textContent)[0].replaceAll(',', ''));
        const {metric, columns, rows: own} = JSON.parse(texts.json);
        saved.push({metric, right: metric === section.dataset.metric && own.length === rows && rows > 0
          && texts.csv.startsWith(columns.map(({name}) => name).join(',')) && texts.csv.split('\\n').length > rows});
      }
    } finally {
      URL.createObjectURL = own;
      HTMLAnchorElement.prototype.click = click;
    }
    return {without, wrong: saved.filter(({right}) => !right).map(({metric}) => metric)};
  })()`);
  assert.deepEqual(found, {without: [], wrong: []}, `${where}: charts without a table, tables that save something else`);
}

// A row as a text, whatever the order of its columns.
const comparable = (row) => JSON.stringify(Object.entries(row).sort().map(([name, value]) =>
  [name, typeof value === 'string' && /^-?\d{16,}$/.test(value) ? Number(value) : value]));

// The tables of a report are those of `kymo analyze --format json`. `expected`:
// [{run, metric, table}…]; a table is null where there is none.
export async function tablesAre(page, expected) {
  let cells = 0;
  for (const {run = 0, comparison, metric, table} of expected) {
    const rows = table?.rows ?? null;
    const of = comparison === undefined ? `index.runs[${run}]` : `index.comparisons[${comparison}]`;
    const call = comparison === undefined ? `table('${metric}', ${run})` : `comparison('${metric}', ${comparison})`;
    const [found, missing] = await page.value(
      `kymograph.${call}.then((rows) => [rows, kymograph.${of}.missing['${metric}'] ?? null])`);
    if (rows === null) {
      assert.ok(missing, `${metric} is in the page, and kymo analyze has nothing to say`);
      continue;
    }
    assert.equal(missing, null, `${metric}: ${missing}`);
    const [own, theirs] = [found.map(comparable), rows.map(comparable)];
    if (own.length < theirs.length) {
      // Only very long tables are cut, and then all that is there must be theirs.
      assert.ok(own.length >= 1000, `${metric}: ${own.length} of ${theirs.length} rows`);
      const all = new Set(theirs);
      const other = own.find((row) => !all.has(row));
      assert.equal(other, undefined, `${metric}: only the page has ${other}`);
    } else {
      const at = own.findIndex((row, n) => row !== theirs[n]);
      assert.ok(at < 0, `${metric}, row ${at}: the page has ${own[at]}, kymo analyze ${theirs[at]}`);
    }
    cells += own.length * Object.keys(rows[0] ?? {}).length;
  }
  return cells;
}

const cells = (page, metric, column) => page.value(`(() => {
  const section = document.querySelector('section[data-metric="${metric}"]');
  const heads = [...section.querySelectorAll('th')].map((head) => head.dataset.column);
  const at = heads.indexOf('${column}');
  return [...section.querySelectorAll('tbody tr')].map((row) => row.cells[at].title || row.cells[at].textContent);
})()`);

// A table is searched, put in another order, saved, and linked to.
export async function tablesWork(page, file, {id, metric, column, search}) {
  await page.open(file, `#${id}`);
  const section = `document.querySelector('section[data-metric="${metric}"]')`;
  await page.value(`${section}.querySelector('th[data-column=name] button').click()`);
  const names = await cells(page, metric, 'name');
  assert.deepEqual(names, [...names].sort((a, b) => a < b ? -1 : a > b ? 1 : 0), 'names ascend');
  await page.value(`${section}.querySelector('th[data-column=${column}] button').click()`);
  assert.equal(await page.value(`${section}.querySelector('th[data-column=${column}]').getAttribute('aria-sort')`), 'descending');
  const numbers = (await cells(page, metric, column)).map((text) => parseFloat(text.replaceAll(',', '')));
  assert.deepEqual(numbers, [...numbers].sort((a, b) => b - a), `${column} descends`);
  await page.value(`(() => { const input = ${section}.querySelector('input[type=search]');
    input.value = '${search}'; input.dispatchEvent(new Event('input')); })()`);
  const found = await cells(page, metric, 'name');
  const all = await page.value(`kymograph.table('${metric}')`);
  const matching = all.filter((row) => Object.values(row).some((one) => typeof one === 'string' && one.toLowerCase().includes(search)));
  assert.ok(found.length > 0 && matching.length < all.length);
  assert.equal(found.length, Math.min(matching.length, 50), 'only what matches is shown');

  // The same by its address alone.
  const hash = await page.value('location.hash');
  assert.match(hash, new RegExp(`^#${id}\\?`));
  await page.open(file, hash);
  assert.deepEqual(await cells(page, metric, 'name'), found, 'the link leads to the same');

  const folder = mkdtempSync(join(tmpdir(), 'kymo-saved-'));
  try {
    await page.browser.send('Page.setDownloadBehavior', {behavior: 'allow', downloadPath: folder});
    for (const kind of ['json', 'csv']) {
      const path = join(folder, `${metric}.${kind}`);
      await page.value(`${section}.querySelector('button[data-save=${kind}]').click()`);
      await waitFor(() => existsSync(path), `${metric}.${kind}`);
      const text = readFileSync(path, 'utf8');
      if (kind === 'json') {
        const saved = JSON.parse(text);
        assert.equal(saved.metric, metric);
        assert.deepEqual(new Set(saved.rows.map(comparable)), new Set(matching.map(comparable)));
      } else {
        assert.equal(text.split('\n')[0], Object.keys(all[0]).join(','));
      }
    }
  } finally {
    rmSync(folder, {recursive: true, force: true});
  }
}

async function waitFor(holds, what) {
  for (let tries = 0; tries < 600; tries += 1) {
    if (holds()) {
      return;
    }
    await new Promise((ready) => setTimeout(ready, 100));
  }
  throw new Error(`${what} did not come`);
}

const view = (page) => page.value('({...kymograph.timeline.view, scroll: kymograph.timeline.scroll})');
const box = (page) => page.value(`(() => { const {left, top, width, height} = kymograph.timeline.canvas.getBoundingClientRect();
  return {left, top, width, height}; })()`);
// Where the middle of an event is on the screen.
const placed = (page, s, n) => page.value(`(() => { const t = kymograph.timeline; const {left, top} = t.canvas.getBoundingClientRect();
  const {start, end, y} = t.place(${s}, ${n}); return {x: left + (start + end) / 2, y: top + y}; })()`);

// The timeline is zoomed, moved, searched, and asked for details.
export async function timelineWorks(page, file) {
  await page.open(file, '#timeline');
  await page.value('kymograph.timeline.canvas.focus()');
  const whole = await view(page);
  await page.key('w');
  const near = await view(page);
  assert.ok(near.span < whole.span, 'w zooms in');
  await page.key('d');
  const right = await view(page);
  assert.ok(right.from > near.from, 'd moves to the right');
  await page.key('a');
  assert.ok((await view(page)).from < right.from, 'a moves to the left');
  await page.key('s');
  assert.ok((await view(page)).span > near.span, 's zooms out');

  const {left, top, width, height} = await box(page);
  const [x, y] = [left + width * 0.7, top + height * 0.4];
  const before = await view(page);
  await page.mouse('mouseWheel', x, y, {deltaX: 0, deltaY: -300, modifiers: 2});
  assert.ok((await view(page)).span < before.span, 'ctrl and wheel zoom');
  const zoomed = await view(page);
  await page.mouse('mousePressed', x, y);
  await page.mouse('mouseMoved', x - 80, y, {buttons: 1});
  await page.mouse('mouseReleased', x - 80, y);
  assert.ok((await view(page)).from > zoomed.from, 'dragging moves');
  await page.browser.send('Input.dispatchTouchEvent', {type: 'touchStart', touchPoints: [{x: x - 50, y, id: 0}, {x: x + 50, y, id: 1}]});
  await page.browser.send('Input.dispatchTouchEvent', {type: 'touchMove', touchPoints: [{x: x - 150, y, id: 0}, {x: x + 150, y, id: 1}]});
  const pinched = await view(page);
  await page.browser.send('Input.dispatchTouchEvent', {type: 'touchEnd', touchPoints: []});
  assert.ok(pinched.span < zoomed.span, 'two fingers zoom');
  await page.key('Home');
  assert.ok(Math.abs((await view(page)).span - whole.span) / whole.span < 0.05, 'Home shows everything');

  // Work of a device that a call launched, found by its name.
  const launched = await page.value(`(() => { const {data} = kymograph.timeline.sources[0];
    const n = data.launchedBy.findIndex((call) => call >= 0); return n < 0 ? null : {n, call: data.launchedBy[n], name: data.texts[data.names[n]]}; })()`);
  if (launched) {
    await page.value(`kymograph.timeline.select({s: 0, n: ${launched.n}}), kymograph.timeline.focus()`);
    const {x: at, y: line} = await placed(page, 0, launched.n);
    await page.value('kymograph.timeline.select(undefined)');
    await page.mouse('mousePressed', at, line);
    await page.mouse('mouseReleased', at, line);
    assert.equal(await page.value('kymograph.timeline.selected?.n'), launched.n, 'a click selects');
    const details = await page.value('document.querySelector(".details").innerText');
    assert.ok(details.includes(launched.name) && details.includes('launched by'), details);
    await page.value('document.querySelector(".details button.link").click()');
    assert.equal(await page.value('kymograph.timeline.selected.n'), launched.call, 'an arrow leads to the call');
    assert.ok((await page.value('document.querySelector(".details").innerText')).includes('launched '));
    assert.match(await page.value('location.hash'), /slice=0\.\d+/);
    const perfetto = await page.value('document.querySelector(".details a.button")?.getAttribute("href") ?? document.querySelector(".details code").textContent');
    assert.match(perfetto, /^perfetto-\d+-\d+-\d+-\d+$|^kymo open \S.* --at \d+ns\.\.\d+ns$/);
  }
  const name = await page.value('kymograph.timeline.sources[0].data.texts[kymograph.timeline.sources[0].data.names[0]]');
  await page.value(`(() => { const {search} = kymograph.timeline; search.value = ${JSON.stringify(name)}; search.dispatchEvent(new Event('input')); search.focus(); })()`);
  await page.key('Enter');
  assert.match(await page.value('kymograph.timeline.found.textContent'), /^1 of /);
  assert.ok((await page.value('kymograph.timeline.name(kymograph.timeline.selected)')).includes(name));
  await page.value('[...document.querySelectorAll(".tools button")].find((one) => one.textContent === "List what is in view").click()');
  assert.ok((await page.value('document.querySelector("section[data-metric=in_view] tbody").rows.length')) > 0);

  // An edge of the critical path, where there is one: a click says what it is bound by.
  const edge = await page.value(`(() => { const t = kymograph.timeline; const row = t.rows.find((one) => one.path); if (!row) return null;
    t.show(row.path[0][0], row.path[0][1] * 3); t.scroll = 0; t.draw();
    const x = t.names + (row.path[0][0] + row.path[0][1] / 2 - t.view.from) / t.view.span * t.width;
    const slice = t.selected; t.click(x, row.y + 28 + 8);
    const said = t.details.innerText; t.select(slice); return {said, bound: row.path[0][3].replaceAll('_', ' ')}; })()`);
  assert.ok(edge === null || (edge.said.includes('Bound by') && edge.said.includes(edge.bound)), JSON.stringify(edge));

  const [hash, selected] = [await page.value('location.hash'), await page.value('kymograph.timeline.selected.n')];
  await page.open(file, hash);
  assert.equal(await page.value('kymograph.timeline.selected.n'), selected, 'the link leads to the same slice');
  assert.deepEqual(page.complaints.splice(0), []);
}

// Choices of the page: rank, side of the flame graph, theme, keys.
export async function choicesWork(page, file) {
  await page.open(file, '#flame');
  const boxes = 'document.querySelectorAll(".flame .box").length';
  const all = await page.value(boxes);
  if (all > 3) {
    await page.value('document.querySelectorAll(".flame .box")[1].dispatchEvent(new MouseEvent("click", {bubbles: true}))');
    assert.ok(await page.value('document.querySelectorAll(".flame .around").length') > 0, 'a click zooms into the flame graph');
    await page.value('[...document.querySelectorAll(".flames button")].find((one) => one.textContent === "Whole").click()');
    assert.equal(await page.value(boxes), all);
  }
  for (const frames of ['operators', 'modules', 'python', 'all']) {
    for (const side of ['host', 'device']) {
      await page.go(`#flame?frames=${frames}&side=${side}`);
      const [boxes, missing] = await page.value('[document.querySelectorAll(".flame .box").length, document.querySelector("main > .missing")?.textContent ?? ""]');
      assert.ok(boxes > 1 || missing !== '', `${frames}, ${side}: ${boxes} boxes, and no word why`);
    }
  }
  const ranks = await page.value('kymograph.index.runs[0].ranks.map(({rank}) => rank)');
  if (ranks.length > 1) {
    await page.go('#summary');
    await page.value(`(() => { const select = [...document.querySelectorAll('#choices select')].at(-1);
      select.value = '${ranks[1]}'; select.dispatchEvent(new Event('change')); })()`);
    await page.ready();
    await page.go(await page.value('document.querySelector("#pages a[data-page=kernels]").getAttribute("href")'));
    const shown = new Set(await cells(page, 'kernels', 'rank'));
    assert.deepEqual([...shown], [String(ranks[1])], 'only the chosen rank is shown');
  }
  // A row that leads to the timeline does so by the keyboard, too.
  await page.go('#steps');
  const step = `document.querySelector('section[data-metric="profiler_steps"] tr.click')`;
  if (await page.value(`${step} !== null`)) {
    await page.value(`${step}.focus()`);
    await page.key('Enter');
    await page.browser.until('location.hash.startsWith("#timeline?") && kymograph.timeline !== undefined', 'the step on the timeline');
  }
  // The sliders say what there is to gain.
  await page.go('#critical');
  if (await page.value('document.querySelector(".what-if input") !== null')) {
    const said = () => page.value('document.querySelector(".what-if output").textContent');
    const whole = await said();
    await page.value(`document.querySelectorAll('.what-if input').forEach((input) => { input.value = 50; input.dispatchEvent(new Event('input')); })`);
    assert.ok(whole.includes('takes') && (await said()).includes('50.0 % less'), await said());
  }
  await page.go('#summary');
  const theme = () => page.value('getComputedStyle(document.body).backgroundColor');
  const light = await theme();
  await page.value('document.getElementById("theme").click()');
  assert.notEqual(await theme(), light);
  await page.value('document.getElementById("theme").click()');
  await page.value('document.body.focus()');
  await page.value('document.getElementById("help").click()');
  assert.ok(await page.value('document.querySelector("dialog").open'));
  await page.value('document.querySelector("dialog button").click()');
  assert.ok(!await page.value('document.querySelector("dialog").open'));
  assert.deepEqual(page.complaints.splice(0), []);
}
