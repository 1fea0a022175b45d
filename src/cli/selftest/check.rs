//! What a trace says, compared with what was done.

use super::Vendor;
use super::keys::{self, Key};
use super::truth::{Kind, Op, Range, Truth};
use kymograph_converters::order::Order as _;
use kymograph_converters::trace::{Activity, EventRef, SliceId, Trace, TrackKind, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// One comparison.
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) good: bool,
    pub(super) detail: String,
}

impl Check {
    pub(super) fn good(name: &'static str, detail: impl Into<String>) -> Check {
        Check { name, good: true, detail: detail.into() }
    }

    pub(super) fn bad(name: &'static str, detail: impl Into<String>) -> Check {
        Check { name, good: false, detail: detail.into() }
    }

    /// Good if nothing is wrong; otherwise how much is, and the first.
    fn of(name: &'static str, all: usize, wrong: &[String]) -> Check {
        match wrong.first() {
            None => Check::good(name, format!("{all}")),
            Some(first) => Check::bad(name, format!("{} of {all} wrong: {first}", wrong.len())),
        }
    }
}

/// How far a device's clock may be off.
const SLACK: i64 = 300_000;

/// How far a slice of the program's own thread may be: it is stamped with our clock.
const EXACT: i64 = 1_000;

/// An activity of the trace, and what it says.
struct Found {
    key: Key,
    device: u64,
    /// What tells its stream: its row, or what Synapse says.
    stream: String,
    start: i64,
    end: i64,
    /// The call that it has its arrow from: its time, and its thread if it lies on one.
    call: Option<(SliceId, i64, Option<i64>)>,
}

/// All comparisons.
pub(super) fn all(vendor: Vendor, truth: &Truth, trace: &Trace) -> Vec<Check> {
    let found = activities(vendor, trace);
    let keys: Vec<Key> = found.iter().map(|one| one.key.clone()).collect();
    let known = keys::done(vendor, truth, &keys);
    let mut pairs: Vec<(&Op, &Found)> = Vec::new();
    let mut checks = matched(vendor, truth, &known, &found, &mut pairs);
    checks.push(streams(&pairs));
    checks.push(arrows(vendor, &pairs));
    checks.push(times(&pairs));
    checks.push(annotations(&truth.ranges, &ranges(trace)));
    checks.push(losses(vendor, trace));
    if let Some(reported) = truth.reported {
        let kernels = truth.ops.iter().filter(|op| op.kind == Kind::Kernel).count() as u64;
        checks.push(match reported == kernels {
            true => Check::good("its own", format!("{reported} kernels")),
            false => Check::bad(
                "its own",
                format!("the program's own profiler got {reported} kernels of {kernels}"),
            ),
        });
    }
    checks
}

/// Work of the truth with that of the trace: counts, names, grids, bytes. Work of one key (a
/// graph's) belongs together in the order of time.
fn matched<'a>(
    vendor: Vendor,
    truth: &'a Truth,
    known: &[Key],
    found: &'a [Found],
    pairs: &mut Vec<(&'a Op, &'a Found)>,
) -> Vec<Check> {
    // Devices have numbers of their own in traces: sizes repeat on each.
    let mut there: BTreeMap<(u64, &Key), Vec<&Found>> = BTreeMap::new();
    for one in found {
        there.entry((one.device, &one.key)).or_default().push(one);
    }
    there.values_mut().for_each(|all| all.order_by_key(|one| one.start));
    let devices: BTreeSet<u64> = found.iter().map(|one| one.device).collect();
    let devices: Vec<u64> = devices.into_iter().collect();
    let mut done: BTreeMap<(u32, &Key), Vec<&Op>> = BTreeMap::new();
    for (op, key) in truth.ops.iter().zip(known) {
        done.entry((op.device, key)).or_default().push(op);
    }
    let mut wrong: BTreeMap<Kind, (usize, Vec<String>)> = BTreeMap::new();
    for ((device, key), ops) in done {
        let number = devices.get(device as usize).copied().unwrap_or(u64::MAX);
        let all = there.remove(&(number, key)).unwrap_or_default();
        let (count, problems) = wrong.entry(key.0).or_default();
        *count += ops.len();
        let parts = if vendor.splits_work() { (all.len() / ops.len()).max(1) } else { 1 };
        if all.len() != ops.len() * parts {
            let what = format!("{} {} of size {}", key.0.name(), key.1, key.2);
            problems.push(format!("{what} is there {} times, not {}", all.len(), ops.len()));
        } else {
            let each = ops.into_iter().flat_map(|op| std::iter::repeat_n(op, parts));
            pairs.extend(each.zip(all));
        }
    }
    for (kind, name, size) in there.keys().map(|(_, key)| key) {
        let (_, problems) = wrong.entry(*kind).or_default();
        problems.push(format!("{} {name} of size {size} was never done", kind.name()));
    }
    let mut checks = Vec::new();
    for (kind, (count, problems)) in wrong {
        let name = match kind {
            Kind::Kernel => "kernels",
            Kind::Set => "sets",
            _ => kind.name(),
        };
        checks.push(Check::of(name, count, &problems));
    }
    checks
}

