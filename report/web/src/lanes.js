// The events of a rank as lanes: on each, one event begins after the other has ended, so that what
// lies between two moments is found by halving.

const prepared = new WeakMap();

// Adds to each row of a timeline its `levels`: numbers of events in the order of their beginnings.
export function lanes(data) {
  if (!prepared.has(data)) {
    prepared.set(data, prepare(data));
  }
  return prepared.get(data);
}

function prepare(data) {
  const depths = new Uint16Array(data.count);
  const levels = data.rows.map((row) => {
    const counts = row.device ? side(data, row, depths) : nested(data, row, depths);
    const lists = counts.map((count) => new Uint32Array(count));
    const filled = counts.map(() => 0);
    for (let n = row.first; n < row.first + row.count; n += 1) {
      const depth = depths[n];
      lists[depth][filled[depth]] = n;
      filled[depth] += 1;
    }
    return lists;
  });
  const rowOf = (event) => {
    let [low, high] = [0, data.rows.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (data.rows[middle].first <= event) low = middle; else high = middle - 1;
    }
    return low;
  };
  let end = 0;
  for (let n = 0; n < data.count; n += 1) {
    end = Math.max(end, data.starts[n] + data.durations[n]);
  }
  return {data, depths, levels, rowOf, end};
}

// Threads: what begins before another ends lies within it.
function nested({starts, durations}, row, depths) {
  const [open, counts] = [[], []];
  for (let n = row.first; n < row.first + row.count; n += 1) {
    while (open.length > 0 && open[open.length - 1] <= starts[n]) {
      open.pop();
    }
    const depth = Math.min(open.length, 65_535);
    depths[n] = depth;
    counts[depth] = (counts[depth] ?? 0) + 1;
    if (durations[n] > 0) {
      open.push(starts[n] + durations[n]);
    }
  }
  return Array.from(counts, (count) => count ?? 0);
}

// Streams: what overlaps lies beside each other.
function side({starts, durations}, row, depths) {
  const [ends, counts] = [[], []];
  for (let n = row.first; n < row.first + row.count; n += 1) {
    let depth = ends.findIndex((end) => end <= starts[n]);
    depth = depth < 0 ? ends.length : depth;
    depths[n] = depth;
    ends[depth] = starts[n] + durations[n];
    counts[depth] = (counts[depth] ?? 0) + 1;
  }
  return counts;
}

// The place in `list` of the first event that begins at `time` or later, from `from` on.
export function firstFrom(starts, list, time, from = 0) {
  let step = 1;
  let low = from;
  let high = from;
  while (high < list.length && starts[list[high]] < time) {
    low = high + 1;
    high += step;
    step *= 2;
  }
  high = Math.min(high, list.length);
  while (low < high) {
    const middle = (low + high) >> 1;
    if (starts[list[middle]] < time) low = middle + 1; else high = middle;
  }
  return low;
}
