//! Any bytes: reading ends, within the limits.
#![no_main]

use kymograph_converters::{packed, perfetto};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = perfetto::read(bytes, packed::Limits::default());
});
