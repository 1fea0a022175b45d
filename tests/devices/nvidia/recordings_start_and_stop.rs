//! Recordings that a program starts and stops itself, while it uses CUDA: late, a hundred
//! times, and with a fork in between.

use harness::fakes;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use fakes::Machine;
use kymograph::{Config, Recording};
use oracle::Trace;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Tells the child what to do, and where.
const CHILD: &str = "KYMO_TEST_CUDA_CHILD";

/// Runs `child` of this file in a process of its own, on a machine with a fake GPU.
fn run(version: &str, what: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let machine = Machine::with(version);
    let mut command = Command::new(std::env::current_exe().unwrap());
    machine.prepare(&mut command);
    let test = harness::child::name(module_path!(), "child");
    command.args([&test, "--exact", "--nocapture", "--test-threads=1"]);
    command.env(CHILD, format!("{what}:{}", folder.path().display()));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    folder
}

fn kernels(trace: &Trace) -> i64 {
    trace.one_i64("SELECT COUNT(*) FROM gpu_slice")
}

fn arrows(trace: &Trace) -> i64 {
    trace.one_i64("SELECT COUNT(*) FROM flow JOIN gpu_slice g ON g.id = slice_in")
}

#[test]
fn a_recording_that_starts_late_sees_what_comes_after() {
    for version in ["11.8", "12.6", "13.1"] {
        let folder = run(version, "late");
        let trace = Trace::open(folder.path().join("late.pftrace"));
        trace.assert_clean();
        assert_eq!((kernels(&trace), arrows(&trace)), (20, 20), "{version}");
    }
}

fn whole(folder: &tempfile::TempDir, cycles: [u32; 3]) {
    for cycle in cycles {
        let trace = Trace::open(folder.path().join(format!("{cycle}.pftrace")));
        trace.assert_clean();
        assert_eq!((kernels(&trace), arrows(&trace)), (10, 10), "{cycle}");
    }
}

#[test]
fn thirty_recordings_are_each_whole() {
    whole(&run("13.1", "30"), [0, 15, 29]);
}

#[test]
fn a_hundred_recordings_are_each_whole() {
    whole(&run("13.1", "100"), [0, 50, 99]);
}

/// A graph that was captured before anybody recorded is seen node by node.
#[test]
fn graphs_of_before_are_seen() {
    for version in ["11.8", "12.9", "13.4"] {
        let folder = run(version, "graph");
        let trace = Trace::open(folder.path().join("graph.pftrace"));
        trace.assert_clean();
        let nodes = "SELECT c.name AS call, g.name AS node, count(*) AS n FROM flow
                     JOIN gpu_slice g ON g.id = slice_in JOIN slice c ON c.id = slice_out
                     GROUP BY 1, 2 ORDER BY 2";
        assert_eq!(
            trace.table(nodes),
            "call             node             n\n\
             cudaGraphLaunch  Memset (Device)  3\n\
             cudaGraphLaunch  a                3\n\
             cudaGraphLaunch  b                3\n",
            "{version}"
        );
    }
}

/// The end of a recording waits for contexts, but not for one that is gone.
#[test]
fn a_context_may_be_destroyed_meanwhile() {
    let folder = run("12.6", "destroy");
    for name in ["destroy", "again"] {
        let trace = Trace::open(folder.path().join(format!("{name}.pftrace")));
        trace.assert_clean();
        assert_eq!((kernels(&trace), arrows(&trace)), (20, 20), "{name}");
    }
}

#[test]
fn a_forked_child_leaves_cuda_alone() {
    let folder = run("12.6", "fork");
    let trace = Trace::open(folder.path().join("fork.pftrace"));
    trace.assert_clean();
    assert_eq!((kernels(&trace), arrows(&trace)), (20, 20));
}

/// Launches stay slower until CUPTI is gone; before 12.6 that was not safe.
#[test]
fn cupti_leaves_the_process_with_the_next_call() {
    run("13.1", "leave");
    run("12.3", "stay");
}

/// CUPTI leaves where that wait ends, and is asked for nothing there.
#[test]
fn a_recording_may_end_while_a_thread_waits() {
    run("13.1", "waiting");
}

/// How often CUPTI left this process.
fn finalized() -> u32 {
    fake(c"fake_cupti_finalized")
}

