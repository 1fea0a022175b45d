//! Operators, calls and kernels by name, as `key_averages()` of PyTorch's profiler has them.
//!
//! An operator's own time is what it does not spend in operators and calls that it calls (and,
//! with --python-functions, in Python functions); its device time is that of the work that it and
//! those launched. Work belongs to the operator whose `External id` it has.
//! Kernels have rows of their own **besides**: adding rows counts work twice. `ProfilerStep#N` is `ProfilerStep*`; an only child of its parent's
//! name is its parent. Memory is what was allocated less what was freed while an event lasted, on
//! any thread.
//!
//! `operators_by_stack` tells operators apart by the Python functions around them: the innermost
//! ones, as many as `--stack-depth` says, with `;` between them. Backward operators have those of
//! the forward operator. There, Python functions count as callees, since a profiler that records
//! stacks for `key_averages` has `verbose=True`.
//!
//! Python functions have no rows, unless `--python-rows` asks for them
//! (`include_python_functions=True`). `operators_total` is `total_average()`.
//!
//! `--compat torch` prints `table()` to the character. `--compat tensorboard` has the operator view
//! of the TensorBoard plugin, by name and by shapes: only operators, the longest on devices first;
//! their own time is without that of calls of the runtime that have their `External id`, whose
//! work is theirs; version 0.4.3 knows none of those since PyTorch 1.12. Whether operators can
//! use tensor cores, and how much of their device time did, is told by the plugin's lists of names.

mod flops;
mod plugin;
mod stacks;
mod tree;

use std::rc::Rc;

use arrow_array::RecordBatch;
use hashbrown::HashMap;
use kymograph_converters::trace::{ListId, StrId, Trace, Value};

use crate::compat::tensorboard::Plugin;
use crate::metric::one_by_one;
use crate::model::{Argument, Kind, NONE};
use crate::table::{Cell, Rows};
use crate::{Column, Error, Metric, Model, Options, Unit};
use flops::{Flops, Rule};
pub(super) use flops::{Inputs, InputsOf};
pub(super) use stacks::Stacks;
pub(super) use tree::Tree;

/// By name.
pub const METRIC: Metric = Metric {
    name: "operators",
    answers: "which operators take the time, on the host and on devices, themselves and with all \
              that they call",
    columns: COLUMNS,
    of_trace,
    over_ranks: one_by_one,
};

/// By name and shapes.
pub const BY_SHAPE: Metric = Metric {
    name: "operators_by_shape",
    answers: "the same by the shapes of their inputs",
    columns: COLUMNS,
    of_trace: by_shape,
    over_ranks: one_by_one,
};

/// By name and stack.
pub const BY_STACK: Metric = Metric {
    name: "operators_by_stack",
    answers: "the same by the Python functions around them",
    columns: COLUMNS,
    of_trace: by_stack,
    over_ranks: one_by_one,
};

/// All together.
pub const TOTAL: Metric = Metric {
    name: "operators_total",
    answers: "all of them added up, as total_average() does: what calls another counts twice",
    columns: TOTAL_COLUMNS,
    of_trace: total,
    over_ranks: one_by_one,
};

const TOTAL_COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::text("key", "Total"),
    Column::int("count", "how many events there are"),
    Column::mean_duration("self_cpu_time_total", "the time that they spent themselves"),
    Column::mean_duration("cpu_time_total", "the time that they took"),
    Column::mean_duration("self_device_time_total", "of work that they launched themselves"),
    Column::mean_duration("device_time_total", "of work that they and what they call launched"),
    Column::int("cpu_memory_usage", "allocated less freed on the host").unit(Unit::Bytes),
    Column::int("self_cpu_memory_usage", "that by themselves").unit(Unit::Bytes),
    Column::int("device_memory_usage", "allocated less freed on devices").unit(Unit::Bytes),
    Column::int("self_device_memory_usage", "that by themselves").unit(Unit::Bytes),
    Column::float("flops", "floating point operations"),
];

