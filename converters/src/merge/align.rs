//! Clocks by collectives.
//!
//! A collective of all ranks ends on each of them when the last has done its part, within
//! the time that a message takes; so the difference of the ends of one collective on two
//! ranks is that of their clocks, give or take a few microseconds. The median over all
//! collectives is not moved by some that were matched wrongly or ended early.
//!
//! Which collectives are the same, Kineto says by their name, process group and sequence
//! number. Where it does not (PyTorch before 2.5, other producers), kernels of a
//! communication library with one name are taken in the order of time. Traces that begin at
//! different steps have another first one; so the order is also tried with up to
//! [`FURTHEST`] of them left out at the beginning of either, and that is taken for which the
//! differences agree best.
//!
//! Where they do not agree, such as exchanges between two ranks at a time, nothing is moved
//! ([`Collectives::agree`]).
//!
//! Traces that have no collective in common with the first may have some with another that
//! has been aligned: they follow it.

use crate::order::Order as _;
use std::collections::HashMap;
use std::ops::Range;

use super::{Added, Collectives};
use crate::trace::{Activity, ActivityId, Nanos, StrId, Trace, Value};

/// Collectives at the beginning that only one of two traces may have.
const FURTHEST: isize = 64;
/// Pairs that are needed where the order alone matches them.
const FEWEST: usize = 3;

/// What collectives of several ranks have in common.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Key {
    /// The collective's name, or the kernel's.
    name: StrId,
    group: Option<StrId>,
    /// None if only the order tells.
    sequence: Option<i64>,
}

/// The times at which collectives end.
type Ends = HashMap<Key, Vec<i64>>;

/// Aligns all traces that have collectives in common with the first, or with one that has.
pub(super) fn collectives(trace: &Trace, added: &mut [Added]) {
    let names = Names::new(trace);
    let ends: Vec<Ends> = added
        .iter()
        .map(|one| ends(trace, &names, one.rows.activities.clone(), one.part.shift))
        .collect();
    // What is known best about each trace that is not aligned: an offset.
    let mut best: Vec<Option<Collectives>> = vec![None; added.len()];
    let mut waiting: Vec<usize> = (1..added.len()).collect();
    let (mut latest, mut offset) = (0, Nanos(0));
    while !waiting.is_empty() {
        for &one in &waiting {
            let Some(found) = compare(&ends[latest], &ends[one]) else { continue };
            let found = Collectives { offset: found.offset + offset, ..found };
            let rank = |found: Collectives| (found.agree(), found.matched);
            if best[one].is_none_or(|known| rank(found) > rank(known)) {
                best[one] = Some(found);
            }
        }
        let next = waiting
            .iter()
            .enumerate()
            .filter_map(|(at, one)| best[*one].map(|found| (found.matched, at, found)))
            .filter(|(_, _, found)| found.agree())
            .max_by_key(|(matched, at, _)| (*matched, std::cmp::Reverse(*at)));
        let Some((_, at, found)) = next else { break };
        latest = waiting.remove(at);
        offset = found.offset;
        added[latest].part.shift = added[latest].part.shift + found.offset;
        added[latest].part.collectives = Some(found);
    }
    for one in waiting {
        added[one].part.collectives = best[one];
    }
}

/// Names of arguments.
struct Names {
    collective: Option<StrId>,
    group: Option<StrId>,
    sequence: Option<StrId>,
}

impl Names {
    fn new(trace: &Trace) -> Names {
        let find = |name| trace.strings.find(name);
        Names {
            collective: find("Collective name"),
            group: find("Process Group Name"),
            sequence: find("Seq"),
        }
    }
}

fn ends(trace: &Trace, names: &Names, rows: Range<usize>, shift: Nanos) -> Ends {
    let mut ends = Ends::new();
    let mut order: Vec<ActivityId> = rows.map(ActivityId::at).collect();
    order.order_by_key(|id| trace.activities.get(*id).start);
    let mut communicates: HashMap<StrId, bool> = HashMap::new();
    for id in order {
        let activity = trace.activities.get(id);
        let is_one = communicates
            .entry(activity.name)
            .or_insert_with(|| communicates_by_name(trace.strings.get(activity.name)));
        if let Some(key) = key(trace, names, &activity, *is_one) {
            ends.entry(key).or_default().push((activity.end() + shift).0);
        }
    }
    ends
}

