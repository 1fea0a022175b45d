//! The records that a self-test has seen on real hardware. Each must be as large as this PTI's
//! records of its kind are.

use std::sync::Once;

use crate::buffers;
use crate::bytes::Record;
use crate::record::uuid;
use crate::report::{self, Sample};
use crate::seam::realtime;
use crate::settings;
use crate::sizes::{kind, size_of};

/// Hands them over, once, if the environment says which.
pub(crate) fn once() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let mut records = report::samples("xpu");
        records.retain(Sample::is_record);
        report::move_to(&mut records, realtime(), |record| times_at(record.u32(0)));
        for sample in &records {
            let kind = sample.u32(0);
            let (size, known) = (sample.bytes.len(), size_of(kind, settings::version()));
            assert_eq!(known, Some(size), "fake PTI: the size of kind {kind}");
            let mut record = Record::copied(kind, &sample.bytes);
            // Names, and devices as this machine has them.
            let (names, devices): (&[usize], &[usize]) = match kind {
                kind::KERNEL => (&[24, 32], &[80]),
                kind::COPY => (&[32], &[56]),
                kind::FILL => (&[24], &[48]),
                kind::PEER_COPY => (&[32], &[72, 88]),
                kind::COMMUNICATION if size == 56 => (&[48], &[]),
                kind::COMMUNICATION => (&[56], &[]),
                _ => (&[], &[]),
            };
            for at in names.iter().filter(|at| sample.u64(**at) != 0) {
                record.text(*at, c"name_of_the_report".as_ptr());
            }
            for (device, at) in (0..).zip(devices) {
                uuid(&mut record, *at, device);
            }
            buffers::write(buffers::DEVICES, &record);
        }
    });
}

/// Where records have times.
fn times_at(kind: u32) -> &'static [usize] {
    match kind {
        kind::KERNEL => &[96, 104, 112, 120, 128, 136],
        kind::COPY => &[88, 96, 104, 112],
        kind::FILL => &[80, 88, 96, 104],
        kind::PEER_COPY => &[120, 128, 136, 144],
        kind::SYNCHRONIZATION => &[32, 40],
        kind::RUNTIME_API | kind::DRIVER_API => &[8, 16],
        kind::OVERHEAD => &[8, 16],
        kind::COMMUNICATION => &[8, 16],
        _ => &[],
    }
}
