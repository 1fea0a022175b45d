//! Arrows from PyTorch's operators to their backward nodes.
//!
//! Autograd counts the nodes that a thread creates; an operator shows the number that the
//! next one will have, a node shows its own. So all that runs between two nodes shows the
//! same number: `aten::linear` shows 7, inside of it `aten::t` shows 7 and creates node 7.
//! The operator that owns a number is the *last* one that showed it before the node ran.
//! That is Kineto's rule too, but Kineto draws its arrows when all is over.
//!
//! Here each operator that shows a number begins a flow of its own, and a table keeps the
//! flow of the last one per number. The node ends that flow. The others lead nowhere and
//! are not drawn; no end is ever sent without its beginning, nor twice (an end that
//! begins nowhere is an error in a trace).
//!
//! Sequence numbers are counted per thread, but a node does not say which thread created
//! it, and often runs on another. If two threads showed a number since a node took it,
//! there is no telling, and no arrow.
//!
//! Memory is bounded: the table has room for the latest 8192 numbers. A graph of more
//! nodes than that loses the arrows of its first ones.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::super::table::{mix, pair};
use super::super::thread::Thread;

const SLOTS: usize = 1 << 13;

/// ```text
/// bit  63        43       31              1         0
///      ┌──────────┬────────┬──────────────┬─────────┐
///      │ seq >> 13│ thread │ candidate    │ several │   all zero: free
///      └──────────┴────────┴──────────────┴─────────┘
/// ```
/// `candidate` counts the flows that were begun; `several` says that two threads showed
/// the number.
static TABLE: [AtomicU64; SLOTS] = [const { AtomicU64::new(0) }; SLOTS];

static THREADS: AtomicU32 = AtomicU32::new(1);
static CANDIDATES: AtomicU64 = AtomicU64::new(1);

const SEVERAL: u64 = 1;
const NUMBER: u64 = !0 << 43;
const THREAD: u64 = 0xfff << 31;
const CANDIDATE: u64 = 0x3fff_ffff << 1;

fn slot(sequence: i64) -> (&'static AtomicU64, u64) {
    let sequence = sequence.cast_unsigned();
    (&TABLE[sequence as usize % SLOTS], (sequence >> 13) << 43)
}

/// An operator that shows a sequence number, and may own it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    sequence: i64,
    bits: u64,
}

impl Candidate {
    /// An operator on the calling thread.
    pub(crate) fn new(thread: &Thread, sequence: i64) -> Candidate {
        if thread.ordinal.get() == 0 {
            thread.ordinal.set(THREADS.fetch_add(1, Ordering::Relaxed));
        }
        let candidate = CANDIDATES.fetch_add(1, Ordering::Relaxed) << 1 & CANDIDATE;
        let thread = u64::from(thread.ordinal.get()) << 31 & THREAD;
        Candidate { sequence, bits: slot(sequence).1 | thread | candidate }
    }

    /// Its flow.
    pub(crate) fn flow(self) -> u64 {
        flow_id(self.sequence, self.bits)
    }

    /// Makes it the owner so far. To be called once its flow's beginning is recorded.
    pub(crate) fn publish(self) {
        let cell = slot(self.sequence).0;
        let before = cell.swap(self.bits, Ordering::AcqRel);
        let same_number = before != 0 && (before ^ self.bits) & NUMBER == 0;
        if same_number && ((before ^ self.bits) & THREAD != 0 || before & SEVERAL != 0) {
            cell.fetch_or(SEVERAL, Ordering::AcqRel);
        }
    }
}

/// The flow that ends in the node of this number; at most once per beginning.
pub(crate) fn take(sequence: i64) -> Option<u64> {
    let (cell, number) = slot(sequence);
    let bits = cell.load(Ordering::Acquire);
    if bits & CANDIDATE == 0 || bits & NUMBER != number {
        return None;
    }
    cell.compare_exchange(bits, 0, Ordering::AcqRel, Ordering::Relaxed).ok()?;
    (bits & SEVERAL == 0).then(|| flow_id(sequence, bits))
}

/// Perfetto's flow ids are global to a trace, which may be merged from several processes:
/// the process belongs into the hash. (Asked each time: a fork keeps our memory.)
fn flow_id(sequence: i64, bits: u64) -> u64 {
    of_process(pair(bits & !SEVERAL, sequence.cast_unsigned()))
}

/// A number that no other process has, of one that no other flow of this process has.
pub(crate) fn of_process(number: u64) -> u64 {
    mix(number ^ mix(u64::from(std::process::id()) ^ salt()))
}

/// Tells processes with the same id (in containers, on other machines) apart.
fn salt() -> u64 {
    static SALT: AtomicU64 = AtomicU64::new(0);
    match SALT.load(Ordering::Relaxed) {
        0 => {
            let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            let fresh = mix(time.map_or(1, |t| t.as_nanos() as u64)) | 1;
            // Whoever is first decides.
            SALT.compare_exchange(0, fresh, Ordering::Relaxed, Ordering::Relaxed)
                .map_or_else(|found| found, |_| fresh)
        }
        salt => salt,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::thread;
    use super::*;

    fn show(sequence: i64) -> u64 {
        let candidate = thread::with(|thread| Candidate::new(thread, sequence));
        candidate.publish();
        candidate.flow()
    }

    #[test]
    fn the_last_operator_owns_the_number_and_only_once() {
        let (outer, inner) = (show(70_000_001), show(70_000_001));
        assert_ne!(outer, inner);
        assert_eq!(take(70_000_001), Some(inner));
        assert_eq!(take(70_000_001), None);
        // Same slot, other number.
        show(70_000_002);
        assert_eq!(take(70_000_002 + SLOTS as i64), None);
        assert!(take(70_000_002).is_some());
        assert_eq!(take(-5), None);
    }

    #[test]
    fn a_number_that_two_threads_showed_gets_no_arrow() {
        show(80_000_001);
        std::thread::spawn(|| show(80_000_001)).join().unwrap();
        show(80_000_001);
        assert_eq!(take(80_000_001), None);
        // The node took it: from here on it is unambiguous again.
        let flow = show(80_000_001);
        assert_eq!(take(80_000_001), Some(flow));
    }
}
