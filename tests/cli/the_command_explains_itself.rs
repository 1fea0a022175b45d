//! Help, versions, completions and manual pages come from the command itself.

use harness::kymo;
use std::path::Path;
use std::process::Command;

fn said(args: &[&str]) -> String {
    let output = kymo::kymo().args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn help_is_there_in_both_ways() {
    assert_eq!(said(&["help"]), said(&["--help"]));
    for command in ["record", "info", "ps", "analyze", "report"] {
        assert_eq!(said(&["help", command]), said(&[command, "--help"]), "{command}");
    }
    let output = kymo::kymo().args(["help", "recrod"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("'record'"));
}

#[test]
fn internal_settings_are_shown_when_they_are_asked_for() {
    let (help, all) = (said(&["record", "--help"]), said(&["record", "--help-all"]));
    for key in ["JSON_NOTES=", "KEEPER=", "CONTROL="] {
        assert!(!help.contains(key) && all.contains(key), "{key}");
    }
    assert!(help.contains("BUFFER=SIZE") && all.contains("BUFFER=SIZE"));
    assert!(help.contains("--help-all"));
    assert_eq!(said(&["help", "--all"]), all);
}

#[test]
fn a_version_has_its_features() {
    assert_eq!(said(&["-V"]), concat!("kymo ", env!("CARGO_PKG_VERSION"), "\n"));
    let version = said(&["--version"]);
    assert!(version.starts_with(&said(&["-V"])), "{version}");
    let line = version.lines().find_map(|line| line.strip_prefix("features: ")).unwrap();
    let features: Vec<_> = line.split(", ").collect();
    assert_eq!(features.contains(&"tracing"), cfg!(feature = "tracing"), "{version}");
    assert_eq!(features.contains(&"inject"), cfg!(feature = "inject"), "{version}");
}

#[test]
fn shells_take_the_completions() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let script = said(&["completions", shell]);
        assert!(script.contains("record") && script.contains("flight"), "{shell}");
        assert!(!script.contains("__probe") && !script.contains("__selftest"), "{shell}");
        let path = folder.path().join(shell);
        std::fs::write(&path, script).unwrap();
        // A shell that is not here cannot be asked.
        if let Ok(output) = Command::new(shell).arg("-n").arg(&path).output() {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

#[test]
fn each_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let man = folder.path().join("man1");
    said(&["man", man.to_str().unwrap()]);
    let text = |name: &str| std::fs::read_to_string(man.join(name)).unwrap();
    assert!(text("kymo.1").contains(".TH kymo 1"));
    assert!(text("kymo-record.1").contains("flight"));
    let hidden = |name: &str| name.contains("__");
    let names = std::fs::read_dir(&man).unwrap().flatten();
    let names: Vec<_> = names.map(|entry| entry.file_name().into_string().unwrap()).collect();
    assert!(names.len() > 15 && !names.iter().any(|name| hidden(name)), "{names:?}");
}

fn refused(folder: &Path, args: &[&str]) -> String {
    let output = kymo::kymo().args(args).current_dir(folder).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn names_that_promise_something_else_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let cases: [(&[&str], &str); 8] = [
        (&["record", "-o", "t.pftrace.bz2", "--", "touch", "ran"], ".gz or .zst"),
        (&["record", "-o", "t.json", "--", "touch", "ran"], "kymo convert"),
        (&["record", "-o", "-", "--", "touch", "ran"], "--also"),
        (&["demo", "-o", "t.pftrace.xz"], ".gz or .zst"),
        (&["convert", "--to", "perfetto", "t.json", "t.pftrace.bz2"], ".gz or .zst"),
        (&["merge", "t.pftrace.7z", "t.json"], ".gz or .zst"),
        (&["report", "-o", "t.html.gz", "t.json"], "not packed"),
        (&["analyze", "-o", "t.csv.bz2", "steps", "t.json"], "not packed"),
    ];
    for (args, expected) in cases {
        let line = refused(folder, args);
        assert!(line.contains(expected), "{args:?}: {line}");
    }
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0);
}

#[test]
fn files_that_are_no_traces_stay_without_force() {
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes.txt.pftrace");
    std::fs::write(&notes, "dear diary").unwrap();
    let notes = notes.to_str().unwrap();
    let demo = folder.path().join("demo.pftrace");
    said(&["demo", "-q", "-o", demo.to_str().unwrap()]);
    for args in [&["demo", "-o", notes][..], &["merge", notes, demo.to_str().unwrap()]] {
        assert!(refused(folder.path(), args).contains("--force"), "{args:?}");
        assert_eq!(std::fs::read_to_string(notes).unwrap(), "dear diary");
    }
    said(&["merge", "-q", "--force", notes, demo.to_str().unwrap()]);
    assert!(said(&["info", notes]).contains("longest"));
}

#[test]
fn a_recording_says_what_is_in_it_and_what_to_do_next() {
    let folder = tempfile::tempdir().unwrap();
    let program = harness::native::compile("cc", "-std=c11", "tests/data/c/steps.c", folder.path());
    let path = folder.path().join("my trace.pftrace");
    let mut command = kymo::kymo();
    let line = format!("echo 5 | {}", program.display());
    let output = command.args(["record", "-o"]).arg(&path).args(["sh", "-c", &line]).output();
    let output = output.unwrap();
    let lines = String::from_utf8(output.stderr).unwrap();
    for words in ["kymo open '", "kymo analyze '", "kymo report '", "my trace.pftrace'"] {
        assert!(lines.contains(words), "{words} in {lines}");
    }
    assert!(lines.lines().nth(1).unwrap().contains(" slices"), "{lines}");
    let info = said(&["info", path.to_str().unwrap()]);
    assert!(info.contains("\nlongest\n") && info.contains("names"), "{info}");
}
