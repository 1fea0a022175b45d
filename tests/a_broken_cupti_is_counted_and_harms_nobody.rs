//! Whatever CUPTI does wrong, the program runs as it would, and the trace says what is
//! missing.

#[path = "../backends/tests/fakes/mod.rs"]
mod fakes;
mod kymo;

use std::process::Output;

use fakes::Machine;
use judge::Trace;
use tempfile::TempDir;

const SCRIPT: &str = "repeat 100\nkernel k dur=10\nend\nsync\n";

struct Recorded {
    trace: Trace,
    lost: u64,
    _folder: TempDir,
}

fn run(machine: &Machine, script: &str, options: &[(&str, &str)]) -> (Output, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = kymo::kymo();
    machine.prepare(&mut command);
    command.envs(options.iter().map(|(key, value)| (format!("KYMOGRAPH_{key}"), value)));
    command.args(["record", "-o"]).arg(folder.path().join("t.pftrace")).arg("--");
    command.arg(machine.program()).arg(machine.script(script)).args(["--exit", "7"]);
    (command.output().unwrap(), folder)
}

fn record(machine: &Machine, script: &str) -> Recorded {
    let (output, folder) = run(machine, script, &[]);
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(7), "{messages}");
    let lost = messages.split(" lost").next().and_then(|m| m.rsplit(' ').next());
    let lost = lost.and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{messages}"));
    Recorded { trace: Trace::open(folder.path().join("t.pftrace")), lost, _folder: folder }
}

impl Recorded {
    fn kernels(&self) -> i64 {
        self.trace.one_i64("SELECT COUNT(*) FROM gpu_slice WHERE name = 'k'")
    }

    fn calls(&self) -> i64 {
        self.trace.one_i64("SELECT COUNT(*) FROM slice WHERE name = 'cudaLaunchKernel'")
    }

    fn fact(&self, key: &str) -> i64 {
        let sql = "SELECT int_value FROM metadata WHERE name LIKE 'trace_attribute.cuda.%.";
        self.trace.one_i64(&format!("{sql}{key}'"))
    }

    fn why_not(&self) -> String {
        let sql = "SELECT str_value FROM metadata WHERE name LIKE '%.not_recorded'";
        self.trace.strings(sql).join("; ")
    }
}

#[test]
fn records_that_cupti_drops_are_counted() {
    let recorded = record(&Machine::with("13.1").fault("drop:10"), SCRIPT);
    assert_eq!((recorded.kernels(), recorded.calls(), recorded.lost), (90, 100, 10));
    assert_eq!(recorded.fact("lost.dropped_by_cupti"), 10);
    let said = "SELECT COUNT(*) FROM slice WHERE name LIKE '% CUDA records dropped'";
    assert!(recorded.trace.one_i64(said) > 0);
}

#[test]
fn work_without_times_is_counted_and_not_shown() {
    let recorded = record(&Machine::with("12.6").fault("zero-times:10"), SCRIPT);
    assert_eq!((recorded.kernels(), recorded.calls(), recorded.lost), (90, 100, 10));
    assert_eq!(recorded.fact("lost.without_times"), 10);
}

#[test]
fn odd_records_and_buffers_cost_nothing_else() {
    for (fault, kernels) in [
        ("unknown-kind", 100),
        ("empty-buffers", 100),
        ("hoard", 100),
        ("out-of-order", 100),
        ("zero-correlation:10", 100),
        ("truncated", 99),
    ] {
        let recorded = record(&Machine::with("13.1").fault(fault), SCRIPT);
        assert_eq!((recorded.kernels(), recorded.calls()), (kernels, 100), "{fault}");
        if fault == "zero-correlation:10" {
            let arrows = "SELECT COUNT(*) FROM flow";
            assert_eq!(recorded.trace.one_i64(arrows), 90);
        }
    }
    for version in ["12.3", "13.1"] {
        let recorded = record(&Machine::with(version).fault("invalid-kind:40"), SCRIPT);
        assert!(recorded.fact("buffers_broken") > 0, "{version}");
        assert_eq!(recorded.calls(), 100);
    }
}

#[test]
fn kernels_without_names_are_there() {
    let recorded = record(&Machine::with("12.6").fault("no-name"), SCRIPT);
    let names = "SELECT DISTINCT name FROM gpu_slice";
    assert_eq!(recorded.trace.strings(names), ["<unknown>"]);
    assert_eq!(recorded.lost, 0);
}

#[test]
fn a_cupti_that_others_use_is_left_to_them() {
    let script = "call cudaMalloc\nsync\n";
    let recorded = record(&Machine::with("12.6").fault("other-subscriber"), script);
    let why = recorded.why_not();
    assert!(why.contains("uses CUPTI in this process"), "{why}");
}

#[test]
fn a_cupti_that_fails_is_said() {
    for (fault, expected) in [
        ("errors", "does not work here"),
        ("error:cuptiSubscribe=2", "cuptiSubscribe: "),
        ("error:cuptiActivityRegisterCallbacks=15", "cuptiActivityRegisterCallbacks: "),
    ] {
        let recorded = record(&Machine::with("12.6").fault(fault), SCRIPT);
        let why = recorded.why_not();
        assert!(why.contains(expected), "{fault}: {why}");
        assert_eq!(recorded.kernels(), 0);
    }
    let machine = Machine::with("12.6").without("cuptiActivityFlushAll");
    assert!(record(&machine, SCRIPT).why_not().contains("has no cuptiActivityFlushAll"));
}

#[test]
fn functions_of_later_versions_are_not_missed() {
    for function in ["cuptiActivityEnableAndDump", "cuptiActivityRegisterTimestampCallback"] {
        let recorded = record(&Machine::with("13.1").without(function), SCRIPT);
        assert_eq!((recorded.kernels(), recorded.lost), (100, 0), "{function}");
    }
}

#[test]
fn without_a_driver_or_without_cupti_programs_run() {
    let recorded = record(&Machine::with_driver_only("12.6"), SCRIPT);
    let why = recorded.why_not();
    assert!(why.contains("CUPTI_PATH"), "{why}");
    let (output, _folder) = run(&Machine::without_driver("12.6"), SCRIPT, &[]);
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "no CUDA\n");
}

#[test]
fn cupti_is_found_where_it_is_said_to_be() {
    let machine = Machine::with_driver_only("12.6");
    let elsewhere = Machine::with("12.6");
    let folder = elsewhere.cupti().parent().unwrap().to_owned();
    for path in [elsewhere.cupti(), folder] {
        let (output, folder) = run(&machine, SCRIPT, &[("CUPTI_PATH", path.to_str().unwrap())]);
        assert_eq!(output.status.code(), Some(7));
        let trace = Trace::open(folder.path().join("t.pftrace"));
        assert_eq!(trace.one_i64("SELECT COUNT(*) FROM gpu_slice"), 100);
    }
}

#[test]
fn a_flush_that_hangs_does_not_hang_the_program() {
    let started = std::time::Instant::now();
    let recorded = record(&Machine::with("12.6").fault("flush-hangs"), SCRIPT);
    assert_eq!(recorded.calls(), 100);
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}
