//! Programs that can be asked for traces, and `kymo` as who asks.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use oracle::Trace;

use crate::kymo::{self, Guarded};

/// Longer than anything takes on a machine that is busy with other things.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// A folder for sockets and traces.
pub struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Place {
        Place { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn sockets(&self) -> PathBuf {
        self.path("sockets")
    }

    /// `kymo` that looks for processes here.
    pub fn kymo(&self, args: &[&str]) -> Command {
        let mut command = kymo::kymo();
        command.args(args).env("KYMOGRAPH_SOCKETS", self.sockets());
        command.current_dir(self.folder.path());
        command
    }

    /// Starts tests/data/control/steps.py under `kymo record --wait`.
    pub fn start(&self, args: &[&str]) -> Program {
        self.start_script("steps.py", args)
    }

    /// Starts a program of tests/data/control, with the PyTorch of the tests.
    pub fn start_script(&self, name: &str, args: &[&str]) -> Program {
        let data = crate::root().join("tests/data");
        let mut command = self.kymo(&["record", "--wait", "--"]);
        command.arg(oracle::venv_python()).arg(data.join("control").join(name)).args(args);
        command.env("PYTHONPATH", data.join("pytorch")).env("PYTHONDONTWRITEBYTECODE", "1");
        command.env("FAKE_TORCH_LOG", self.path("log"));
        Program::start(command)
    }

    /// What `kymo` says and how it ends.
    pub fn run(&self, args: &[&str]) -> Said {
        Said::from(self.kymo(args).output().unwrap())
    }

    /// Waits until `kymo status` says this of a process.
    #[track_caller]
    pub fn wait_for(&self, pid: u32, state: &str) {
        let deadline = Instant::now() + TIMEOUT;
        let wanted = format!("state: {state}");
        loop {
            let said = self.run(&["status", "--pid", &pid.to_string()]);
            if said.out.contains(&wanted) {
                return;
            }
            assert!(Instant::now() < deadline, "{wanted} never came: {said:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// What a command said.
#[derive(Debug)]
pub struct Said {
    pub out: String,
    pub err: String,
    pub good: bool,
}

impl From<Output> for Said {
    fn from(output: Output) -> Said {
        Said {
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
            good: output.status.success(),
        }
    }
}

impl Said {
    /// The trace whose path was printed; it must be the only one, and clean.
    #[track_caller]
    pub fn trace(&self) -> Trace {
        assert!(self.good, "{self:?}");
        let [path] = self.paths().try_into().unwrap_or_else(|_| panic!("{self:?}"));
        open(&path)
    }

    pub fn paths(&self) -> Vec<PathBuf> {
        self.out.lines().map(PathBuf::from).collect()
    }
}

#[track_caller]
pub fn open(path: &Path) -> Trace {
    let trace = Trace::open(path);
    trace.assert_clean();
    trace
}

/// A fact that a trace states of its one process, such as `window.opened`.
#[track_caller]
pub fn fact(trace: &Trace, key: &str) -> i64 {
    trace.one_i64(&format!(
        "SELECT int_value FROM metadata WHERE name GLOB '*kymograph.[0-9]*.{key}'"
    ))
}

/// A running program.
pub struct Program {
    /// The `kymo` around it.
    child: Guarded,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    pub pid: u32,
}

impl Program {
    pub fn start(mut command: Command) -> Program {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = Guarded::start(&mut command);
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut program = Program { child, stdin, stdout, pid: 0 };
        program.pid = program.hear("begun");
        program
    }

    /// The number after `word` in the next line.
    #[track_caller]
    pub fn hear(&mut self, word: &str) -> u32 {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        let number = line.strip_prefix(word).and_then(|rest| rest.trim().parse().ok());
        number.unwrap_or_else(|| panic!("{word} expected: {line:?}"))
    }

    /// Lets it end; whether it ended well.
    pub fn end(mut self) -> bool {
        drop(self.stdin.take());
        self.hear("ended");
        self.child.wait().unwrap().success()
    }

    /// Lets it end; the number after `word` in what it says last.
    pub fn end_and_hear(mut self, word: &str) -> u32 {
        drop(self.stdin.take());
        self.hear("ended");
        self.hear(word)
    }

    /// Kills it, without a chance to say goodbye.
    pub fn kill(mut self) {
        // SAFETY: no pointers; a process of this test that nobody has waited for.
        unsafe { libc::kill(self.pid as libc::pid_t, libc::SIGKILL) };
        self.child.wait().unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Ends with its standard input, unless that is what failed.
        drop(self.stdin.take());
        if std::thread::panicking() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}
