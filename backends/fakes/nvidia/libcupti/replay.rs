//! The records that a self-test has seen on real hardware. Each must be as large as this CUPTI's
//! records of its kind are.

use std::sync::Once;

use crate::attributes;
use crate::buffers;
use crate::bytes::Record;
use crate::report::{self, Sample};
use crate::settings;
use crate::sizes::{kind, size_of};

/// Hands them over, once, if the environment says which.
pub(crate) fn once() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let mut records = report::samples("cuda");
        records.retain(Sample::is_record);
        report::move_to(&mut records, attributes::now(), |record| times_at(record.u32(0)));
        for sample in &records {
            let kind = sample.u32(0);
            let (size, known) = (sample.bytes.len(), size_of(kind, settings::toolkit()));
            assert_eq!(known, Some(size), "fake CUPTI: the size of kind {kind}");
            let mut record = Record::copied(kind, &sample.bytes);
            if kind == kind::CONCURRENT_KERNEL {
                record.text(104, c"kernel_of_the_report".as_ptr());
            }
            buffers::write_of_device(&record);
        }
    });
}

/// Where records have times.
fn times_at(kind: u32) -> &'static [usize] {
    match kind {
        kind::CONCURRENT_KERNEL => &[16, 24, 32],
        kind::MEMCPY | kind::MEMCPY2 | kind::MEMSET => &[16, 24],
        kind::OVERHEAD => &[24, 32],
        _ => &[],
    }
}
