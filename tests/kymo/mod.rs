//! The `kymo` that was built for these tests, with the library that was built with it.

// Each test file uses some of it.
#![allow(dead_code)]

use std::ops::{Deref, DerefMut};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};

/// The library that `cargo test` built: it does not put it beside the binary, where an
/// older one from `cargo build` may lie.
pub(crate) fn library() -> PathBuf {
    let folder = Path::new(env!("CARGO_BIN_EXE_kymo")).parent().unwrap();
    folder.join("deps/libkymograph.so")
}

/// Variables by which libraries are loaded, or told which one is to collect.
pub(crate) const COLLECTORS: [&str; 4] =
    ["LD_PRELOAD", "NVTX_INJECTION64_PATH", "INTEL_LIBITTNOTIFY64", "CUDA_INJECTION64_PATH"];

/// `kymo` without arguments, and with no options in its environment.
pub(crate) fn kymo() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kymo"));
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
pub(crate) fn heed_signals(command: &mut Command) {
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

/// A process with all that it starts: in a group of its own, which is killed when this is dropped,
/// also when a test fails. What goes on then would hold the pipes of whoever runs the tests.
#[derive(Debug)]
pub(crate) struct Guarded {
    child: Option<Child>,
    group: i32,
}

impl Guarded {
    #[track_caller]
    pub(crate) fn start(command: &mut Command) -> Guarded {
        let child = command.process_group(0).spawn().unwrap();
        let group = child.id() as i32;
        Guarded { child: Some(child), group }
    }

    /// Waits for its end, and for all that it says until then.
    pub(crate) fn wait_with_output(mut self) -> Output {
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
        // SAFETY: takes numbers. The group has its number for as long as anybody is in it, or its
        // first process was not waited for.
        unsafe { libc::kill(-self.group, libc::SIGKILL) };
        if let Some(mut child) = self.child.take() {
            let _ = child.wait();
        }
    }
}
