//! What processes saw without recording it: from this `kymo record` tells why there is nothing
//! of something.
//!
//! Bits that are only ever set, by whoever sees it first.

use super::Page;
use std::sync::atomic::Ordering::Relaxed;

/// Options that are lists of patterns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Patterns {
    /// `CATEGORIES`: those that are to be recorded.
    Categories = 0,
    /// `DUMP_ON`: names of slices.
    Slow = 1,
}

/// Something that was left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeftOut {
    /// A category that `CATEGORIES` does not take.
    Category = 0,
    /// A daemon thread of a Python program, whose operators are not recorded.
    DaemonThread = 1,
}

/// Patterns of an option that are told apart.
pub const MOST_PATTERNS: usize = 64;

impl Page {
    /// Something is called as these patterns of an option say: bit n is the n-th.
    pub(crate) fn match_patterns(&self, option: Patterns, bits: u64) {
        let matched = &self.layout().patterns[option as usize];
        if bits & !matched.load(Relaxed) != 0 {
            matched.fetch_or(bits, Relaxed);
        }
    }

    /// The patterns of an option that something was called by.
    pub fn matched(&self, option: Patterns) -> u64 {
        self.layout().patterns[option as usize].load(Relaxed)
    }

    /// Something is left out.
    pub(crate) fn leave_out(&self, what: LeftOut) {
        let observed = &self.layout().observed;
        let bit = 1 << what as u64;
        if observed.load(Relaxed) & bit == 0 {
            observed.fetch_or(bit, Relaxed);
        }
    }

    /// Whether something of this kind was left out.
    pub fn left_out(&self, what: LeftOut) -> bool {
        self.layout().observed.load(Relaxed) & 1 << what as u64 != 0
    }
}
