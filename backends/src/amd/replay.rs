//! Records without a library, for benchmarks: what decoding costs and what becomes of it.

use std::ffi::{CStr, CString};

use kymograph_protos::ColdRecorder;

use super::decode::{Decoder, Numbers};
use super::device::Agents;
use super::kernels;
use super::kinds::Selection;
use super::launches::{self, Asked};
use super::layout;
use super::sys::{CATEGORY_TRACING, KernelSymbol, RecordHeader};

/// Kernels that the records are of.
const KERNELS: u64 = 40;
/// Of so many records one is a copy.
const COPY_EVERY: usize = 8;
const KERNEL: u32 = 11;
const COPY: u32 = 10;

/// A buffer of records such as rocprofiler-sdk hands over, and its decoder.
pub struct Replay {
    decoder: Decoder,
    records: Vec<Vec<u64>>,
    now: u64,
    correlation: u64,
}

impl std::fmt::Debug for Replay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replay").field("records", &self.records.len()).finish_non_exhaustive()
    }
}

impl Replay {
    /// A buffer of `count` records that begin at `now`, in nanoseconds.
    pub fn new(recorder: &'static dyn ColdRecorder, count: usize, now: u64) -> Replay {
        let agents = Agents::made_up(1);
        let selection = Selection::parse("");
        let numbers =
            Numbers { kernel: Some(KERNEL as i32), copy: Some(COPY as i32), ..Numbers::default() };
        launches::prepare();
        for id in 0..KERNELS {
            register(id, &name(id), recorder);
        }
        let mut decoder = Decoder::new(recorder, agents, selection, numbers, false);
        decoder.describe_devices();
        let records = (0..count).map(record).collect();
        Replay { decoder, records, now, correlation: 0 }
    }

    /// Makes the records those of new work.
    pub fn renew(&mut self) {
        const START: usize = layout::WORK.start / 8;
        const END: usize = layout::WORK.end / 8;
        for record in &mut self.records {
            self.correlation += 1;
            let stream = 0x7f00 * (self.correlation % 4);
            launches::remember(self.correlation, Asked { stream, bytes: 0 });
            record[layout::WORK.correlation / 8] = self.correlation;
            (record[START], record[END]) = (self.now, self.now + 3_000);
            self.now += 4_800;
        }
    }

    /// Decodes them. Returns how many there were.
    pub fn decode(&mut self) -> usize {
        for record in &self.records {
            let kind = record[1] as u32;
            let payload = record.as_ptr().cast();
            let header = RecordHeader { category: CATEGORY_TRACING, kind, payload };
            // SAFETY: the record lives, and begins with its size.
            unsafe { self.decoder.record(&header) };
        }
        self.records.len()
    }
}

/// A record in words; times and correlation come later.
fn record(number: usize) -> Vec<u64> {
    use layout::{copy, kernel};
    let is_copy = number.is_multiple_of(COPY_EVERY);
    let (kind, bytes) = if is_copy { (COPY, 96) } else { (KERNEL, kernel::BYTES) };
    let mut words = vec![0; bytes / 8];
    (words[0], words[1]) = (bytes as u64, u64::from(kind) | 2 << 32);
    if is_copy {
        words[copy::TO_AGENT / 8] = 2;
        words[copy::FROM_AGENT / 8] = 1;
        words[copy::AMOUNT / 8] = 1 << 20;
    } else {
        words[kernel::AGENT / 8] = 2;
        words[kernel::QUEUE / 8] = 3;
        words[kernel::KERNEL / 8] = number as u64 % KERNELS;
        words[kernel::GROUP / 8] |= 768 << 32;
        // Workgroup (256, 1, 1), grid (256 · 132, 1, 1).
        let sizes = [256 | 1 << 32, 1 | (256 * 132) << 32, 1 | 1 << 32];
        words[kernel::WORKGROUP / 8..][..3].copy_from_slice(&sizes);
    }
    words
}

fn name(id: u64) -> CString {
    CString::new(format!("_ZN2at6native4fill{id}IfLi4EEEvPT_i.kd")).unwrap_or_default()
}

/// As the library reports a kernel whose code was loaded.
pub(crate) fn register(id: u64, name: &CStr, recorder: &dyn ColdRecorder) {
    let symbol = KernelSymbol {
        size: size_of::<KernelSymbol>() as u64,
        kernel: id,
        code_object: 1,
        name: name.as_ptr(),
        object: 0,
        kernarg_size: 0,
        kernarg_alignment: 0,
        group_size: 512,
        private_size: 0,
        sgprs: 16,
        vgprs: 40,
        accum_vgprs: 4,
    };
    // SAFETY: as the library passes it.
    unsafe { kernels::register(&symbol, recorder) };
}
