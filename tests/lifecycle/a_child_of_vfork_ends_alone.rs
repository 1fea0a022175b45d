//! The child of a `vfork` shares its parent's memory and calls `_exit`: the parent can be
//! asked for traces and record afterwards as before.

use harness::native;
use std::process::Command;

#[test]
fn the_parent_records_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let program = native::compile("cc", "-std=gnu11", "tests/data/c/vforked.c", folder.path());
    let mut command = Command::new(program);
    command.arg(at("t.pftrace")).env("KYMOGRAPH_SOCKETS", at("sockets"));
    // Cargo's, which may lead to a library of another day.
    command.env_remove("LD_PRELOAD").env_remove("LD_LIBRARY_PATH");
    let status = command.status().unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(oracle::Trace::open(at("t.pftrace")).strings("SELECT name FROM slice"), ["range"]);
}
