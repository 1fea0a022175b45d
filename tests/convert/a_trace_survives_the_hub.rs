//! A recording, read into the hub and written again: the hub says what was recorded, and
//! trace_processor sees the same in both files.

use harness::alone;
use kymograph::{Config, Counter, Recording};
use kymograph_converters::packed::Limits;
use kymograph_converters::perfetto;
use kymograph_converters::trace::{self as hub, Nanos, Value};
use oracle::Trace;
use std::fs::File;
use std::path::Path;

/// What trace_processor says about each kind of event, whatever the numbers of rows.
const QUERIES: [&str; 8] = [
    // Slices and moments with what lies around them.
    "SELECT s.ts, s.dur, s.name, s.category, t.name AS track, p.name AS parent, thread.tid, \
     thread.name AS thread, process.pid FROM slice s JOIN track t ON s.track_id = t.id \
     LEFT JOIN slice p ON s.parent_id = p.id LEFT JOIN thread_track tt ON tt.id = t.id \
     LEFT JOIN thread USING (utid) LEFT JOIN process_track pt ON pt.id = t.id \
     LEFT JOIN process ON process.upid = coalesce(pt.upid, thread.upid) \
     ORDER BY s.ts, s.dur DESC, s.name, thread.tid, t.name, parent",
    "SELECT s.ts, s.dur, s.name, a.flat_key, a.key, a.value_type, a.display_value \
     FROM slice s JOIN args a USING (arg_set_id) WHERE a.key != 'upid' AND a.key != 'context_id' \
     ORDER BY s.ts, s.dur, s.name, a.key, a.value_type, a.display_value",
    "SELECT o.ts, o.name, i.ts AS ts_in, i.name AS name_in FROM flow f \
     JOIN slice o ON f.slice_out = o.id JOIN slice i ON f.slice_in = i.id \
     ORDER BY o.ts, o.name, i.ts, i.name",
    "SELECT c.ts, c.value, t.name, t.unit FROM counter c JOIN counter_track t ON c.track_id = t.id \
     ORDER BY c.ts, t.name, c.value",
    "SELECT pid, name, cmdline FROM process WHERE pid != 0 ORDER BY pid",
    "SELECT tid, name FROM thread WHERE tid != 0 ORDER BY tid",
    "SELECT ts, dur, name, hw_queue_id, render_stage_category, submission_id FROM gpu_slice \
     ORDER BY ts, dur, name",
    "SELECT name, str_value, int_value FROM metadata WHERE name LIKE 'trace_attribute.%' \
     ORDER BY name",
];

fn read(path: &Path) -> hub::Trace {
    perfetto::read(File::open(path).unwrap(), Limits::default()).unwrap()
}

/// Writes the trace again, next to itself.
fn rewrite(path: &Path) -> std::path::PathBuf {
    let again = path.with_extension("again.pftrace");
    let written = perfetto::write(&read(path), File::create(&again).unwrap()).unwrap();
    assert_eq!((written.before_zero, written.flow_ends), (0, 0));
    again
}

fn assert_same(path: &Path) {
    let again = rewrite(path);
    let (before, after) = (Trace::open(path), Trace::open(&again));
    before.assert_clean();
    after.assert_clean();
    for sql in QUERIES {
        let (before, after) = (before.table(sql), after.table(sql));
        let differ = before.lines().zip(after.lines()).find(|(a, b)| a != b);
        assert!(before == after, "{sql}\nfirst difference: {differ:#?}");
    }
}

