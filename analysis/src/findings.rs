//! What to do about it: findings from the tables of several metrics, each with its evidence and
//! an estimate of what it costs.
//!
//! A finding is a sentence. It comes from rules over numbers that stand in the tables, and says
//! those numbers, so that it can be checked.

use arrow_array::RecordBatch;

use crate::table::Cells;

/// The metrics whose tables are read.
pub const METRICS: [&str; 6] = [
    "temporal_breakdown",
    "kernel_types",
    "idle_time",
    "comm_comp_overlap",
    "collectives",
    "stragglers",
];

/// Something that can be done.
#[derive(Clone, PartialEq, Debug)]
pub struct Finding {
    /// What is the matter.
    pub what: String,
    /// The numbers that say so.
    pub evidence: String,
    /// What may help.
    pub advice: String,
    /// The time that it costs each rank, in nanoseconds.
    pub cost: i64,
}

/// Shares of a device's time from which on something is worth saying.
const IDLE: f64 = 0.1;
const WAITING: f64 = 0.02;
const EXPOSED: f64 = 0.1;

/// Findings, the costliest first. `tables` has the tables of [`METRICS`], where there are any.
pub fn findings(tables: &[(&str, RecordBatch)]) -> Vec<Finding> {
    let table = |name: &str| tables.iter().find(|(n, _)| *n == name).map(|(_, batch)| batch);
    let mut found = Vec::new();
    if let Some(temporal) = table("temporal_breakdown") {
        found
            .extend(table("stragglers").and_then(|t| straggler(t, temporal, table("collectives"))));
        found.extend(idle(temporal, table("idle_time")));
        found.extend(table("comm_comp_overlap").and_then(|t| exposed(t, temporal)));
    }
    found.sort_by_key(|finding| std::cmp::Reverse(finding.cost));
    found
}

/// The sum of a column.
fn sum(batch: &RecordBatch, column: &str) -> i64 {
    let cells = Cells::of(batch);
    (0..batch.num_rows()).filter_map(|row| cells.int(column, row)).sum()
}

/// The rank that the others wait for.
fn straggler(
    stragglers: &RecordBatch,
    temporal: &RecordBatch,
    collectives: Option<&RecordBatch>,
) -> Option<Finding> {
    let cells = Cells::of(stragglers);
    let int = |column| cells.int(column, 0);
    let (rank, waited_for, times) = (int("rank")?, int("waited_for")?, int("times_last")?);
    let (ranks, all) = (stragglers.num_rows() as i64, sum(stragglers, "waited_for"));
    let times_of = Cells::of(temporal);
    let others = (0..temporal.num_rows()).filter(|row| times_of.int("rank", *row) != Some(rank));
    let whole: i64 = others.filter_map(|row| times_of.int("kernel_time", row)).sum();
    let share = waited_for as f64 / whole as f64;
    if ranks < 2 || waited_for * 2 < all || share < WAITING {
        return None;
    }
    let of = sum(stragglers, "times_last");
    let longest = collectives.and_then(longest_wait).unwrap_or_default();
    let (why, advice) = why_late(rank, temporal);
    Some(Finding {
        what: format!("the other ranks wait for rank {rank}"),
        evidence: format!(
            "it came last to {times} of {of} collectives; the others waited {} for it, {} of their \
             time{longest}{why}",
            time(waited_for),
            percent(share)
        ),
        advice,
        cost: waited_for / (ranks - 1),
    })
}

/// The collective that was waited for longest.
fn longest_wait(collectives: &RecordBatch) -> Option<String> {
    let cells = Cells::of(collectives);
    let waited = |row: &usize| cells.int("wait_max", *row);
    let row = (0..collectives.num_rows()).max_by_key(waited)?;
    let (wait, name) = (waited(&row)?, cells.text("collective", row)?);
    let number = cells.int("sequence", row)?;
    let step = match cells.int("step", row)? {
        -1 => String::new(),
        step => format!(" of step {step}"),
    };
    Some(format!("; at most {} for the {name} {number}{step}", time(wait)))
}

