//! Runs a test, or a part of one, in a process of its own: the test program again, with one test.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// Names the test that a process was started for by [`alone!`](crate::alone).
const ALONE: &str = "KYMO_TEST_ALONE";

/// Has the rest of the test run in a process of its own, which nothing else uses: for tests that
/// record in their own process, or change what belongs to all of it, such as limits, signals
/// and descriptors.
#[macro_export]
macro_rules! alone {
    () => {
        fn here() {}
        if !$crate::child::is_alone(std::any::type_name_of_val(&here)) {
            return;
        }
    };
}

/// Whether this process was started for the test around the function called `inner`. If not,
/// starts such a process, waits for its end, and fails if it fails.
#[track_caller]
pub fn is_alone(inner: &str) -> bool {
    let test = inner.split_once("::").and_then(|(_, path)| path.strip_suffix("::here"));
    let test = test.unwrap_or_else(|| panic!("{inner} is no function in a test"));
    if part().is_some() || std::env::var_os(ALONE).is_some_and(|name| name == test) {
        return true;
    }
    // Not on the main thread, as in any test program: `set_thread_name` and the like mean less
    // there.
    let output = this_program(test, "--test-threads=2").env(ALONE, test).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{test}: {}\n{out}{err}", output.status);
    // A name that no test has would run none, and succeed.
    assert!(out.contains("1 passed"), "{test} did not run\n{out}{err}");
    print!("{out}");
    false
}

/// What this process is to do; nothing if it is the test itself.
pub fn part() -> Option<String> {
    std::env::var("KYMO_TEST_PART").ok()
}

/// The folder of the test that started this process.
pub fn folder() -> PathBuf {
    std::env::var_os("KYMO_TEST_FOLDER").expect("is a part of a test").into()
}

/// A process that runs `part` of the test called `test` in `module` (`module_path!()`), on its
/// main thread.
pub fn command(module: &str, test: &str, part: &str, folder: &Path) -> Command {
    let mut command = this_program(&name(module, test), "--test-threads=1");
    command.env("KYMO_TEST_PART", part).env("KYMO_TEST_FOLDER", folder);
    command
}

/// What the test harness calls the test `test` in `module` (`module_path!()`).
pub fn name(module: &str, test: &str) -> String {
    match module.split_once("::") {
        Some((_, modules)) => format!("{modules}::{test}"),
        None => test.to_owned(),
    }
}

/// Runs it to its end, quietly unless it fails in an unexpected way.
#[track_caller]
pub fn run(module: &str, test: &str, part: &str, folder: &Path) -> ExitStatus {
    command(module, test, part, folder).output().unwrap().status
}

fn this_program(test: &str, threads: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--include-ignored", "--nocapture", threads]);
    // No core files: some parts abort.
    // SAFETY: setrlimit is async-signal-safe and reads the struct.
    unsafe {
        std::os::unix::process::CommandExt::pre_exec(&mut command, || {
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            libc::setrlimit(libc::RLIMIT_CORE, &none);
            Ok(())
        });
    }
    command
}

/// Kilobytes of this process that are in memory, without what the allocator keeps for later.
pub fn resident_kb() -> u64 {
    // SAFETY: may be called at any time.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0)
    };
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
