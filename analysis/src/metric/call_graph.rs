//! Who called whom, and what was launched below: a row for each event.
//!
//! Events of a thread nest by time; device work lies below the call that launched it. Where
//! exactly one thread has the profiler's steps and exactly one other runs `autograd::`
//! operators, that one's outermost events lie below the step (or the annotation
//! `## backward ##`) of the first during which they ran.

use kymograph_converters::order::Order as _;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use hashbrown::HashSet;

use crate::metric::one_by_one;
use crate::model::{Events, NONE};
use crate::table::{self, Cells, Rows};
use crate::{Column, Error, Metric, Model, Options, Part};

/// Events.
pub const METRIC: Metric = Metric {
    name: "call_graph",
    answers: "for each event, who called it, how deep it lies, and what it launched",
    columns: COLUMNS,
    of_trace,
    over_ranks,
};

/// Threads.
pub const STACKS: Metric = Metric {
    name: "call_stacks",
    answers: "which threads have call trees, and what they are for",
    columns: STACK_COLUMNS,
    of_trace: stacks,
    over_ranks: stacks_over_ranks,
};

const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank").hta(""),
    Column::int("index", "the place of the event in the trace"),
    Column::text("name", "the event").hta(""),
    Column::int("parent", "the place of the caller; minus the thread's number if there is none"),
    Column::int("depth", "how many callers it has; -1 for what is in no tree"),
    Column::int("height", "the longest way down to a leaf; 0 for device work"),
    Column::int("num_kernels", "device events below, itself included"),
    Column::duration("kernel_dur_sum", "how long those took"),
    Column::duration("kernel_span", "from the first one's beginning to the last one's end"),
    Column::moment("first_kernel_start", "when the first of them begins").hta_null(-1.0),
    Column::moment("last_kernel_end", "when the last of them ends").hta_null(-1.0),
];

const STACK_COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::int("pid", "the process"),
    Column::int("tid", "the thread"),
    Column::text("label", "main, bwd for backward, or the name of the first event"),
    Column::int("stack_index", "the number of the tree, over all ranks"),
    Column::int("stack_root", "minus the number of the thread in whose tree it lies"),
    Column::int("count", "the how manieth tree of that root it is"),
];

/// The tree with everything in it.
pub(super) struct Graph {
    /// The caller, or the call that launched; [`NONE`] for roots.
    pub(super) parents: Vec<u32>,
    /// The root: minus a thread's number; 0 for what is in no tree.
    pub(super) roots: Vec<i64>,
    pub(super) depths: Vec<i32>,
    pub(super) heights: Vec<i32>,
    /// Device events below: how many, how long, from when, until when.
    pub(super) kernels: Vec<(i64, i64, i64, i64)>,
    /// Everything in a tree, callers first.
    pub(super) order: Vec<u32>,
    stacks: Vec<Stack>,
}

struct Stack {
    pid: i64,
    tid: i64,
    label: String,
    root: i64,
}

impl Graph {
    /// # Errors
    ///
    /// When HTA's rules gave events negative durations, which HTA cannot nest either.
    pub(super) fn of(model: &Model<'_>) -> Result<Graph, Error> {
        let events = &model.events;
        let calls = model.calls();
        if calls.threads.iter().any(|thread| cannot_nest(events, &calls.order[thread.rows.clone()]))
        {
            return Err(Error::Nothing(
                "HTA cannot build call graphs of times that it has rounded where events shorter \
                 than a microsecond, which get a duration of -1, meet those of 0 (say \
                 --no-rounding, or leave --compat out)"
                    .to_owned(),
            ));
        }
        let mut graph = Graph {
            parents: calls.parents.clone(),
            roots: vec![0; events.len()],
            depths: vec![-1; events.len()],
            heights: vec![-1; events.len()],
            kernels: vec![(0, 0, i64::MAX, i64::MIN); events.len()],
            order: Vec::new(),
            stacks: Vec::new(),
        };
        for thread in &calls.threads {
            let root = -thread.tid.abs();
            for row in &calls.order[thread.rows.clone()] {
                graph.roots[*row as usize] = root;
            }
            let label = label(model, thread);
            graph.stacks.push(Stack { pid: thread.pid, tid: thread.tid, label, root });
        }
        graph.link_backward(model);
        // Callers before what they call: the backward thread's may be on the main thread.
        let backward = |thread: &&crate::model::Thread| {
            let stack =
                graph.stacks.iter().find(|own| (own.pid, own.tid) == (thread.pid, thread.tid));
            stack.is_some_and(|stack| stack.label == "bwd")
        };
        let (last, first): (Vec<_>, Vec<_>) = calls.threads.iter().partition(backward);
        let mut order = Vec::with_capacity(events.len());
        for thread in first.into_iter().chain(last) {
            order.extend_from_slice(&calls.order[thread.rows.clone()]);
        }
        graph.order = order;
        graph.add_device_work(model);
        graph.measure(model);
        Ok(graph)
    }

