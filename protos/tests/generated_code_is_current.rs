//! `src/generated` is what `proto/perfetto.proto` generates. With `UPDATE=1` in the
//! environment it is made so.

use std::path::Path;

#[test]
fn generated_code_is_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let descriptors = protox::compile(["perfetto.proto"], [root.join("proto")]).unwrap();
    let generated = tempfile::tempdir().unwrap();
    prost_build::Config::new().out_dir(generated.path()).compile_fds(descriptors).unwrap();

    let fresh = std::fs::read_to_string(generated.path().join("perfetto.protos.rs")).unwrap();
    let path = root.join("src/generated/perfetto.protos.rs");
    let checked_in = std::fs::read_to_string(&path).unwrap_or_default();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, fresh).unwrap();
        return;
    }
    let differs = fresh.lines().zip(checked_in.lines()).position(|(new, old)| new != old);
    assert!(
        fresh == checked_in,
        "{} is out of date from line {}: run this test with UPDATE=1",
        path.display(),
        differs.unwrap_or_else(|| fresh.lines().count().min(checked_in.lines().count())) + 1,
    );
}
