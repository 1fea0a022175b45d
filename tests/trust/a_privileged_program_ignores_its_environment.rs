//! A setuid program that embeds the library is not led by whoever starts it: neither by
//! KYMOGRAPH_ variables, nor by those of NVTX and ITT, nor by links in the folder that it is
//! started in.

use harness::{alone, kymo, native, users};
use kymograph::Config;
use kymograph::collect::Collector;
use kymograph::control::{Page, Rendezvous};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// A setuid program of root's, the library that it loads, and a folder that is everybody's.
struct Program {
    folder: tempfile::TempDir,
}

impl Program {
    /// None where there can be no such program; says so.
    fn new() -> Option<Program> {
        if !users::are_possible() {
            return None;
        }
        let program = Program { folder: tempfile::tempdir().unwrap() };
        let at = program.folder.path();
        // Where others can reach it; a setuid program is not told by LD_LIBRARY_PATH.
        std::fs::copy(kymo::library(), at.join("libkymograph.so")).unwrap();
        let built = native::compile_for(at, "cc", "-std=c11", "tests/data/c/privileged.c", at);
        let open = |mode| PermissionsExt::from_mode(mode);
        std::fs::set_permissions(at, open(0o755)).unwrap();
        std::fs::set_permissions(&built, open(0o4755)).unwrap();
        std::fs::create_dir(at.join("users")).unwrap();
        users::give(&at.join("users"), users::NOBODY).unwrap();
        let says = program.run(&["nothing"], &[]);
        if !says.starts_with(&format!("{} 0\n", users::NOBODY)) {
            println!("skipped: setuid does not work in {}: {says:?}", at.display());
            return None;
        }
        Some(program)
    }

    /// What it says when another user starts it, in that user's folder.
    fn run(&self, args: &[&str], environment: &[(&str, &Path)]) -> String {
        let mut command = Command::new(self.folder.path().join("privileged"));
        command.args(args).env_clear().envs(environment.iter().copied());
        command.uid(users::NOBODY).gid(users::NOBODY).current_dir(self.users());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn users(&self) -> std::path::PathBuf {
        self.folder.path().join("users")
    }

    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.users()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

#[test]
fn it_writes_where_it_was_made_to() {
    alone!();
    let Some(program) = Program::new() else { return };
    let roots = program.folder.path().join("roots");
    let rendezvous = Rendezvous::create().unwrap();
    let page = Arc::new(Page::new());
    let mut collector = Collector::create(rendezvous.folder()).unwrap();
    collector.start(&Config::to_file(roots.with_file_name("joined")), &page, 0).unwrap();
    program.run(
        &["start"],
        &[
            ("KYMOGRAPH_OUTPUT", roots.as_path()),
            ("KYMOGRAPH_CONTROL", &rendezvous.control()),
            ("KYMOGRAPH_SAFE", Path::new("0")),
            ("KYMOGRAPH_FLUSH", Path::new("nonsense")),
        ],
    );
    assert!(!roots.exists(), "the environment chose the output");
    assert_eq!(program.files(), ["trace.pftrace"]);
    collector.finish();
    assert_eq!(page.totals().processes, 0, "it took part in a recording");
    let trace = program.users().join("trace.pftrace");
    assert_eq!(oracle::Trace::open(&trace).strings("SELECT name FROM slice"), ["x"]);
    assert_eq!(trace.metadata().unwrap().uid(), 0);
}

#[test]
fn it_writes_through_no_link() {
    alone!();
    let Some(program) = Program::new() else { return };
    let roots = program.folder.path().join("roots");
    symlink(&roots, program.users().join("trace.pftrace")).unwrap();
    let says = program.run(&["start"], &[]);
    assert!(!roots.exists() && says.contains("symbolic link"), "{says}");
}

#[test]
fn it_is_no_tools_because_a_variable_says_so() {
    alone!();
    let Some(program) = Program::new() else { return };
    let library = program.folder.path().join("libkymograph.so");
    let rendezvous = Rendezvous::create().unwrap();
    let variables = [
        ("NVTX_INJECTION64_PATH", library.as_path()),
        ("INTEL_LIBITTNOTIFY64", &library),
        ("KYMOGRAPH_CONTROL", &rendezvous.control()),
        ("KYMOGRAPH_OUTPUT", Path::new("t.pftrace")),
    ];
    for (tool, answer) in [("nvtx", "0\n"), ("itt", "")] {
        let says = program.run(&[tool], &variables);
        assert_eq!(says, format!("{} 0\n{answer}", users::NOBODY));
    }
    assert_eq!(program.files(), [""; 0]);
}