    /// Puts what the backward thread does below the steps of the main thread.
    fn link_backward(&mut self, model: &Model<'_>) {
        let mut both: Vec<usize> = (0..self.stacks.len())
            .filter(|n| matches!(self.stacks[*n].label.as_str(), "bwd" | "main"))
            .collect();
        both.order_by_key(|n| &self.stacks[*n].label);
        let [backward, main] = both[..] else { return };
        let calls = model.calls();
        let (events, rows) =
            (&model.events, |n: usize| &calls.order[calls.threads[n].rows.clone()]);
        let named = |start: &str| {
            let mut rows: Vec<u32> = rows(main).to_vec();
            rows.retain(|row| model.name(*row).starts_with(start));
            rows.sort_unstable();
            rows
        };
        let mut parents = named("## backward ##");
        if parents.is_empty() {
            parents = named("ProfilerStep#");
        }
        let parents: Vec<(i64, i64, u32)> = parents
            .into_iter()
            .map(|parent| (events.starts[parent as usize], events.end(parent), parent))
            .collect();
        for row in rows(backward) {
            let (from, to) = events.interval(*row);
            if self.parents[*row as usize] == NONE {
                let around = parents.iter().find(|(start, end, _)| from >= *start && to <= *end);
                self.parents[*row as usize] = around.map_or(NONE, |(.., parent)| *parent);
            }
        }
        let of_main = self.stacks[main].root;
        let left = rows(backward).iter().any(|row| self.parents[*row as usize] == NONE);
        if !left {
            self.stacks[backward].root = of_main;
        }
    }

    fn add_device_work(&mut self, model: &Model<'_>) {
        let events = &model.events;
        let hta = model.reading.hta().is_some();
        for row in 0..events.len() as u32 {
            let stream = events.streams[row as usize];
            if stream == Events::HOST || hta && stream == 0 {
                continue;
            }
            let Some(call) = model.peers().get(row) else { continue };
            if self.roots[call as usize] != 0 || self.parents[call as usize] != NONE {
                self.parents[row as usize] = call;
                let (start, end) = events.interval(row);
                self.kernels[row as usize] = (1, events.durs[row as usize], start, end);
                self.heights[row as usize] = 0;
                self.order.push(row);
            }
        }
    }

    /// Depths downwards, everything else upwards.
    fn measure(&mut self, model: &Model<'_>) {
        for row in &self.order {
            let parent = self.parents[*row as usize];
            self.depths[*row as usize] = match parent {
                NONE => 0,
                parent => self.depths[parent as usize] + 1,
            };
        }
        for row in self.order.iter().rev() {
            let row = *row as usize;
            if !model.events.on_device(row as u32) || self.heights[row] != 0 {
                self.heights[row] = self.heights[row].max(1);
            }
            let parent = self.parents[row];
            if parent == NONE {
                continue;
            }
            let parent = parent as usize;
            self.heights[parent] = self.heights[parent].max(self.heights[row] + 1);
            let below = self.kernels[row];
            let sum = &mut self.kernels[parent];
            *sum = (sum.0 + below.0, sum.1 + below.1, sum.2.min(below.2), sum.3.max(below.3));
        }
    }
}

