//! The tables of a rank's events. Each event that has an end is in one of them.
//!
//! | table | a row is |
//! |---|---|
//! | `kernels` | work of a device: a kernel, a copy, a fill, a collective |
//! | `calls` | a call of a device's runtime library or driver |
//! | `operators` | an operator of a framework, or a Python function |
//! | `annotations` | anything else: ranges of the program's author, waits, the profiler's own work |

use kymograph_analysis::metric::{collectives, data_quality};
use kymograph_analysis::model::{Class, Events, Kind};
use kymograph_analysis::table::{self, RecordBatch, Rows};
use kymograph_analysis::{Column, Error, Metric, Model, Options, Unit};
use kymograph_converters::trace::{EventRef, Number, SeriesKind, StrId, Value};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatchOptions, StringArray,
};
use arrow_schema::{DataType, Field, Schema};

/// The tables, in the order in which a rank gets them.
pub const NAMES: [&str; 11] = [
    "kernels",
    "calls",
    "operators",
    "annotations",
    "collectives",
    "steps",
    "counters",
    "memory",
    "flows",
    "names",
    "quality",
];

/// A table and its name.
pub type Named = (&'static str, RecordBatch);

/// All tables of a rank, and how many events those of events have.
///
/// # Errors
///
/// When one is too large for Arrow.
pub fn all(model: &Model<'_>) -> Result<(Vec<Named>, u64), Error> {
    let split = Split::of(model);
    let mut tables = Vec::with_capacity(NAMES.len());
    for name in NAMES {
        tables.push((name, one(model, &split, name, &|_| true)?));
    }
    Ok((tables, split.0.iter().map(|rows| rows.len() as u64).sum()))
}

/// One of the tables of a rank, with those of its columns that are wanted. `split` is that of the
/// same model.
///
/// # Errors
///
/// When it is too large for Arrow, or there is no such table.
pub fn one(
    model: &Model<'_>,
    split: &Split,
    name: &str,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<RecordBatch, Error> {
    if let Some(rows) = split.rows(name) {
        return of_events(model, name, rows, wanted);
    }
    let table = match name {
        "collectives" => of_collectives(model)?,
        "steps" => crate::steps::of_trace(model)?,
        "counters" => counters(model)?,
        "memory" => memory(model)?,
        "flows" => flows(model)?,
        "names" => names(model)?,
        "quality" => of_metric(&data_quality::METRIC, model)?,
        _ => return Err(no_table(name)),
    };
    let schema = table.schema();
    let picked = |at: &usize| wanted(schema.field(*at).name());
    let picked: Vec<usize> = (0..table.num_columns()).filter(picked).collect();
    Ok(table.project(&picked)?)
}

/// Some rows of one of the four tables of events, with those of its columns that are wanted; no
/// more than that is made. `rows` are rows of the model's events, as [`Split::rows`] has them.
///
/// # Errors
///
/// When it is too large for Arrow, or there is no such table of events.
pub fn of_events(
    model: &Model<'_>,
    name: &str,
    rows: &[u32],
    wanted: &dyn Fn(&str) -> bool,
) -> Result<RecordBatch, Error> {
    let columns = Columns::of(model, rows, wanted)?;
    match name {
        "kernels" => device(columns),
        "calls" => host(columns, true),
        "operators" | "annotations" => host(columns, false),
        _ => Err(no_table(name)),
    }
}

fn no_table(name: &str) -> Error {
    Error::Nothing(format!("there is no table `{name}`"))
}

/// The rows of the four tables of events, each in the order of `ts`.
#[derive(Debug)]
pub struct Split([Vec<u32>; 4]);

impl Split {
    /// Which event is in which table.
    pub fn of(model: &Model<'_>) -> Split {
        let mut rows: [Vec<u32>; 4] = Default::default();
        for (row, kind) in model.events.kinds.iter().enumerate() {
            let table = match kind {
                _ if model.events.on_device(row as u32) => 0,
                Kind::Runtime | Kind::Driver => 1,
                Kind::Operator | Kind::Python => 2,
                _ => 3,
            };
            rows[table].push(row as u32);
        }
        for rows in &mut rows {
            rows.sort_by_key(|row| model.events.starts[*row as usize]);
        }
        Split(rows)
    }

    /// The rows of a table, by `ts`; none if it is not one of events.
    pub fn rows(&self, table: &str) -> Option<&[u32]> {
        // The four come first.
        let at = NAMES.iter().position(|name| *name == table)?;
        self.0.get(at).map(Vec::as_slice)
    }
}

/// A table in the making, column by column.
struct Columns<'m, 'a> {
    model: &'m Model<'a>,
    rows: &'m [u32],
    wanted: &'m dyn Fn(&str) -> bool,
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl<'m, 'a> Columns<'m, 'a> {
    /// The columns of every event.
    fn of(
        model: &'m Model<'a>,
        rows: &'m [u32],
        wanted: &'m dyn Fn(&str) -> bool,
    ) -> Result<Columns<'m, 'a>, Error> {
        let mut columns = Columns { model, rows, wanted, fields: Vec::new(), arrays: Vec::new() };
        let events = &model.events;
        columns.int("rank", "", |_| model.rank);
        columns.int("id", "", |row| i64::from(events.rows[row]));
        columns.int("ts", "ns", |row| events.starts[row]);
        columns.int("dur", "ns", |row| events.durs[row]);
        columns.strings("name", |row| Some(events.names[row as usize]))?;
        columns.texts("kind", |row| kind(events.kinds[row as usize]))?;
        Ok(columns)
    }

    fn push(&mut self, name: &str, unit: &str, nullable: bool, array: ArrayRef) {
        let field = Field::new(name, array.data_type().clone(), nullable);
        let about = (!unit.is_empty()).then(|| ("unit".to_owned(), unit.to_owned()));
        self.fields.push(field.with_metadata(about.into_iter().collect()));
        self.arrays.push(array);
    }

    fn int(&mut self, name: &str, unit: &str, of: impl Fn(usize) -> i64) {
        if !(self.wanted)(name) {
            return;
        }
        let array = Int64Array::from_iter_values(self.rows.iter().map(|row| of(*row as usize)));
        self.push(name, unit, false, Arc::new(array));
    }

    fn maybe_int(&mut self, name: &str, unit: &str, of: impl Fn(u32) -> Option<i64>) {
        if !(self.wanted)(name) {
            return;
        }
        let array: Int64Array = self.rows.iter().map(|row| of(*row)).collect();
        self.push(name, unit, true, Arc::new(array));
    }

    /// Strings of the trace, as a dictionary; [`StrId::NONE`] is the empty text.
    fn strings(&mut self, name: &str, of: impl Fn(u32) -> Option<StrId>) -> Result<(), Error> {
        if !(self.wanted)(name) {
            return Ok(());
        }
        let mut keys: Vec<i32> = vec![-1; self.model.trace.strings.len() + 1];
        let mut values: Vec<&str> = Vec::new();
        let mut key = |id: StrId| {
            let key = keys.get_mut(id.0 as usize)?;
            if *key < 0 {
                *key = i32::try_from(values.len()).ok()?;
                values.push(self.model.text(id));
            }
            Some(*key)
        };
        let keys: Int32Array = self.rows.iter().map(|row| key(of(*row)?)).collect();
        self.dictionary(name, keys, values)
    }

    /// A few texts of ours, as a dictionary.
    fn texts(&mut self, name: &str, of: impl Fn(u32) -> &'static str) -> Result<(), Error> {
        if !(self.wanted)(name) {
            return Ok(());
        }
        let mut values: Vec<&str> = Vec::new();
        let mut key = |text: &'static str| {
            let at = values.iter().position(|value| std::ptr::eq(*value, text));
            at.unwrap_or_else(|| {
                values.push(text);
                values.len() - 1
            }) as i32
        };
        let keys = Int32Array::from_iter_values(self.rows.iter().map(|row| key(of(*row))));
        self.dictionary(name, keys, values)
    }

    fn dictionary(&mut self, name: &str, keys: Int32Array, values: Vec<&str>) -> Result<(), Error> {
        let values = Arc::new(StringArray::from(values));
        let array = DictionaryArray::<Int32Type>::try_new(keys, values)?;
        self.push(name, "", true, Arc::new(array));
        Ok(())
    }

    fn finish(self) -> Result<RecordBatch, Error> {
        // There are rows though no column is wanted, as where they are counted.
        let rows = RecordBatchOptions::new().with_row_count(Some(self.rows.len()));
        let schema = Arc::new(Schema::new(self.fields));
        Ok(RecordBatch::try_new_with_options(schema, self.arrays, &rows)?)
    }
}

/// What the tables call a kind.
fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Operator => "operator",
        Kind::Annotation => "annotation",
        Kind::Step => "step",
        Kind::Runtime => "runtime",
        Kind::Driver => "driver",
        Kind::Python => "python",
        Kind::Kernel => "kernel",
        Kind::Copy => "copy",
        Kind::Set => "fill",
        Kind::Communication => "communication",
        Kind::DeviceAnnotation => "device_annotation",
        Kind::Sync => "wait",
        Kind::Overhead => "profiler",
        Kind::Other => "other",
    }
}

