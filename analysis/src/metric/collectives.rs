//! Collectives, compared over the ranks that took part.
//!
//! The kernels of one collective are told by their process group and by their place among the
//! group's collectives, step by step where there are steps. PyTorch states the group with each
//! collective; where it does not, it is NCCL's communicator, which NCCL's own ranges around
//! launches name; else the stream stands for the group. Where ranks do not have as many of a
//! group and step, because their traces begin or end in the middle, those are not compared: each
//! has a row of its own, without a last rank. All of them end when the last rank
//! has come and the data has moved, so the shortest one is the time that moving took, and what
//! another took beyond that it **waited**. No clocks are compared. The rank with the shortest
//! one came last: it is what the others waited for.
//!
//! Bandwidths are those of NCCL's tests. The *algorithm* bandwidth is the size of the message by
//! the time it took to move; the *bus* bandwidth corrects it for what each link has to carry:
//! times 2(n-1)/n for an all-reduce, (n-1)/n for an all-gather, a reduce-scatter and an
//! all-to-all, of n ranks. The size is the larger of input and output.

use kymograph_converters::order::Order as _;
use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use hashbrown::HashMap;
use kymograph_converters::trace::StrId;

use super::needs_device_work;
use crate::model::Class;
use crate::table::{Cells, Rows};
use crate::{Column, Error, Metric, Model, Options, Part, Unit};

/// See the module.
pub const METRIC: Metric = Metric {
    name: "collectives",
    answers: "how long each collective waited for its last rank and moved data, and how fast",
    columns: COLUMNS,
    of_trace,
    over_ranks,
};

const COLUMNS: &[Column] = &[
    Column::text("group", "the process group"),
    Column::int("step", "the step; -1 outside of steps"),
    Column::int("sequence", "its place among the collectives of the group and the step"),
    Column::text("collective", "what it does"),
    Column::int("ranks", "in how many of the traces it is"),
    Column::int("group_size", "how many ranks take part; null if the trace does not say"),
    Column::int("message", "the size of the larger of input and output").unit(Unit::Bytes),
    Column::moment("ts", "when the first of the kernels began"),
    Column::duration("transfer", "the time of the rank that came last: how long moving took"),
    Column::duration("wait_max", "how long the rank that came first waited"),
    Column::duration("wait_sum", "how long all ranks together waited"),
    Column::int("last_rank", "the rank that came last; null where only one is there"),
    Column::float("algorithm_bandwidth", "message by transfer").unit(Unit::GigabytesPerSecond),
    Column::float("bus_bandwidth", "corrected for what links carry").unit(Unit::GigabytesPerSecond),
];

/// What ranks give.
const PARTS: &[Column] = &[
    Column::text("group", "the process group"),
    Column::int("step", "the step"),
    Column::int("sequence", "the place"),
    Column::text("collective", "what it does"),
    Column::int("group_size", "how many ranks take part"),
    Column::int("message", "bytes"),
    Column::moment("ts", "when the kernel began"),
    Column::duration("duration", "how long it took"),
];

/// Arguments of communication kernels in Kineto's traces.
#[derive(Clone, Copy)]
struct Keys {
    group: Option<StrId>,
    ranks: Option<StrId>,
    collective: Option<StrId>,
    size: Option<StrId>,
    input: Option<StrId>,
    output: Option<StrId>,
    dtype: Option<StrId>,
}

pub(super) fn of_trace(model: &Model<'_>, _: &Options) -> Result<RecordBatch, Error> {
    // Other metrics are made of this, too.
    model.shared("collectives", || shares_of(model)).as_ref().clone()
}

