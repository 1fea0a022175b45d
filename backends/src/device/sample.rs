//! The first records of each kind, byte by byte, among the trace's facts: for a self-test, and
//! for reports of faults (`SAMPLES`).
//!
//! Texts that records point to are not followed: only what the library wrote is shown.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use kymograph_protos::ColdRecorder;

use super::raw::Raw;
use super::remark::fact;

/// Records of a kind, and kinds at most.
const EACH: u32 = 2;
const KINDS: usize = 256;
/// Bytes of a record at most.
const BYTES: usize = 512;

static ON: AtomicBool = AtomicBool::new(false);
static SEEN: Mutex<BTreeMap<(&'static str, String), u32>> = Mutex::new(BTreeMap::new());

/// Says whether samples are kept from now on; forgets which there were.
pub(crate) fn keep(on: bool) {
    ON.store(on, Ordering::Relaxed);
    if on {
        SEEN.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Whether samples are kept.
#[inline]
pub(crate) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// A record of a kind.
#[inline]
pub(crate) fn record(recorder: &dyn ColdRecorder, vendor: &'static str, kind: u32, raw: Raw<'_>) {
    if is_on() {
        bytes(recorder, vendor, format!("record.{kind}"), raw);
    }
}

/// The same of anything: `VENDOR.PID.sample.WHAT.NUMBER`.
#[cold]
pub(crate) fn bytes(recorder: &dyn ColdRecorder, vendor: &'static str, what: String, raw: Raw<'_>) {
    let mut hex = format!("{}:", raw.len());
    for at in 0..raw.len().min(BYTES) {
        let _ = write!(hex, "{:02x}", raw.u8(at));
    }
    text(recorder, vendor, what, &hex);
}

/// Something that is no record.
#[cold]
pub(crate) fn text(recorder: &dyn ColdRecorder, vendor: &'static str, what: String, text: &str) {
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    if seen.len() >= KINDS {
        return;
    }
    let count = seen.entry((vendor, what.clone())).or_default();
    *count += 1;
    let number = *count;
    drop(seen);
    if number <= EACH {
        fact(recorder, &format!("{vendor}.{}.sample.{what}.{number}", std::process::id()), text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::notes::Notes;
    use kymograph_protos::Kind;

    #[test]
    fn the_first_of_each_kind_are_kept() {
        let notes = Notes::new();
        let raw = Raw::new(&[1, 2, 0xff]);
        record(notes, "test", 7, raw);
        keep(true);
        for kind in [7, 7, 7, 8] {
            record(notes, "test", kind, raw);
        }
        keep(false);
        let pid = std::process::id();
        let facts: Vec<_> = notes.records.lock().unwrap().iter().map(|(head, _)| *head).collect();
        let facts = facts.iter().filter(|head| head.kind == Kind::Fact as u8);
        let keys: Vec<_> = facts.clone().map(|head| notes.text(head.site)).collect();
        let expected = ["record.7.1", "record.7.2", "record.8.1"];
        assert_eq!(keys, expected.map(|key| format!("test.{pid}.sample.{key}")));
        let values = facts.map(|head| notes.text(kymograph_protos::StrId(head.arg as u32)));
        assert!(values.into_iter().all(|value| value == "3:0102ff"));
    }
}