fn class(class: Class) -> &'static str {
    match class {
        Class::Computation => "computation",
        Class::Communication => "communication",
        Class::Memory => "memory",
        Class::Other => "other",
    }
}

/// The number of the step; none outside of steps.
fn step(model: &Model<'_>, row: u32) -> Option<i64> {
    Some(model.steps().of[row as usize]).filter(|number| *number >= 0)
}

fn correlation(events: &Events, row: u32) -> Option<i64> {
    Some(events.correlations[row as usize]).filter(|number| *number >= 0)
}

fn device(mut columns: Columns<'_, '_>) -> Result<RecordBatch, Error> {
    let model = columns.model;
    let events = &model.events;
    columns.texts("class", |row| class(model.classes().of_row(model, row)))?;
    columns.int("device", "", |row| events.lane(row as u32).pid);
    columns.int("stream", "", |row| i64::from(events.streams[row]));
    columns.maybe_int("correlation", "", |row| correlation(events, row));
    columns.maybe_int("step", "", |row| step(model, row));
    columns.strings("operator", |row| Some(events.names[model.owners().get(row)? as usize]))?;
    let bytes = model.trace.strings.find("bytes");
    let moved = |row: u32| {
        let moves = matches!(events.kinds[row as usize], Kind::Copy | Kind::Set);
        if moves { model.int(row, bytes) } else { None }
    };
    columns.maybe_int("bytes", "bytes", moved);
    columns.finish()
}