fn shares_of(model: &Model<'_>) -> Result<RecordBatch, Error> {
    needs_device_work(model)?;
    let strings = &model.trace.strings;
    let keys = Keys {
        group: strings.find("Process Group Name"),
        ranks: strings.find("Process Group Ranks"),
        collective: strings.find("Collective name"),
        size: strings.find("Group size"),
        input: strings.find("In msg nelems"),
        output: strings.find("Out msg nelems"),
        dtype: strings.find("dtype"),
    };
    let (classes, steps) = (model.classes(), model.steps());
    let communicators = Communicators::of(model);
    let mut places: HashMap<(String, i64), i64> = HashMap::new();
    let mut rows = Rows::new(PARTS);
    let kernels = model.device().iter().copied();
    for row in kernels.filter(|row| classes.of_row(model, *row) == Class::Communication) {
        let operator = || said(model, &keys, model.owners().get(row)?);
        let about = said(model, &keys, row).or_else(operator);
        let about = about.or_else(|| communicators.said(model, row));
        let about = about.unwrap_or_else(|| Said {
            group: format!("stream {}", model.events.streams[row as usize]),
            ..Said::default()
        });
        let step = steps.of[row as usize];
        let place = places.entry((about.group.clone(), step)).or_insert(-1);
        *place += 1;
        let collective = about.collective.unwrap_or_else(|| of_kernel(model.name(row)));
        let message = about.message.map(|message| {
            // NCCL says what each rank gives or gets, of what all of them have together.
            let parts = about.of_rank && ["all_gather", "reduce_scatter"].contains(&&*collective);
            message.saturating_mul(about.size.filter(|_| parts).unwrap_or(1))
        });
        rows.push([
            about.group.as_str().into(),
            step.into(),
            (*place).into(),
            collective.as_str().into(),
            about.size.into(),
            message.into(),
            model.events.starts[row as usize].into(),
            model.events.durs[row as usize].into(),
        ]);
    }
    rows.finish()
}

/// What a trace says of a communication kernel.
#[derive(Default)]
struct Said {
    group: String,
    collective: Option<String>,
    size: Option<i64>,
    message: Option<i64>,
    /// Whether the message is a rank's share.
    of_rank: bool,
}

/// What PyTorch says of a collective: its profiler writes it with the kernel and with the operator
/// `record_param_comms`, a recording of ours with that alone.
fn said(model: &Model<'_>, keys: &Keys, row: u32) -> Option<Said> {
    let text = |key| model.arg(row, key).map(|value| model.plain(value));
    let name = text(keys.group)?;
    let elements = model.int(row, keys.input).max(model.int(row, keys.output));
    let width = text(keys.dtype).and_then(|dtype| bytes_of(&dtype));
    Some(Said {
        group: text(keys.ranks).map_or(name.clone(), |ranks| format!("{name} {ranks}")),
        collective: text(keys.collective),
        size: model.int(row, keys.size),
        message: elements.zip(width).map(|(n, width)| n.saturating_mul(width)),
        of_rank: false,
    })
}

/// What NCCL itself says with NVTX, around the launches of its kernels.
struct Communicators {
    id: Option<StrId>,
    message: Option<StrId>,
    sizes: HashMap<String, i64>,
}

impl Communicators {
    fn of(model: &Model<'_>) -> Communicators {
        let find = |name| model.trace.strings.find(name);
        let (id, size) = (find("NCCL communicator ID"), find("No. of ranks"));
        let mut sizes = HashMap::new();
        if id.is_some() && size.is_some() {
            for row in 0..model.events.len() as u32 {
                if let (Some(id), Some(size)) = (model.arg(row, id), model.int(row, size)) {
                    sizes.insert(model.plain(id), size);
                }
            }
        }
        Communicators { id, message: find("Message size [bytes]"), sizes }
    }

    fn said(&self, model: &Model<'_>, row: u32) -> Option<Said> {
        self.id?;
        let call = model.peers().get(row)?;
        let mut around = model.calls().callers(call);
        let (range, id) = around.find_map(|row| Some((row, model.arg(row, self.id)?)))?;
        let id = model.plain(id);
        Some(Said {
            size: self.sizes.get(&id).copied(),
            group: format!("communicator {id}"),
            collective: None,
            message: model.int(range, self.message),
            of_rank: true,
        })
    }
}

