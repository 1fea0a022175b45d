//! The records that a self-test has seen on real hardware. Each must be of a kind that this version
//! has, and say its own size.

use std::ffi::CStr;
use std::sync::Once;

use crate::agents::{CPU, gpu};
use crate::observe::{register, system};
use crate::record::Record;
use crate::report::{self, Sample};
use crate::seam::realtime;
use crate::settings::toolkit;
use crate::{buffers, contexts, kinds};

/// Hands them over, once, if the environment says which.
pub(crate) fn once() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let samples = report::samples("hip");
        let (mut records, agents): (Vec<_>, Vec<_>) =
            samples.into_iter().partition(Sample::is_record);
        report::move_to(&mut records, system(), |record| fields(record).0);
        for mut sample in records {
            let (kind, size) = (sample.u32(8), sample.u64(0));
            assert!(sample.u64(0) as usize == sample.bytes.len(), "fake rocprofiler: {size} bytes");
            assert!(kinds::is_buffer(kind as i32), "fake rocprofiler: kind {kind}");
            let (_, of_agents) = fields(&sample);
            of_agents.iter().for_each(|at| sample.put(*at, ours(&agents, sample.u64(*at))));
            if is(&sample, c"KERNEL_DISPATCH") {
                sample.put(80, register(c"kernel_of_the_report", 0, 0));
            }
            let words = sample.bytes.chunks_exact(8);
            let words = words.map(|word| u64::from_le_bytes(word.try_into().unwrap()));
            let words: Box<[u64]> = words.collect();
            for buffer in contexts::buffers(kind as i32) {
                let record = Record { category: 1, kind, words: words.clone() };
                buffers::add(buffer, realtime(), record);
            }
        }
    });
}

fn is(record: &Sample, kind: &CStr) -> bool {
    kinds::buffer(kind) == Some(record.u32(8) as i32)
}

/// Where a record has times, and agents.
fn fields(record: &Sample) -> (&'static [usize], &'static [usize]) {
    let is = |kind| is(record, kind);
    let long = toolkit() >= 100;
    match () {
        () if is(c"KERNEL_DISPATCH") => (&[40, 48], &[64]),
        () if is(c"MEMORY_COPY") => (&[40, 48], &[56, 64]),
        () if is(c"HIP_EVENT") => (&[40, 48], &[56]),
        () if is(c"HIP_GRAPH") => (&[48, 56], &[64]),
        () if is(c"MEMORY_ALLOCATION") && long => (&[48, 56], &[64]),
        () if is(c"MEMORY_ALLOCATION") => (&[40, 48], &[56]),
        () if is(c"SCRATCH_MEMORY") && toolkit() < 6 => (&[40, 48], &[16]),
        () if is(c"SCRATCH_MEMORY") && long => (&[64, 72], &[40]),
        () if is(c"SCRATCH_MEMORY") => (&[56, 64], &[32]),
        () if is(c"KFD_PAGE_MIGRATE") => (&[16, 24], &[56, 64, 80]),
        () if is(c"KFD_PAGE_FAULT") => (&[16, 24], &[40]),
        () => (&[], &[]),
    }
}

/// The agent of this machine that stands for one of the report's: of the same type, and of the same
/// place among these.
fn ours(agents: &[Sample], id: u64) -> u64 {
    let Some(found) = agents.iter().find(|agent| agent.u64(8) == id) else { return gpu(0) };
    let same = |agent: &&Sample| agent.u32(16) == found.u32(16) && agent.u64(8) < id;
    let place = agents.iter().filter(same).count() as u32;
    if found.u32(16) == 2 { gpu(place) } else { CPU + u64::from(place) }
}
