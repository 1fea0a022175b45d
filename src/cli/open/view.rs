//! What the UI shows first: rows that are opened and pinned, and the time that is looked at.

use super::super::{Failure, files};
use super::site;
use kymograph_converters::trace::{Nanos, Trace};
use kymograph_protos::rows;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::time::Duration;

/// Groups that are opened, and rows that stay in sight: expressions over their names.
const OPENED: &str = "^(GPU|Hardware Queues|GPU [0-9]+.* Hardware Queues)$";
const PINNED: &str = "^Steps( · .*)?$";

/// Ranks whose steps are pinned one after the other: links have a length.
const MAX_RANKS: usize = 16;

/// Traces are read for their first step up to this size: what is larger takes too long.
const MAX_BYTES: u64 = 64 << 20;

/// Which time is looked at first.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Time {
    /// The first step of a job with several ranks; else everything.
    First,
    /// Nanoseconds after the trace's first event.
    After(i64, i64),
}

/// Parameters of the link.
pub(super) fn parameters(path: &Path, file: &File, time: Time) -> Result<String, Failure> {
    let small = file.metadata().is_ok_and(|about| about.len() <= MAX_BYTES);
    let trace = match time {
        Time::First if !small => None,
        Time::First => files::read(path, None).ok(),
        Time::After(..) => Some(files::read(path, None)?),
    };
    let ranks = trace.as_ref().map(ranks).unwrap_or_default();
    let pins: Vec<String> =
        pinned(&ranks).iter().map(|rows| command("PinTracksByRegex", rows)).collect();
    let commands = format!("[{},{}]", command("ExpandTracksByRegex", OPENED), pins.join(","));
    let commands = site::escape(commands.as_bytes(), b"");
    let shown = match (time, &trace) {
        (Time::First, Some(trace)) if ranks.len() > 1 => first_step(trace),
        (Time::After(from, to), Some(trace)) => Some(after(trace, from, to)?),
        _ => None,
    };
    let shown =
        shown.map_or_else(String::new, |(from, to)| format!("&visStart={from}&visEnd={to}"));
    Ok(format!("{shown}&startupCommands={commands}"))
}

/// Moments of the trace's clock, which is the UI's.
fn after(trace: &Trace, from: i64, to: i64) -> Result<(i64, i64), Failure> {
    let Some((Nanos(start), Nanos(end))) = trace.time_span() else {
        return Err(Failure("the trace has no events, and so no time to show".to_owned()));
    };
    let (first, last) = (start.saturating_add(from), start.saturating_add(to).min(end));
    if first >= last {
        let length = Duration::from_nanos(end.abs_diff(start));
        return Err(Failure(format!("the trace ends {length:?} after its first event")));
    }
    Ok((first, last))
}

fn command(what: &str, rows: &str) -> String {
    format!("{{\"id\":\"dev.perfetto.{what}\",\"args\":[\"{rows}\"]}}")
}

fn ranks(trace: &Trace) -> BTreeSet<i64> {
    trace.processes.iter().filter_map(|(id, _)| trace.rank(id)).collect()
}

/// Rows are pinned in the order in which commands ask for them, and those of one command as the UI
/// has processes. UIs before that of Perfetto 56 know no order of processes but their own.
fn pinned(ranks: &BTreeSet<i64>) -> Vec<String> {
    match ranks.len() {
        2..=MAX_RANKS => {
            ranks.iter().map(|rank| format!("^{}$", rows::steps(Some(*rank)))).collect()
        }
        _ => vec![PINNED.to_owned()],
    }
}

/// The first step of a job with several ranks, with a little around it: before it, there is
/// much that no two ranks do at the same time.
fn first_step(trace: &Trace) -> Option<(i64, i64)> {
    let named = |name: &str| name.strip_prefix("ProfilerStep").is_some_and(|n| n.starts_with('#'));
    let steps = trace.slices.iter().filter(|slice| named(trace.strings.get(slice.name)));
    let ended = steps.filter_map(|slice| Some((slice.start.0, slice.end()?.0)));
    let (start, end) = ended.min()?;
    let margin = (end - start) / 10;
    Some((start.saturating_sub(margin), end.saturating_add(margin)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymograph_converters::trace::{Slice, StrId, Value};

    #[test]
    fn several_ranks_are_shown_from_their_first_step_on() {
        let mut trace = Trace::default();
        for (pid, start) in [(10, 5_000), (11, 3_000)] {
            let process = trace.process(pid, "python");
            let track = trace.processes[process].track;
            for (name, start) in [("ProfilerStep#0", start), ("ProfilerStep#1", start + 2_000)] {
                let name = trace.strings.intern(name);
                let (category, args) = (StrId::NONE, None);
                let (start, dur) = (Nanos(start), Nanos(1_000));
                trace.slices.push(Slice { track, start, dur, name, category, args });
            }
            let key = trace.strings.intern(&format!("kymograph.{pid}.rank"));
            trace.facts.metadata.push((key, Value::I64(pid)));
        }
        assert_eq!(first_step(&trace), Some((2_900, 4_100)));
        assert_eq!(after(&trace, 100, 1_100).ok(), Some((3_100, 4_100)));
        assert_eq!(after(&trace, 100, i64::MAX).ok(), Some((3_100, 8_000)), "up to the end");
        assert!(after(&trace, 5_000, 6_000).is_err());
        assert_eq!(pinned(&ranks(&trace)), ["^Steps · rank 10$", "^Steps · rank 11$"]);
        assert_eq!(pinned(&BTreeSet::from([3])), [PINNED]);
    }
}
