// The data of the page: an index, and blocks that are unpacked when they are asked for.

export const index = JSON.parse(document.getElementById('index').textContent);

const unpacked = new Map();

// What `kymo view` serves beside the page. What it has no longer belongs to an older page.
async function asked(name) {
  const answer = await fetch(name);
  if (answer.status === 410) {
    location.reload();
    throw new Error('kymo view has something newer');
  }
  if (!answer.ok) {
    throw new Error(`kymo view answers ${answer.status}`);
  }
  return answer.text();
}

// Loads the page again when the trace has changed.
export function follow() {
  if (index.live !== null) {
    setInterval(async () => {
      try {
        if (Number(await asked('version')) !== index.live) {
          location.reload();
        }
      } catch {
        // It ended; what is there stays.
      }
    }, 3000);
  }
}

// The bytes of a block.
async function bytes(number) {
  const own = document.getElementById(`b${number}`);
  const text = own ? own.textContent : await asked(`block-${index.live}-${number}`);
  const packed = Uint8Array.from(atob(text), (digit) => digit.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function once(number, read) {
  if (!unpacked.has(number)) {
    unpacked.set(number, bytes(number).then(read));
  }
  return unpacked.get(number);
}

const json = (number) => once(number, (data) => JSON.parse(new TextDecoder().decode(data)));

// The table of a metric, of a run or of a comparison; one with `missing` if there is none.
export async function table(of, metric) {
  const number = of.tables[metric];
  if (number === undefined) {
    const why = of.missing[metric] ?? 'it is not in this report';
    return {metric, missing: why, columns: [], rows: 0, of: 0};
  }
  const found = await json(number);
  if (!found.get) {
    found.columns.forEach(whole);
    const columns = new Map(found.columns.map((column) => [column.name, column]));
    found.column = (name) => columns.get(name);
    // A cell: a number, a text, digits of a number beyond those that are exact, or null.
    found.get = (name, row) => cell(columns.get(name), row);
  }
  return found;
}

// Gives a column the values that it has as runs or as differences, and texts the beginnings that they
// have in common with those before them.
function whole(column) {
  const {runs, differences, shared} = column;
  if (runs) {
    column.values = runs.flatMap((value, n) => n % 2 === 0 ? Array(runs[n + 1]).fill(value) : []);
  } else if (differences) {
    let sum = 0;
    column.values = differences.map((more) => sum += more);
  }
  if (shared) {
    let before = '';
    column.texts = column.texts.map((rest, n) => {
      before = before.slice(0, shared[n]) + rest;
      return before;
    });
  }
}

export function cell(column, row) {
  const value = column?.values[row] ?? null;
  return column?.texts && value !== null ? column.texts[value] : value;
}

// The rows of a table, as `kymo analyze --format json` has them.
export const objects = (table) => Array.from({length: table.rows}, (_, row) =>
  Object.fromEntries(table.columns.map((column) => [column.name, cell(column, row)])));

export const samples = (rank) => rank.samples === null ? undefined : json(rank.samples);

// The events of a rank: columns, and rows with their places in these.
export const timeline = (rank) =>
  rank.timeline === null ? undefined : once(rank.timeline, readTimeline);

// The arguments of an event, [[name, value]…].
export async function argumentsOf(rank, n) {
  if (index.live !== null) {
    return JSON.parse(await asked(`arguments-${index.live}-${rank.id}-${n}`));
  }
  throw new Error('not in this page: kymo view shows them');
}

// What the names of a rank's events are names of: [name, kind] pairs.
export async function kindsOfNames(rank) {
  if (rank.timeline === null) {
    return [];
  }
  const data = await bytes(rank.timeline);
  const length = new DataView(data.buffer, data.byteOffset).getUint32(0, true);
  const {kinds, names} = JSON.parse(new TextDecoder().decode(data.subarray(4, 4 + length)));
  return names.map(([name, kind]) => [name, kinds[kind]]);
}

// The numbers of events in the order of their names, those of one name in their own order.
function byName(names, kinds) {
  const places = new Uint32Array(kinds + 1);
  for (const name of names) {
    places[name + 1] += 1;
  }
  for (let name = 0; name < kinds; name += 1) {
    places[name + 1] += places[name];
  }
  const order = new Uint32Array(names.length);
  for (let n = 0; n < names.length; n += 1) {
    order[places[names[n]]] = n;
    places[names[n]] += 1;
  }
  return order;
}

function readTimeline(data) {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const parts = [];
  for (let at = 0; at < data.length;) {
    const length = view.getUint32(at, true);
    parts.push(data.subarray(at + 4, at + 4 + length));
    at += 4 + length;
  }
  const head = JSON.parse(new TextDecoder().decode(parts[0]));
  const count = head.rows.reduce((sum, row) => sum + row.count, 0);
  const starts = new Float64Array(count);
  const durations = new Float64Array(count);
  const names = new Uint32Array(count);
  const depths = new Uint16Array(count);
  const launchedBy = new Int32Array(count).fill(-1);
  let at = 0;
  let part;
  const number = () => {
    let value = 0;
    let scale = 1;
    for (;;) {
      const byte = part[at];
      at += 1;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) {
        return value;
      }
      scale *= 128;
    }
  };
  const {grid} = head;
  [part, at] = [parts[1], 0];
  for (let n = 0; n < count; n += 1) {
    names[n] = number();
  }
  // Most columns are in the order of names.
  const order = byName(names, head.names.length);
  [part, at] = [parts[2], 0];
  for (const n of order) {
    starts[n] = number();
  }
  [part, at] = [parts[3], 0];
  for (const n of order) {
    durations[n] = number() * grid;
  }
  [part, at] = [parts[4], 0];
  for (const n of order) {
    depths[n] = number();
  }
  let first = 0;
  for (const row of head.rows) {
    row.first = first;
    let time = 0;
    for (let n = first; n < first + row.count; n += 1) {
      time += starts[n];
      starts[n] = time * grid;
    }
    first += row.count;
  }
  [part, at] = [parts[5], 0];
  let launcher = 0;
  for (const row of head.rows.filter((row) => row.device)) {
    for (let n = row.first; n < row.first + row.count; n += 1) {
      const coded = number();
      if (coded > 0) {
        const step = coded - 1;
        launcher += step % 2 ? -(step + 1) / 2 : step / 2;
        launchedBy[n] = launcher;
      }
    }
  }
  const texts = head.names.map(([text]) => text);
  const kindOf = Uint8Array.from(head.names, ([, kind]) => kind);
  return {kinds: head.kinds, rows: head.rows, grid, depths, texts, kindOf, count, starts, durations, names, launchedBy};
}