/// Whether an end of an event with a duration below 0 meets one with a duration of 0.
fn cannot_nest(events: &Events, rows: &[u32]) -> bool {
    let of = |wanted: fn(&i64) -> bool| {
        rows.iter().copied().filter(move |row| wanted(&events.durs[*row as usize]))
    };
    let empty: HashSet<i64> = of(|dur| *dur == 0).map(|row| events.starts[row as usize]).collect();
    let mut below = of(|dur| *dur < 0).map(|row| events.interval(row));
    below.any(|(start, end)| empty.contains(&start) || empty.contains(&end))
}

fn label(model: &Model<'_>, thread: &crate::model::Thread) -> String {
    let rows = &model.calls().order[thread.rows.clone()];
    let has = |is: fn(&str) -> bool| {
        let mut is = model.names_that(is);
        rows.iter().any(|row| is(*row))
    };
    if has(|name| name.starts_with("ProfilerStep#")) {
        "main".to_owned()
    } else if has(|name| name.contains("autograd::")) {
        "bwd".to_owned()
    } else {
        model.name(thread.first).to_owned()
    }
}

fn of_trace(model: &Model<'_>, _: &Options) -> Result<RecordBatch, Error> {
    let graph = Graph::of(model)?;
    let events = &model.events;
    let mut order: Vec<u32> = (0..events.len() as u32).collect();
    events.sort_by_position(&mut order);
    let parent = |at: usize| match graph.parents[at] {
        NONE if graph.depths[at] < 0 => -1,
        NONE => graph.roots[at],
        parent => i64::from(events.positions[parent as usize]),
    };
    let some = |at: usize, value: i64| (graph.kernels[at].0 > 0).then_some(value);
    let span = |at: usize| {
        let (_, _, first, last) = graph.kernels[at];
        some(at, last.saturating_sub(first)).unwrap_or(0)
    };
    // As many rows as events: column by column.
    let rows = || order.iter().map(|row| *row as usize);
    let whole = |of: &dyn Fn(usize) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from(rows().map(of).collect::<Vec<i64>>()))
    };
    let sparse = |of: &dyn Fn(usize) -> Option<i64>| -> ArrayRef {
        Arc::new(rows().map(of).collect::<Int64Array>())
    };
    let names: StringArray = rows().map(|at| Some(model.text(events.names[at]))).collect();
    table::columns(
        COLUMNS,
        vec![
            whole(&|_| model.rank),
            whole(&|at| i64::from(events.positions[at])),
            Arc::new(names),
            whole(&parent),
            whole(&|at| i64::from(graph.depths[at])),
            whole(&|at| i64::from(graph.heights[at])),
            whole(&|at| graph.kernels[at].0),
            whole(&|at| graph.kernels[at].1),
            whole(&span),
            sparse(&|at| some(at, graph.kernels[at].2)),
            sparse(&|at| some(at, graph.kernels[at].3)),
        ],
    )
}

fn over_ranks(metric: &Metric, parts: &[Part], options: &Options) -> Result<RecordBatch, Error> {
    one_by_one(metric, parts, options)
}

fn stacks(model: &Model<'_>, _: &Options) -> Result<RecordBatch, Error> {
    let mut rows = Rows::new(STACK_COLUMNS);
    let graph = Graph::of(model)?;
    for (n, stack) in graph.stacks.iter().enumerate() {
        let same = graph.stacks[..n].iter().filter(|other| other.root == stack.root).count();
        rows.push([
            model.rank.into(),
            stack.pid.into(),
            stack.tid.into(),
            stack.label.as_str().into(),
            n.into(),
            stack.root.into(),
            (same + 1).into(),
        ]);
    }
    rows.finish()
}

fn stacks_over_ranks(_: &Metric, parts: &[Part], _: &Options) -> Result<RecordBatch, Error> {
    let mut rows = Rows::new(STACK_COLUMNS);
    let mut index = 0i64;
    for part in parts {
        let cells = Cells::of(&part.batch);
        for row in 0..part.batch.num_rows() {
            rows.push([
                part.rank.into(),
                cells.int("pid", row).into(),
                cells.int("tid", row).into(),
                cells.text("label", row).into(),
                index.into(),
                cells.int("stack_root", row).into(),
                cells.int("count", row).into(),
            ]);
            index += 1;
        }
    }
    rows.finish()
}
