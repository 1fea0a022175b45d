//! The records that a self-test has seen on real hardware, from the report that it left
//! (`kymo doctor --selftest`): handed over byte by byte, as CUPTI wrote them there.
//!
//! What lay elsewhere is gone: names are ours, and times are moved to now, as far apart as they
//! were. Each must be as large as this CUPTI's records of its kind are.

use std::sync::Once;

use crate::attributes;
use crate::buffers;
use crate::bytes::Record;
use crate::settings;
use crate::sizes::{kind, size_of};

/// How long before now the last of them ended.
const AGO: u64 = 1_000_000;

/// Hands them over, once, if the environment says which.
pub(crate) fn once() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let Some(path) = settings::fault_text("replay") else { return };
        let report = std::fs::read_to_string(path).expect("fake CUPTI: the report");
        let mut records: Vec<Vec<u8>> = report.lines().filter_map(sample).collect();
        assert!(!records.is_empty(), "fake CUPTI: no samples of CUDA in the report");
        let latest = records.iter().flat_map(|bytes| times(bytes)).max().unwrap_or(0);
        let now = attributes::now() - AGO;
        for bytes in &mut records {
            let kind = number(bytes, 0);
            let known = size_of(kind, settings::toolkit());
            assert_eq!(known, Some(bytes.len()), "fake CUPTI: the size of kind {kind}");
            let mut record = Record::sized(kind, bytes.len());
            for (at, byte) in bytes.iter().enumerate() {
                record.u8(at, *byte);
            }
            for at in times_at(kind) {
                match word(bytes, *at) {
                    0 => {}
                    time => record.u64(*at, time.wrapping_sub(latest).wrapping_add(now)),
                }
            }
            if kind == kind::CONCURRENT_KERNEL {
                record.text(104, c"kernel_of_the_report".as_ptr());
            }
            buffers::write_of_device(&record);
        }
    });
}

/// `cuda.PID.sample.record.KIND.NUMBER = BYTES:HEX`, of a record that is all there.
fn sample(line: &str) -> Option<Vec<u8>> {
    let (key, value) = line.split_once(" = ")?;
    if !key.starts_with("cuda.") || !key.contains(".sample.record.") {
        return None;
    }
    let (size, hex) = value.split_once(':')?;
    let byte = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
    let bytes: Vec<u8> = (0..hex.len()).step_by(2).map_while(byte).collect();
    (size.parse() == Ok(bytes.len())).then_some(bytes)
}

fn number(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |word| u32::from_le_bytes(word.try_into().expect("4 bytes")))
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).map_or(0, |word| u64::from_le_bytes(word.try_into().expect("8 bytes")))
}

fn times(bytes: &[u8]) -> impl Iterator<Item = u64> {
    times_at(number(bytes, 0)).iter().map(|at| word(bytes, *at))
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