fn host(mut columns: Columns<'_, '_>, calls: bool) -> Result<RecordBatch, Error> {
    let model = columns.model;
    let events = &model.events;
    columns.int("pid", "", |row| events.lane(row as u32).pid);
    columns.int("tid", "", |row| events.lane(row as u32).tid);
    if calls {
        columns.maybe_int("correlation", "", |row| correlation(events, row));
    }
    columns.maybe_int("step", "", |row| step(model, row));
    let parent = |row: u32| Some(i64::from(events.rows[model.calls().parent(row)? as usize]));
    columns.maybe_int("parent", "", parent);
    columns.finish()
}

/// A metric's table of a trace; without rows where it has nothing to say.
fn of_metric(metric: &Metric, model: &Model<'_>) -> Result<RecordBatch, Error> {
    match (metric.of_trace)(model, &Options::default()) {
        Err(Error::Nothing(_)) => Rows::new(metric.columns).finish(),
        given => given,
    }
}

const COLLECTIVES: &[Column] = &[
    Column::int("ts", "when the rank's kernel began").unit(Unit::Duration),
    Column::duration("duration", "how long it took"),
    Column::text("group", "the process group"),
    Column::int("step", "the step; -1 outside of steps"),
    Column::int("sequence", "its place among the collectives of the group and the step"),
    Column::text("collective", "what it does"),
    Column::int("group_size", "how many ranks take part"),
    Column::int("message", "the size of the larger of input and output").unit(Unit::Bytes),
];

