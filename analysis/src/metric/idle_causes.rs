//! Why a device was idle: what the host did meanwhile.
//!
//! A device is idle while none of its streams has work; where there are steps, between the
//! beginning of the first and the end of the last, else between its first work and its last. The activity that ends such a gap was
//! launched by a call. From the gap's beginning to that call, the host was late, and what its
//! thread did then is the cause: the innermost of its events at each moment. Where the thread
//! has none, what the main thread did (the one with the steps, or the one with the most events)
//! is the cause. The time of a gap is divided among its causes.
//!
//! | cause | the gap, or the part of it |
//! |---|---|
//! | `synchronizing` | in a call that waits for the device |
//! | `calling` | in another call of the runtime or the driver, such as one that allocates |
//! | `launching` | from the beginning of the call that launched to that of its work |
//! | `lock` | in an event whose name says that it waits for a lock |
//! | `data_loading` | in a data loader |
//! | `operator`, `python`, `annotation`, `profiler`, `other` | in such an event, and in none of the above |
//! | `nothing_recorded` | no thread that is known to matter has an event |
//! | `device` | the work was launched before the gap began: it waited for another stream, or launching took so long |
//! | `unknown` | the launch of the work is not in the trace |

use arrow_array::RecordBatch;
use hashbrown::HashMap;
use kymograph_converters::order::Order as _;
use kymograph_converters::trace::StrId;

use super::needs_device_work;
use crate::metric::one_by_one;
use crate::model::{Kind, Leaves, NONE, steps};
use crate::table::Rows;
use crate::{Column, Error, Metric, Model, Options};

/// See the module.
pub const METRIC: Metric = Metric {
    name: "idle_causes",
    answers: "why devices were idle: which call, operator or Python function ran meanwhile",
    columns: COLUMNS,
    of_trace,
    over_ranks: one_by_one,
};

const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::int("device", "the device"),
    Column::text("cause", "what kind of thing the host did: see the metric"),
    Column::text("doing", "the innermost event of the host; null if there is none"),
    Column::text("operator", "the innermost operator around it; null if there is none"),
    Column::text("python", "the innermost Python function around it; null if there is none"),
    Column::duration("idle_time", "how long the device was idle meanwhile; the longest first"),
    Column::percent("percentage", "of the device's idle time"),
    Column::int("gaps", "in how many gaps"),
    Column::duration("longest", "the longest stretch of it"),
    Column::moment("longest_ts", "when that began"),
];

/// What the host did.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Cause {
    kind: &'static str,
    doing: Option<StrId>,
    operator: Option<StrId>,
    python: Option<StrId>,
}

impl Cause {
    fn plain(kind: &'static str) -> Cause {
        Cause { kind, doing: None, operator: None, python: None }
    }
}

#[derive(Clone, Copy, Default)]
struct Sum {
    time: i64,
    gaps: u64,
    last_gap: usize,
    longest: (i64, i64),
}

/// A gap of a device, and the work that ends it.
struct Gap {
    device: i64,
    from: i64,
    to: i64,
    work: u32,
}

fn of_trace(model: &Model<'_>, _: &Options) -> Result<RecordBatch, Error> {
    needs_device_work(model)?;
    let mut host = Host::of(model);
    let mut sums: HashMap<(i64, Cause), Sum> = HashMap::new();
    let mut idle: HashMap<i64, i64> = HashMap::new();
    for (number, gap) in (1..).zip(gaps(model)) {
        *idle.entry(gap.device).or_default() += gap.to - gap.from;
        host.divide(&gap, |cause, from, to| {
            let sum = sums.entry((gap.device, cause)).or_default();
            sum.time += to - from;
            sum.gaps += u64::from(sum.last_gap != number);
            sum.last_gap = number;
            if to - from > sum.longest.0 {
                sum.longest = (to - from, from);
            }
        });
    }
    let text = |name: Option<StrId>| name.map(|name| model.text(name));
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.order_by_key(|((device, cause), sum)| {
        let names = (text(cause.doing), text(cause.operator), text(cause.python));
        (*device, std::cmp::Reverse(sum.time), cause.kind, names)
    });
    let mut rows = Rows::new(COLUMNS);
    for ((device, cause), sum) in sums {
        let all = idle.get(&device).copied().unwrap_or_default();
        rows.push([
            model.rank.into(),
            device.into(),
            cause.kind.into(),
            text(cause.doing).into(),
            text(cause.operator).into(),
            text(cause.python).into(),
            sum.time.into(),
            (sum.time as f64 / all as f64 * 100.0).into(),
            sum.gaps.into(),
            sum.longest.0.into(),
            sum.longest.1.into(),
        ]);
    }
    rows.finish()
}

