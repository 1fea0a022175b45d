//! What documents tell people to type works: every indented `kymo record` of
//! `docs/OUTPUTS.md` is run as it stands there, on a small program called `./app`; and every
//! indented command of a tutorial, and of the README's recipes, one after the other.

use harness::kymo::Guarded;
use harness::{kymo, native};
use oracle::Trace;
use std::ffi::CString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// The commands, as lines for a shell.
fn commands() -> Vec<String> {
    let text = std::fs::read_to_string(harness::root().join("docs/OUTPUTS.md")).unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix("    "));
    lines.filter(|line| line.starts_with("kymo record ")).map(str::to_owned).collect()
}

fn run(line: &str, folder: &Path) -> String {
    let path = Path::new(env!("CARGO_BIN_EXE_kymo")).parent().unwrap().to_owned();
    let path = format!("{}:{}", path.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(folder).env("PATH", path);
    command.env("KYMOGRAPH_LIBRARY", kymo::library());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Guarded::start(&mut command);
    // A command that reads nothing may have ended.
    let _ = writeln!(child.stdin.take().unwrap(), "2000");
    let output = child.wait_with_output();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{line}\n{said}");
    said
}

#[test]
fn each_leaves_a_trace_of_what_the_program_did() {
    let commands = commands();
    assert!(commands.len() >= 8, "{commands:?}");
    let folder = tempfile::tempdir().unwrap();
    let program = native::compile("cc", "-std=c11", "tests/data/c/steps.c", folder.path());
    for (number, line) in commands.iter().enumerate() {
        let place = folder.path().join(number.to_string());
        std::fs::create_dir(&place).unwrap();
        std::os::unix::fs::symlink(&program, place.join("app")).unwrap();
        let pipe = CString::new(place.join("trace.fifo").as_os_str().as_bytes()).unwrap();
        // SAFETY: a C string that outlives the call.
        assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
        let said = run(line, &place);
        let traces = std::fs::read_dir(&place).unwrap().flatten().map(|entry| entry.path());
        let traces: Vec<_> =
            traces.filter(|path| path.to_string_lossy().contains(".pftrace")).collect();
        assert!(!traces.is_empty(), "{line}\n{said}");
        let watched = line.contains("step>");
        assert!(!watched || traces.contains(&place.join("app.pftrace")), "{line}\n{said}");
        for path in traces {
            let trace = Trace::open(&path);
            trace.assert_clean();
            let steps = trace.one_i64("SELECT count(*) FROM slice WHERE name = 'step'");
            // Should a step take that long, there is a dump of what was until then, too.
            let early = watched && !path.ends_with("app.pftrace");
            assert!(steps == 2000 || early && steps < 2000, "{steps}: {line}\n{said}");
        }
    }
}

/// Runs the indented commands of a text in a folder with the programs that tutorials name.
fn run_all(text: &str) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let program = native::compile("cc", "-std=c11", "tests/data/c/steps.c", folder.path());
    let place = folder.path().join("here");
    std::fs::create_dir(&place).unwrap();
    std::os::unix::fs::symlink(&program, place.join("app")).unwrap();
    for name in ["train.py", "server.py"] {
        std::fs::copy(harness::root().join("packaging/ranges.py"), place.join(name)).unwrap();
    }
    let lines = text.lines().filter_map(|line| line.strip_prefix("    "));
    let commands = lines.filter(|line| line.starts_with("kymo "));
    // Comparing needs two runs that differ: tests/cli does that.
    let commands: Vec<_> = commands.filter(|line| !line.contains(" regressions ")).collect();
    for line in &commands {
        run(line, &place);
        let mut words = line.split_whitespace().rev();
        let written = words.find(|word| word.contains(".pftrace") || word.contains(".html"));
        assert!(place.join(written.unwrap_or("app")).exists(), "{line}");
    }
    commands.len()
}

#[test]
fn tutorials_lead_to_an_answer() {
    let tutorials = std::fs::read_dir(harness::root().join("docs/tutorials")).unwrap().flatten();
    let tutorials: Vec<_> = tutorials.map(|entry| entry.path()).collect();
    assert!(tutorials.len() >= 5, "{tutorials:?}");
    for path in tutorials {
        let commands = run_all(&std::fs::read_to_string(&path).unwrap());
        assert!(commands >= 2, "{}: {commands}", path.display());
    }
}

#[test]
fn the_recipes_of_the_readme_work() {
    let readme = include_str!("../../README.md");
    let (_, recipes) = readme.split_once("## Three recipes").unwrap();
    assert_eq!(run_all(recipes.split("\n## ").next().unwrap()), 4);
}