fn total(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    let tree = Tree::of(model, options.python_functions)?;
    let mut all = Sum::default();
    for (_, sum) in sums(model, options, &tree, By::Name) {
        all.calls += sum.calls;
        all.host += sum.host;
        all.self_host += sum.self_host;
        all.device += sum.device;
        all.self_device += sum.self_device;
        all.flops += sum.flops;
        for side in [0, 1] {
            all.memory[side] += sum.memory[side];
            all.self_memory[side] += sum.self_memory[side];
        }
    }
    let mut rows = Rows::new(TOTAL_COLUMNS);
    rows.push([
        model.rank.into(),
        "Total".into(),
        all.calls.into(),
        nanos(all.self_host).into(),
        nanos(all.host).into(),
        nanos(all.self_device).into(),
        nanos(all.device).into(),
        all.memory[0].into(),
        all.self_memory[0].into(),
        all.memory[1].into(),
        all.self_memory[1].into(),
        all.flops.into(),
    ]);
    rows.finish()
}

const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::text("name", "the operator, call, kernel or annotation"),
    Column::text("input_shapes", "the shapes of its inputs; null if not told apart"),
    Column::text(
        "stack",
        "the Python functions around it, the innermost first; null if not told apart",
    ),
    Column::text("device_type", "CPU, or what PyTorch calls the devices: CUDA, XPU, HPU, …"),
    Column::int("is_user_annotation", "1 for ranges that the program named"),
    Column::int("calls", "how often it came"),
    Column::mean_duration("self_cpu_time", "the time that it spent itself"),
    Column::mean_duration("cpu_time_total", "the time that it took"),
    Column::mean_duration("cpu_time_avg", "the time that it took in the mean"),
    Column::mean_duration("self_device_time", "the time of work that it launched itself"),
    Column::mean_duration(
        "device_time_total",
        "the time of work that it and what it calls launched",
    ),
    Column::mean_duration("device_time_avg", "that in the mean"),
    Column::int("cpu_memory", "allocated less freed on the host").unit(Unit::Bytes),
    Column::int("self_cpu_memory", "that by itself").unit(Unit::Bytes),
    Column::int("device_memory", "allocated less freed on devices").unit(Unit::Bytes),
    Column::int("self_device_memory", "that by itself").unit(Unit::Bytes),
    Column::float("flops", "floating point operations by its shapes; null if the trace has none"),
    Column::text("tensor_cores_eligible", "Yes or No, by --compat tensorboard; null without"),
    Column::percent("tensor_cores_self", "of its own device time, likewise"),
    Column::percent("tensor_cores_total", "of all of its device time, likewise"),
];

/// A row. Times are microseconds, added up in the order of events, as PyTorch does it.
#[derive(Default)]
struct Sum {
    rule: Option<Rule>,
    calls: u64,
    host: f64,
    self_host: f64,
    device: f64,
    self_device: f64,
    memory: [i64; 2],
    self_memory: [i64; 2],
    flops: f64,
}

/// Name, shapes, stack, on a device, an annotation.
type Key<'a> = (&'a str, Option<Rc<str>>, Option<Rc<str>>, bool, bool);

/// The same as numbers: the name, the list of shapes, the stack.
type Numbers = (StrId, Option<ListId>, u32, bool, bool);

/// What events of a name were last, and where their row is; [`NONE`] where there was no such event.
#[derive(Clone, Copy)]
struct Last {
    dims: Option<ListId>,
    stack: u32,
    place: u32,
}

/// What tells operators apart besides their names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Name,
    Shape,
    Stack,
}

fn of_trace(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    match options.tensorboard {
        Some(plugin) => of_plugin(model, plugin, false),
        None => table(model, options, By::Name),
    }
}

fn by_shape(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    match options.tensorboard {
        Some(plugin) => of_plugin(model, plugin, true),
        None => table(model, options, By::Shape),
    }
}