/// A number that the fake CUPTI in this process has counted.
fn fake(counter: &CStr) -> u32 {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| line.contains("libcupti")).unwrap();
    let path = CString::new(&line[line.find('/').unwrap()..]).unwrap();
    // SAFETY: the fake declares the function so, and is never unloaded.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD);
        let counter = libc::dlsym(library, counter.as_ptr());
        assert!(!counter.is_null());
        std::mem::transmute::<*mut c_void, extern "C" fn() -> u32>(counter)()
    }
}

/// What the program calls of CUDA.
struct Cuda {
    run: Run,
}

type Run = unsafe extern "C" fn(*const c_char) -> c_int;
type Init = unsafe extern "C" fn(c_uint) -> c_int;

impl Cuda {
    fn load() -> Cuda {
        // SAFETY: the fakes declare their functions so, and are never unloaded.
        unsafe {
            let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW);
            assert!(!library.is_null());
            let init = libc::dlsym(library, c"cuInit".as_ptr());
            let init = std::mem::transmute::<*mut c_void, Init>(init);
            assert_eq!(init(0), 0);
            let run = libc::dlsym(library, c"fake_cuda_run".as_ptr());
            Cuda { run: std::mem::transmute::<*mut c_void, Run>(run) }
        }
    }

    fn work(&self, kernels: u32) {
        self.script(&format!("repeat {kernels}\nkernel k dur=10\nend\nsync\n"));
    }

    fn script(&self, text: &str) {
        let script = CString::new(text).unwrap();
        // SAFETY: a C string.
        assert_eq!(unsafe { (self.run)(script.as_ptr()) }, 0);
    }
}

fn to(path: PathBuf) -> Recording {
    let mut config = Config::default();
    config.output = path;
    Recording::start(config).unwrap()
}

#[test]
fn child() {
    let Ok(orders) = std::env::var(CHILD) else { return };
    let (what, folder) = orders.split_once(':').unwrap();
    let folder = PathBuf::from(folder);
    let cuda = Cuda::load();
    cuda.work(10);
    match what {
        "late" => {
            let recording = to(folder.join("late.pftrace"));
            cuda.work(20);
            let summary = recording.stop();
            assert_eq!(summary.lost, 0);
            cuda.work(10);
        }
        "graph" => {
            cuda.script("graph 5\nkernel a\nkernel b\nset 8\nend\nlaunch 5\nsync\n");
            let recording = to(folder.join("graph.pftrace"));
            cuda.script("repeat 3\nlaunch 5\nend\nsync\n");
            recording.stop();
        }
        "leave" | "stay" => {
            for cycle in 1..4 {
                let recording = to(folder.join("leave.pftrace"));
                cuda.work(10);
                recording.stop();
                assert_eq!(finalized(), if what == "leave" { cycle - 1 } else { 0 });
                cuda.work(1);
                assert_eq!(finalized(), if what == "leave" { cycle } else { 0 });
            }
        }
        "waiting" => {
            let recording = to(folder.join("waiting.pftrace"));
            std::thread::scope(|scope| {
                scope.spawn(|| cuda.script("kernel slow dur=2500ms\nsync stream\n"));
                std::thread::sleep(Duration::from_millis(300));
                // Which waits a second for devices.
                recording.stop();
            });
            cuda.work(1);
            // Whoever saw first that the wait was over has it leave, and may be at it still.
            let deadline = Instant::now() + TIMEOUT;
            while finalized() == 0 && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(1));
            }
            assert_eq!((finalized(), fake(c"fake_cupti_asked_when_gone")), (1, 0));
        }
        "destroy" => {
            for name in ["destroy", "again"] {
                let recording = to(folder.join(format!("{name}.pftrace")));
                cuda.work(10);
                cuda.script("destroy\n");
                cuda.work(10);
                cuda.script("destroy\n");
                recording.stop();
            }
        }
        "30" | "100" => {
            for cycle in 0..what.parse().unwrap() {
                let recording = to(folder.join(format!("{cycle}.pftrace")));
                cuda.work(10);
                recording.stop();
                cuda.work(1);
            }
        }
        _ => {
            let recording = to(folder.join("fork.pftrace"));
            cuda.work(10);
            // SAFETY: the child ends at once, by the way that runs handlers.
            let pid = unsafe { libc::fork() };
            if pid == 0 {
                std::process::exit(0);
            }
            let mut status = 0;
            // SAFETY: a place for the status.
            unsafe { libc::waitpid(pid, &mut status, 0) };
            assert_eq!(status, 0);
            cuda.work(10);
            recording.stop();
        }
    }
}
