//! Chrome's format: what trace_processor makes of a file is what it makes of the trace that the
//! file becomes: slices with their times, depth and parents, arrows with category and name,
//! counters. Where it does not, the difference is here, and why.

use std::collections::BTreeMap;
use std::path::PathBuf;

use kymograph_converters::perfetto::Packets;
use kymograph_converters::{chrome, json, kineto, packed, perfetto};
use oracle::Trace;
use serde_json::Value;

fn case(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/cases");
    folder.join(name).with_extension("json")
}

const QUERIES: [&str; 3] = [
    "SELECT 'slice ' || coalesce(s.name, '') || ' ' || s.ts || '+' || s.dur || ' at ' || s.depth ||
         coalesce(' in ' || p.name, '')
     FROM slice s LEFT JOIN slice p ON s.parent_id = p.id",
    "SELECT 'arrow ' || o.name || ' -> ' || i.name || coalesce((
         SELECT ' ' || group_concat(text, ' ') FROM (
             SELECT flat_key || '=' || display_value AS text FROM args
             WHERE arg_set_id = f.arg_set_id ORDER BY flat_key)), '')
     FROM flow f JOIN slice o ON f.slice_out = o.id JOIN slice i ON f.slice_in = i.id",
    "SELECT 'counter ' || t.name || ' ' || c.ts || ' ' || c.value || coalesce(' of ' || p.pid, '')
     FROM counter c JOIN counter_track t ON c.track_id = t.id
     LEFT JOIN process_counter_track r ON r.id = t.id LEFT JOIN process p USING (upid)",
];

fn seen(trace: &Trace) -> BTreeMap<String, i64> {
    let mut lines = BTreeMap::new();
    for line in QUERIES.iter().flat_map(|query| trace.strings(query)) {
        *lines.entry(line).or_default() += 1;
    }
    lines
}

/// `- ` what only the original has, `+ ` what only ours has.
fn differences(name: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pftrace");
    let text = std::fs::read_to_string(case(name)).unwrap();
    let trace = chrome::read(text.as_bytes(), &json::Limits::default()).unwrap();
    let file = std::fs::File::create(&path).unwrap();
    perfetto::write_packets(&trace, file, Packets::Deflated).unwrap();
    let ours = Trace::open(&path);
    ours.assert_clean();
    comes_back(name, &text, &path);
    let (mut counts, ours) = (seen(&Trace::open(case(name))), seen(&ours));
    for (line, count) in ours {
        *counts.entry(line).or_default() -= count;
    }
    let mut lines = Vec::new();
    for (line, count) in counts {
        let sign = if count > 0 { "-" } else { "+" };
        lines.extend((0..count.abs()).map(|_| format!("{sign} {line}")));
    }
    lines
}

/// The trace becomes JSON again: the same events, in the same order.
fn comes_back(name: &str, text: &str, path: &std::path::Path) {
    let file = std::fs::File::open(path).unwrap();
    let trace = perfetto::read(file, packed::Limits::default()).unwrap();
    let mut out = Vec::new();
    kineto::write(&trace, &mut out).unwrap();
    let events = |text: &[u8]| {
        let value: Value = serde_json::from_slice(text).unwrap();
        let mut events = value.get("traceEvents").cloned().unwrap_or(value);
        for event in events.as_array_mut().unwrap() {
            for time in ["ts", "dur"] {
                if let Some(number) = event.get(time).and_then(Value::as_f64) {
                    event[time] = number.into();
                }
            }
            if event.get("args").is_some_and(|args| args == &serde_json::json!({})) {
                event.as_object_mut().unwrap().remove("args");
            }
        }
        events
    };
    let (before, after) = (events(text.as_bytes()), events(&out));
    for (before, after) in before.as_array().unwrap().iter().zip(after.as_array().unwrap()) {
        assert_eq!(after, before, "{name}");
    }
    assert_eq!(before, after, "{name}");
}

macro_rules! cases {
    ($($name:ident: [$($difference:expr),* $(,)?])*) => {$(
        #[test]
        fn $name() {
            let expected: &[&str] = &[$($difference),*];
            assert_eq!(differences(stringify!($name)), expected);
        }
    )*};
}

