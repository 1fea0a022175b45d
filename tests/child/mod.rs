//! Runs a part of a test in a process of its own: the test program again, with one test,
//! which asks [`part`] what to do.

// Each test file uses some of it.
#![allow(dead_code)]

use kymograph::Config;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// What this process is to do; nothing if it is the test itself.
pub(crate) fn part() -> Option<String> {
    std::env::var("KYMO_TEST_PART").ok()
}

/// The folder of the test that started this process.
pub(crate) fn folder() -> PathBuf {
    std::env::var_os("KYMO_TEST_FOLDER").expect("is a part of a test").into()
}

/// A process that runs `part` of the test called `test`, on its main thread.
pub(crate) fn command(test: &str, part: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
    command.env("KYMO_TEST_PART", part).env("KYMO_TEST_FOLDER", folder);
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

/// Runs it to its end, quietly unless it fails in an unexpected way.
#[track_caller]
pub(crate) fn run(test: &str, part: &str, folder: &Path) -> ExitStatus {
    command(test, part, folder).output().unwrap().status
}

/// Writes to `name` in `folder`.
pub(crate) fn config(folder: &Path, name: &str) -> Config {
    let mut config = Config::default();
    config.set("OUTPUT", folder.join(name)).unwrap();
    config
}

/// Kilobytes of this process that are in memory, without what the allocator keeps for later.
pub(crate) fn resident_kb() -> u64 {
    // SAFETY: may be called at any time.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0)
    };
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
