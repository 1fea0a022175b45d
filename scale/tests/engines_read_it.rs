//! DuckDB and Polars read a data set as it is, and say the same as its manifests.

mod jobs;

use std::process::Command;

#[test]
fn engines_read_a_data_set_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let paths = jobs::traces(&jobs::healthy(4, 3), folder.path());
    let root = folder.path().join("set");
    let (_, failed) = jobs::add(&jobs::wish(&root), &paths);
    assert_eq!(failed, Vec::<String>::new());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/engines.py");
    let python = Command::new(oracle::readers_python())
        .env("PYTHONPATH", oracle::dataset_modules())
        .args([script.as_ref(), root.as_os_str()])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&python.stderr);
    assert!(python.status.success(), "{said}");
    assert!(String::from_utf8_lossy(&python.stdout).starts_with("4 ranks read by DuckDB"));
}