fn by_stack(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    if !model.events.kinds.contains(&Kind::Python) {
        let what = "has no Python functions (with_stack=True records them)";
        return Err(Error::Nothing(format!("rank {} {what}", model.rank)));
    }
    table(model, options, By::Stack)
}

fn table(model: &Model<'_>, options: &Options, by: By) -> Result<RecordBatch, Error> {
    let tree = Tree::of(model, options.python_functions || by == By::Stack)?;
    let sums = sums(model, options, &tree, by);
    let has_shapes = model.trace.strings.find("Input Dims").is_some();
    let mut rows = Rows::new(COLUMNS);
    for ((name, shapes, stack, on_device, annotation), sum) in sums {
        let mean = |time: f64| time / sum.calls as f64;
        let memory = |bytes: i64| (!tree.memory.is_empty()).then_some(bytes);
        rows.push([
            model.rank.into(),
            name.into(),
            shapes.as_deref().into(),
            stack.as_deref().into(),
            if on_device { model.device_type() } else { "CPU" }.into(),
            i64::from(annotation).into(),
            sum.calls.into(),
            nanos(sum.self_host).into(),
            nanos(sum.host).into(),
            nanos(mean(sum.host)).into(),
            nanos(sum.self_device).into(),
            nanos(sum.device).into(),
            nanos(mean(sum.device)).into(),
            memory(sum.memory[0]).into(),
            memory(sum.self_memory[0]).into(),
            memory(sum.memory[1]).into(),
            memory(sum.self_memory[1]).into(),
            has_shapes.then_some(sum.flops).into(),
            Cell::Null,
            Cell::Null,
            Cell::Null,
        ]);
    }
    rows.finish()
}

fn of_plugin(model: &Model<'_>, plugin: Plugin, shapes: bool) -> Result<RecordBatch, Error> {
    let mut rows = Rows::new(COLUMNS);
    for ((name, shape), calls, sum) in plugin::operators(model, plugin, shapes) {
        let mean = |time: i64| time as f64 / calls as f64;
        let part = |part: i64, of: i64| if of > 0 { part as f64 / of as f64 * 100.0 } else { 0.0 };
        rows.push([
            model.rank.into(),
            name.as_str().into(),
            shape.as_deref().into(),
            Cell::Null,
            "CPU".into(),
            0i64.into(),
            calls.into(),
            sum.self_host.into(),
            sum.host.into(),
            mean(sum.host).into(),
            sum.self_device.into(),
            sum.device.into(),
            mean(sum.device).into(),
            Cell::Null,
            Cell::Null,
            Cell::Null,
            Cell::Null,
            Cell::Null,
            if sum.eligible { "Yes" } else { "No" }.into(),
            part(sum.self_tensor, sum.self_device).into(),
            part(sum.tensor, sum.device).into(),
        ]);
    }
    rows.finish()
}

/// What `operators` and `operators_by_shape` have in common. While it lives, both take less time;
/// it has about 130 bytes for each event.
pub fn common(model: &Model<'_>) -> impl Sized + use<> {
    Tree::of(model, false).ok()
}

