//! Device records become render stages: on their queues, with kernel, launch and arguments,
//! and an arrow from the call that asked for each.

use harness::alone;
use kymograph::{Config, Recording};
use kymograph_protos::StrId;
use kymograph_protos::device::{DeviceSlot, GpuApi, LaunchSlot, Stage};
use kymograph_protos::record::{ArgType, Extra, Kind, NANOS, Record};
use oracle::Trace;

fn now() -> u64 {
    kymograph::clock::system(libc::CLOCK_BOOTTIME)
}

fn push_activity(start: u64, end: u64, correlation: u64, name: &str, queue: u32, stage: Stage) {
    let recorder = kymograph::recorder();
    let text = |t: &str| recorder.intern(StrId::NONE, t.as_bytes());
    let head = Record {
        time: start,
        other: end,
        arg: correlation,
        site: text(name),
        kind: Kind::Device as u8,
        tag: NANOS,
        ..Record::default()
    };
    let device = DeviceSlot {
        queue,
        stage: stage as u8,
        launch: u8::from(stage == Stage::Kernel),
        ..Default::default()
    };
    let launch = LaunchSlot { grid: [132, 1, 1], block: [256, 2, 1], registers: 168, shared: 4096 };
    let mut extras = device.extras().to_vec();
    if stage == Stage::Kernel {
        extras.extend(launch.extras());
    }
    extras.push(Extra::new(text("device"), ArgType::I64, 0));
    extras.push(Extra::new(text("stream"), ArgType::I64, 7));
    assert!(recorder.push(head, &extras));
}

#[test]
fn device_work_is_shown_with_its_arrows() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pftrace");
    let mut config = Config::default();
    config.output.clone_from(&path);
    let recording = Recording::start(config).unwrap();
    let recorder = kymograph::recorder();
    let text = |t: &str| recorder.intern(StrId::NONE, t.as_bytes());

    let gpu = Record { site: text("Testing GPU"), kind: Kind::Gpu as u8, ..Record::default() };
    let vendor = Extra::new(text("vendor"), ArgType::Str, text("ACME").0.into());
    recorder.push(gpu, &[vendor]);
    let queue =
        Record { other: 0, site: text("Stream 07"), kind: Kind::Queue as u8, ..Record::default() };
    let args = [
        Extra::new(text("stream"), ArgType::U64, 7),
        Extra::new(text("context"), ArgType::U64, 1),
        Extra::new(text("api"), ArgType::U64, GpuApi::Cuda as u64),
    ];
    recorder.push(queue, &args);

    let start = now();
    for n in 0..50u64 {
        let category = text("cuda_runtime");
        let site = recorder.intern(category, b"cudaLaunchKernel");
        let begin = Record {
            time: recorder.now(),
            site,
            kind: Kind::Begin as u8,
            tag: ArgType::Launch as u8,
            arg: n + 1,
            ..Record::default()
        };
        assert!(recorder.push(begin, &[]));
        let end = Record { time: recorder.now(), kind: Kind::End as u8, ..Record::default() };
        assert!(recorder.push(end, &[]));
        // Two that overlap on one queue keep their durations.
        push_activity(start + n * 1000, start + n * 1000 + 1500, n + 1, "gemm", 0, Stage::Kernel);
    }
    push_activity(
        start,
        start + 10,
        99,
        "Memcpy HtoD (Pinned -> Device)",
        0,
        Stage::MemoryTransfer,
    );
    let summary = recording.stop();
    assert_eq!((summary.events, summary.lost), (101, 0));

    let trace = Trace::open(&path);
    trace.assert_clean();
    let sums = "SELECT s.name, COUNT(*), SUM(dur) FROM gpu_slice s GROUP BY 1 ORDER BY 1";
    assert_eq!(
        format!("{:?}", trace.rows(sums)),
        r#"[[String("Memcpy HtoD (Pinned -> Device)"), Number(1), Number(10)], [String("gemm"), Number(50), Number(75000)]]"#
    );
    let arrows = "SELECT COUNT(*) FROM flow f JOIN slice a ON a.id = f.slice_out
                  JOIN gpu_slice b ON b.id = f.slice_in
                  WHERE a.name = 'cudaLaunchKernel' AND b.name = 'gemm'";
    assert_eq!(trace.one_i64(arrows), 50);
    let args = "SELECT DISTINCT key || '=' || display_value FROM gpu_slice s JOIN args a USING (arg_set_id)
                WHERE s.name = 'gemm' AND (key LIKE 'launch.%' OR key IN ('stream', 'device', 'registers_per_thread', 'shared_mem_static'))
                ORDER BY 1";
    assert_eq!(
        trace.strings(args),
        [
            "device=0",
            "launch.grid_size.x=132",
            "launch.grid_size.y=1",
            "launch.grid_size.z=1",
            "launch.workgroup_size.x=256",
            "launch.workgroup_size.y=2",
            "launch.workgroup_size.z=1",
            "registers_per_thread=168",
            "shared_mem_static=4096",
            "stream=7",
        ]
    );
    assert_eq!(
        trace.strings("SELECT name || '/' || vendor FROM gpu"),
        ["GPU 0 · Testing GPU/ACME"]
    );
}
