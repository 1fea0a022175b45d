//! Traces without a library, for benchmarks: what decoding costs and what becomes of it.

use kymograph_protos::ColdRecorder;

use super::clock::Clock;
use super::decode::Decoder;
use super::float80;
use super::layout::{Layout, Trace};
use crate::device::clock::Both;

/// Kernels that the events are of, and engines that they ran on.
const KERNELS: usize = 40;
const ENGINES: usize = 4;
/// Of so many activities one is a copy.
const COPY_EVERY: usize = 8;
const TPC: u32 = 2;
const DMA: u32 = 3;
const BYTES: usize = Layout::New.stride();

/// A buffer such as Synapse fills, and its decoder.
pub struct Replay {
    decoder: Decoder,
    /// Aligned as `long double` is.
    buffer: Vec<u128>,
    events: usize,
    metadata: usize,
    now: u64,
}

impl std::fmt::Debug for Replay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replay").field("events", &self.events).finish_non_exhaustive()
    }
}

impl Replay {
    /// A buffer of `count` activities that begin at `now`, in nanoseconds of the profiler's
    /// clock.
    pub fn new(recorder: &'static dyn ColdRecorder, count: usize, now: u64) -> Replay {
        let mut strings = Vec::new();
        let mut place = |text: String| {
            strings.extend_from_slice(text.as_bytes());
            strings.push(0);
            strings.len() - text.len() - 1
        };
        let types = [place("*TPC ".into()), place("*PDMA".into())];
        let kernels: Vec<_> =
            (0..KERNELS).map(|n| place(format!("custom_kernel_{n}_bf16"))).collect();
        let (copy, recipe) = (place("memcpy".into()), place("recipe".into()));
        let metadata = types.len();
        let events = metadata + count;
        let base = events * BYTES;
        let size = base + strings.len() + 16;
        let mut buffer = vec![0_u128; size.div_ceil(16)];
        let address = buffer.as_ptr().addr();
        let pointer = |place: usize| ((address + base + place) as u64).to_ne_bytes();
        let bytes = as_bytes(&mut buffer);
        for (at, event) in bytes[..base].chunks_exact_mut(BYTES).enumerate() {
            let number = at.wrapping_sub(metadata);
            let is_copy = number % COPY_EVERY == COPY_EVERY - 1;
            let (ty, index) = match at {
                0 => (TPC, 0),
                1 => (DMA, 0),
                _ => (if is_copy { DMA } else { TPC }, 1 + number % ENGINES),
            };
            event[16] = if at < metadata { b'M' } else { b'X' };
            event[64..68].copy_from_slice(&ty.to_ne_bytes());
            event[68..72].copy_from_slice(&(index as u32).to_ne_bytes());
            if at < metadata {
                event[80..88].copy_from_slice(&pointer(types[at]));
                continue;
            }
            let operation = if is_copy { copy } else { kernels[number % KERNELS] };
            event[88..96].copy_from_slice(&pointer(operation));
            event[104..112].copy_from_slice(&pointer(recipe));
        }
        bytes[base..base + strings.len()].copy_from_slice(&strings);
        Replay { decoder: Decoder::new(recorder, false, |_| {}), buffer, events, metadata, now }
    }

    /// Makes the activities those of new work.
    pub fn renew(&mut self) {
        let (metadata, events) = (self.metadata, self.events);
        let bytes = as_bytes(&mut self.buffer);
        for event in bytes[..events * BYTES].chunks_exact_mut(BYTES).skip(metadata) {
            self.now += 2_000;
            // Microseconds, whole ones: an integer's `long double`.
            event[32..48].copy_from_slice(&float80::of(self.now / 1000));
            event[48..64].copy_from_slice(&float80::of(1));
        }
    }

    /// Decodes them; returns how many activities there are.
    pub fn decode(&mut self) -> usize {
        let bytes = as_bytes(&mut self.buffer);
        if let Ok(trace) = Trace::new(bytes, self.events) {
            let clock = Clock::new(Both::default(), None);
            self.decoder.trace(&trace, 0, clock, 1000);
        }
        self.events - self.metadata
    }
}

fn as_bytes(buffer: &mut [u128]) -> &mut [u8] {
    let len = size_of_val(buffer);
    // SAFETY: the same memory; bytes have no other demands.
    unsafe { std::slice::from_raw_parts_mut(buffer.as_mut_ptr().cast(), len) }
}
