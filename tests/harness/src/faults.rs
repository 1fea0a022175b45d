//! What a vendor's library may do wrong, and what must become of it: the program ends as it
//! would have, the trace is clean, and what is missing in it is counted there.

use std::time::{Duration, Instant};

use crate::nvidia::Recorded;

pub const SCRIPT: &str = "repeat 1000\nkernel k dur=10\nend\nsync\n";
pub const KERNELS: i64 = 1000;

/// By which trace_processor tells that something was lost.
pub const LOST: &[&str] = &["traced_buf_trace_writer_packet_loss"];
/// How much, it says.
const HOW_MUCH: &str = "SELECT ifnull(sum(value), 0) FROM stats
                        WHERE name = 'traced_buf_trace_writer_packet_loss'";

/// A fact of the one process that used the vendor's devices, as a number; 0 if it is not
/// there.
#[track_caller]
pub fn count(recorded: &Recorded, key: &str) -> i64 {
    recorded.number(recorded.vendor, key)
}

/// Everything is there, and nothing is said to be lost.
#[track_caller]
pub fn whole(recorded: &Recorded) {
    recorded.trace.assert_clean();
    assert_eq!(recorded.kernels(), KERNELS, "{:#?}", recorded.metadata);
    recorded.every_launch_has_its_arrow();
}

/// What is not there was counted, as this.
#[track_caller]
pub fn lost(recorded: &Recorded, key: &str) {
    recorded.trace.clean_except(LOST);
    let missing = KERNELS - recorded.kernels();
    assert!(missing > 0, "nothing is missing");
    assert_eq!(count(recorded, key), missing, "{key}, in {:#?}", recorded.metadata);
    assert_eq!(recorded.trace.one_i64(HOW_MUCH), missing);
}

/// Nothing was recorded of the devices, and the trace says why.
#[track_caller]
pub fn nothing(recorded: &Recorded, why: &str) {
    recorded.trace.assert_clean();
    assert_eq!(recorded.kernels(), 0);
    says(recorded, why);
    // In sight of who looks at the trace. (Who tries again says it again.)
    let instants = "SELECT count(*) FROM slice WHERE name LIKE '% is not recorded: %' AND dur = 0";
    assert!(recorded.trace.one_i64(instants) > 0);
}

/// A library that never hands over what it has: the program does not wait for it, and the
/// trace says so.
#[track_caller]
pub fn given_up(record: impl FnOnce() -> Recorded) {
    let started = Instant::now();
    let recorded = record();
    assert!(started.elapsed() < Duration::from_secs(60));
    recorded.trace.clean_except(LOST);
    says(&recorded, "did not hand over its");
}

#[track_caller]
fn says(recorded: &Recorded, why: &str) {
    let said = recorded.fact(recorded.vendor, "not_recorded").unwrap_or("nothing");
    assert!(said.contains(why), "said: {said}, in {:#?}", recorded.metadata);
}
