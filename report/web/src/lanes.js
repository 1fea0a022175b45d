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
  const {depths} = data;
  const levels = data.rows.map((row) => {
    const counts = [];
    for (let n = row.first; n < row.first + row.count; n += 1) {
      while (counts.length <= depths[n]) {
        counts.push(0);
      }
      counts[depths[n]] += 1;
    }
    const lists = counts.map((count) => new Uint32Array(count));
    counts.fill(0);
    for (let n = row.first; n < row.first + row.count; n += 1) {
      const depth = depths[n];
      lists[depth][counts[depth]] = n;
      counts[depth] += 1;
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
