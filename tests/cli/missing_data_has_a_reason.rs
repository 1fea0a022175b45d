//! `kymo record` says why there is nothing, or nothing of something that was asked for, and
//! claims nothing of an output that is not there any more.

use harness::{guest, kymo, users};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Output, Stdio};

/// Ranges in two categories.
const RANGES: &str = "import nvtx
for domain in ('render', 'io'):
    for n in range(5):
        with nvtx.annotate('step %d' % n, domain=domain): pass
";

fn record(folder: &Path, options: &[&str], script: &str) -> (Output, String) {
    let mut command = kymo::kymo();
    command.arg("record").args(options).args(["-o", "t.pftrace", "--", "sh", "-c", script]);
    command.env("PYTHON", oracle::venv_python()).env("RANGES", RANGES).current_dir(folder);
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    (output, said)
}

const RUN: &str = "\"$PYTHON\" -c \"$RANGES\"";

fn slices(path: &Path) -> i64 {
    oracle::Trace::open(path).one_i64("SELECT COUNT(*) FROM slice")
}

#[test]
fn a_category_that_there_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let (_, said) = record(folder.path(), &["--category", "rendr*"], RUN);
    assert!(said.contains("nothing was recorded: nothing is of a category called \"rendr*\""));
    let (_, said) = record(folder.path(), &["--category", "rendr*,io"], RUN);
    assert!(said.contains("--category: nothing is of a category called \"rendr*\";"), "{said}");
    assert!(said.contains("5 events"), "{said}");
    let (_, said) = record(folder.path(), &["--category=-render,-io"], RUN);
    assert!(said.contains("leaves out all categories that there are"), "{said}");
    let (_, said) = record(folder.path(), &["--category", "render,-io"], RUN);
    assert!(!said.contains("--category") && said.contains("5 events"), "{said}");
}

#[test]
fn a_slow_slice_that_there_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let on = ["--flight", "1h", "--dump-on", "exit,stp*>1s,step 1>1h"];
    let (_, said) = record(folder.path(), &on, RUN);
    assert!(said.contains("--dump-on: no slice is called \"stp*\";"), "{said}");
    assert!(said.contains("10 events"), "{said}");
    let on = ["--flight", "1h", "--dump-on", "step *>1h"];
    let (_, said) = record(folder.path(), &on, RUN);
    assert!(!said.contains("--dump-on") && !said.contains("nothing"), "{said}");
}

#[test]
fn a_command_that_was_killed_or_does_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (output, said) = record(folder.path(), &[], "kill -9 $$");
    assert_eq!(output.status.signal(), Some(libc::SIGKILL));
    assert!(said.contains("ended by SIGKILL, before it used anything"), "{said}");
    let (_, said) = record(folder.path(), &[], ":");
    assert!(said.contains("no process used CUDA or PyTorch"), "{said}");
}

#[test]
fn a_process_that_outlives_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = kymo::kymo();
    command.args(["record", "-o", "t.pftrace", "--", "sh", "-c"]);
    // Not before it is what it is going to be.
    let script = "sleep 60 < /dev/null > /dev/null 2> /dev/null & echo $!
                  until [ \"$(cat /proc/$!/comm)\" = sleep ]; do :; done";
    command.arg(script);
    let output = command.current_dir(folder.path()).stdin(Stdio::null()).output().unwrap();
    let pid: i32 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    // SAFETY: no pointers; a process of this test.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains(&format!("1 process that the command started still runs ({pid} sleep)")));
}

#[test]
fn operators_of_daemon_threads() {
    let folder = tempfile::tempdir().unwrap();
    let torch = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/pytorch");
    let script = format!(
        "PYTHONDONTWRITEBYTECODE=1 PYTHONPATH={torch} \"$PYTHON\" -c \"import threading, torch
thread = threading.Thread(target=torch.add, daemon=True)
thread.start()
thread.join()\""
    );
    let (_, said) = record(folder.path(), &[], &script);
    assert!(said.contains("operators of PyTorch in daemon threads are left out"), "{said}");
    let (_, said) = record(folder.path(), &["--pytorch", "on"], &script);
    assert!(!said.contains("daemon") && said.contains("1 thread"), "{said}");
}

/// A process that gives up its privileges is recorded on; a program that it becomes then may
/// not join.
#[test]
fn a_program_that_was_started_without_privileges() {
    if !users::are_possible() {
        return;
    }
    // Where everybody may read.
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let [library, program] = ["libkymograph.so", "program"].map(|name| folder.path().join(name));
    std::fs::copy(kymo::library(), &library).unwrap();
    guest::compile("cc", "starts_without_privileges.c", &program, &[]);
    let mut command = kymo::kymo();
    command.env("KYMOGRAPH_LIBRARY", &library).current_dir(folder.path());
    let output = command.args(["record", "-o", "t.pftrace", "--"]).arg(&program).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("1 process ran as another user (65534)"), "{said}");
    assert!(said.contains("6 events, 0 lost"), "{said}");
}

#[test]
fn an_output_that_is_not_there_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (_, said) = record(folder.path(), &[], &format!("{RUN}; rm t.pftrace"));
    assert!(said.contains("was removed while it was written"), "{said}");
    assert!(!said.contains("kymo open") && !at("t.pftrace").exists(), "{said}");

    let (_, said) = record(folder.path(), &[], &format!("{RUN}; mv t.pftrace moved.pftrace"));
    assert!(said.contains("was moved") && said.contains("kymo open"), "{said}");
    assert_eq!(slices(&at("moved.pftrace")), 10);

    let replace = format!("{RUN}; mv t.pftrace old.pftrace; head -c 100000 /dev/zero > t.pftrace");
    let (_, said) = record(folder.path(), &[], &replace);
    assert!(said.contains("was replaced by another file"), "{said}");
    assert_eq!(slices(&at("old.pftrace")), 10);
    assert_eq!(at("t.pftrace").metadata().unwrap().len(), 100_000, "that is another's");

    std::fs::remove_file(at("t.pftrace")).unwrap();
    // Before anything is written there is nothing to cut.
    let written = "timeout 30 sh -c 'until [ -s t.pftrace ]; do sleep 0.01; done'";
    let (_, said) = record(folder.path(), &[], &format!("{RUN}; {written}; : > t.pftrace"));
    assert!(said.contains("was cut short") && !said.contains("0 lost →"), "{said}");
}
