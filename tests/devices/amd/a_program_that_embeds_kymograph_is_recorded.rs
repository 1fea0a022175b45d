//! A program that has the library in it, and not around it: rocprofiler-sdk is configured when
//! the recording starts. Where that is too late, the trace says so.

use harness::{amd, child};
use std::ffi::{CString, c_char, c_int};
use std::path::Path;

use amd::Machine;
use kymograph::{Config, Recording};
use oracle::Trace;

const SCRIPT: &str = "kernel k dur=2us\ncopy htod 64\nkernel k stream=13\nset 8\nsync\n";

/// HIP, loaded as a program is that is linked with it.
fn hip() -> libloading::Library {
    // SAFETY: the fake's constructors do nothing.
    unsafe {
        libloading::os::unix::Library::open(
            Some("libamdhip64.so.6"),
            libc::RTLD_NOW | libc::RTLD_GLOBAL,
        )
    }
    .unwrap()
    .into()
}

fn run(hip: &libloading::Library, script: &str) {
    let script = CString::new(script).unwrap();
    // SAFETY: the fake declares it so.
    unsafe {
        let run = hip.get::<unsafe extern "C" fn(*const c_char) -> c_int>(b"fake_hip_run").unwrap();
        assert_eq!(run(script.as_ptr()), 0);
    }
}

fn record(folder: &Path, name: &str, body: impl FnOnce()) {
    let recording = Recording::start(Config::to_file(folder.join(name))).unwrap();
    body();
    recording.stop();
}

/// What the process does that embeds us.
fn in_the_child(part: &str, folder: &Path) {
    match part {
        "early" => {
            let hip = hip();
            record(folder, "t.pftrace", || run(&hip, SCRIPT));
        }
        "late" => {
            let hip = hip();
            run(&hip, "kernel before\nsync\n");
            record(folder, "t.pftrace", || run(&hip, SCRIPT));
        }
        "loaded-late" => record(folder, "t.pftrace", || run(&hip(), SCRIPT)),
        "often" => {
            let hip = hip();
            for round in 0..8 {
                record(folder, &format!("{round}.pftrace"), || run(&hip, SCRIPT));
                run(&hip, "kernel between\nsync\n");
            }
        }
        "fork" => {
            let hip = hip();
            record(folder, "t.pftrace", || {
                run(&hip, "kernel k dur=2us\ncopy htod 64\nsync\n");
                // SAFETY: the child only records an event and ends.
                match unsafe { libc::fork() } {
                    0 => {
                        drop(kymograph::scope!("in the child"));
                        // SAFETY: ends the process.
                        unsafe { libc::_exit(0) };
                    }
                    child => {
                        let mut status = -1;
                        // SAFETY: a place for the status.
                        unsafe { libc::waitpid(child, &mut status, 0) };
                        assert_eq!(status, 0, "how the child ended");
                    }
                }
                run(&hip, "kernel k stream=13\nset 8\nsync\n");
            });
        }
        "without" => record(folder, "t.pftrace", || {}),
        _ => unreachable!("{part}"),
    }
}

/// Runs it on a machine.
fn embed(machine: &Machine, part: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut command = child::command(module_path!(), "programs_that_embed_us", part, folder.path());
    machine.prepare(&mut command);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{part}: {}", String::from_utf8_lossy(&output.stderr));
    folder
}

fn whole(trace: &Trace) {
    trace.assert_clean();
    let work = "SELECT name, count(*) AS n FROM gpu_slice GROUP BY 1 ORDER BY 1";
    let expected = "name                          n\n\
                    Memcpy HtoD (Host -> Device)  1\n\
                    Memset (Device)               1\n\
                    k                             2\n";
    assert_eq!(trace.table(work), expected);
    assert_eq!(trace.one_i64("SELECT count(*) FROM flow"), 4);
}

#[test]
fn programs_that_embed_us() {
    if let Some(part) = child::part() {
        return in_the_child(&part, &child::folder());
    }
    let open = |folder: &tempfile::TempDir| Trace::open(folder.path().join("t.pftrace"));
    for version in amd::VERSIONS {
        whole(&open(&embed(&Machine::with(version), "early")));
    }
    // Nothing of HIP survives in a child; its parent goes on.
    whole(&open(&embed(&Machine::with("1.0"), "fork")));
    // ROCm 7.13 can be asked later.
    whole(&open(&embed(&Machine::with("1.3"), "late")));
    // An older rocprofiler-register does not tell whether HIP was used.
    const EACH: &str = "rocprofiler_register_iterate_registration_info";
    whole(&open(&embed(&Machine::with("1.0").register_without(EACH), "early")));
    whole(&open(&embed(&Machine::with("1.3").register_without(EACH), "late")));

    let said = |machine: &Machine, part: &str, why: &str| {
        let trace = open(&embed(machine, part));
        trace.assert_clean();
        assert_eq!(trace.one_i64("SELECT count(*) FROM gpu_slice"), 0);
        let all = trace.strings("SELECT name FROM slice WHERE name LIKE 'HIP is not recorded%'");
        assert!(all.len() == 1 && all[0].contains(why), "{part}: {why}, said: {all:?}");
    };
    let late = "HIP was used before the recording started, and rocprofiler-sdk 1.0.0";
    said(&Machine::with("1.0"), "late", late);
    said(&Machine::with("1.0").fault("initialized"), "early", late);
    // ROCm 7.2.4 has a rocprofiler-sdk 1.3.0, too.
    let later = "HIP was used before the recording started, and rocprofiler-sdk 1.3.0";
    said(&Machine::with("1.3").never_late(), "late", later);
    let again = "rocprofiler_register_invoke_all_registrations";
    said(&Machine::with("1.3").register_without(again), "late", later);
    let unsaid = "no call of HIP was seen; if the program made some, it had used HIP before";
    said(&Machine::with("1.0").register_without(EACH), "late", unsaid);
    said(&Machine::with("1.0"), "loaded-late", "loaded after the recording started");
    said(&Machine::with("1.0").fault("other-tool"), "early", "another tool may have configured");
    said(&Machine::with("0.5").fault("other-tool"), "early", "Configuration has been locked (15)");
    said(&Machine::without_rocprofiler(), "early", "no librocprofiler-sdk.so");
    said(&Machine::with("0.3"), "early", "0.3.0 is older than 0.5.0");

    // No HIP, no word of it.
    let quiet = open(&embed(&Machine::with("1.0"), "without"));
    assert_eq!(quiet.one_i64("SELECT count(*) FROM slice WHERE name LIKE 'HIP%'"), 0);
}

#[test]
fn recordings_that_follow_each_other() {
    let folder = embed(&Machine::with("1.0"), "often");
    for round in 0..8 {
        let trace = Trace::open(folder.path().join(format!("{round}.pftrace")));
        whole(&trace);
        assert_eq!(trace.one_i64("SELECT count(*) FROM gpu_slice WHERE name = 'between'"), 0);
    }
}