cases! {
    // Ends that stand before their beginnings. trace_processor knows no `S` and `F`.
    be: []
    async1: ["+ slice req 100000+100000 at 0"]
    // An end that has a name closes the slice of that name.
    unm: []
    // Names that differ, ids of one process and of all, ends without names; `S` and `F` again.
    // trace_processor ends `i` where `x` does, which is around it, and loses its end; and takes
    // no account of scopes.
    pairs: [
        "+ slice S 50000+-1 at 0",
        "- slice S 50000+10000 at 0",
        "+ slice i 207000+23000 at 0",
        "- slice i 207000+8000 at 2 in x",
        "+ slice leg 400000+10000 at 0",
    ]
    // Ids beside each other.
    async2: []
    async3: []
    // Arrows. Those to devices have no names: they come from correlation numbers, as in our
    // recordings, and there is one between two events, whatever kinds the file has.
    flow1: ["+ arrow cudaLaunchKernel -> k", "- arrow cudaLaunchKernel -> k cat=ac2g name=ac2g"]
    flow2: ["+ arrow cudaLaunchKernel -> k", "- arrow cudaLaunchKernel -> k cat=ac2g name=ac2g"]
    flow3: ["+ arrow cudaLaunchKernel -> k"]
    flow4: []
    // The id is used twice: trace_processor takes that for an error, and draws `a -> d`.
    flow5: [
        "- arrow a -> d cat=task name=post",
        "+ arrow c -> d cat=task name=post",
    ]
    flow6: []
    flow7: []
    flow8: []
    flow9: [
        "+ arrow cudaLaunchKernel -> k",
        "- arrow cudaLaunchKernel -> k cat=ac2g name=ac2g",
        "- arrow cudaLaunchKernel -> k cat=critical_path name=critical_path",
    ]
    // trace_processor takes `child` for open until something else begins on its thread, and has
    // no ids that are words.
    bindings: [
        "- arrow inner -> child cat=c name=steps",
        "+ arrow inner -> same start cat=c name=steps",
        "+ arrow inner -> same start cat=c name=word",
    ]
    // What begins before zero is dropped by trace_processor; ours begins at zero instead.
    neg: [
        "- slice a 5000+2000 at 0",
        "+ slice a 55000+2000 at 0",
        "+ slice launch 0+40000 at 0",
        "+ slice launch2 10000+50000 at 0",
    ]
    bigpid: []
    ninja: []
    dev: []
    // trace_processor has a row of its own for moments of scope `g`, and no names that are
    // numbers.
    xid: [
        "+ slice 5 15000+2000 at 0",
        "- slice [No name] 15000+2000 at 0",
        "- slice in 1000+0 at 0",
        "+ slice in 1000+0 at 1 in a",
    ]
    // As Node.js writes: everything has a `dur`, and moments have no `s`.
    node: []
    // A NUL ends a text there.
    counters: ["- slice nul 5000+2000 at 0", "+ slice nul\u{2400}x 5000+2000 at 0"]
}

#[test]
fn processes_and_threads_have_their_names() {
    for (name, query, table) in [
        (
            "bigpid",
            "SELECT name FROM process WHERE name IS NOT NULL ORDER BY 1",
            "name\nbig\ninit\n",
        ),
        (
            "ninja",
            "SELECT s.name AS slice, t.name AS thread, p.name AS process FROM slice s
             JOIN thread_track r ON s.track_id = r.id JOIN thread t USING (utid)
             JOIN process p USING (upid) ORDER BY 1",
            "slice  thread    process\na.o    worker 0  build\nb.o    worker 1  build\n",
        ),
        (
            "async3",
            "SELECT count(DISTINCT track_id) AS lanes, count(*) AS slices FROM slice",
            "lanes  slices\n40     40\n",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.pftrace");
        let text = std::fs::read(case(name)).unwrap();
        let trace = chrome::read(&text[..], &json::Limits::default()).unwrap();
        perfetto::write(&trace, std::fs::File::create(&path).unwrap()).unwrap();
        assert_eq!(Trace::open(&path).table(query), table, "{name}");
    }
}
