//! Samples of stacks into slices: a function lasts for as long as each sample has it where the
//! one before had it.

use crate::trace::{ArgsId, Nanos, Slice, SliceId, StrId, Trace, TrackId};

/// A function on a stack.
pub(crate) type Frame = (StrId, Option<ArgsId>);

/// The stack of one thread.
#[derive(Debug)]
pub(crate) struct Stack {
    track: TrackId,
    category: StrId,
    open: Vec<(Frame, SliceId, i64)>,
    /// When the last sample ends.
    until: i64,
}

impl Stack {
    pub(crate) fn new(track: TrackId, category: StrId) -> Stack {
        Stack { track, category, open: Vec::new(), until: i64::MIN }
    }

    /// A sample, which counts from `start` to `end`; the outermost function first. Samples come
    /// in the order of time; of one that overlaps the last, what overlaps is that one's.
    pub(crate) fn sample(&mut self, trace: &mut Trace, (start, end): (i64, i64), frames: &[Frame]) {
        let start = start.max(self.until);
        let both = self.open.iter().zip(frames).take_while(|(open, frame)| open.0 == **frame);
        let same = if start > self.until { 0 } else { both.count() };
        self.close(trace, same, self.until);
        for frame in &frames[same..] {
            self.push(trace, *frame, start);
        }
        self.until = start.max(end);
    }

    /// A function begins.
    pub(crate) fn push(&mut self, trace: &mut Trace, frame: Frame, start: i64) {
        let slice = Slice::new(self.track, Nanos(start), Nanos::UNFINISHED);
        let (name, args) = frame;
        let id = trace.slices.push(Slice { name, args, category: self.category, ..slice });
        self.open.push((frame, id, start));
    }

    /// Functions beyond the first `keep` end.
    pub(crate) fn close(&mut self, trace: &mut Trace, keep: usize, end: i64) {
        for (_, slice, start) in self.open.drain(keep.min(self.open.len())..) {
            trace.slices.set_dur(slice, Nanos(end.saturating_sub(start).max(0)));
        }
    }

    /// How many functions are open.
    pub(crate) fn depth(&self) -> usize {
        self.open.len()
    }

    /// The innermost function that is open.
    pub(crate) fn innermost(&self) -> Option<Frame> {
        self.open.last().map(|open| open.0)
    }

    /// All functions end with the last sample.
    pub(crate) fn finish(mut self, trace: &mut Trace) {
        self.close(trace, 0, self.until);
    }
}

/// How long each of these samples counts: until the next one, or as long as samples usually do,
/// if that is much less: the thread did not run in between.
pub(crate) fn ends(times: &[i64]) -> Vec<i64> {
    let mut gaps: Vec<i64> = times
        .windows(2)
        .map(|pair| pair[1].saturating_sub(pair[0]))
        .filter(|gap| *gap > 0)
        .collect();
    let usual = if gaps.is_empty() {
        1
    } else {
        let middle = gaps.len() / 2;
        *gaps.select_nth_unstable(middle).1
    };
    let next = |at: usize| times.get(at + 1).copied();
    let end = |(at, time): (usize, &i64)| match next(at) {
        Some(next) if next.saturating_sub(*time) <= usual.saturating_mul(PAUSE) => next,
        _ => time.saturating_add(usual),
    };
    times.iter().enumerate().map(end).collect()
}

/// So many times the usual distance of two samples, and the thread did something else.
const PAUSE: i64 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_last_while_samples_have_them() {
        let mut trace = Trace::default();
        let track = trace.track(None, "t");
        let [main, work, wait] =
            ["main", "work", "wait"].map(|name| (trace.strings.intern(name), None));
        let mut stack = Stack::new(track, StrId::NONE);
        stack.sample(&mut trace, (0, 10), &[main, work]);
        stack.sample(&mut trace, (10, 20), &[main, work]);
        stack.sample(&mut trace, (20, 30), &[main, wait]);
        stack.sample(&mut trace, (50, 60), &[main]);
        stack.finish(&mut trace);
        let slices: Vec<_> = trace
            .slices
            .iter()
            .map(|slice| (trace.strings.get(slice.name), slice.start.0, slice.dur.0))
            .collect();
        let wanted = [("main", 0, 30), ("work", 0, 20), ("wait", 20, 10), ("main", 50, 10)];
        assert_eq!(slices, wanted);
    }

    #[test]
    fn a_sample_counts_until_the_next_one_or_as_long_as_usual() {
        assert_eq!(ends(&[0, 10, 20, 100, 110]), [10, 20, 30, 110, 120]);
        assert_eq!(ends(&[5]), [6]);
        assert!(ends(&[]).is_empty());
    }
}
