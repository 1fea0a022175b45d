// Numbers with units, for people.

const TIMES = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];
const SIZES = [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB'], [1, 'B']];
const COUNTS = [[1e15, 'P'], [1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1, '']];

const formats = new Map();
function digits(value, places, atLeast = places) {
  const key = `${places} ${atLeast}`;
  if (!formats.has(key)) {
    formats.set(key, new Intl.NumberFormat('en-US',
      {maximumFractionDigits: places, minimumFractionDigits: atLeast}));
  }
  return formats.get(key).format(value).replace('-', '−');
}

const scaleFor = (scales, most) => scales.find(([size]) => most >= size) ?? scales.at(-1);

// Numbers that name something, and are not counted with.
const NAMES = new Set(['rank', 'step', 'pid', 'tid', 'stream', 'device', 'index', 'correlation',
  'sequence', 'slowest_step', 'last_rank', 'module_id', 'event_idx', 'is_user_annotation', 'depth']);

// How the cells of a column are shown: {unit, show}. One unit for all of them.
export function shown(column) {
  if (column.type === 'text') {
    return {unit: '', show: (value) => value};
  }
  let most = 0;
  for (const value of column.values) {
    most = Math.max(most, Math.abs(Number(value ?? 0)));
  }
  const scaled = (scales, places) => {
    const [size, unit] = scaleFor(scales, most);
    // What is much less than the greatest is not nothing.
    const small = (value) => value !== 0 && Math.abs(value) < 0.5 * 10 ** -places;
    return {unit, show: (value) => size > 1 && small(value / size) ? String(Number((value / size).toPrecision(2))).replace('-', '−')
      : digits(Number(value) / size, size === 1 ? 0 : places)};
  };
  switch (column.unit) {
    case 'ns': {
      const [size, unit] = scaleFor(TIMES, most / 10);
      const places = size === 1 ? (column.type === 'float' ? 1 : 0) : 3;
      return {unit, show: (value) => digits(Number(value) / size, places)};
    }
    case 'bytes': return scaled(SIZES, 1);
    case '%': return {unit: '%', show: (value) => digits(value, 2)};
    case 'GB/s': return {unit: 'GB/s', show: (value) => digits(value, 2)};
    case '1': return {unit: '', show: (value) => digits(value, 4, 0)};
    default:
  }
  if (NAMES.has(column.name)) {
    return {unit: '', show: String};
  }
  if (most >= 1e9 && column.type !== 'text') {
    const [size, unit] = scaleFor(COUNTS, most);
    return {unit, show: (value) => digits(Number(value) / size, 3)};
  }
  return {unit: '', show: (value) => digits(Number(value), column.type === 'int' ? 0 : 3, 0)};
}

// A single value with its unit.
export function withUnit(value, unit) {
  if (value === null || value === undefined) {
    return '–';
  }
  const {unit: chosen, show} = shown({name: '', type: 'float', unit, values: [value]});
  return `${show(value)}${chosen ? ` ${chosen}` : ''}`;
}

// A name of a column or a kind, for people.
export const spaced = (name) => name.replaceAll('_', ' ');

export const time = (nanoseconds) => withUnit(nanoseconds, 'ns');
export const count = (number) => digits(number, 0);

// So many things of a kind.
export const many = (number, one) => `${count(number)} ${one}${number === 1 ? '' : 's'}`;
export const percent = (number) => `${digits(number, 1)} %`;

// A moment on an axis, as exact as the distance of ticks asks for.
export function tick(nanoseconds, step) {
  const [size, unit] = scaleFor(TIMES, Math.max(Math.abs(nanoseconds), step));
  const places = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
  return `${digits(nanoseconds / size, Math.min(places, 9))} ${unit}`;
}

// Distances of ticks that people like: about `wanted` of them from 0 to `span`.
export function niceStep(span, wanted) {
  const rough = span / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough) ?? power * 10;
}

// Likewise in bytes.
export function niceSize(span, wanted) {
  let step = 1;
  while (step * wanted < span) {
    step *= 2;
  }
  return step;
}
