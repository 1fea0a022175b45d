//! Files of other profilers (`data/README.md` says where they are from) become traces: what was
//! on devices is work of devices, calls are joined with what they launched, stacks are slices; and
//! trace_processor finds nothing wrong with them in Perfetto's format.

use kymograph_converters::format::{self, Format};
use kymograph_converters::packed::Packing;
use kymograph_converters::trace::Trace;

fn data(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn read(name: &str) -> Trace {
    let trace =
        format::read(&data(name)[..], None).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut out = Vec::new();
    let plain = Packing::Packets;
    format::write(&trace, &mut out, Format::Perfetto, plain).unwrap();
    let slices = trace.slices.len() + trace.instants.len();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &out).unwrap();
    let opened = oracle::Trace::open(file.path());
    opened.assert_clean();
    let count = |sql: &str| opened.one_i64(sql) as usize;
    // Work of devices is `gpu_slice` there.
    assert_eq!(count("SELECT count(*) FROM gpu_slice"), trace.activities.len(), "{name}");
    assert_eq!(
        count("SELECT (SELECT count(*) FROM slice) - (SELECT count(*) FROM gpu_slice)"),
        slices,
        "{name}"
    );
    trace
}

/// Name, beginning, length and depth do not matter: what there is, line by line.
fn slices(trace: &Trace) -> Vec<String> {
    let line = |slice: kymograph_converters::trace::Slice| {
        let name = trace.strings.get(slice.name);
        format!("{name} {} {}", slice.start.0, slice.dur.0)
    };
    trace.slices.iter().map(line).collect()
}

/// Device, stream, category, name, correlation number, times, grid and block of each activity.
fn work(trace: &Trace) -> Vec<String> {
    let line = |a: kymograph_converters::trace::Activity| {
        let queue = trace.queues[a.queue];
        let stage = trace.strings.get(trace.stages[a.stage.unwrap()].description);
        let launch = a.launch.map(|id| trace.launches[id]);
        let grid = launch.and_then(|launch| launch.grid).map_or(0, |grid| grid.x);
        let block = launch.and_then(|launch| launch.block).map_or(0, |block| block.x);
        format!(
            "{} {} {stage} {} #{} {}+{} {grid}x{block}",
            trace.devices[queue.device].number,
            queue.number,
            trace.strings.get(a.name),
            a.correlation,
            a.start.0,
            a.dur.0
        )
    };
    trace.activities.iter().map(line).collect()
}

fn device(trace: &Trace) -> String {
    let devices = trace
        .devices
        .iter()
        .map(|(_, device)| format!("{} {}", device.number, trace.strings.get(device.name)));
    devices.collect::<Vec<_>>().join(", ")
}

#[test]
fn nsight_systems() {
    let trace = read("nsys.sqlite.gz");
    let long = format!("void kernel<{}int>(float*)", "a_long_type, ".repeat(100));
    let work = work(&trace);
    assert_eq!(work.len(), 202);
    assert_eq!(work[0], format!("0 7 kernel {long} #1 2000+5000 48x256"));
    assert_eq!(work[199], format!("0 7 kernel {long} #399 1992000+5000 48x256"));
    assert_eq!(work[200], "0 7 gpu_memcpy Memcpy HtoD #1000 2002000+1000 0x0");
    assert_eq!(work[201], "0 7 gpu_memset Memset (Device) #1001 2004000+1000 0x0");
    assert_eq!(trace.launch_arrows().len(), 201);
    assert_eq!(device(&trace), "0 NVIDIA H200");
    let slices = slices(&trace);
    for wanted in [
        "cudaLaunchKernel_v7000 0 1000",
        "cudaMemcpyAsync_v3020 2000000 1000",
        "Stream Synchronize 2005000 1000",
        "step 0 500",
        "range 200 2005800",
    ] {
        assert!(slices.iter().any(|slice| slice == wanted), "{wanted}");
    }
    assert_eq!(slices.len(), 200 + 4, "a domain is no event");
    let (_, thread) = trace.threads.iter().next().unwrap();
    assert_eq!((thread.tid, trace.strings.get(thread.name)), (4250, "main thread"));
    assert_eq!(trace.facts.realtime_offset().unwrap().0, 1_790_857_026_000_000_000);
}

#[test]
fn rocpd_in_both_layouts() {
    let trace = read("rocpd.db.gz");
    let work = work(&trace);
    assert_eq!(work.len(), 8, "two runs of four");
    assert_eq!(work[0], "0 2 kernel add(float*) #10 1000003000+5000 16x256");
    assert_eq!(work[3], "0 2 gpu_memcpy MEMORY_COPY_HOST_TO_DEVICE #0 1000050000+10000 0x0");
    assert_eq!(work[..4], work[4..], "with times and places in rows of their own");
    assert_eq!(device(&trace), "0 AMD Instinct MI300X");
    assert_eq!(slices(&trace)[0], "hipLaunchKernel 1000000000 2000");
    assert!(!trace.launch_arrows().is_empty());
    let (_, process) = trace.processes.iter().next().unwrap();
    assert_eq!((process.pid, trace.strings.get(process.name)), (4242, "train"));
}

