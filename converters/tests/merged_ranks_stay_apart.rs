//! Two ranks on one timeline: what has the same number in both stays apart, arrows lead
//! where they led, clocks are aligned by the time of day or by collectives. Also through
//! Perfetto's format and JSON.

use kymograph_converters::merge::{Align, Merger, Part, Related};
use kymograph_converters::trace::{Arrow, EventRef, Filter, Nanos, Trace, Value};
use kymograph_converters::{chrome, json, kineto, perfetto};
use oracle::Trace as Opened;

/// A rank's file, as Kineto writes it. All its numbers are those of any other rank: the
/// process, the device, the streams, what joins calls and kernels. Its clock reads `base`
/// more than its times, and is `late` microseconds behind.
fn kineto_file(rank: u32, base: u64, late: u32) -> String {
    let mut events = String::new();
    for step in 0..5u32 {
        let (start, correlation) = (1000 * (step + 1) - late, 10 + step);
        let kernel = 7 + u64::from(rank) + u64::from(step);
        events += &format!(
            r#"
{{"ph": "X", "cat": "cpu_op", "name": "aten::mm r{rank}", "pid": 500, "tid": 500, "ts": {start}, "dur": 300, "args": {{"External id": {correlation}}}}},
{{"ph": "s", "id": {step}, "pid": 500, "tid": 500, "ts": {start}, "cat": "fwdbwd", "name": "fwdbwd"}},
{{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 500, "tid": 500, "ts": {}, "dur": 9, "args": {{"External id": {correlation}, "correlation": {correlation}}}}},
{{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce r{rank}", "pid": 0, "tid": {kernel}, "ts": {}, "dur": {}, "args": {{"External id": {correlation}, "device": 0, "context": 1, "stream": {kernel}, "correlation": {correlation}, "Collective name": "allreduce", "Process Group Name": "0", "Seq": {step}}}}},
{{"ph": "X", "cat": "gpu_user_annotation", "name": "step r{rank}", "pid": 0, "tid": {kernel}, "ts": {}, "dur": 500, "args": {{"External id": {correlation}}}}},
{{"ph": "X", "cat": "cpu_op", "name": "MmBackward r{rank}", "pid": 500, "tid": 501, "ts": {}, "dur": 50, "args": {{"External id": {correlation}}}}},
{{"ph": "f", "id": {step}, "pid": 500, "tid": 501, "ts": {}, "cat": "fwdbwd", "name": "fwdbwd", "bp": "e"}},"#,
            start + 20,
            start + 40 + 10 * rank, // begins when its rank gets there
            700 - 10 * rank,        // and ends when all have
            start + 40,
            start + 400,
            start + 400,
        );
    }
    format!(
        r#"{{
"schemaVersion": 1,
"deviceProperties": [{{"id": 0, "name": "H100"}}, {{"id": 1, "name": "H100"}}],
"distributedInfo": {{"backend": "nccl", "rank": {rank}, "world_size": 2}},
"host_name": "node{rank}",
"baseTimeNanoseconds": {base},
"traceEvents": [{events}
{{"ph": "X", "cat": "overhead", "name": "Buffer Flush r{rank}", "pid": -1, "tid": 0, "ts": 1000, "dur": 5}},
{{"ph": "X", "cat": "Trace", "name": "PyTorch Profiler r{rank}", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 900, "dur": 6000}},
{{"ph": "M", "name": "process_name", "pid": 500, "tid": 0, "ts": 0, "args": {{"name": "python3"}}}},
{{"ph": "M", "name": "process_labels", "pid": 500, "tid": 0, "ts": 0, "args": {{"labels": "CPU"}}}}
]}}"#
    )
}

const BASE: u64 = 1_790_000_000_000_000_000;

/// Rank 0; and rank 1, whose base is three seconds earlier, so that its times are larger.
/// Its clock is 250 µs behind.
fn merged(align: Align) -> (Trace, Vec<Part>) {
    let mut merger = Merger::new();
    for (rank, base, late) in [(0, BASE, 0), (1, BASE, 250)] {
        let file = kineto_file(rank, base, late);
        let trace = chrome::read(file.as_bytes(), &json::Limits::default()).unwrap();
        assert_eq!(trace.facts.warnings, []);
        merger.add(&format!("rank{rank}.json"), trace);
    }
    merger.finish(align)
}