/// Times in which a device had nothing to do.
fn gaps(model: &Model<'_>) -> Vec<Gap> {
    let events = &model.events;
    let steps = || model.steps().all.iter().map(|step| events.interval(step.row));
    let from = steps().map(|(start, _)| start).min().unwrap_or(i64::MIN);
    let to = steps().map(|(_, end)| end).max().unwrap_or(i64::MAX);
    let mut ends: HashMap<i64, i64> = HashMap::new();
    let mut gaps = Vec::new();
    for work in model.device().iter().copied().filter(|row| events.kinds[*row as usize].is_work()) {
        let device = events.lane(work).pid;
        let (start, end) = events.interval(work);
        let busy_until = ends.entry(device).or_insert(end);
        let (from, to) = ((*busy_until).max(from), start.min(to));
        if from < to {
            gaps.push(Gap { device, from, to, work });
        }
        *busy_until = (*busy_until).max(end);
    }
    gaps
}

/// What threads of the host did.
struct Host<'m, 'a> {
    model: &'m Model<'a>,
    threads: HashMap<(i64, i64), usize>,
    leaves: HashMap<usize, Leaves>,
    main: Option<usize>,
    /// What each name says, 0 where it was not asked: see [`says`].
    said: Vec<u8>,
    /// Whether any name of the trace is that of a data loader.
    may_load: bool,
}

impl<'m, 'a> Host<'m, 'a> {
    fn of(model: &'m Model<'a>) -> Host<'m, 'a> {
        let threads = &model.calls().threads;
        let numbers: HashMap<(i64, i64), usize> =
            threads.iter().enumerate().map(|(n, thread)| ((thread.pid, thread.tid), n)).collect();
        let with_steps = model.steps().all.iter().find_map(|step| {
            let lane = model.events.lane(step.row);
            numbers.get(&(lane.pid, lane.tid)).copied().filter(|_| lane.thread)
        });
        let busiest = || (0..threads.len()).max_by_key(|n| threads[*n].rows.len());
        let main = with_steps.or_else(busiest);
        let said = vec![0; model.trace.strings.len() + 1];
        let may_load = model.trace.strings.iter().any(|(_, name)| loads_data(name));
        Host { model, threads: numbers, leaves: HashMap::new(), main, said, may_load }
    }

    /// Calls `part(cause, from, to)` for the parts of a gap.
    fn divide(&mut self, gap: &Gap, mut part: impl FnMut(Cause, i64, i64)) {
        let Some(call) = self.model.peers().get(gap.work) else {
            return part(Cause::plain("unknown"), gap.from, gap.to);
        };
        let launch = self.model.events.starts[call as usize];
        if launch <= gap.from {
            return part(Cause::plain("device"), gap.from, gap.to);
        }
        let launched = launch.min(gap.to);
        let lane = self.model.events.lane(call);
        let thread = self.threads.get(&(lane.pid, lane.tid)).copied();
        let mut stretches = Vec::new();
        self.stretches(thread, gap.from, launched, &mut stretches);
        for (from, to, row) in stretches {
            if row != NONE {
                part(self.cause(row), from, to);
                continue;
            }
            let mut others = Vec::new();
            let main = self.main.filter(|main| Some(*main) != thread);
            self.stretches(main, from, to, &mut others);
            for (from, to, row) in others {
                let cause =
                    if row == NONE { Cause::plain("nothing_recorded") } else { self.cause(row) };
                part(cause, from, to);
            }
        }
        if launched < gap.to {
            let name = self.model.events.names[call as usize];
            part(Cause { doing: Some(name), ..self.around(call, "launching") }, launched, gap.to);
        }
    }

    /// What a thread did between two times; [`NONE`] where it has no event.
    fn stretches(
        &mut self,
        thread: Option<usize>,
        from: i64,
        to: i64,
        out: &mut Vec<(i64, i64, u32)>,
    ) {
        let model = self.model;
        let mut at = from;
        if let Some(number) = thread {
            let leaves = self.leaves.entry(number).or_insert_with(|| {
                let is_step = |row| steps::number(model.name(row)).is_some();
                Leaves::of(model, &model.calls().threads[number], |row| !is_step(row))
            });
            for (start, end, row) in leaves.between(from, to) {
                if at < start {
                    out.push((at, start, NONE));
                }
                out.push((start, end, row));
                at = end;
            }
        }
        if at < to {
            out.push((at, to, NONE));
        }
    }

    fn cause(&mut self, row: u32) -> Cause {
        let said = self.said(row);
        let kind = match self.model.events.kinds[row as usize] {
            _ if said & LOCK != 0 => "lock",
            Kind::Runtime | Kind::Driver if said & WAITS != 0 => "synchronizing",
            Kind::Runtime | Kind::Driver => "calling",
            _ if self.loads_data(row) => "data_loading",
            Kind::Operator => "operator",
            Kind::Python => "python",
            Kind::Annotation => "annotation",
            Kind::Overhead => "profiler",
            _ => "other",
        };
        let doing = Some(self.model.events.names[row as usize]);
        Cause { doing, ..self.around(row, kind) }
    }

