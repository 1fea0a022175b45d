//! What the calls that ask for device work said, for when its records come.
//!
//! Records of kernels and copies know the call by its correlation id, and neither the HIP
//! stream nor, for fills, the bytes. The call knows them. It leaves them in a ring: one slot
//! per id, modulo its length. Nothing waits, nothing is allocated, and an id that was
//! overwritten (when more than [`SLOTS`] calls are under way) is not found.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Calls that may be under way.
const SLOTS: usize = 1 << 16;

/// What a call asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Asked {
    /// The stream, as [`super::streams::key`] has it; 0 is the null stream.
    pub(crate) stream: u64,
    /// 0 if it does not say.
    pub(crate) bytes: u64,
}

#[derive(Debug, Default)]
struct Slot {
    correlation: AtomicU64,
    stream: AtomicU64,
    bytes: AtomicU64,
}

static RING: OnceLock<Box<[Slot]>> = OnceLock::new();

/// Makes room, before the first call.
pub(crate) fn prepare() {
    RING.get_or_init(|| (0..SLOTS).map(|_| Slot::default()).collect());
}

/// A call begins. In the thread that makes it.
#[inline]
pub(crate) fn remember(correlation: u64, asked: Asked) {
    let Some(slot) = RING.get().map(|ring| &ring[correlation as usize % SLOTS]) else { return };
    slot.correlation.store(0, Ordering::Release);
    slot.stream.store(asked.stream, Ordering::Release);
    slot.bytes.store(asked.bytes, Ordering::Release);
    slot.correlation.store(correlation, Ordering::Release);
}

/// What the call of this id asked for. In the thread that reads records.
pub(crate) fn find(correlation: u64) -> Option<Asked> {
    let slot = &RING.get()?[correlation as usize % SLOTS];
    let is_it = || correlation != 0 && slot.correlation.load(Ordering::Acquire) == correlation;
    if !is_it() {
        return None;
    }
    let stream = slot.stream.load(Ordering::Acquire);
    let bytes = slot.bytes.load(Ordering::Acquire);
    is_it().then_some(Asked { stream, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_found_until_its_slot_is_needed() {
        prepare();
        let asked = Asked { stream: 7, bytes: 64 };
        remember(5, asked);
        assert_eq!(find(5), Some(asked));
        assert_eq!((find(6), find(0), find(5 + SLOTS as u64)), (None, None, None));
        remember(5 + SLOTS as u64, Asked { stream: 8, bytes: 0 });
        assert_eq!(find(5), None);
    }
}