/// What a kernel's name says that it does: `AllReduce` in `ncclDevKernel_AllReduce_Sum_f32…`.
fn of_kernel(name: &str) -> String {
    const KINDS: [(&str, &str); 8] = [
        ("AllReduce", "all_reduce"),
        ("all_reduce", "all_reduce"),
        ("AllGather", "all_gather"),
        ("ReduceScatter", "reduce_scatter"),
        ("SendRecv", "send_recv"),
        ("AllToAll", "all_to_all"),
        ("Broadcast", "broadcast"),
        ("Reduce", "reduce"),
    ];
    let kind = KINDS.iter().find(|(part, _)| name.contains(part));
    kind.map_or_else(|| crate::names::shorten(name), |(_, kind)| (*kind).to_owned())
}

/// The size of an element, by the name that PyTorch gives its type.
fn bytes_of(dtype: &str) -> Option<i64> {
    Some(match dtype {
        "Double" | "Long" | "ComplexFloat" => 8,
        "Float" | "Int" => 4,
        "Half" | "BFloat16" | "Short" => 2,
        "Byte" | "Char" | "Bool" => 1,
        _ if dtype.starts_with("Float8") => 1,
        _ => return None,
    })
}

/// A rank's share of a collective.
#[derive(Clone, Copy)]
struct Share {
    rank: i64,
    duration: i64,
    start: i64,
    size: Option<i64>,
    message: Option<i64>,
}

/// Group, step, place, what it does; the rank, where ranks cannot be compared.
type Key<'a> = (&'a str, i64, i64, &'a str, Option<i64>);

fn shares(parts: &[Part]) -> BTreeMap<Key<'_>, Vec<Share>> {
    // How many each rank has of a group and step.
    let mut counts: BTreeMap<(&str, i64), BTreeMap<i64, u64>> = BTreeMap::new();
    for part in parts {
        let cells = Cells::of(&part.batch);
        for row in 0..part.batch.num_rows() {
            let group = cells.text("group", row).unwrap_or_default();
            let of = counts.entry((group, cells.int("step", row).unwrap_or(-1))).or_default();
            *of.entry(part.rank).or_default() += 1;
        }
    }
    let differ = |group: &str, step: i64| {
        counts.get(&(group, step)).is_some_and(|of| {
            let mut of = of.values();
            let first = of.next();
            of.any(|count| Some(count) != first)
        })
    };
    let mut shares: BTreeMap<Key<'_>, Vec<Share>> = BTreeMap::new();
    for part in parts {
        let cells = Cells::of(&part.batch);
        for row in 0..part.batch.num_rows() {
            let int = |column| cells.int(column, row);
            let text = |column| cells.text(column, row).unwrap_or_default();
            let number = |column| int(column).unwrap_or(-1);
            let (group, step) = (text("group"), number("step"));
            let alone = differ(group, step).then_some(part.rank);
            let key = (group, step, number("sequence"), text("collective"), alone);
            shares.entry(key).or_default().push(Share {
                rank: part.rank,
                duration: int("duration").unwrap_or(0),
                start: int("ts").unwrap_or(0),
                size: int("group_size"),
                message: int("message"),
            });
        }
    }
    shares
}

