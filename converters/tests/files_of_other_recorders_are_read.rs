//! Traces of other recorders (`data/README.md` says how they were made) hold for us what they
//! hold for trace_processor: slices and moments, their arguments, counters, arrows, threads;
//! and they still do once they have been written again.

use std::collections::BTreeMap;

use kymograph_converters::packed::Limits;
use kymograph_converters::perfetto::{self, Packets};
use kymograph_converters::trace::{ArgsId, Nanos, StrId, Trace, Value};
use oracle::Trace as Opened;

/// How often a line occurs.
type Lines = BTreeMap<String, usize>;

fn lines(lines: impl Iterator<Item = String>) -> Lines {
    let mut counts = Lines::new();
    lines.for_each(|line| *counts.entry(line).or_default() += 1);
    counts
}

fn opened(trace: &Opened) -> Lines {
    let rows = |sql: &str| {
        let cell = |value: &serde_json::Value| match value {
            serde_json::Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        let line = |row: Vec<serde_json::Value>| row.iter().map(cell).collect::<Vec<_>>().join(" ");
        trace.rows(sql).into_iter().map(line).collect::<Vec<_>>()
    };
    let all = [
        rows(
            "SELECT 'slice', ts - (SELECT min(ts) FROM slice), dur, ifnull(name, ''),
              ifnull(category, '') FROM slice",
        ),
        // Where code is has one name for us, and is an argument like others when it is
        // written again.
        rows(
            "SELECT 'arg', ifnull(name, ''), 
              replace(replace(key, 'debug.', ''), 'source_location.', 'source.'), CASE value_type
              WHEN 'string' THEN string_value WHEN 'real' THEN real_value
              WHEN 'bool' THEN iif(int_value, 'true', 'false') ELSE int_value END
              FROM slice JOIN args USING (arg_set_id) 
              WHERE (key LIKE 'debug.%' OR key LIKE 'source.%' OR key LIKE 'source_location.%')
              AND NOT (value_type = 'string' AND string_value IS NULL)",
        ),
        rows(
            "SELECT 'counter', name, ts - (SELECT min(ts) FROM slice), value
              FROM counter JOIN counter_track ON counter_track.id = track_id",
        ),
        rows(
            "SELECT 'arrow', a.name, b.name FROM flow
              JOIN slice a ON a.id = slice_out JOIN slice b ON b.id = slice_in",
        ),
        rows(
            "SELECT 'thread', tid, ifnull(thread.name, '') FROM thread_track
              JOIN thread USING (utid) JOIN slice ON slice.track_id = thread_track.id
              GROUP BY utid",
        ),
    ];
    lines(all.into_iter().flatten())
}

fn read(trace: &Trace) -> Lines {
    let text = |id: StrId| trace.strings.get(id);
    let starts = trace.slices.iter().map(|slice| slice.start);
    let start = starts.chain(trace.instants.iter().map(|i| i.time)).min().unwrap();
    let mut all: Vec<String> = Vec::new();
    let mut event = |time: Nanos, dur: Nanos, (name, category): (StrId, StrId), args| {
        let (name, category) = (text(name), text(category));
        all.push(format!("slice {} {} {name} {category}", (time - start).0, dur.0));
        all.extend(args_of(trace, args).into_iter().map(|arg| format!("arg {name} {arg}")));
    };
    for slice in trace.slices.iter() {
        event(slice.start, slice.dur, (slice.name, slice.category), slice.args);
    }
    for moment in trace.instants.iter() {
        event(moment.time, Nanos(0), (moment.name, moment.category), moment.args);
    }
    for sample in trace.counters.iter() {
        let name = text(trace.counters.series[sample.series].name);
        let (time, value) = ((sample.time - start).0, sample.value.to_f64());
        all.push(format!("counter {name} {time} {value:?}"));
    }
    for arrow in trace.flow_arrows() {
        let name = |event| match event {
            kymograph_converters::trace::EventRef::Slice(id) => trace.slices.get(id).name,
            _ => StrId::NONE,
        };
        all.push(format!("arrow {} {}", text(name(arrow.from)), text(name(arrow.to))));
    }
    for (_, thread) in trace.threads.iter() {
        if trace.slices.iter().any(|slice| slice.track == thread.track) {
            all.push(format!("thread {} {}", thread.tid, text(thread.name)));
        }
    }
    lines(all.into_iter())
}

fn args_of(trace: &Trace, args: Option<ArgsId>) -> Vec<String> {
    let value = |value| match value {
        Value::Str(text) => trace.strings.get(text).to_owned(),
        // trace_processor has 64 bits with a sign.
        Value::U64(n) | Value::Pointer(n) => (n as i64).to_string(),
        value => trace.json(value),
    };
    let mut out = Vec::new();
    for (name, v) in trace.args.entries(args) {
        let name = trace.strings.get(name);
        match v {
            Value::Dict(entries) => out.extend(
                trace.args.entries_of(entries).map(|(key, v)| (name, trace.strings.get(key), v)),
            ),
            v => out.push((name, "", v)),
        }
    }
    out.into_iter()
        .map(|(name, key, v)| match key {
            "" => format!("{name} {}", value(v)),
            key => format!("{name}.{key} {}", value(v)),
        })
        .collect()
}

fn check(bytes: &[u8]) -> Trace {
    let folder = tempfile::tempdir().unwrap();
    let (path, again) = (folder.path().join("t.pftrace"), folder.path().join("again.pftrace"));
    std::fs::write(&path, bytes).unwrap();
    let wanted = opened(&Opened::open(&path));
    assert!(wanted.len() > 5, "{wanted:#?}");

    let trace = perfetto::read(bytes, Limits::default()).unwrap();
    assert_eq!(read(&trace), wanted);
    let file = std::fs::File::create(&again).unwrap();
    perfetto::write_packets(&trace, file, Packets::Deflated).unwrap();
    let rewritten = Opened::open(&again);
    rewritten.assert_clean();
    assert_eq!(opened(&rewritten), wanted);
    trace
}

#[test]
fn of_perfettos_own_sdk() {
    let trace = check(include_bytes!("data/perfetto_sdk.pftrace"));
    assert!(trace.facts.warnings.is_empty(), "{:#?}", trace.facts.warnings);
    // What it says apart from events is counted, and known by name.
    let kinds: Vec<_> = trace.facts.kinds.keys().map(|kind| &**kind).collect();
    for kind in ["trace_config", "service_event", "trace_provenance"] {
        assert!(kinds.contains(&kind), "{kind} in {kinds:?}");
    }
    assert!(!kinds.iter().any(|kind| kind.starts_with("type ")), "{kinds:?}");
}

#[test]
fn of_perfetto_recorder() {
    check(include_bytes!("data/perfetto_recorder.pftrace"));
}

#[test]
fn of_tracing_perfetto() {
    check(include_bytes!("data/tracing_perfetto.pftrace"));
}

/// What a system trace has that no recorder of programs writes: the kernel's events and
/// statistics, Android's. None of it is read, all of it is counted.
#[test]
fn packets_of_system_traces_are_counted_by_type() {
    use kymograph_protos::packet::packet;
    let mut bytes = Vec::new();
    let mut add = |field: u32, times: u32| {
        for n in 0..times {
            packet(&mut bytes, |p| {
                p.uint(10, 3).uint(8, u64::from(n) + 1).message(field, |body| {
                    body.uint(1, 7);
                });
            });
        }
    };
    let kinds = [(1, 5), (7, 2), (9, 3), (39, 1), (66, 4), (88, 2), (99, 1), (777, 2)];
    kinds.iter().for_each(|(field, times)| add(*field, *times));
    packet(&mut bytes, |p| {
        p.message(2, |tree| {
            tree.message(1, |process| {
                process.uint(1, 41).uint(2, 1).text(3, b"/sbin/daemon").text(3, b"-v");
            });
            tree.message(2, |thread| {
                thread.uint(1, 42).text(2, b"worker").uint(3, 41);
            });
        });
    });
    let trace = perfetto::read(&bytes[..], Limits::default()).unwrap();
    let mut passed_over: Vec<_> =
        trace.facts.warnings.iter().map(|w| format!("{} {}", w.count, w.what)).collect();
    passed_over.sort();
    assert_eq!(
        passed_over,
        [
            "1 a packet of type android_log",
            "1 a packet of type v8_js_code",
            "2 a packet of the unknown type 777",
            "2 a packet of type network_packet",
            "2 a packet of type sys_stats",
            "3 a packet of type process_stats",
            "4 a packet of type perf_sample",
            "5 a packet of type ftrace_events",
        ]
    );
    assert_eq!(trace.facts.kinds["ftrace_events"], 5);
    let (_, process) = trace.processes.iter().next().unwrap();
    let (_, thread) = trace.threads.iter().next().unwrap();
    assert_eq!((process.pid, trace.strings.get(process.name)), (41, "/sbin/daemon"));
    assert_eq!((thread.tid, trace.strings.get(thread.name)), (42, "worker"));
}
