//! The `kymo` that was built for these tests, with the library that was built with it.

use std::ops::{Deref, DerefMut};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};

/// The command itself, which cargo builds for the tests of the root package.
pub fn binary() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).expect("target/<profile>/deps");
    let binary = profile.join("kymo");
    assert!(binary.exists(), "cargo did not build {}", binary.display());
    binary
}

/// The library that `cargo test` built: it does not put it beside the binary, where an
/// older one from `cargo build` may lie.
pub fn library() -> PathBuf {
    binary().with_file_name("deps").join("libkymograph.so")
}

/// Variables by which libraries are loaded, or told which one is to collect.
pub const COLLECTORS: [&str; 4] =
    ["LD_PRELOAD", "NVTX_INJECTION64_PATH", "INTEL_LIBITTNOTIFY64", "CUDA_INJECTION64_PATH"];

/// `kymo` without arguments, and with no options in its environment.
pub fn kymo() -> Command {
    let mut command = Command::new(binary());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("KYMOGRAPH_") {
            command.env_remove(name);
        }
    }
    for name in COLLECTORS {
        command.env_remove(name);
    }
    command.env("KYMOGRAPH_LIBRARY", library());
    command
}

/// Has signals end the command, or do what its traps say: what runs the tests may ignore some,
/// such as a shell that was told to go on (`&`, `nohup`), and a shell cannot trap these.
pub fn heed_signals(command: &mut Command) {
    // SAFETY: `signal` is async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            for signal in 1..32 {
                libc::signal(signal, libc::SIG_DFL);
            }
            Ok(())
        });
    }
}

/// A process that is killed when this is dropped, also when a test fails. A process that goes on
/// holds the pipes of the program that runs the tests.
#[derive(Debug)]
pub struct Guarded {
    child: Option<Child>,
    /// Killed as well, if the process leads one.
    group: Option<i32>,
}

impl Guarded {
    /// In a group of its own, which is killed with all that the process has started.
    #[track_caller]
    pub fn start(command: &mut Command) -> Guarded {
        let child = command.process_group(0).spawn().unwrap();
        let group = Some(child.id() as i32);
        Guarded { child: Some(child), group }
    }

    /// In the group and session that the command says.
    #[track_caller]
    pub fn start_in_its_group(command: &mut Command) -> Guarded {
        Guarded { child: Some(command.spawn().unwrap()), group: None }
    }

    /// Waits for its end, and for all that it says until then.
    pub fn wait_with_output(mut self) -> Output {
        self.child.take().unwrap().wait_with_output().unwrap()
    }
}

impl Deref for Guarded {
    type Target = Child;

    fn deref(&self) -> &Child {
        self.child.as_ref().unwrap()
    }
}

impl DerefMut for Guarded {
    fn deref_mut(&mut self) -> &mut Child {
        self.child.as_mut().unwrap()
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            // SAFETY: takes numbers. The group has its number for as long as a process is in it, or
            // its first one was not waited for.
            unsafe { libc::kill(-group, libc::SIGKILL) };
        }
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
