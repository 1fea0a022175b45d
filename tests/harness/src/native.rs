//! C and C++ programs, compiled against the header and linked with the library that was
//! built with the test.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The folder with `libkymograph.so`: the test's own, where `cargo test` puts what it
/// builds for tests. Only `cargo build` also puts one a level higher, of another day.
pub fn library_folder() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().unwrap();
    let library = folder.join("libkymograph.so");
    assert!(library.exists(), "cargo did not build {}", library.display());
    folder.to_owned()
}

/// Compiles `source` into `folder`; warnings are errors. `None` if there is no such
/// compiler.
pub fn compile(compiler: &str, standard: &str, source: &str, folder: &Path) -> PathBuf {
    compile_for(&library_folder(), compiler, standard, source, folder)
}

/// As [`compile`], with the library that is in the folder `library`.
pub fn compile_for(
    library: &Path,
    compiler: &str,
    standard: &str,
    source: &str,
    folder: &Path,
) -> PathBuf {
    let program = folder.join(Path::new(source).file_stem().unwrap());
    let mut rpath = std::ffi::OsString::from("-Wl,-rpath,");
    rpath.push(library);
    let output = Command::new(compiler)
        .args([standard, "-Wall", "-Wextra", "-Wconversion", "-Werror", "-pedantic", "-g"])
        .args(["-D_POSIX_C_SOURCE=200809L", "-Wl,--no-as-needed"])
        .arg("-I")
        .arg(crate::root().join("include"))
        .arg(crate::root().join(source))
        .arg("-L")
        .arg(library)
        .args(["-lkymograph", "-lpthread"])
        .arg(rpath)
        .arg("-o")
        .arg(&program)
        .output()
        .unwrap_or_else(|error| panic!("cannot run {compiler}: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// Runs a program that writes `trace`; nothing around may configure the recording.
pub fn run(program: &Path, trace: &Path) -> Output {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("KYMOGRAPH_") {
            command.env_remove(name);
        }
    }
    // Cargo's has the folder with a library of another day first.
    command.env("LD_LIBRARY_PATH", library_folder());
    let output = command.arg(trace).env_remove("LD_PRELOAD").output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{}: {}\n{}{}",
        program.display(),
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
    output
}