/// Whether it was a rank's device that was late, or its host.
fn why_late(late: i64, temporal: &RecordBatch) -> (String, String) {
    let cells = Cells::of(temporal);
    let (mut own, mut others, mut count) = ((0.0, 0.0), (0.0, 0.0), 0.0);
    for row in 0..temporal.num_rows() {
        let value = |column| cells.int(column, row).unwrap_or(0) as f64;
        let both = (value("idle_time"), value("compute_time"));
        if cells.int("rank", row) == Some(late) {
            own = both;
        } else {
            others = (others.0 + both.0, others.1 + both.1);
            count += 1.0;
        }
    }
    let (idle, compute) = (own.0 - others.0 / count, own.1 - others.1 / count);
    if idle > compute && idle > 0.0 {
        let why = format!("; its device was idle {} longer than theirs", time(idle as i64));
        (
            why,
            format!("see what the host of rank {late} does: kymo analyze idle_time --rank {late}"),
        )
    } else if compute > 0.0 {
        let why = format!("; its device computed {} longer than theirs", time(compute as i64));
        (why, format!("compare its kernels: kymo analyze kernel_breakdown --sort sum, rank {late}"))
    } else {
        (String::new(), format!("look at rank {late} around its collectives"))
    }
}

/// Devices that have nothing to do.
fn idle(temporal: &RecordBatch, streams: Option<&RecordBatch>) -> Option<Finding> {
    let (idle, whole) = (sum(temporal, "idle_time"), sum(temporal, "kernel_time"));
    let share = idle as f64 / whole as f64;
    if share.is_nan() || share < IDLE {
        return None;
    }
    let mut host = String::new();
    if let Some(streams) = streams {
        let cells = Cells::of(streams);
        let by_host = |row: &usize| cells.text("idle_category", *row) == Some("host_wait");
        let late =
            (0..streams.num_rows()).filter(by_host).filter_map(|row| cells.int("idle_time", row));
        let part = late.sum::<i64>() as f64 / sum(streams, "idle_time") as f64;
        host = format!(
            "; {} of the gaps on streams are there because the host was late",
            percent(part)
        );
    }
    Some(Finding {
        what: "devices are idle".to_owned(),
        evidence: format!("{} of {}, {}{host}", time(idle), time(whole), percent(share)),
        advice: "larger batches, fewer waits for the device, CUDA graphs or torch.compile; \
                 kymo analyze critical_path_summary says what a step waits for"
            .to_owned(),
        cost: idle / (temporal.num_rows() as i64).max(1),
    })
}

/// Communication that nothing hides.
fn exposed(overlap: &RecordBatch, temporal: &RecordBatch) -> Option<Finding> {
    let (all, hidden) = (sum(overlap, "communication"), sum(overlap, "overlap"));
    let (open, whole) = (all - hidden, sum(temporal, "kernel_time"));
    let share = open as f64 / whole as f64;
    if all == 0 || share < EXPOSED {
        return None;
    }
    Some(Finding {
        what: "communication is not hidden behind computing".to_owned(),
        evidence: format!(
            "{} of {} of communication, {} of device time; waiting for late ranks is in it",
            time(open),
            time(all),
            percent(share)
        ),
        advice: "first what makes ranks late; then larger buckets, overlap, fewer bytes: kymo \
                 analyze collectives has bandwidths"
            .to_owned(),
        cost: open / (temporal.num_rows() as i64).max(1),
    })
}

fn time(nanos: i64) -> String {
    match nanos.unsigned_abs() {
        0..10_000 => format!("{nanos} ns"),
        10_000..10_000_000 => format!("{:.1} µs", nanos as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.1} ms", nanos as f64 / 1e6),
        _ => format!("{:.2} s", nanos as f64 / 1e9),
    }
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}
