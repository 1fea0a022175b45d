//! Records without a library, for benchmarks: what decoding costs and what becomes of it.

use std::ffi::CString;

use kymograph_protos::ColdRecorder;

use super::decode::Decoder;
use super::levelzero::Device;
use super::sys::kind;
use crate::device::raw::Raw;
use crate::device::realtime::Realtime;

/// Kernels that the records are of, and queues that they ran on.
const KERNELS: usize = 40;
const QUEUES: u64 = 4;
/// Of so many records one is a copy.
const COPY_EVERY: usize = 8;
/// Sizes of records of PTI 1.x.
const KERNEL_BYTES: usize = 184;
const COPY_BYTES: usize = 152;

/// A buffer of records such as PTI hands over, and its decoder.
pub struct Replay {
    decoder: Decoder,
    records: Vec<Vec<u64>>,
    // What the records point to.
    _names: Vec<CString>,
    now: u64,
    correlation: u64,
}

impl std::fmt::Debug for Replay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replay").field("records", &self.records.len()).finish_non_exhaustive()
    }
}

impl Replay {
    /// A buffer of `count` records that begin at `now`, in nanoseconds of `CLOCK_REALTIME`.
    pub fn new(recorder: &'static dyn ColdRecorder, count: usize, now: u64) -> Replay {
        let name = |n| CString::new(format!("at::native::xpu::Kernel<{n}>")).unwrap_or_default();
        let names: Vec<CString> = (0..KERNELS).map(name).collect();
        let uuid = [1; 16];
        let (name, part) = ("GPU".to_owned(), false);
        let device = Device { uuid, name, units: 0, clock_mhz: 0, part };
        let mut decoder = Decoder::new(recorder, Realtime::new(), vec![device], false);
        decoder.expect_all_work();
        let records = (0..count).map(|at| record(at, &names)).collect();
        Replay { decoder, records, _names: names, now, correlation: 0 }
    }

    /// Makes the records those of new work.
    pub fn renew(&mut self) {
        for record in &mut self.records {
            self.correlation += 1;
            self.now += 2_000;
            let kernel = record.len() == KERNEL_BYTES / 8;
            let (id, start) = if kernel { (56 / 8, 104 / 8) } else { (80 / 8, 96 / 8) };
            record[id] = self.correlation & 0xffff_ffff;
            record[start] = self.now;
            record[start + 1] = self.now + 1_500;
        }
    }

    /// Decodes them; returns how many there are.
    pub fn decode(&mut self) -> usize {
        for record in &self.records {
            let bytes = as_bytes(record);
            // SAFETY: names in it live as long as this.
            unsafe { self.decoder.record(Raw::new(bytes)) };
        }
        self.decoder.settle(false);
        self.records.len()
    }
}

fn record(at: usize, names: &[CString]) -> Vec<u64> {
    let queue = at as u64 % QUEUES;
    let uuid = u64::from_ne_bytes([1; 8]);
    if at % COPY_EVERY == COPY_EVERY - 1 {
        let mut record = vec![0; COPY_BYTES / 8];
        // pti_view_record_memory_copy: H2D (6) from host (1) to device (2).
        record[0] = u64::from(kind::COPY) | 6 << 32;
        record[1] = 1 | 2 << 32;
        (record[56 / 8], record[64 / 8]) = (uuid, uuid);
        (record[120 / 8], record[128 / 8]) = (1 << 20, queue);
        return record;
    }
    let mut record = vec![0; KERNEL_BYTES / 8];
    record[0] = kind::KERNEL.into();
    record[24 / 8] = names[at % names.len()].as_ptr().expose_provenance() as u64;
    (record[80 / 8], record[88 / 8]) = (uuid, uuid);
    record[152 / 8] = queue;
    record
}

fn as_bytes(words: &[u64]) -> &[u8] {
    // SAFETY: the same memory; bytes have no other demands.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}
