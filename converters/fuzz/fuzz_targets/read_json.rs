//! Any bytes: reading ends, and what was read is written as valid JSON.
#![no_main]

use kymograph_converters::{chrome, json::Limits, kineto};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(trace) = chrome::read(bytes, &Limits::default()) else { return };
    let mut out = Vec::new();
    kineto::write(&trace, &mut out).unwrap();
    let text = std::str::from_utf8(&out).unwrap();
    serde_json::from_str::<&serde_json::value::RawValue>(text).unwrap();
    let again = chrome::read(&out[..], &Limits::default()).unwrap();
    assert_eq!(trace.slices.len(), again.slices.len());
});
