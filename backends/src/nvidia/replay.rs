//! Records without a library, for benchmarks: what decoding costs and what becomes of it.

use std::ffi::CString;

use kymograph_protos::ColdRecorder;

use super::clock::Clock;
use super::decode::Decoder;
use super::direct;
use super::kinds::kind;
use crate::device::raw::Raw;

/// Kernels that the records are of, and streams that they ran on.
const KERNELS: usize = 40;
const STREAMS: u64 = 4;
/// Of so many records one is a copy.
const COPY_EVERY: usize = 8;
/// Sizes of records of CUDA 13.0.
const KERNEL_BYTES: usize = 216;
const COPY_BYTES: usize = 96;
const VERSION: u32 = 130_000;

/// A buffer of records such as CUPTI hands over, and its decoder.
pub struct Replay {
    decoder: Decoder,
    records: Vec<Vec<u64>>,
    // What the records point to.
    _names: Vec<CString>,
    now: u64,
    correlation: u32,
}

impl std::fmt::Debug for Replay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replay").field("records", &self.records.len()).finish_non_exhaustive()
    }
}

impl Replay {
    /// A buffer of `count` records that begin at `now`, in nanoseconds of `CLOCK_BOOTTIME`.
    pub fn new(recorder: &'static dyn ColdRecorder, count: usize, now: u64) -> Replay {
        let name = |n| CString::new(format!("_ZN2at6native4fillIfLi{n}EEEvPT_i"));
        let names: Vec<CString> = (0..KERNELS).map(|n| name(n).unwrap_or_default()).collect();
        let decoder = Decoder::new(recorder, Clock::Chosen, VERSION, false);
        let records = (0..count).map(|at| record(at, &names)).collect();
        Replay { decoder, records, _names: names, now, correlation: 0 }
    }

    /// Makes the records those of new work.
    pub fn renew(&mut self) {
        for record in &mut self.records {
            self.correlation += 1;
            self.now += 2_000;
            direct::asks(self.correlation);
            (record[2], record[3]) = (self.now, self.now + 1_500);
            // Kernels have it in the upper half of the word at 88, copies in that at 40.
            let (at, low) = match record.len() == KERNEL_BYTES / 8 {
                true => (11, 0),
                false => (5, record[5] & 0xffff_ffff),
            };
            record[at] = low | u64::from(self.correlation) << 32;
        }
    }

    /// Decodes them; returns how many there are.
    pub fn decode(&mut self) -> usize {
        for record in &self.records {
            // SAFETY: the same memory; bytes have no other demands.
            let bytes = unsafe {
                std::slice::from_raw_parts(record.as_ptr().cast(), size_of_val(&**record))
            };
            // SAFETY: names in it live as long as this.
            unsafe { self.decoder.record(Raw::new(bytes)) };
        }
        self.records.len()
    }
}

fn record(at: usize, names: &[CString]) -> Vec<u64> {
    let stream = 7 + at as u64 % STREAMS;
    if at % COPY_EVERY == COPY_EVERY - 1 {
        let mut record = vec![0; COPY_BYTES / 8];
        // CUpti_ActivityMemcpy5: from the host (1) to the device (3), 1 MiB; context 1.
        record[0] = u64::from(kind::MEMCPY) | 1 << 32 | 1 << 40 | 3 << 48;
        record[1] = 1 << 20;
        (record[4], record[5]) = (1 << 32, stream);
        return record;
    }
    let mut record = vec![0; KERNEL_BYTES / 8];
    // CUpti_ActivityKernel9: 32 registers, context 1, a grid of 80 blocks of 128 threads.
    record[0] = u64::from(kind::CONCURRENT_KERNEL) | 32 << 48;
    record[5] = 1 << 32;
    (record[6], record[7]) = (stream | 80 << 32, 1 | 1 << 32);
    (record[8], record[9]) = (128 | 1 << 32, 1);
    record[13] = names[at % names.len()].as_ptr().expose_provenance() as u64;
    record
}