fn over_ranks(_: &Metric, parts: &[Part], _: &Options) -> Result<RecordBatch, Error> {
    let shares = shares(parts);
    if shares.is_empty() {
        return Err(Error::Nothing("there are no communication kernels".to_owned()));
    }
    let mut rows = Rows::new(COLUMNS);
    for ((group, step, sequence, collective, _), shares) in shares {
        let Some(last) = last_of(&shares) else { continue };
        let waits = shares.iter().map(|share| share.duration - last.duration);
        let size = shares.iter().find_map(|share| share.size);
        let message = shares.iter().filter_map(|share| share.message).max();
        let speed = message.filter(|_| last.duration > 0);
        let speed = speed.map(|bytes| bytes as f64 / last.duration as f64);
        let links = size.map_or(1.0, |n| links(collective, n as f64));
        rows.push([
            group.into(),
            step.into(),
            sequence.into(),
            collective.into(),
            shares.len().into(),
            size.into(),
            message.into(),
            shares.iter().map(|share| share.start).min().into(),
            last.duration.into(),
            waits.clone().max().into(),
            waits.sum::<i64>().into(),
            Some(last.rank).filter(|_| shares.len() > 1).into(),
            speed.into(),
            speed.map(|speed| speed * links).into(),
        ]);
    }
    rows.finish()
}

/// The share of the rank that came last: the shortest.
fn last_of(shares: &[Share]) -> Option<Share> {
    shares.iter().copied().min_by_key(|share| (share.duration, share.rank))
}

/// What a link carries for each byte of the message of a collective of `n` ranks.
pub fn links(collective: &str, n: f64) -> f64 {
    match collective {
        _ if n <= 1.0 => 1.0,
        "all_reduce" | "allreduce" | "allreduce_coalesced" => 2.0 * (n - 1.0) / n,
        _ if collective.contains("all_gather") || collective.contains("allgather") => (n - 1.0) / n,
        _ if collective.contains("reduce_scatter") => (n - 1.0) / n,
        _ if collective.contains("all_to_all") || collective.contains("alltoall") => (n - 1.0) / n,
        _ => 1.0,
    }
}

/// What a rank spent on a collective that is compared over ranks.
pub(super) struct Spent {
    pub(super) rank: i64,
    pub(super) step: i64,
    pub(super) collective: String,
    pub(super) message: Option<i64>,
    pub(super) transfer: i64,
    pub(super) wait: i64,
}

/// What each rank spent on each collective that several ranks have.
pub(super) fn compared(parts: &[Part]) -> Vec<Spent> {
    let mut spent = Vec::new();
    for ((_, step, _, collective, _), shares) in shares(parts) {
        let Some(last) = last_of(&shares).filter(|_| shares.len() > 1) else { continue };
        spent.extend(shares.iter().map(|share| Spent {
            rank: share.rank,
            step,
            collective: collective.to_owned(),
            message: share.message,
            transfer: last.duration,
            wait: share.duration - last.duration,
        }));
    }
    spent
}

/// How often each rank came last, how long others waited then, and how long it waited itself:
/// the table of [`super::stragglers`].
pub(super) fn waits(metric: &Metric, parts: &[Part]) -> Result<RecordBatch, Error> {
    let mut ranks: BTreeMap<i64, (i64, i64, i64)> =
        parts.iter().map(|part| (part.rank, (0, 0, 0))).collect();
    let mut compared = false;
    for shares in shares(parts).into_values().filter(|shares| shares.len() > 1) {
        let Some(last) = last_of(&shares) else { continue };
        compared = true;
        let mut sum = 0;
        for share in &shares {
            let waited = share.duration - last.duration;
            sum += waited;
            ranks.entry(share.rank).or_default().2 += waited;
        }
        let of_last = ranks.entry(last.rank).or_default();
        of_last.0 += 1;
        of_last.1 += sum;
    }
    if !compared {
        let what = "no collective is in the traces of several ranks, so none can be compared";
        return Err(Error::Nothing(what.to_owned()));
    }
    let mut ranks: Vec<_> = ranks.into_iter().collect();
    ranks.order_by_key(|(rank, (_, waited_for, _))| (std::cmp::Reverse(*waited_for), *rank));
    let mut rows = Rows::new(metric.columns);
    for (rank, (times, waited_for, waited)) in ranks {
        rows.push([rank.into(), times.into(), waited_for.into(), waited.into()]);
    }
    rows.finish()
}