/// `name → name` of all arrows, in order.
fn arrows(trace: &Trace) -> Vec<String> {
    let name = |event| match event {
        EventRef::Slice(id) => trace.strings.get(trace.slices.get(id).name),
        EventRef::Instant(id) => trace.strings.get(trace.instants.get(id).name),
        EventRef::Activity(id) => trace.strings.get(trace.activities.get(id).name),
    };
    let text = |arrow: &Arrow| format!("{} → {}", name(arrow.from), name(arrow.to));
    let all = [trace.flow_arrows(), trace.launch_arrows()].concat();
    let mut all: Vec<String> = all.iter().map(text).collect();
    all.sort();
    all
}

/// Each arrow once for each of five steps.
fn expected_arrows() -> Vec<String> {
    let one = [
        "aten::mm r0 → MmBackward r0",
        "aten::mm r1 → MmBackward r1",
        "cudaLaunchKernel → ncclDevKernel_AllReduce r0",
        "cudaLaunchKernel → ncclDevKernel_AllReduce r1",
    ];
    one.iter().flat_map(|arrow| [*arrow; 5]).map(str::to_owned).collect()
}

#[test]
fn numbers_that_coincide_stay_apart() {
    let (trace, _) = merged(Align::Clocks);
    let processes: Vec<_> = trace
        .processes
        .iter()
        .map(|(id, process)| {
            (process.pid, trace.strings.get(process.name), trace.rank(id), trace.host(id))
        })
        .collect();
    let expected = [
        (500, "python3 (rank 0, node0)", Some(0), "node0".to_owned()),
        (10_000_500, "python3 (rank 1, node1)", Some(1), "node1".to_owned()),
    ];
    assert_eq!(processes, expected);
    let devices: Vec<_> = trace
        .devices
        .iter()
        .map(|(_, device)| (device.number, trace.strings.get(device.name)))
        .collect();
    // The second device of the first file did nothing: its number was free.
    assert_eq!(devices, [(0, "H100 (rank 0, node0)"), (1, "H100 (rank 1, node1)")]);
    assert_eq!(arrows(&trace), expected_arrows());
    assert_eq!((trace.slices.len(), trace.activities.len()), (2 * 22, 10));
}

#[test]
fn perfetto_shows_them_apart() {
    let (trace, _) = merged(Align::Clocks);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("merged.pftrace");
    perfetto::write(&trace, std::fs::File::create(&path).unwrap()).unwrap();
    let opened = Opened::open(&path);
    opened.assert_clean();
    assert_eq!(
        opened.table(
            "SELECT p.pid, p.name AS process, count(*) AS slices, count(DISTINCT t.utid) AS threads
             FROM slice s JOIN thread_track tt ON s.track_id = tt.id
             JOIN thread t USING (utid) JOIN process p USING (upid) GROUP BY 1, 2 ORDER BY 1"
        ),
        "pid       process                  slices  threads\n\
         500       python3 (rank 0, node0)  15      2\n\
         10000500  python3 (rank 1, node1)  15      2\n"
    );
    assert_eq!(
        opened
            .table(
                "SELECT g.name, count(*) AS n, count(DISTINCT t.id) AS rows,
                    extract_arg(t.dimension_arg_set_id, 'ugpu') AS gpu
             FROM gpu_slice g JOIN track t ON t.id = g.track_id
             GROUP BY 1, 4 ORDER BY 1"
            )
            .lines()
            .count(),
        3
    );
    // Of each arrow, both ends are of one rank.
    let crossed = "SELECT count(*) FROM flow f JOIN slice a ON a.id = f.slice_out
                   JOIN slice b ON b.id = f.slice_in
                   WHERE b.name LIKE '%r_' AND a.name LIKE '%r_'
                     AND substr(a.name, -2) != substr(b.name, -2)";
    assert_eq!(opened.one_i64(crossed), 0);
    let launches = "SELECT count(*) FROM flow f JOIN slice a ON a.id = f.slice_out
                    JOIN thread_track tt ON tt.id = a.track_id JOIN thread USING (utid)
                    JOIN process p USING (upid) JOIN gpu_slice g ON g.id = f.slice_in
                    WHERE substr(g.name, -1) = substr(p.name, 15, 1)";
    assert_eq!(opened.one_i64(launches), 10);
    assert_eq!(opened.one_i64("SELECT count(*) FROM flow"), 20);
}

