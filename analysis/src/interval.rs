//! Intervals of time: half of all metrics are made of them.
//!
//! An interval is a pair of nanoseconds, beginning and end. It may end before it begins: other
//! tools' rounding makes such, and their arithmetic, which goes on with them, is what
//! [`merge`] and [`sweep`] reproduce. [`union`] and [`intersection`] expect none.

use kymograph_converters::order::Order as _;

/// Beginning and end.
pub type Interval = (i64, i64);

/// Joins intervals that overlap or touch. They must be in the order of their beginnings.
///
/// A new group begins where an interval begins after all ends before it.
pub fn merge(sorted: impl IntoIterator<Item = Interval>) -> Vec<Interval> {
    let mut groups: Vec<Interval> = Vec::new();
    let mut latest = i64::MIN;
    for (start, end) in sorted {
        match groups.last_mut() {
            Some(group) if start <= latest => group.1 = group.1.max(end),
            _ => groups.push((start, end)),
        }
        latest = latest.max(end);
    }
    groups
}

/// The sum of lengths.
pub fn length(intervals: &[Interval]) -> i64 {
    intervals.iter().fold(0i64, |sum, (start, end)| sum.saturating_add(end.saturating_sub(*start)))
}

/// What is in any of two lists of merged intervals.
pub fn union(a: &[Interval], b: &[Interval]) -> Vec<Interval> {
    let mut all = [a, b].concat();
    all.sort_unstable();
    merge(all)
}

/// What is in both of two lists of merged intervals.
pub fn intersection(a: &[Interval], b: &[Interval]) -> Vec<Interval> {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    let mut both = Vec::new();
    while let (Some(&&(a_start, a_end)), Some(&&(b_start, b_end))) = (a.peek(), b.peek()) {
        let (start, end) = (a_start.max(b_start), a_end.min(b_end));
        if start < end {
            both.push((start, end));
        }
        let ended = if a_end <= b_end { &mut a } else { &mut b };
        ended.next();
    }
    both
}

/// What is in the first of two lists of merged intervals and not in the second.
pub fn subtraction(a: &[Interval], b: &[Interval]) -> Vec<Interval> {
    let mut left = Vec::new();
    let mut others = b.iter().peekable();
    for &(mut start, end) in a {
        while let Some(&&(b_start, b_end)) = others.peek() {
            if b_start >= end {
                break;
            }
            if b_start > start {
                left.push((start, b_start));
            }
            start = start.max(b_end);
            if b_end > end {
                break;
            }
            others.next();
        }
        if start < end {
            left.push((start, end));
        }
    }
    left
}

/// How much of the time between two moments merged intervals cover.
pub fn covered(merged: &[Interval], from: i64, to: i64) -> i64 {
    let first = merged.partition_point(|(_, end)| *end <= from);
    let inside = merged[first..].iter().take_while(|(start, _)| *start < to);
    inside.map(|(start, end)| (*end).min(to) - (*start).max(from)).sum()
}

/// For several lists of intervals, how long each combination of them lasts: calls
/// `segment(sum, from, to)` for what lies between any two ends, where `sum` has bit `i` set
/// while an interval of list `i` lasts.
///
/// Intervals that end before they begin take their bit away for as long, so that sums may be
/// negative.
pub fn sweep(lists: &[&[Interval]], mut segment: impl FnMut(i64, i64, i64)) {
    let mut points: Vec<(i64, i64)> = Vec::new();
    for (bit, list) in lists.iter().enumerate() {
        for (start, end) in *list {
            points.push((*start, 1 << bit));
            points.push((*end, -(1 << bit)));
        }
    }
    points.order_by_numbers(|(time, _)| [*time]);
    let mut running = 0;
    for pair in points.windows(2) {
        running += pair[0].1;
        segment(running, pair[0].0, pair[1].0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_touches_is_joined() {
        assert_eq!(merge([(0, 2), (2, 3), (4, 5), (4, 9), (6, 7)]), [(0, 3), (4, 9)]);
        assert_eq!(merge([]), []);
        // A rounded duration of -1 is a group of its own, and counts against the sum.
        assert_eq!(merge([(5, 4), (6, 8)]), [(5, 4), (6, 8)]);
    }

    /// Covered points of a small line.
    fn points(list: &[Interval]) -> Vec<bool> {
        (0..64).map(|at| list.iter().any(|(start, end)| (*start..*end).contains(&at))).collect()
    }

    fn merged() -> impl Strategy<Value = Vec<Interval>> {
        prop::collection::vec((0i64..60, 1i64..9), 0..12).prop_map(|list| {
            let mut list: Vec<_> =
                list.iter().map(|(at, long)| (*at, (at + long).min(64))).collect();
            list.sort_unstable();
            merge(list)
        })
    }

    proptest! {
        #[test]
        fn set_operations_are_those_of_points(a in merged(), b in merged()) {
            let by = |f: fn(bool, bool) -> bool| -> Vec<bool> {
                points(&a).into_iter().zip(points(&b)).map(|(a, b)| f(a, b)).collect()
            };
            prop_assert_eq!(points(&union(&a, &b)), by(|a, b| a || b));
            prop_assert_eq!(points(&intersection(&a, &b)), by(|a, b| a && b));
            prop_assert_eq!(points(&subtraction(&a, &b)), by(|a, b| a && !b));
            let mut time = [0; 4];
            sweep(&[&a, &b], |sum, from, to| time[sum as usize] += to - from);
            prop_assert_eq!(time[3], length(&intersection(&a, &b)));
            prop_assert_eq!(time[1] + time[2] + time[3], length(&union(&a, &b)));
            let inside = points(&a)[10..40].iter().filter(|point| **point).count();
            prop_assert_eq!(covered(&a, 10, 40), inside as i64);
        }
    }
}