/// Each stream has one row, and each row one stream.
fn streams(pairs: &[(&Op, &Found)]) -> Check {
    let (mut rows, mut wrong) = (BTreeMap::new(), Vec::new());
    let mut streams: BTreeMap<(u64, &str), (u32, u32)> = BTreeMap::new();
    for (op, found) in pairs {
        let row = (found.device, found.stream.as_str());
        let stream = (op.device, op.stream);
        let known = *rows.entry(stream).or_insert(row);
        let whose = *streams.entry(row).or_insert(stream);
        if known != row || whose != stream {
            wrong.push(format!(
                "{} {} of stream {} of device {} lies on {}",
                op.kind.name(),
                op.size,
                op.stream,
                op.device,
                found.stream
            ));
        }
    }
    let mut check = Check::of("streams", pairs.len(), &wrong);
    if check.good {
        check.detail = format!("{}, never mixed", rows.len());
    }
    check
}

/// Each piece of work has an arrow from the call that asked for it.
fn arrows(vendor: Vendor, pairs: &[(&Op, &Found)]) -> Check {
    let mut calls = HashMap::new();
    let wrong = pairs.iter().filter_map(|(op, found)| {
        let what = format!("{} {}", op.kind.name(), op.size);
        let Some((call, time, thread)) = found.call else {
            let wanted = op.kind == Kind::Kernel || vendor.always_has_arrows();
            return wanted.then(|| format!("{what} has none"));
        };
        if *calls.entry(call).or_insert(op.asked) != op.asked {
            return Some(format!("{what} has the one of other work"));
        }
        let inside = time >= op.asked.0 as i64 - SLACK && time <= op.asked.1 as i64 + SLACK;
        // Two calls of one thread are never so near that they could be taken for each other.
        let exact = time >= op.asked.0 as i64 - EXACT && time <= op.asked.1 as i64 + EXACT;
        match thread {
            Some(thread) if thread != op.thread as i64 => {
                Some(format!("{what} has one from another thread"))
            }
            // A call on its thread's own row has our clock.
            Some(_) if exact => None,
            None if inside => None,
            _ => {
                let off = time - op.asked.0 as i64;
                Some(format!("{what} has one from a call {off} ns after it was asked for"))
            }
        }
    });
    Check::of("arrows", pairs.len(), &wrong.collect::<Vec<_>>())
}

/// Work happens after it was asked for, and before it was known to be done.
fn times(pairs: &[(&Op, &Found)]) -> Check {
    let wrong = pairs.iter().filter_map(|(op, found)| {
        let early = op.asked.0 as i64 - found.start;
        let late = found.end - op.done as i64;
        let (off, how) = if early > late {
            (early, "before it was asked for")
        } else {
            (late, "after it was done")
        };
        let what = format!("{} {}", op.kind.name(), op.size);
        (off > SLACK).then(|| format!("{what} is {off} ns {how}"))
    });
    Check::of("times", pairs.len(), &wrong.collect::<Vec<_>>())
}

/// A range as the trace has it: its name, the thread on whose row it lies, its times.
struct Annotated {
    name: String,
    thread: Option<i64>,
    start: i64,
    end: i64,
}

/// Each annotation is there once, on its thread, from when it was begun to when it was ended:
/// around the calls that were made meanwhile.
fn annotations(truth: &[Range], found: &[Annotated]) -> Check {
    let wrong = truth.iter().filter_map(|range| {
        let name = &range.name;
        let mut there = found.iter().filter(|one| one.name == *name);
        let (Some(one), None) = (there.next(), there.next()) else {
            let times = found.iter().filter(|one| one.name == *name).count();
            return Some(format!("{name} is there {times} times"));
        };
        if one.thread != Some(range.thread as i64) {
            return Some(format!("{name} is not on the row of its thread"));
        }
        let near = |time: i64, (from, to): (u64, u64)| {
            time >= from as i64 - EXACT && time <= to as i64 + EXACT
        };
        let (begins, ends) = (near(one.start, range.begun), near(one.end, range.ended));
        let off = [one.start - range.begun.0 as i64, one.end - range.ended.0 as i64];
        (!(begins && ends)).then(|| format!("{name} begins and ends {off:?} ns off"))
    });
    Check::of("ranges", truth.len(), &wrong.collect::<Vec<_>>())
}