#[test]
fn rocprofv3() {
    let trace = read("rocprofv3.json");
    assert_eq!(
        work(&trace),
        [
            "0 3 kernel add(float*) #1 3000+5000 16x256",
            "0 3 gpu_memcpy MEMORY_COPY_HOST_TO_DEVICE #2 9000+500 0x0"
        ]
    );
    assert_eq!(trace.launch_arrows().len(), 2);
    let names = ["hipLaunchKernel 1000 1000", "hipMemcpyAsync 2100 100", "step \"one\" 900 9000"];
    assert_eq!(slices(&trace), names);
    assert_eq!(trace.facts.warnings.len(), 1, "{:?}", trace.facts.warnings);
}

#[test]
fn xplane() {
    let trace = read("jax.xplane.pb");
    let all = slices(&trace);
    let named = |name: &str| all.iter().filter(|slice| slice.starts_with(name)).count();
    assert_eq!(named("train "), 3, "{all:#?}");
    let step = trace.strings.find("step_num").unwrap();
    let steps = trace.slices.iter().filter_map(|slice| trace.args.find(slice.args, step));
    assert_eq!(steps.count(), 3);
    assert!(trace.facts.realtime_offset().is_some());
}

#[test]
fn speedscope() {
    let trace = read("pyspy.speedscope.json");
    let all = slices(&trace);
    assert!(all.len() > 10 && all.iter().any(|slice| slice.starts_with("inner")), "{all:#?}");
    let end = trace.slices.iter().map(|slice| (slice.start + slice.dur).0).max();
    // py-spy says where the profile ends: 1.03 s.
    assert!(end.is_some_and(|end| (1_000_000_000..=1_031_000_000).contains(&end)), "{end:?}");
}

#[test]
fn perf_script() {
    let trace = read("perf_script.txt");
    let all = slices(&trace);
    assert!(all.iter().any(|slice| slice.starts_with("inner ")), "{all:#?}");
    assert!(trace.facts.warnings.is_empty(), "{:?}", trace.facts.warnings);
    assert_eq!(trace.threads.len(), 1);
    let time_in = |name: &str| {
        let name = trace.strings.find(name);
        let own = trace.slices.iter().filter(|slice| Some(slice.name) == name);
        own.map(|slice| slice.dur.0).sum::<i64>()
    };
    // The unwinder skips callers now and then, so one may be without the other.
    assert!(["main", "inner", "outer"].iter().all(|name| time_in(name) > 0), "{all:#?}");
}

#[test]
fn firefox_in_both_layouts() {
    let trace = read("firefox_gecko.json");
    assert_eq!(
        slices(&trace),
        [
            "(root) 1000000 4000000",
            "run 1000000 3000000",
            "step (demo.js:12) 2000000 2000000",
            "Range 2000000 1500000",
            "Pair 4000000 1000000",
            "child 10000000 2000000"
        ]
    );
    assert_eq!(trace.instants.len(), 1);
    let trace = read("firefox_processed.json");
    assert_eq!(
        slices(&trace),
        ["main 1000000 4000000", "outer 1000000 3000000", "inner 2000000 2000000"]
    );
}

#[test]
fn what_is_written_is_read_again() {
    let trace = format::read(&data("kineto_cuda.json")[..], None).unwrap();
    let events = trace.slices.len() + trace.activities.len();
    for format in [Format::Speedscope, Format::Firefox] {
        let mut out = Vec::new();
        format::write(&trace, &mut out, format, Packing::Plain).unwrap();
        let text = std::str::from_utf8(&out).unwrap();
        serde_json::from_str::<serde::de::IgnoredAny>(text).unwrap();
        let again = format::read(&out[..], None).unwrap();
        assert_eq!(again.slices.len(), events, "{format:?}");
        assert!(again.facts.warnings.is_empty(), "{:?}", again.facts.warnings);
        let sum = |trace: &Trace| {
            let slices = trace.slices.iter().filter(|slice| slice.dur.is_finished());
            let slices: i64 = slices.map(|slice| slice.dur.0).sum();
            slices + trace.activities.iter().map(|activity| activity.dur.0).sum::<i64>()
        };
        if trace.slices.iter().all(|slice| slice.dur.is_finished()) {
            assert_eq!(sum(&again), sum(&trace), "{format:?}");
        }
    }
}

#[test]
fn foreign_databases_and_formats_that_are_not_written_are_refused() {
    let mut empty = vec![0; 4096];
    empty[..16].copy_from_slice(b"SQLite format 3\0");
    empty[16] = 16;
    empty[100] = 13;
    let error = format::read(&empty[..], None).unwrap_err().to_string();
    assert!(error.contains("without the tables of Nsight Systems or rocpd"), "{error}");
    let error = format::read(&empty[..50], None).unwrap_err().to_string();
    assert!(error.contains("cut off"), "{error}");
    // An XSpace whose plane has a name that no profiler gives is no trace of Perfetto's either.
    let space = b"\x0a\x12\x12\x09/some:CPU\x1a\x05\x08\x01\x12\x01x\x22\x04host";
    let error = format::read(&space[..], None).unwrap_err().to_string();
    assert!(error.contains("XPlane"), "{error}");
    let trace = Trace::default();
    for format in Format::ALL.into_iter().filter(|format| !format.is_written()) {
        let error = format::write(&trace, Vec::new(), format, Packing::Plain).unwrap_err();
        assert!(error.to_string().contains("not written"), "{error}");
    }
    let error = format::read(&b"{\"shared\":{},\"profiles\":[]}"[..], None).unwrap_err();
    assert!(error.to_string().contains("shared.frames"), "{error}");
}
