//! `threading.Thread(name=…)`: the names that a Python program gives its threads are in the
//! trace, whenever it gives them, in every version of Python there is.

use harness::kymo;
use std::path::{Path, PathBuf};
use std::process::Command;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/thread_names.py");

/// The Python of the tests, and others that run here.
fn pythons() -> Vec<PathBuf> {
    let others = ["3.8", "3.9", "3.10", "3.12", "3.13", "3.14"].map(|v| format!("python{v}"));
    let found = others.iter().filter_map(|name| {
        let path = "import sys; print(sys.executable)";
        let output = Command::new(name).args(["-c", path]).output().ok()?;
        let path = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| PathBuf::from(path.trim()))
    });
    std::iter::once(oracle::venv_python()).chain(found).collect()
}

/// The name of each thread, and those of its ranges.
fn names(python: &Path, args: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pftrace");
    let mut command = kymo::kymo();
    command.args(["record", "-o"]).arg(&path).arg("--").arg(python).arg(SCRIPT).args(args);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && !said.contains("Traceback"), "{said}");
    assert_eq!(output.stdout, b"True _set_ident\n");
    let trace = oracle::Trace::open(&path);
    trace.assert_clean();
    trace.strings(
        "SELECT DISTINCT slice.name || ': ' || thread.name FROM slice \
         JOIN thread_track ON thread_track.id = track_id JOIN thread USING (utid) \
         ORDER BY slice.name",
    )
}

#[test]
fn whenever_they_are_given() {
    for (number, python) in pythons().into_iter().enumerate() {
        // In both orders with the first of them.
        let orders = [&["early"][..], &[]];
        for args in &orders[..if number == 0 { 2 } else { 1 }] {
            let names = names(&python, args);
            let named: Vec<&str> = names
                .iter()
                .filter_map(|pair| {
                    let (slice, thread) = pair.split_once(": ")?;
                    (slice == thread).then_some(slice)
                })
                .collect();
            let mut expected = vec![
                "in a child",
                "named with more than fifteen bytes",
                "pool_0",
                "renamed after its first range",
                "renamed before its first range",
                "renamed by another",
                "trainer",
                "Ünïcode → 名前",
            ];
            if !args.is_empty() {
                expected.insert(7, "was there before the first range of all");
            }
            assert_eq!(named, expected, "{}: {names:?}", python.display());
        }
    }
}