    /// The operator and the Python function that an event is, or lies in.
    fn around(&self, row: u32, kind: &'static str) -> Cause {
        let events = &self.model.events;
        let (mut operator, mut python) = (None, None);
        for row in std::iter::once(row).chain(self.model.calls().callers(row)) {
            let found = match events.kinds[row as usize] {
                Kind::Operator => &mut operator,
                Kind::Python => &mut python,
                _ => continue,
            };
            *found = found.or(Some(events.names[row as usize]));
            if operator.is_some() && python.is_some() {
                break;
            }
        }
        Cause { kind, doing: None, operator, python }
    }

    fn loads_data(&mut self, row: u32) -> bool {
        let model = self.model;
        let mut own = std::iter::once(row).chain(model.calls().callers(row)).take(64);
        self.may_load && own.any(|row| self.said(row) & LOADS != 0)
    }

    /// What the name of an event says.
    fn said(&mut self, row: u32) -> u8 {
        let name = self.model.events.names[row as usize];
        match self.said.get_mut(name.0 as usize) {
            Some(0) | None => {
                let said = says(self.model.text(name));
                if let Some(known) = self.said.get_mut(name.0 as usize) {
                    *known = said;
                }
                said
            }
            Some(said) => *said,
        }
    }
}

const ASKED: u8 = 1;
const LOCK: u8 = 2;
const WAITS: u8 = 4;
const LOADS: u8 = 8;

/// What a name says: bits, of which [`ASKED`] is always set.
fn says(name: &str) -> u8 {
    let bit = |is: bool, bit: u8| if is { bit } else { 0 };
    ASKED | bit(is_lock(name), LOCK) | bit(waits(name), WAITS) | bit(loads_data(name), LOADS)
}

pub(super) fn loads_data(name: &str) -> bool {
    name.starts_with("enumerate(DataLoader)")
        || name.starts_with("enumerate(DataPipe)")
        || name.contains("torch/utils/data/dataloader.py")
}

/// Whether a call returns when the device is ready.
pub(super) fn waits(call: &str) -> bool {
    let copies = call.contains("Memcpy") && !call.contains("Async");
    call.contains("Synchronize") || copies
}

/// Whether an event's name says that a thread waits for others in it.
fn is_lock(name: &str) -> bool {
    ["mutex", "futex", "rwlock", "sem_wait", "take_gil", "acquire_gil", "cond_wait"]
        .iter()
        .any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::testing::{rows, table};

    #[test]
    fn each_moment_of_a_gap_has_its_cause() {
        // The device is idle from 20 to 100, from 110 to 120, and from 130 to 200.
        let batch = table(
            &METRIC,
            r#"
            cuda_runtime | cudaLaunchKernel | 1 | 0 | 5 | "correlation": 1
            kernel | a | 7 | 10 | 10 | "correlation": 1
            cuda_runtime | cudaStreamSynchronize | 1 | 6 | 24 |
            python_function | train.py(3): load | 1 | 30 | 20 |
            cpu_op | aten::mm | 1 | 60 | 38 |
            cuda_runtime | cudaMalloc | 1 | 65 | 10 |
            cuda_runtime | cudaLaunchKernel | 1 | 90 | 5 | "correlation": 2
            kernel | b | 7 | 100 | 10 | "correlation": 2
            cuda_runtime | cudaLaunchKernel | 1 | 98 | 2 | "correlation": 3
            kernel | c | 8 | 120 | 10 | "correlation": 3
            kernel | d | 7 | 200 | 10 | "correlation": 4
            "#,
            &Options::default(),
        );
        let found = rows(&batch, &["cause", "doing", "operator", "python", "idle_time", "gaps"]);
        assert_eq!(
            found,
            [
                "unknown - - - 70000 1",
                "operator aten::mm aten::mm - 20000 1",
                "python train.py(3): load - train.py(3): load 20000 1",
                "calling cudaMalloc aten::mm - 10000 1",
                "device - - - 10000 1",
                "launching cudaLaunchKernel aten::mm - 10000 1",
                "nothing_recorded - - - 10000 1",
                "synchronizing cudaStreamSynchronize - - 10000 1",
            ]
        );
        let all: f64 = (0..batch.num_rows())
            .filter_map(|row| crate::table::Cells::of(&batch).float("percentage", row))
            .sum();
        assert!((all - 100.0).abs() < 1e-9, "all idle time has a cause");
    }
}