fn of_collectives(model: &Model<'_>) -> Result<RecordBatch, Error> {
    let given = of_metric(&collectives::METRIC, model)?;
    let rows = (0..given.num_rows()).map(|row| (0, row));
    let picked = table::pick(COLLECTIVES, &[&given], rows)?;
    let rank = Int64Array::from(vec![model.rank; picked.num_rows()]);
    let mut fields = vec![Field::new("rank", DataType::Int64, false)];
    fields.extend(picked.schema().fields().iter().map(|field| field.as_ref().clone()));
    let mut arrays: Vec<ArrayRef> = vec![Arc::new(rank)];
    arrays.extend(picked.columns().iter().cloned());
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
}

const COUNTERS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::int("ts", "from when on").unit(Unit::Duration),
    Column::text("name", "the counter"),
    Column::float("value", "it has this value"),
    Column::int("device", "whose it is; null for one of the host"),
];

fn counters(model: &Model<'_>) -> Result<RecordBatch, Error> {
    let trace = model.trace;
    let mut samples: Vec<_> = trace.counters.iter().collect();
    samples.sort_by_key(|sample| sample.time);
    let mut rows = Rows::new(COUNTERS);
    for sample in samples {
        let series = &trace.counters.series[sample.series];
        let device = match series.kind {
            SeriesKind::Track(track) if !model.takes(track) => continue,
            SeriesKind::Device { device, .. } | SeriesKind::DeviceMemory { device, .. } => {
                Some(trace.devices[device].number)
            }
            _ => None,
        };
        let value = match sample.value {
            Number::I64(n) => n as f64,
            Number::F64(x) => x,
        };
        let name = model.text(series.name);
        rows.push([
            model.rank.into(),
            sample.time.0.into(),
            name.into(),
            value.into(),
            device.into(),
        ]);
    }
    rows.finish()
}

const MEMORY: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::int("ts", "when").unit(Unit::Duration),
    Column::int("bytes", "allocated; negative if freed").unit(Unit::Bytes),
    Column::int("address", "where"),
    Column::int("allocated", "how much is in use then").unit(Unit::Bytes),
    Column::int("reserved", "how much the allocator holds then").unit(Unit::Bytes),
    Column::int("device_type", "0 is the host, 1 a GPU: PyTorch's numbers"),
    Column::int("device", "the number of the device"),
];

fn memory(model: &Model<'_>) -> Result<RecordBatch, Error> {
    let trace = model.trace;
    let mut rows = Rows::new(MEMORY);
    let Some(memory) = trace.strings.find("[memory]") else { return rows.finish() };
    let keys = ["Bytes", "Addr", "Total Allocated", "Total Reserved", "Device Type", "Device Id"];
    let keys = keys.map(|key| trace.strings.find(key));
    let mut all: Vec<_> = trace
        .instants
        .iter()
        .filter(|instant| instant.name == memory && model.takes(instant.track))
        .collect();
    all.sort_by_key(|instant| instant.time);
    for instant in all {
        let whole = |value| match value {
            Value::I64(n) => Some(n),
            // Addresses may use all bits.
            Value::U64(n) => Some(n as i64),
            _ => None,
        };
        let of = |key: Option<StrId>| whole(trace.args.find(instant.args, key?)?);
        let [bytes, address, allocated, reserved, device_type, device] = keys.map(of);
        rows.push([
            model.rank.into(),
            instant.time.0.into(),
            bytes.into(),
            address.into(),
            allocated.into(),
            reserved.into(),
            device_type.into(),
            device.into(),
        ]);
    }
    rows.finish()
}

