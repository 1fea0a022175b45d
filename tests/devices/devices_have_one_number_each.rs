//! Programs that use devices of two vendors, together and one after the other: in the trace each
//! device has a number of its own. The libraries are fakes, since there is no GPU here.

use amd::{Machine, VERSIONS};
use harness::{amd, fakes, nvidia};

#[test]
fn both_in_one_program() {
    let script = "kernel k dur=5us\ncopy htod 64\nkernel k stream=13\nsync\n";
    let cuda = fakes::Machine::with("12.9");
    for version in VERSIONS {
        let prepare = |command: &mut std::process::Command| cuda.prepare(command);
        let machine = Machine::with(version);
        let recorded = machine.record_with(prepare, "--both", script, &["--exit", "3"]);
        recorded.ended(3);
        recorded.trace.assert_clean();
        let gpus = "SELECT model FROM gpu ORDER BY 1";
        assert_eq!(recorded.trace.strings(gpus), ["Fake GPU 0", "Fake Instinct"]);
        assert_eq!(recorded.kernels(), 4);
        let tracks = "SELECT count(DISTINCT track_id) FROM gpu_slice";
        assert_eq!(recorded.trace.one_i64(tracks), 4, "two streams of each");
        // Correlation ids of both begin at 1: arrows must not cross.
        recorded.every_launch_has_its_arrow();
        let copies = "SELECT c.name || ' -> ' || g.name FROM flow JOIN slice c ON c.id = slice_out
                      JOIN gpu_slice g ON g.id = slice_in WHERE g.name LIKE 'Memcpy%' ORDER BY 1";
        assert_eq!(
            recorded.trace.strings(copies),
            [
                "cudaMemcpyAsync -> Memcpy HtoD (Pinned -> Device)",
                "hipMemcpyAsync -> Memcpy HtoD (Host -> Device)",
            ]
        );
    }
}

/// Each vendor, and each process, counts its devices from 0; in a trace they are told apart, and
/// the one that two processes use is one.
#[test]
fn devices_of_several_processes_have_numbers_of_their_own() {
    let (cuda, hip) = (fakes::Machine::with("12.9").devices(2), Machine::with("1.3"));
    let prepare = |command: &mut std::process::Command| {
        cuda.prepare(command);
        hip.prepare(command);
    };
    let script = hip.script("kernel k dur=5us\nkernel k dur=5us stream=13\nsync\n");
    let other = cuda.script("kernel k dur=5us device=1\nsync device=1\n");
    let program = fakes::example("fake_cuda_program");
    let run = |api: &str, script: &std::path::Path| {
        format!("{} {api} {}", program.display(), script.display())
    };
    // One with both, and two with one each, of which one sees only the second of two GPUs.
    let commands =
        [run("--both", &script), run("--hip", &script), run("--cuda", &other)].join("\n");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("commands");
    std::fs::write(&file, commands).unwrap();
    let recorded = nvidia::record_on("hip", prepare, "/bin/sh".as_ref(), &file, &[]);
    recorded.ended(0);
    recorded.trace.assert_clean();
    // Which of two vendors describes its devices first is a race.
    let name = "substr(name, instr(name, '· ') + 2)";
    let gpus = format!("SELECT {name} AS name, vendor FROM gpu ORDER BY 1");
    assert_eq!(
        recorded.trace.table(&gpus),
        "name           vendor\n\
         Fake GPU 0     NVIDIA\n\
         Fake GPU 1     NVIDIA\n\
         Fake Instinct  AMD\n"
    );
    assert_eq!(recorded.trace.table("SELECT gpu FROM gpu ORDER BY 1"), "gpu\n0\n1\n2\n");
    let work = format!(
        "SELECT {} AS device, count(*) AS kernels FROM gpu_slice s
         JOIN gpu_track t ON t.id = s.track_id
         JOIN gpu g ON g.gpu = extract_arg(t.dimension_arg_set_id, 'ugpu') GROUP BY 1 ORDER BY 1",
        name.replace("name", "g.name")
    );
    let expected = "device         kernels\nFake GPU 0     2\nFake GPU 1     1\nFake Instinct  4\n";
    assert_eq!(recorded.trace.table(&work), expected);
    // As in Kineto's JSON, where a device's number is all that there is.
    let json = recorded.json();
    let kernels = json["traceEvents"].as_array().unwrap().iter();
    let kernels = kernels.filter(|event| event["cat"] == "kernel");
    let pids: Vec<_> = kernels.map(|event| event["pid"].as_i64().unwrap()).collect();
    let mut counts = [0, 1, 2].map(|gpu| pids.iter().filter(|pid| **pid == gpu).count());
    counts.sort_unstable();
    assert_eq!((pids.len(), counts), (7, [1, 2, 4]));
    let devices = json["deviceProperties"].as_array().unwrap();
    assert_eq!(devices.iter().map(|it| it["id"].as_i64().unwrap()).collect::<Vec<_>>(), [0, 1, 2]);
}

/// What CUDA calls device 0 is another vendor's in this trace: everything that says a device's
/// number says that of the trace.
#[test]
fn what_tells_of_a_device_has_its_number_in_the_trace() {
    let (cuda, hip) = (fakes::Machine::with("12.9").devices(2), Machine::with("1.3"));
    let prepare = |command: &mut std::process::Command| {
        cuda.prepare(command);
        hip.prepare(command);
    };
    let one = hip.script("kernel hip dur=5us\nsync\n");
    let other = cuda.script("kernel cuda dur=900us\nsync\ncopy peer:1 64\nsync\n");
    let program = fakes::example("fake_cuda_program");
    let line = |api: &str, script: &std::path::Path| {
        format!("{} {api} {}\n", program.display(), script.display())
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("commands");
    std::fs::write(&file, line("--hip", &one) + &line("--cuda", &other)).unwrap();
    let all_args = ["--", "--set", "ALL_ARGS=1"];
    let recorded = nvidia::record_on("hip", prepare, "/bin/sh".as_ref(), &file, &all_args);
    recorded.ended(0);
    recorded.trace.assert_clean();
    let said = "SELECT name, extract_arg(arg_set_id, 'device') AS device,
                       extract_arg(arg_set_id, 'fromDevice') AS source,
                       extract_arg(arg_set_id, 'toDevice') AS target
                FROM gpu_slice ORDER BY name";
    assert_eq!(
        recorded.trace.table(said),
        "name                            device  source  target\n\
         Memcpy PtoP (Device -> Device)  1       1       2\n\
         cuda                            1       NULL    NULL\n\
         hip                             0       NULL    NULL\n"
    );
    let groups = "SELECT DISTINCT name FROM track WHERE name LIKE 'GPU % synchronization'";
    assert_eq!(recorded.trace.strings(groups), ["GPU 1 synchronization"]);
    // As Kineto has it: on the row of the device, with its number.
    let lines = recorded.json_lines(&["\"cuda_sync\""]);
    assert!(!lines.is_empty() && lines.iter().all(|it| it.contains("\"pid\": 1")), "{lines:#?}");
}
