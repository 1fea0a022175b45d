//! Python programs with the real NVTX and ITT packages, against the probe library.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The example library, which `cargo test` builds beside the tests.
fn probe() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    profile.join("examples/libannotate_probe.so")
}

/// Runs a program with the probe as `variable`'s tool and returns what it was told.
fn run(program: &str, variable: &str) -> Vec<String> {
    let lines = std::env::temp_dir().join(format!("{program}.{}", std::process::id()));
    let _ = std::fs::remove_file(&lines);
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let output = Command::new(oracle::venv_python())
        .arg(programs.join(program))
        .env("KYMO_PROBE_LINES", &lines)
        .env(variable, probe())
        .output()
        .expect("Python runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(errors, "");
    let text = std::fs::read_to_string(&lines).expect("the probe was loaded");
    let _ = std::fs::remove_file(&lines);
    text.lines().map(str::to_owned).collect()
}

/// Python's NVTX gives every event a colour, blue by default.
#[test]
fn python_nvtx() {
    let expected = [
        "push nvtx \"plain\" color=255u",
        "push nvtx \"inner\" category=\"phase\" color=16711680u payload=7",
        "pop nvtx",
        "pop nvtx",
        "pop nvtx",
        "push train \"data\" category=\"io\" color=1193046u payload=0.5",
        "push train \"batch\" color=255u payload=-3",
        "pop train",
        "pop train",
        "instant nvtx \"list\" color=255u size=3u data[0]=1 data[1]=2 data[2]=3",
        "instant nvtx \"text\" color=255u str128=\"gr\u{fc}n\"",
        "instant nvtx \"struct\" color=255u step=12 loss=0.25 dims[0]=4u dims[1]=5u dims[2]=6u",
        "begin train \"a\" r1 color=255u",
        "begin nvtx \"b\" r2 color=255u",
        "end r1",
        "end r2",
        "push train \"by domain\" color=255u",
        "pop train",
        "counter train \"loss\" 1.5",
        "counter train \"loss\" 0.5",
        "counter train \"steps\" 3",
        "push nvtx \"worker\" color=255u",
        "pop nvtx",
    ];
    assert_eq!(run("nvtx_program.py", "NVTX_INJECTION64_PATH"), expected);
}

#[test]
fn python_itt() {
    let expected = [
        "push solver \"step\"",
        "push solver \"inner\"",
        "pop solver",
        "pop solver",
        "begin solver \"first\" r1",
        "begin solver \"second\" r2",
        "end r1",
        "end r2",
        "begin itt \"checkpoint\" r3",
        "end r3",
        "thread itt \"main of the solver\"",
        "instant itt \"annotations paused\"",
        "instant itt \"annotations resumed\"",
        "push solver \"recorded\"",
        "pop solver",
    ];
    assert_eq!(run("itt_program.py", "INTEL_LIBITTNOTIFY64"), expected);
}