/// Arrows between events that are in the tables.
fn flows(model: &Model<'_>) -> Result<RecordBatch, Error> {
    let (trace, events) = (model.trace, &model.events);
    // When the event of each id begins, if it is in a table.
    let points = trace.flow_arrows();
    let ids = if points.is_empty() { 0 } else { trace.slices.len() + trace.activities.len() };
    let mut starts: Vec<Option<i64>> = vec![None; ids];
    for (id, start) in events.rows.iter().zip(&events.starts) {
        if let Some(of) = starts.get_mut(*id as usize) {
            *of = Some(*start);
        }
    }
    let start = |id: u32| starts.get(id as usize).copied().flatten();
    let id = |event| match event {
        EventRef::Slice(id) => u32::try_from(id.index()).ok(),
        EventRef::Activity(id) => u32::try_from(trace.slices.len() + id.index()).ok(),
        EventRef::Instant(_) => None,
    };
    let mut all: Vec<(i64, u32, u32, &'static str)> = Vec::new();
    for arrow in &points {
        let (Some(from), Some(to)) = (id(arrow.from), id(arrow.to)) else { continue };
        if let (Some(ts), Some(_)) = (start(from), start(to)) {
            all.push((ts, from, to, "flow"));
        }
    }
    for work in model.device() {
        if let Some(call) = model.peers().get(*work) {
            let (from, to) = (events.rows[call as usize], events.rows[*work as usize]);
            all.push((events.starts[call as usize], from, to, "launch"));
        }
    }
    all.sort_unstable();
    let ids = |of: fn(&(i64, u32, u32, &'static str)) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(all.iter().map(of)))
    };
    let rank: ArrayRef = Arc::new(Int64Array::from(vec![model.rank; all.len()]));
    let keys = Int32Array::from_iter_values(all.iter().map(|arrow| i32::from(arrow.3 == "launch")));
    let kinds = Arc::new(StringArray::from(vec!["flow", "launch"]));
    let kinds: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::try_new(keys, kinds)?);
    let columns = [
        ("rank", rank),
        ("ts", ids(|arrow| arrow.0)),
        ("kind", kinds),
        ("from_id", ids(|arrow| i64::from(arrow.1))),
        ("to_id", ids(|arrow| i64::from(arrow.2))),
    ];
    let field =
        |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), false);
    let fields: Vec<Field> = columns.iter().map(field).collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
}

const NAMES_COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::text("name", "the name"),
    Column::text("short_name", "what tells a kernel apart from others"),
    Column::text("kind", "what events of this name are"),
    Column::text("class", "of work of devices: computation, communication, memory or other"),
    Column::int("count", "how many there are"),
    Column::duration("time", "how long they take altogether"),
];

fn names(model: &Model<'_>) -> Result<RecordBatch, Error> {
    let events = &model.events;
    let mut all: HashMap<(StrId, Kind), (u32, i64, i64)> = HashMap::new();
    for row in 0..events.len() {
        let of = all.entry((events.names[row], events.kinds[row])).or_insert((row as u32, 0, 0));
        of.1 += 1;
        of.2 = of.2.saturating_add(events.durs[row]);
    }
    let sorted: BTreeMap<(&str, Kind), (u32, i64, i64)> =
        all.into_iter().map(|((name, kind), of)| ((model.text(name), kind), of)).collect();
    let mut rows = Rows::new(NAMES_COLUMNS);
    for ((name, of_kind), (row, count, time)) in sorted {
        let device = events.on_device(row);
        let short = if device { kymograph_analysis::names::shorten(name) } else { name.to_owned() };
        let class = device.then(|| class(model.classes().of_row(model, row)));
        rows.push([
            model.rank.into(),
            name.into(),
            short.as_str().into(),
            kind(of_kind).into(),
            class.into(),
            count.into(),
            time.into(),
        ]);
    }
    rows.finish()
}