fn key(trace: &Trace, names: &Names, activity: &Activity, by_name: bool) -> Option<Key> {
    let arg = |name: Option<StrId>| trace.args.find(activity.args, name?);
    let text = |value| if let Some(Value::Str(text)) = value { Some(text) } else { None };
    let group = text(arg(names.group));
    let sequence = match arg(names.sequence) {
        Some(Value::I64(n)) => Some(n),
        Some(Value::U64(n)) => i64::try_from(n).ok(),
        _ => None,
    };
    match text(arg(names.collective)) {
        // Between two ranks each has numbers of its own.
        Some(name) if ["send", "recv"].contains(&trace.strings.get(name)) => None,
        Some(name) if sequence.is_some() => Some(Key { name, group, sequence }),
        _ if by_name => Some(Key { name: activity.name, group, sequence: None }),
        _ => None,
    }
}

/// Kernels of NCCL, RCCL, oneCCL, HCCL. Their names begin so.
fn communicates_by_name(name: &str) -> bool {
    ["nccl", "rccl", "oneccl", "hccl"].iter().any(|library| {
        name.get(..library.len()).is_some_and(|start| start.eq_ignore_ascii_case(library))
    })
}

/// By how much the second is behind the first.
fn compare(first: &Ends, second: &Ends) -> Option<Collectives> {
    let mut differences = Vec::new();
    for (key, second) in second {
        let Some(first) = first.get(key) else { continue };
        if key.sequence.is_some() {
            // One number may stand for several kernels: they end with the last.
            differences.extend(
                first.iter().max().zip(second.iter().max()).map(|(a, b)| a.saturating_sub(*b)),
            );
        } else {
            differences.extend(in_order(first, second));
        }
    }
    let (offset, spread) = median(&mut differences)?;
    let matched = differences.len() as u64;
    Some(Collectives { offset: Nanos(offset), spread: Nanos(spread), matched })
}

/// The differences of what belongs together by its order, for the number of left-out ones
/// for which they agree best.
fn in_order(first: &[i64], second: &[i64]) -> Vec<i64> {
    let pairs = |left_out: isize| {
        let (a, b) = (left_out.max(0) as usize, (-left_out).max(0) as usize);
        let (first, second) =
            (first.get(a..).unwrap_or_default(), second.get(b..).unwrap_or_default());
        first.iter().zip(second).map(|(a, b)| a.saturating_sub(*b)).collect::<Vec<_>>()
    };
    let fewest = FEWEST.max(first.len().min(second.len()) / 2);
    // None left out, unless that is clearly worse.
    let judged = |left_out: isize| {
        let mut pairs = pairs(left_out);
        let (_, spread) = median(&mut pairs).filter(|_| pairs.len() >= fewest)?;
        Some((if left_out == 0 { spread / 2 } else { spread }, left_out.unsigned_abs(), left_out))
    };
    let best = (-FURTHEST..=FURTHEST).filter_map(judged).min();
    best.map_or_else(Vec::new, |(_, _, left_out)| pairs(left_out))
}

/// The median, and that of the distances from it.
fn median(values: &mut [i64]) -> Option<(i64, i64)> {
    fn middle(values: &mut [i64]) -> Option<i64> {
        let at = values.len().checked_sub(1)? / 2;
        Some(*values.select_nth_unstable(at).1)
    }
    let median = middle(values)?;
    let mut distances: Vec<i64> =
        values.iter().map(|value| value.saturating_sub(median).saturating_abs()).collect();
    Some((median, middle(&mut distances)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends_of(key: Option<i64>, ends: &[i64]) -> Ends {
        let of = |n| Key { name: StrId(1), group: None, sequence: key.map(|key| key + n) };
        let mut all = Ends::new();
        for (n, end) in (0..).zip(ends) {
            all.entry(of(n)).or_default().push(*end);
        }
        all
    }

    #[test]
    fn numbered_collectives_are_compared_by_number() {
        let first = ends_of(Some(10), &[1000, 2000, 3100, 4000]);
        let second = ends_of(Some(11), &[1500, 2601, 3500, 9999]);
        let found = compare(&first, &second).unwrap();
        assert_eq!((found.offset.0, found.spread.0, found.matched), (500, 0, 3));
        assert_eq!(compare(&first, &ends_of(Some(77), &[1])), None);
    }

    #[test]
    fn others_are_compared_in_the_order_in_which_they_agree_best() {
        let beats = [100, 230, 290, 500, 940, 1000, 1700, 1890];
        let first = ends_of(None, &beats[..6]);
        let later: Vec<i64> = beats[2..].iter().map(|end| end - 5000 + end % 3).collect();
        let found = compare(&first, &ends_of(None, &later)).unwrap();
        assert_eq!(found.matched, 4);
        assert!((4997..=5000).contains(&found.offset.0) && found.spread.0 <= 2, "{found:?}");
        // Two say nothing about their order.
        assert_eq!(compare(&ends_of(None, &[1, 2]), &ends_of(None, &[1, 9])), None);
    }
}
