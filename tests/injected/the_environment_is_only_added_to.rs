//! The command sees the environment that `kymo` was given, in the same order, and more.

use harness::kymo;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// What `env -0` prints under `kymo record`.
fn seen(prepare: impl FnOnce(&mut Command)) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut command = kymo::kymo();
    command.args(["record", "-q", "-o"]).arg(folder.path().join("t.pftrace"));
    prepare(&mut command);
    let output = command.args(["--", "env", "-0"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_terminator('\0').map(str::to_owned).collect()
}

fn value<'e>(entries: &'e [String], name: &str) -> &'e str {
    let found = entries.iter().find_map(|e| e.strip_prefix(name)?.strip_prefix('='));
    found.unwrap_or_default()
}

#[test]
fn what_was_there_stays_and_keeps_its_order() {
    let marks = [("ZEBRA", "1 2"), ("APE", "x=y\nz"), ("EMPTY", "")];
    let entries = seen(|command| {
        command.env_clear().envs(marks);
        command.env("KYMOGRAPH_LIBRARY", kymo::library()).env("PATH", "/usr/bin:/bin");
    });
    let map: BTreeMap<_, _> = entries.iter().filter_map(|e| e.split_once('=')).collect();
    for (name, value) in marks {
        assert_eq!(map.get(name), Some(&value));
    }
    // The variables that were given come first, those of `kymo` after them.
    let added: Vec<_> = entries[5..].iter().map(|e| e.split('=').next().unwrap()).collect();
    let ours = ["KYMOGRAPH_CONTROL", "KYMOGRAPH_OUTPUT", "LD_PRELOAD"];
    assert_eq!(added[..3], ours);
    assert_eq!(added[3], "ASAN_OPTIONS");
    let collectors = ["NVTX_INJECTION64_PATH", "INTEL_LIBITTNOTIFY64", "CUDA_INJECTION64_PATH"];
    assert_eq!(added[4..7], collectors);
    assert_eq!(added[7..], ["HABANA_PROFILE"]);
}

#[test]
fn a_preloaded_library_stays_preloaded() {
    // Does not exist: the loader says so on stderr and goes on.
    let entries = seen(|command| {
        command.env("LD_PRELOAD", "/nonexistent/other.so");
    });
    let library = kymo::library().canonicalize().unwrap();
    let preload = value(&entries, "LD_PRELOAD");
    assert!(preload.starts_with("/nonexistent/other.so:$ORIGIN/../"), "{preload}");
    assert!(preload.ends_with(&format!("/..{}", library.display())), "{preload}");
}

#[test]
fn another_collector_stays_where_it_is() {
    let entries = seen(|command| {
        command.env("NVTX_INJECTION64_PATH", "/opt/other.so");
    });
    assert_eq!(value(&entries, "NVTX_INJECTION64_PATH"), "/opt/other.so");
    assert!(value(&entries, "INTEL_LIBITTNOTIFY64").ends_with("libkymograph.so"));
}

#[test]
fn options_reach_the_command_as_variables() {
    let entries = seen(|command| {
        command.args(["--buffer", "128M", "--domain", "render", "--domain", "-io.*"]);
        command.args(["--set", "clock=boottime"]);
    });
    assert_eq!(value(&entries, "KYMOGRAPH_BUFFER"), "128M");
    assert_eq!(value(&entries, "KYMOGRAPH_CATEGORIES"), "render,-io.*");
    assert_eq!(value(&entries, "KYMOGRAPH_CLOCK"), "boottime");
    assert!(Path::new(value(&entries, "KYMOGRAPH_OUTPUT")).is_absolute());
}

#[test]
fn a_library_with_a_space_in_its_path_can_be_preloaded() {
    let folder = tempfile::tempdir().unwrap();
    let spaced = folder.path().join("my: libraries");
    std::fs::create_dir(&spaced).unwrap();
    let library = spaced.join("libkymograph.so");
    std::fs::copy(kymo::library(), &library).unwrap();
    let entries = seen(|command| {
        command.env("KYMOGRAPH_LIBRARY", &library);
    });
    let preload = value(&entries, "LD_PRELOAD");
    assert!(preload.ends_with(".so") && !preload.contains([' ', ':']), "{preload}");
    // What it names stays when the recording has ended: children may run on.
    let link = Path::new(preload.trim_start_matches("$ORIGIN").trim_start_matches("/.."));
    assert_eq!(link.canonicalize().unwrap(), library.canonicalize().unwrap());
    std::fs::remove_file(link).unwrap();
}
