//! Arrows from operators to the nodes that compute their gradients.
//!
//! Autograd counts the nodes that a thread creates. An operator shows the number that the next
//! node will have, a node its own, and the thread that created it. All that runs between two
//! nodes shows the same number, and the node belongs to the last of them: Kineto's rule. Here
//! each operator that shows a number begins a flow of its own, and a table keeps the flow of the
//! last one. The node ends that flow; the others lead nowhere and are not drawn. No end is sent
//! without its beginning, nor twice.
//!
//! The table has room for the latest 32768 numbers. A graph of more nodes than that loses the
//! arrows of its first ones.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::annotate::{mix, of_process};

const SLOTS: usize = 1 << 15;

/// By the number: a hash of the thread and the number, and in the lower bits which operator
/// showed it. 0: none.
static TABLE: [AtomicU64; SLOTS] = [const { AtomicU64::new(0) }; SLOTS];
static CANDIDATES: AtomicU64 = AtomicU64::new(1);
const CANDIDATE: u64 = (1 << 32) - 1;

fn key(thread: u64, sequence: i64) -> u64 {
    mix(mix(thread) ^ sequence.cast_unsigned()) & !CANDIDATE
}

fn slot(sequence: i64) -> &'static AtomicU64 {
    &TABLE[sequence.cast_unsigned() as usize % SLOTS]
}

/// The flow that an operator begins which shows this number on this thread.
#[inline]
pub(super) fn begin(thread: u64, sequence: i64) -> u64 {
    let candidate = CANDIDATES.fetch_add(1, Ordering::Relaxed) & CANDIDATE;
    let bits = key(thread, sequence) | candidate;
    slot(sequence).store(bits, Ordering::Release);
    of_process(bits)
}

/// The flow that ends in the node of this number, which this thread created; at most once per
/// beginning.
pub(super) fn take(thread: u64, sequence: i64) -> Option<u64> {
    let cell = slot(sequence);
    let bits = cell.load(Ordering::Acquire);
    if bits == 0 || bits & !CANDIDATE != key(thread, sequence) {
        return None;
    }
    cell.compare_exchange(bits, 0, Ordering::AcqRel, Ordering::Relaxed).ok().map(of_process)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_operator_owns_the_number_of_its_thread() {
        let (outer, inner) = (begin(1, 70_000_001), begin(1, 70_000_001));
        assert_ne!(outer, inner);
        assert_eq!(take(2, 70_000_001), None);
        assert_eq!(take(1, 70_000_001), Some(inner));
        assert_eq!(take(1, 70_000_001), None);
        assert_eq!(take(1, 70_000_001 + SLOTS as i64), None);
    }
}
