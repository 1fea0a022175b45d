//! Nanoseconds.

use std::fmt;
use std::ops::{Add, Sub};

/// Nanoseconds: a moment of the trace's clock ([`super::Facts::readings`] relates it to
/// others), or the time between two.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Nanos(pub i64);

impl Nanos {
    /// The duration of what has not ended.
    pub const UNFINISHED: Nanos = Nanos(-1);

    /// Whether this is the duration of something that has ended.
    pub fn is_finished(self) -> bool {
        self.0 >= 0
    }
}

impl Add for Nanos {
    type Output = Nanos;

    /// Stays at the largest or smallest value instead of wrapping.
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl Sub for Nanos {
    type Output = Nanos;

    /// Stays at the largest or smallest value instead of wrapping.
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns", self.0)
    }
}
