//! What people see of a converted trace: no row without a name, memory as counters, and what
//! the profiler says of itself folded. Back in JSON, everything is where it was.

use kymograph_converters::format::{self, Format};
use kymograph_converters::packed::Packing;
use oracle::Trace;
use serde_json::Value;
use std::collections::BTreeSet;

const JSON: &str = r#"{
"schemaVersion": 1,
"distributedInfo": {"backend": "nccl", "rank": 2, "world_size": 4},
"deviceProperties": [{"id": 0, "name": "NVIDIA H200", "numSms": 132}],
"traceEvents": [
{"ph": "M", "name": "process_name", "pid": 7, "tid": 0, "ts": 1, "args": {"name": "python3"}},
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": 10, "dur": 5,
 "args": {"External id": 1}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7, "ts": 11,
 "dur": 2, "args": {"correlation": 3}},
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 20, "dur": 9,
 "args": {"device": 0, "context": 1, "stream": 7, "correlation": 3, "registers per thread": 40,
  "grid": [2, 3, 4], "block": [8, 2, 1]}},
{"ph": "X", "cat": "gpu_user_annotation", "name": "forward", "pid": 0, "tid": 7, "ts": 20, "dur": 9},
{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 7, "tid": 7, "ts": 12,
 "args": {"Total Reserved": 4096, "Total Allocated": 512, "Bytes": 512, "Device Id": 0, "Device Type": 1}},
{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 7, "tid": 7, "ts": 14,
 "args": {"Total Reserved": 0, "Total Allocated": 64, "Bytes": 64, "Device Id": -1, "Device Type": 0}},
{"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler",
 "ts": 1, "dur": 50, "args": {"Op count": 0}},
{"ph": "i", "s": "g", "name": "Iteration Start: PyTorch Profiler", "pid": "Traces",
 "tid": "Trace PyTorch Profiler", "ts": 1},
{"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 60}
]}"#;

fn written(trace: &kymograph_converters::trace::Trace, to: Format) -> Vec<u8> {
    let mut out = Vec::new();
    format::write(trace, &mut out, to, Packing::Plain).unwrap();
    out
}

/// The events of a file, as sorted texts.
fn events(json: &[u8]) -> BTreeSet<String> {
    let json: Value = serde_json::from_slice(json).unwrap();
    json["traceEvents"].as_array().unwrap().iter().map(Value::to_string).collect()
}

#[test]
fn kinetos_traces_read_at_a_glance() {
    let hub = format::read(JSON.as_bytes(), None).unwrap();
    let packets = written(&hub, Format::Perfetto);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pftrace");
    std::fs::write(&path, &packets).unwrap();
    let trace = Trace::open(&path);
    trace.assert_clean();

    let blank = "SELECT count(*) FROM track t JOIN slice s ON s.track_id = t.id WHERE t.name = ''";
    assert_eq!(trace.one_i64(blank), 0);
    let folded = "SELECT t.name FROM track t JOIN track p ON p.id = t.parent_id
                  WHERE p.name = 'Profiler' ORDER BY 1";
    assert_eq!(trace.strings(folded), ["Recording", "Spans", "Traces"]);
    let names = "SELECT name FROM process WHERE pid = 7 UNION SELECT name FROM gpu
                 UNION SELECT name FROM gpu_track ORDER BY 1";
    assert_eq!(trace.strings(names), ["GPU 0 · NVIDIA H200", "Stream 007", "rank 2 · python3"]);
    let counters = "SELECT t.name, CAST(max(c.value) AS INT) AS most FROM counter c
                    JOIN counter_track t ON t.id = c.track_id GROUP BY 1 ORDER BY 1";
    assert_eq!(
        trace.table(counters),
        "name                              most\n\
         CPU memory allocated (PyTorch)    64\n\
         CPU memory reserved (PyTorch)     0\n\
         GPU 0 memory allocated (PyTorch)  512\n\
         GPU 0 memory reserved (PyTorch)   4096\n"
    );
    let moments = "SELECT DISTINCT t.name || ' ' || u.tid FROM slice s
                   JOIN thread_track t ON t.id = s.track_id JOIN thread u USING (utid)
                   WHERE s.name = '[memory]'";
    assert_eq!(trace.strings(moments), ["[memory] 7"]);
    let kernel =
        "SELECT a.key || '=' || a.display_value FROM gpu_slice s JOIN args a USING (arg_set_id)
                  WHERE a.key IN ('registers_per_thread', 'registers per thread', 'grid_size',
                                  'workgroup_size', 'thread_count', 'process_id') ORDER BY 1";
    assert_eq!(
        trace.strings(kernel),
        [
            "grid_size=24",
            "process_id=7",
            "registers per thread=40",
            "registers_per_thread=40",
            "thread_count=384",
            "workgroup_size=16",
        ]
    );

    let again = format::read(&packets[..], None).unwrap();
    let (direct, back) = (written(&hub, Format::Kineto), written(&again, Format::Kineto));
    assert_eq!(events(&direct), events(&back));
}

#[test]
fn processes_without_a_name_get_none_by_their_rank() {
    let json = br#"{"distributedInfo": {"rank": 1}, "traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": 10, "dur": 5},
{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 7, "tid": 7, "ts": 12,
 "args": {"Total Allocated": 512, "Device Type": 0}},
{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 7, "tid": 7, "ts": 2, "dur": 5}
]}"#;
    let packets = written(&format::read(&json[..], None).unwrap(), Format::Perfetto);
    let again = written(&format::read(&packets[..], None).unwrap(), Format::Kineto);
    let (json, again): (Value, Value) =
        (serde_json::from_slice(json).unwrap(), serde_json::from_slice(&again).unwrap());
    let names = |json: &Value| {
        let events = json["traceEvents"].as_array().unwrap().iter();
        events.map(|event| event["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&json), names(&again), "in the order of the file, and nothing else");
}
