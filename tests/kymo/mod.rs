//! The `kymo` that was built for these tests, with the library that was built with it.

// Each test file uses some of it.
#![allow(dead_code)]

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

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
