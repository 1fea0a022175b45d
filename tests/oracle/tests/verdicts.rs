//! What the oracle says of traces that are as they should be and of those that are not.

mod traces;

use oracle::Trace;
use std::panic::{AssertUnwindSafe, catch_unwind};
use traces::{file, good, lossy, misplaced_end, misplaced_last_end};

fn complaint(act: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(act)).expect_err("should have panicked");
    *panic.downcast::<String>().expect("a message")
}

#[test]
fn a_good_trace_is_clean_and_reads_as_data() {
    let (_directory, path) = file("good.pftrace", &good());
    let trace = Trace::open(path);
    trace.assert_clean();
    assert_eq!(
        trace.table(
            "SELECT slice.name, ts - 1000000000000 AS at, dur, thread.name AS thread, depth \
             FROM slice JOIN thread_track ON track_id = thread_track.id JOIN thread USING (utid) \
             ORDER BY ts"
        ),
        "name      at    dur   thread          depth\n\
         aten::mm  0     1000  pt_main_thread  0\n\
         aten::mm  2000  1000  pt_main_thread  0\n\
         aten::mm  4000  1000  pt_main_thread  0\n"
    );
    assert_eq!(trace.one_i64("SELECT sum(dur) FROM slice"), 3000);
    assert_eq!(trace.strings("SELECT name FROM process WHERE pid = 4242"), ["python train.py"]);
}

#[test]
fn values_keep_their_types_and_all_their_bits() {
    let (_directory, path) = file("good.pftrace", &good());
    let trace = Trace::open(path);
    let rows = trace.query(
        "SELECT 9223372036854775807 AS most, -9223372036854775808 AS least, 2.0 AS two, \
         1e300 AS huge, NULL AS none, 'a\"b' AS text, x'00ff' AS blob",
    );
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["most"].as_i64(), Some(i64::MAX));
    assert_eq!(rows[0]["least"].as_i64(), Some(i64::MIN));
    assert!(rows[0]["two"].is_f64() && rows[0]["two"] == 2.0);
    assert_eq!(rows[0]["huge"].as_f64(), Some(1e300));
    assert!(rows[0]["none"].is_null());
    assert_eq!(rows[0]["text"], "a\"b");
    assert_eq!(rows[0]["blob"], "00ff");
    assert!(trace.rows("SELECT 1 AS one WHERE one = 2").is_empty());
}

#[test]
fn a_misplaced_end_is_not_clean() {
    let (_directory, path) = file("misplaced.pftrace", &misplaced_end());
    let trace = Trace::open(path);
    let complaint = complaint(|| trace.assert_clean());
    assert!(complaint.contains("misplaced_end_event"), "{complaint}");
    trace.clean_except(&["misplaced_end_event"]);
}

#[test]
fn a_misplaced_end_that_nothing_follows_is_clean_but_leaves_an_open_slice() {
    let (_directory, path) = file("misplaced.pftrace", &misplaced_last_end());
    let trace = Trace::open(path);
    trace.assert_clean();
    assert_eq!(trace.strings("SELECT name FROM slice WHERE dur = -1"), ["other"]);
}

#[test]
fn a_declared_loss_is_not_clean() {
    let (_directory, path) = file("lossy.pftrace", &lossy());
    let trace = Trace::open(path);
    let complaint = complaint(|| trace.assert_clean());
    assert!(complaint.contains("traced_buf_trace_writer_packet_loss"), "{complaint}");
    trace.clean_except(&["traced_buf_trace_writer_packet_loss"]);
}

#[test]
fn an_exception_that_did_not_happen_is_reported() {
    let (_directory, path) = file("good.pftrace", &good());
    let trace = Trace::open(path);
    let complaint = complaint(|| trace.clean_except(&["misplaced_end_event"]));
    assert!(complaint.contains("was expected and is not set"), "{complaint}");
}

#[test]
fn a_wrong_query_says_what_is_wrong_and_is_survived() {
    let (_directory, path) = file("good.pftrace", &good());
    let trace = Trace::open(path);
    let complaint = complaint(|| drop(trace.rows("SELECT nope FROM slice")));
    assert!(complaint.contains("no such column: nope"), "{complaint}");
    assert_eq!(trace.one_i64("SELECT count(*) FROM slice"), 3);
}

#[test]
fn what_is_no_trace_is_refused() {
    let (_directory, path) = file("nonsense.pftrace", b"this is not a trace");
    let error = Trace::try_open(path).unwrap_err();
    assert!(error.contains("nonsense.pftrace"), "{error}");
    let error = Trace::try_open("no/such/file").unwrap_err();
    assert!(error.contains("No such file"), "{error}");
}

#[test]
fn the_python_environment_has_its_packages() {
    let check = std::process::Command::new(oracle::venv_python())
        .args(["-c", "import nvtx, ittapi"])
        .output()
        .unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stderr));
    assert!(oracle::tools().join("trace-processor").is_dir());
}
