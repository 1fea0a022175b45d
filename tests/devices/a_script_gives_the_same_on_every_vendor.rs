//! One script, done by fakes of several vendors: what the trace shows is the same, names that
//! are the vendors' apart.

use harness::{fakes, gaudi, intel, nvidia};
use nvidia::Recorded;

const SCRIPT: &str = "\
    kernel gemm dur=20us\n\
    copy htod 4096 dur=3us\n\
    thread\n\
    repeat 20\nkernel gemm dur=2us stream=13 via=both\nset 64 dur=500\nend\ncopy dtoh 8\nsync\n\
    thread\n\
    repeat 30\nkernel reduce dur=1us device=1\nend\nsync device=1\n";

/// Work by what it is, where it ran (a queue has lanes of one name), and how many arrows lead
/// to it.
const WORK: &str = "
    SELECT CASE WHEN s.name LIKE 'memcpy%' THEN 'copy' WHEN s.name LIKE 'memset%' THEN 'set'
                ELSE s.name END AS what,
           count(*) AS n, sum(s.dur) AS dur, count(DISTINCT t.name) AS queues,
           sum((SELECT count(*) FROM flow WHERE slice_in = s.id)) AS arrows,
           sum(extract_arg(s.arg_set_id, 'bytes')) AS bytes
    FROM gpu_slice s JOIN gpu_track t ON t.id = s.track_id GROUP BY 1 ORDER BY 1";

/// Which thread asked for it, by the number of its calls.
const CALLERS: &str = "
    SELECT count(*) AS launches, count(DISTINCT slice_in) AS work
    FROM flow JOIN slice c ON c.id = slice_out JOIN thread_track t ON t.id = c.track_id
    GROUP BY utid ORDER BY 1";

#[track_caller]
fn structure(recorded: &Recorded) -> String {
    recorded.ended(0);
    recorded.trace.assert_clean();
    let gpus = recorded.trace.table("SELECT count(*) AS devices FROM gpu");
    [recorded.trace.table(WORK), recorded.trace.table(CALLERS), gpus].concat()
}

#[test]
fn the_same_script_gives_the_same_structure() {
    let nvidia = structure(&nvidia::record(&fakes::Machine::with("13.1").devices(2), SCRIPT, &[]));
    assert_eq!(
        nvidia,
        "what    n   dur    queues  arrows  bytes\n\
         copy    2   4000   1       2       4104\n\
         gemm    21  60000  2       21      NULL\n\
         reduce  30  30000  1       30      NULL\n\
         set     20  10000  1       20      1280\n\
         launches  work\n\
         2         2\n\
         30        30\n\
         41        41\n\
         devices\n\
         2\n"
    );
    for version in ["0.12", "1.2"] {
        let intel = intel::Machine::with(version).devices(2).record(SCRIPT, &[]);
        assert_eq!(structure(&intel), nvidia, "PTI {version}");
    }
}

/// Synapse does not say which thread a launch came from, but the rest.
#[test]
fn gaudi_too_thread_by_thread_apart() {
    let nvidia = nvidia::record(&fakes::Machine::with("13.1").devices(2), SCRIPT, &[]);
    let gaudi = gaudi::Machine::with("new").devices(2).record(SCRIPT, &[]);
    gaudi.ended(0);
    gaudi.trace.assert_clean();
    assert_eq!(gaudi.trace.table(WORK), nvidia.trace.table(WORK));
    assert_eq!(gaudi.trace.one_i64("SELECT count(*) FROM gpu"), 2);
}
