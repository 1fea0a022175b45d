//! What processes saw without recording it: from this `kymo record` tells why there is nothing
//! of something.
//!
//! Bits that are only ever set. A recorded process sets them in its arena, from where the
//! collector takes them.

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
    /// A program that had no memory left when it first used what is recorded.
    Memory = 2,
}

impl LeftOut {
    /// Its bit.
    pub(crate) fn bit(self) -> u64 {
        1 << self as u64
    }
}

/// Patterns of an option that are told apart.
pub const MAX_PATTERNS: usize = 64;

impl Page {
    /// Something is called as these patterns of an option say: bit n is the n-th.
    pub(crate) fn match_patterns(&self, option: Patterns, bits: u64) {
        self.patterns[option as usize].fetch_or(bits, Relaxed);
    }

    /// The patterns of an option that something was called by.
    pub fn matched(&self, option: Patterns) -> u64 {
        self.patterns[option as usize].load(Relaxed)
    }

    /// What these bits say is left out.
    pub(crate) fn leave_out(&self, bits: u64) {
        self.observed.fetch_or(bits, Relaxed);
    }

    /// Whether something of this kind was left out.
    pub fn left_out(&self, what: LeftOut) -> bool {
        self.observed.load(Relaxed) & what.bit() != 0
    }
}
