//! Memory of devices: what is allocated and how much that is in all, pools, and memory that
//! moves by itself. Nothing of it unless it is asked for.

use harness::nvidia;
use nvidia::Machine;
use nvidia::record;

const SCRIPT: &str = "\
    kernel k\n\
    memory released 512 address=4096\n\
    memory allocated 1000 address=8192\n\
    memory allocated 24 address=12288\n\
    memory allocated 77 address=16384 kind=2\n\
    memory released 1000 address=8192\n\
    memory pool-created 1048576\n\
    memory pool-trimmed 4096\n\
    memory pool-destroyed 0\n\
    memory unified-htod 65536 dur=2us\n\
    memory unified-faults 3 dur=1us\n\
    sync\n";

#[test]
fn what_is_allocated_and_how_much_that_is() {
    for version in ["11.8", "12.6", "13.1"] {
        let types = ["--", "--set", "ACTIVITY_TYPES=kernel,memory"];
        let recorded = record(&Machine::with(version), SCRIPT, &types);
        recorded.ended(0);
        recorded.trace.assert_clean();
        let instants = "SELECT name, extract_arg(arg_set_id, 'debug.bytes') AS bytes,
                               extract_arg(arg_set_id, 'debug.memory kind') AS kind,
                               extract_arg(arg_set_id, 'debug.Total Allocated') AS total
                        FROM slice WHERE category = 'cuda_memory' ORDER BY ts";
        assert_eq!(
            recorded.trace.table(instants),
            "name                   bytes  kind    total\n\
             CUDA memory released   -512   Device  NULL\n\
             CUDA memory allocated  1000   Device  1000\n\
             CUDA memory allocated  24     Device  1024\n\
             CUDA memory allocated  77     Pinned  NULL\n\
             CUDA memory released   -1000  Device  24\n",
            "{version}"
        );
        let counter = "SELECT t.name, t.unit, c.value FROM counter c
                       JOIN counter_track t ON t.id = c.track_id ORDER BY ts";
        assert_eq!(
            recorded.trace.table(counter),
            "name                  unit   value\n\
             CUDA memory of GPU 0  bytes  1000.0\n\
             CUDA memory of GPU 0  bytes  1024.0\n\
             CUDA memory of GPU 0  bytes  24.0\n",
            "{version}"
        );
    }
}

#[test]
fn pools_and_memory_that_moves() {
    for version in ["11.8", "12.9", "13.4"] {
        let types = ["--", "--set", "ACTIVITY_TYPES=kernel,memory_pool,unified_memory"];
        let recorded = record(&Machine::with(version), SCRIPT, &types);
        recorded.ended(0);
        recorded.trace.assert_clean();
        let rows = "SELECT name, dur, coalesce(extract_arg(arg_set_id, 'debug.bytes'),
                                               extract_arg(arg_set_id, 'debug.page fault groups')) AS n
                    FROM slice WHERE category IN ('cuda_memory', 'unified_memory') ORDER BY category, ts";
        assert_eq!(
            recorded.trace.table(rows),
            "name                            dur   n\n\
             CUDA memory pool created        0     1048576\n\
             CUDA memory pool trimmed        0     4096\n\
             CUDA memory pool destroyed      0     0\n\
             Unified memory HtoD             2000  65536\n\
             Unified memory GPU page faults  1000  3\n",
            "{version}"
        );
    }
}

#[test]
fn nothing_of_it_otherwise() {
    let recorded = record(&Machine::with("12.6"), SCRIPT, &[]);
    recorded.trace.assert_clean();
    let all = "SELECT count(*) FROM slice WHERE name LIKE '%memory%'";
    assert_eq!(recorded.trace.one_i64(all), 0);
    assert_eq!(recorded.kernels(), 1);
}
