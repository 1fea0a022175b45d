//! The system's clocks, and how another one compares with them.

/// A clock of the system in nanoseconds.
pub(crate) fn system(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable, and the clocks used here exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The clock of our recordings.
pub(crate) fn boottime() -> u64 {
    system(libc::CLOCK_BOOTTIME)
}

/// The same moment on two clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Both {
    pub(crate) theirs: u64,
    pub(crate) ours: u64,
    /// How long it took to read them: they are compared no better than that.
    pub(crate) width: u64,
}

impl Both {
    /// What our clock is more.
    pub(crate) fn offset(self) -> i64 {
        self.ours.wrapping_sub(self.theirs) as i64
    }
}

/// Compares two clocks so many times; the closest comparison counts. None if theirs never
/// says what time it is.
pub(crate) fn compare(
    times: u32,
    ours: impl Fn() -> u64,
    theirs: impl Fn() -> Option<u64>,
) -> Option<Both> {
    let once = |_| {
        let before = ours();
        let theirs = theirs();
        let width = ours().wrapping_sub(before);
        Some(Both { theirs: theirs?, ours: before.wrapping_add(width / 2), width })
    };
    (0..times).filter_map(once).min_by_key(|both| both.width)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn the_closest_of_several_comparisons_counts() {
        // Reading theirs takes 9, 4, 1 and 6; the third time it fails.
        let (now, took) = (Cell::new(1_000), Cell::new(0));
        let ours = || now.get();
        let theirs = || {
            let nanos = [9, 4, 1, 6][took.replace(took.get() + 1)];
            now.set(now.get() + nanos);
            (nanos != 1).then(|| now.get() + 5_000)
        };
        let both = compare(4, ours, theirs);
        assert_eq!(both, Some(Both { theirs: 6_013, ours: 1_011, width: 4 }));
        assert_eq!(both.map(Both::offset), Some(-5_002));
        assert_eq!(compare(3, boottime, || None), None);
    }
}