#[test]
fn a_recording_survives_the_hub() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pftrace");
    let mut config = Config::default();
    config.output.clone_from(&path);
    let recording = Recording::start(config).unwrap();
    static QUEUE: Counter = Counter::new("queue");
    let flow = kymograph::Flow::new();
    {
        let _outer = kymograph::scope!("outer", number = 7u64, text = "seven", part = 0.5);
        for n in 0..20i64 {
            let _inner = kymograph::scope!("inner", n = n);
            kymograph::instant!("moment", yes = n % 2 == 0);
            QUEUE.set(n);
        }
        kymograph::instant!("out", flow = flow);
    }
    std::thread::Builder::new()
        .name("other".into())
        .spawn(move || {
            let _scope = kymograph::scope!("elsewhere", flow = flow.end());
        })
        .unwrap()
        .join()
        .unwrap();
    recording.stop();

    let trace = read(&path);
    let count = |name: &str| {
        let id = trace.strings.find(name).unwrap();
        trace.slices.iter().filter(|slice| slice.name == id).count()
    };
    assert_eq!((count("outer"), count("inner"), count("elsewhere")), (1, 20, 1));
    assert_eq!(trace.instants.len(), 21);
    assert_eq!(trace.counters.len(), 20);
    assert_eq!(trace.flow_arrows().len(), 1);
    assert!(trace.facts.warnings.is_empty(), "{:?}", trace.facts.warnings);
    let (number, text) =
        (trace.strings.find("number").unwrap(), trace.strings.find("seven").unwrap());
    let outer = trace.strings.find("outer").unwrap();
    let outer = trace.slices.iter().find(|slice| slice.name == outer).unwrap();
    assert_eq!(trace.args.find(outer.args, number), Some(Value::U64(7)));
    assert!(trace.args.entries(outer.args).any(|(_, value)| value == Value::Str(text)));
    assert_same(&path);
}

#[test]
fn what_only_other_formats_have_survives_it_too() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made.pftrace");
    let made = everything();
    perfetto::write(&made, File::create(&path).unwrap()).unwrap();
    assert_same(&path);
    let back = read(&path);
    let dump = |trace: &hub::Trace| {
        let args = |set| {
            let entry =
                |(name, value)| format!("{}={}", trace.strings.get(name), trace.json(value));
            trace.args.entries(set).map(entry).collect::<Vec<_>>().join(" ")
        };
        let text = |id| trace.strings.get(id).to_owned();
        let mut rows: Vec<String> = Vec::new();
        for s in trace.slices.iter() {
            rows.push(format!("{} {} {} {}", s.start, s.dur, text(s.name), args(s.args)));
        }
        for a in trace.activities.iter() {
            let launch = a.launch.map(|launch| trace.launches[launch]);
            let queue = text(trace.queues[a.queue].name);
            let kernel = a.kernel.map(|k| text(trace.kernels[k].name));
            let name = text(a.name);
            rows.push(format!(
                "{} {} {name} {queue} {kernel:?} {launch:?} {}",
                a.start,
                a.dur,
                args(a.args)
            ));
        }
        for s in trace.counters.iter() {
            let series = trace.counters.series[s.series];
            rows.push(format!(
                "{} {:?} {} {:?}",
                s.time,
                s.value,
                text(series.name),
                series.unit == hub::Unit::Bytes
            ));
        }
        for (key, value) in &trace.facts.metadata {
            rows.push(format!("{}: {}", text(*key), trace.json(*value)));
        }
        rows.sort();
        rows
    };
    assert_eq!(dump(&made), dump(&back));
    assert_eq!(made.launch_arrows().len(), 2);
    assert_eq!(back.launch_arrows().len(), 2);
    assert_eq!(back.flow_arrows().len(), made.flow_arrows().len());
}

