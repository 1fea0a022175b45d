//! The tests of the Python package (`python/tests`), with every Python that is here.

use std::path::Path;
use std::process::Command;

#[test]
fn with_every_python() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let built = Path::new(env!("CARGO_BIN_EXE_kymo")).parent().unwrap();
    for file in ["lib_kymograph.so", "libkymograph.so"] {
        let file = built.join(file);
        let hint = "`./test` builds it; so does `cargo build --workspace`";
        assert!(file.exists(), "{} is missing: {hint}", file.display());
    }
    let profile = built.file_name().unwrap();
    let output = Command::new(root.join("python/test"))
        .env("CARGO_TARGET_DIR", built.parent().unwrap())
        .env("TEST_PROFILE", profile)
        .output()
        .unwrap();
    let (said, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}{errors}");
    // What each Python has to say is of interest, too: how many tests ran, and were left out.
    println!("{said}");
    assert!(said.contains(" passed"), "{said}");
}