#[test]
fn every_format_keeps_them_apart() {
    let (trace, _) = merged(Align::Clocks);
    let mut bytes = Vec::new();
    perfetto::write(&trace, &mut bytes).unwrap();
    let read = perfetto::read(&bytes[..], Default::default()).unwrap();
    assert_eq!(arrows(&read), expected_arrows());
    let (mut of_kineto, mut of_chrome) = (Vec::new(), Vec::new());
    kineto::write(&trace, &mut of_kineto).unwrap();
    chrome::write(&trace, &mut of_chrome).unwrap();
    for text in [of_kineto, of_chrome] {
        let read = chrome::read(&text[..], &json::Limits::default()).unwrap();
        assert_eq!(arrows(&read), expected_arrows(), "{}", String::from_utf8_lossy(&text));
        let pids: Vec<i64> = read.processes.iter().map(|(_, process)| process.pid).collect();
        assert_eq!(pids, [500, 10_000_500]);
        let rows = read.activities.iter().map(|activity| {
            let device = read.devices[read.queues[activity.queue].device].number;
            let said =
                read.strings.find("device").and_then(|key| read.args.find(activity.args, key));
            assert_eq!(said, Some(Value::I64(device)));
            (device, read.strings.get(activity.name))
        });
        let mut rows: Vec<_> = rows.collect();
        rows.sort();
        rows.dedup();
        let kernels = ["ncclDevKernel_AllReduce r0", "ncclDevKernel_AllReduce r1"];
        assert_eq!(rows, [(0, kernels[0]), (1, kernels[1])]);
        // What lies beside queues, overheads and rows without a process, too.
        let mut tracks: Vec<_> = read
            .slices
            .iter()
            .map(|slice| (slice.track, read.strings.get(slice.name)))
            .filter(|(_, name)| ["step", "Buff", "PyTo"].contains(&&name[..4]))
            .map(|(track, name)| (name, read.ancestors(track).last().unwrap().0, track))
            .collect();
        tracks.sort();
        tracks.dedup();
        let distinct: std::collections::BTreeSet<_> = tracks.iter().map(|row| row.2).collect();
        assert_eq!((tracks.len(), distinct.len()), (2 + 2 + 10, 14), "{tracks:?}");
    }
}

#[test]
fn a_rank_can_be_taken_out_again() {
    let (trace, _) = merged(Align::Clocks);
    let mut bytes = Vec::new();
    perfetto::write(&trace, &mut bytes).unwrap();
    let read = perfetto::read(&bytes[..], Default::default()).unwrap();
    let part = read.filtered(&Filter { ranks: vec![1], ..Filter::default() });
    let names = part.activities.iter().map(|activity| part.strings.get(activity.name));
    assert_eq!(names.collect::<Vec<_>>(), ["ncclDevKernel_AllReduce r1"; 5]);
    let arrows = arrows(&part);
    assert!(arrows.len() == 10 && arrows.iter().all(|arrow| arrow.ends_with("r1")), "{arrows:?}");
}

#[test]
fn clocks_are_aligned() {
    let end = |trace: &Trace, rank| {
        let name = format!("ncclDevKernel_AllReduce r{rank}");
        let of = |activity: &kymograph_converters::trace::Activity| {
            trace.strings.get(activity.name) == name
        };
        trace.activities.iter().filter(of).map(|activity| activity.end().0).min().unwrap()
    };
    let (trace, parts) = merged(Align::Clocks);
    assert_eq!(parts[1].related, Related::TimeOfDay);
    assert_eq!(end(&trace, 0) - end(&trace, 1), 250_000);
    let (trace, parts) = merged(Align::Collectives);
    let found = parts[1].collectives.unwrap();
    assert_eq!((found.offset, found.spread, found.matched), (Nanos(250_000), Nanos(0), 5));
    assert_eq!(end(&trace, 0), end(&trace, 1));
    // The times of day of what was merged are those of the first.
    let began = trace.facts.realtime_offset().unwrap() + trace.time_span().unwrap().0;
    assert_eq!(began, Nanos(BASE as i64 + 900_000));
}

#[test]
fn a_base_of_its_own_is_taken_into_account() {
    let mut merger = Merger::new();
    for (rank, base) in [(0, BASE), (1, BASE - 3_000_000_000)] {
        let file = kineto_file(rank, base, 0);
        merger.add("", chrome::read(file.as_bytes(), &json::Limits::default()).unwrap());
    }
    let (trace, parts) = merger.finish(Align::Clocks);
    // Nothing begins before the merged clock's zero.
    assert_eq!(parts[1].shift - parts[0].shift, Nanos(-3_000_000_000));
    assert_eq!(trace.time_span().unwrap().0, Nanos(0));
    let began = trace.facts.realtime_offset().unwrap();
    assert_eq!(began, Nanos(BASE as i64 - 3_000_000_000 + 900_000));
}
