//! What serde_json takes for an array of values, the reader takes too, without repairs, and
//! writes with the same meaning.
#![no_main]

use kymograph_converters::json::{Document, Item, Limits, write_value};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    let Ok(Value::Array(wanted)) = serde_json::from_slice(bytes) else { return };
    let mut document = Document::new(bytes, Limits::default());
    let mut got = Vec::new();
    while let Some(item) = document.next_item().unwrap() {
        let Item::Event(element) = item else { panic!("a member in an array") };
        let mut out = Vec::new();
        write_value(&mut out, element.root());
        got.push(serde_json::from_slice::<Value>(&out).unwrap());
    }
    assert_eq!(got, wanted);
    assert_eq!(document.repairs().total(), 0);
});