/// Rows in the order in which they come first.
fn sums<'a>(model: &Model<'a>, options: &Options, tree: &Tree, by: By) -> Vec<(Key<'a>, Sum)> {
    let stacks = if by == By::Stack { Stacks::of(model, tree) } else { Stacks::default() };
    let mut texts: Vec<Option<Rc<str>>> = vec![None; stacks.len()];
    let none: Rc<str> = "".into();
    let mut shapes = Shapes::of(model);
    let mut order: Vec<(Key<'a>, Sum)> = Vec::new();
    let mut places: HashMap<Key<'a>, usize> = HashMap::new();
    // The same by numbers, so that texts are only compared where one of these is new.
    let mut known: HashMap<Numbers, usize> = HashMap::new();
    // Mostly what has one name is what had it last.
    let nothing = Last { dims: None, stack: NONE, place: NONE };
    let mut last = vec![nothing; 4 * (model.trace.strings.len() + 1)];
    let mut flops = Flops::new(model);
    for at in tree.all() {
        let event = &tree.events[at];
        let kind = model.events.kinds[event.row as usize];
        if kind == Kind::Python && !options.python_rows {
            continue;
        }
        let annotation = matches!(kind, Kind::Annotation | Kind::DeviceAnnotation);
        let dims = if by == By::Shape { shapes.dims.list(event.row) } else { None };
        let stack = if by == By::Stack { stacks.of[at] } else { NONE };
        let name = model.events.names[event.row as usize];
        let numbers = (name, dims, stack, event.on_device, annotation);
        let which =
            4 * name.0 as usize + 2 * usize::from(event.on_device) + usize::from(annotation);
        let last = last.get_mut(which);
        let again = last
            .as_deref()
            .filter(|last| last.place != NONE && last.dims == dims && last.stack == stack);
        let mut find = || {
            *known.entry(numbers).or_insert_with(|| {
                let shape = (by == By::Shape).then(|| shapes.text(model, dims));
                let stack = (by == By::Stack).then(|| {
                    let Some(text) = texts.get_mut(stack as usize) else { return Rc::clone(&none) };
                    let text = text.get_or_insert_with(|| {
                        let frames = stacks.functions(stack).take(options.stack_depth);
                        frames.map(|row| model.name(row)).collect::<Vec<_>>().join(";").into()
                    });
                    Rc::clone(text)
                });
                let text = tree::name(model, event.row);
                let key = (text, shape, stack, event.on_device, annotation);
                *places.entry_ref(&key).or_insert_with(|| {
                    order.push((key.clone(), Sum { rule: flops.rule(name), ..Sum::default() }));
                    order.len() - 1
                })
            })
        };
        let place = match again {
            Some(last) => last.place as usize,
            None => {
                let place = find();
                if let Some(last) = last {
                    *last = Last { dims, stack, place: place as u32 };
                }
                place
            }
        };
        let sum = &mut order[place].1;
        let (self_host, self_device) = tree.self_times(at);
        sum.calls += 1;
        sum.host += tree.host_time(at);
        sum.self_host += self_host;
        sum.device += tree.device_time(at);
        sum.self_device += self_device;
        if let Some(rule) = sum.rule {
            sum.flops += flops.of(name, rule, event.row);
        }
        if let Some(memory) = tree.memory.get(at) {
            for side in [0, 1] {
                sum.memory[side] += memory[side];
                sum.self_memory[side] += tree.self_memory(at, side);
            }
        }
    }
    order
}

fn nanos(micros: f64) -> f64 {
    micros * 1e3
}

/// Shapes of inputs, each list of them written once.
struct Shapes<'m, 'a> {
    dims: Argument<'m, 'a>,
    none: Rc<str>,
    known: HashMap<ListId, Rc<str>>,
}

impl<'m, 'a> Shapes<'m, 'a> {
    fn of(model: &'m Model<'a>) -> Shapes<'m, 'a> {
        let dims = model.argument("Input Dims");
        Shapes { dims, none: "[]".into(), known: HashMap::new() }
    }

    /// As Python prints them; `[]` for none.
    fn text(&mut self, model: &Model<'_>, list: Option<ListId>) -> Rc<str> {
        let Some(list) = list else { return Rc::clone(&self.none) };
        Rc::clone(self.known.entry(list).or_insert_with(|| written(model.trace, list).into()))
    }
}

fn written(trace: &Trace, list: ListId) -> String {
    // Of lists of tensors PyTorch has no shapes.
    let shape = |item| match item {
        Value::List(dims) if trace.args.items(dims).any(|dim| matches!(dim, Value::List(_))) => {
            "[]".to_owned()
        }
        item => trace.json(item),
    };
    let shapes: Vec<String> = trace.args.items(list).map(shape).collect();
    format!("[{}]", shapes.join(", "))
}
