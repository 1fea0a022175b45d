//! A panic and an abort cause a dump if they are asked to, after the program's own hooks
//! and before its own handlers; and change nothing otherwise.

use harness::child;
use kymograph::{Config, Recording, scope};
use oracle::Trace;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

const TEST: &str = "what_happened_before_is_in_the_dump";

fn record(folder: &Path, on: &str) -> Recording {
    let mut config = Config::to_file(folder.join("t.pftrace"));
    for (key, value) in [("FLIGHT", "1h"), ("FLIGHT_MEMORY", "4M"), ("DUMP_ON", on)] {
        config.set(key, value).unwrap();
    }
    let recording = Recording::start(config).unwrap();
    drop(scope!("before"));
    recording
}

extern "C" fn own_handler(_: libc::c_int) {
    // SAFETY: ends the process, as the program wanted; async-signal-safe.
    unsafe { libc::_exit(42) }
}

fn play(part: &str) -> ! {
    let folder = child::folder();
    match part {
        "panic" => {
            std::panic::set_hook(Box::new(|_| {
                drop(std::fs::write(child::folder().join("hook"), ""))
            }));
            let recording = record(&folder, "panic");
            let _around = scope!("around");
            let _ = std::panic::catch_unwind(|| panic!("as it happens"));
            drop(recording);
        }
        "abort" => {
            std::mem::forget(record(&folder, "abort,panic"));
            let _around = scope!("around");
            std::process::abort();
        }
        "handled" => {
            // SAFETY: a handler of the right type.
            unsafe { libc::signal(libc::SIGABRT, own_handler as *const () as usize) };
            std::mem::forget(record(&folder, "abort"));
            let _around = scope!("around");
            // SAFETY: ends the process.
            unsafe { libc::abort() };
        }
        _ => {
            std::mem::forget(record(&folder, "none"));
            let _around = scope!("around");
            std::process::abort();
        }
    }
    // SAFETY: ends the child without the test harness.
    unsafe { libc::_exit(0) }
}

#[test]
fn what_happened_before_is_in_the_dump() {
    if let Some(part) = child::part() {
        play(&part);
    }
    let aborted = |status: std::process::ExitStatus| status.signal() == Some(libc::SIGABRT);
    for part in ["panic", "abort", "handled", "unasked"] {
        let folder = tempfile::tempdir().unwrap();
        let status = child::run(module_path!(), TEST, part, folder.path());
        let dump = folder.path().join("t.1.pftrace");
        match part {
            "panic" => assert!(status.success() && folder.path().join("hook").exists()),
            "handled" => assert_eq!(status.code(), Some(42), "{part}"),
            _ => assert!(aborted(status), "{part}: {status}"),
        }
        assert_eq!(dump.exists(), part != "unasked", "{part}");
        assert!(!folder.path().join("t.2.pftrace").exists(), "{part}");
        if part != "unasked" {
            let trace = Trace::open(&dump);
            trace.assert_clean();
            let names = "SELECT name || ' ' || (dur = -1) FROM slice ORDER BY ts";
            assert_eq!(trace.strings(names), ["before 0", "around 1"], "{part}");
        }
    }
}
