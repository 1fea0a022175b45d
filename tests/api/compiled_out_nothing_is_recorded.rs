//! With the feature `off`, instrumentation stays in the source and leaves the program.

use std::process::Command;

/// A program compiled with `off`, in a folder of its own: the library of the other tests must stay
/// what it is.
#[test]
fn with_the_feature_off() {
    let test = std::env::current_exe().unwrap();
    let target = test.ancestors().nth(3).unwrap().join("off");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pftrace");
    let output = Command::new(env!("CARGO"))
        .current_dir(harness::root())
        .args(["run", "--quiet", "--locked", "--manifest-path", "tests/compiled_out/Cargo.toml"])
        .arg("--target-dir")
        .arg(target)
        .arg("--")
        .arg(&path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // The recording itself works: the trace says who was recorded, and that it did nothing.
    let trace = oracle::Trace::open(&path);
    trace.assert_clean();
    assert_eq!(trace.one_i64("SELECT count(*) FROM slice"), 0);
    assert_eq!(trace.one_i64("SELECT count(*) FROM counter"), 0);
}