/// Annotations of the work on threads; on devices they are shown once more.
fn ranges(trace: &Trace) -> Vec<Annotated> {
    let slices = trace.slices.iter().filter_map(|slice| {
        let name = trace.strings.get(slice.name);
        let thread = match trace.tracks[slice.track].kind {
            TrackKind::Thread(thread) => Some(trace.threads[thread].tid),
            _ => None,
        };
        let ours = thread.is_some() && name.starts_with("kymo_selftest_");
        let (start, end) = (slice.start.0, slice.end()?.0);
        ours.then(|| Annotated { name: name.to_owned(), thread, start, end })
    });
    slices.collect()
}

/// The trace says itself that something is missing.
fn losses(vendor: Vendor, trace: &Trace) -> Check {
    let mut said: Vec<String> =
        trace.facts.losses.iter().map(|loss| format!("{} {}", loss.count, loss.what)).collect();
    for (key, value) in facts(trace) {
        let own = key.starts_with(vendor.name());
        let lost = own && key.contains(".lost.") && value != "0";
        if lost || (own && key.ends_with(".not_recorded")) {
            said.push(format!("{key}: {value}"));
        }
    }
    match said.is_empty() {
        true => Check::good("losses", "none"),
        false => Check::bad("losses", said.join("; ")),
    }
}

/// What the trace says of itself.
pub(super) fn facts(trace: &Trace) -> Vec<(String, String)> {
    let text = |value: &Value| match value {
        Value::Str(text) | Value::Json(text) => trace.strings.get(*text).to_owned(),
        Value::U64(number) => number.to_string(),
        Value::I64(number) => number.to_string(),
        other => format!("{other:?}"),
    };
    let facts = trace.facts.metadata.iter();
    facts.map(|(key, value)| (trace.strings.get(*key).to_owned(), text(value))).collect()
}

fn activities(vendor: Vendor, trace: &Trace) -> Vec<Found> {
    let mut calls: HashMap<usize, SliceId> = HashMap::new();
    for arrow in trace.launch_arrows() {
        if let (EventRef::Slice(from), EventRef::Activity(to)) = (arrow.from, arrow.to) {
            calls.insert(to.index(), from);
        }
    }
    let rows = trace.activities.iter().enumerate();
    rows.filter_map(|(row, activity)| {
        let key = keys::of(vendor, trace, &activity)?;
        Some(found(trace, key, &activity, calls.get(&row).copied()))
    })
    .collect()
}

fn found(trace: &Trace, key: Key, activity: &Activity, call: Option<SliceId>) -> Found {
    let queue = &trace.queues[activity.queue];
    let call = call.map(|id| {
        let slice = trace.slices.get(id);
        let thread = match trace.tracks[slice.track].kind {
            TrackKind::Thread(thread) => Some(trace.threads[thread].tid),
            _ => None,
        };
        (id, slice.start.0, thread)
    });
    // Of Gaudi, rows are engines.
    let said = keys::text(trace, activity, "streamHandle");
    Found {
        key,
        device: trace.devices[queue.device].number as u64,
        stream: said.unwrap_or(trace.strings.get(queue.name)).to_owned(),
        start: activity.start.0,
        end: activity.end().0,
        call,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_are_found_where_they_were() {
        let (begun, ended) = ((10_000, 10_200), (50_000, 50_100));
        let truth = [Range { name: "r".into(), thread: 7, begun, ended }];
        let one = |thread, start, end| Annotated { name: "r".into(), thread, start, end };
        let good = one(Some(7), 10_100, 50_050);
        assert!(annotations(&truth, &[good]).good);
        for (found, why) in [
            (vec![], "is there 0 times"),
            (vec![one(Some(7), 10_100, 50_050), one(Some(7), 10_100, 50_050)], "2 times"),
            (vec![one(Some(8), 10_100, 50_050)], "not on the row of its thread"),
            (vec![one(Some(7), 8_000, 50_050)], "-2000"),
            (vec![one(Some(7), 10_100, 52_000)], "2000"),
        ] {
            let check = annotations(&truth, &found);
            assert!(!check.good && check.detail.contains(why), "{why}: {}", check.detail);
        }
    }
}