/// A trace with everything that the hub has.
fn everything() -> hub::Trace {
    let mut trace = hub::Trace::default();
    let process = trace.process(4242, "train");
    let thread = trace.thread(process, 4250, "main");
    let track = trace.threads[thread].track;
    let id = |trace: &mut hub::Trace, text: &str| trace.strings.intern(text);
    let [mm, cpu_op, launch, dims, odd] =
        ["aten::mm", "cpu_op", "cudaLaunchKernel", "Input Dims", "odd"].map(|t| id(&mut trace, t));
    let inner = trace.args.list(&[Value::I64(8), Value::I64(64)]);
    let empty = trace.args.list(&[]);
    let nothing = trace.args.dict(&[]);
    let shapes = trace.args.list(&[inner, empty, Value::Null, Value::F64(7.0)]);
    let text = Value::Str(mm);
    let dict = trace.args.dict(&[(mm, shapes), (odd, nothing), (dims, text)]);
    let huge = Value::Json(id(&mut trace, "123456789012345678901234567890"));
    let args = trace.args.add(&[(dims, shapes), (odd, dict), (mm, Value::Null), (launch, huge)]);
    // Numbers beyond 64 bits come back as texts there.
    let device_args = trace.args.add(&[(dims, shapes), (odd, dict), (mm, Value::Bool(true))]);
    let slice = |name, start, dur| hub::Slice {
        name,
        category: cpu_op,
        args,
        ..hub::Slice::new(track, Nanos(start), Nanos(dur))
    };
    // Two that cross, and one inside the second.
    let first = trace.slices.push(slice(mm, 1_000, 500));
    let second = trace.slices.push(slice(launch, 1_200, 800));
    trace.slices.push(slice(dims, 1_600, 10));
    let point = |phase, event, time| hub::FlowPoint {
        id: 1,
        phase,
        event: hub::EventRef::Slice(event),
        time: Nanos(time),
        name: odd,
        position: 0,
    };
    trace.flows.points.push(point(hub::Phase::Start, first, 1_000));
    trace.flows.points.push(point(hub::Phase::End, second, 1_200));

    let [gpu, vendor, stream, kernel_name] =
        ["A GPU", "ACME", "Stream 07", "_Z4gemm"].map(|t| id(&mut trace, t));
    let device = trace.devices.push(hub::Device { name: gpu, vendor, ..hub::Device::new(0) });
    let description = hub::StrId::NONE;
    let queue = trace.queues.push(hub::Queue { device, number: 7, name: stream, description });
    let context = trace.contexts.push(hub::Context { number: 1, pid: 4242, api: hub::Api::Cuda });
    let kind = hub::StageKind::Compute;
    let stage = trace.stages.push(hub::Stage { name: mm, description, kind });
    let registers = trace.args.add(&[(odd, Value::U64(32))]);
    let kernel = trace.kernels.push(hub::Kernel {
        name: kernel_name,
        demangled: mm,
        architecture: description,
        args: registers,
    });
    let grid = Some(hub::Dim3 { x: 132, y: 1, z: 2 });
    let dims3 = trace.launches.push(hub::Launch { grid, block: grid });
    // Two that overlap.
    for start in [1_400, 1_450] {
        trace.activities.push(hub::Activity {
            name: mm,
            stage: Some(stage),
            context: Some(context),
            kernel: Some(kernel),
            launch: Some(dims3),
            correlation: 77,
            args: device_args,
            ..hub::Activity::new(queue, Nanos(start), Nanos(100))
        });
    }
    trace.flows.links.push(hub::LaunchLink {
        event: hub::EventRef::Slice(second),
        correlation: 77,
        kind: hub::LaunchKind::Submit,
        api: hub::Api::Cuda,
    });

    let kinds = [
        hub::SeriesKind::Device { device, groups: 1 << 6, forwards: true },
        hub::SeriesKind::DeviceMemory { device, pid: 4242 },
    ];
    for (kind, name) in kinds.into_iter().zip(["SM", "GPU Memory"]) {
        let (name, unit) = (id(&mut trace, name), hub::Unit::Bytes);
        let series = trace.counters.series.push(hub::Series { kind, name, description, unit });
        for time in [1_000, 2_000] {
            let value = hub::Number::I64(time * 3);
            trace.counters.push(hub::Sample { series, time: Nanos(time), value });
        }
    }
    for (key, value) in [("rank", Value::I64(3)), ("job", text), ("list", shapes)] {
        let key = id(&mut trace, key);
        let value = match value {
            // Nested values come back as JSON text.
            Value::List(_) => {
                let json = trace.json(value);
                Value::Json(trace.strings.intern(&json))
            }
            value => value,
        };
        trace.facts.metadata.push((key, value));
    }
    trace
}
