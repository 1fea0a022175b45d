//! Programs that do one unusual thing each (`programs/`), run alone and under `kymo record`:
//! what they print, how they end and about how long they take must be the same.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use oracle::Trace;
use tempfile::TempDir;

use crate::kymo;

/// How much longer a program may take under `kymo record`, in the best of [`TRIES`]. Delays
/// of a guest's making last seconds; what a busy machine does must not matter.
const LONGER: Duration = Duration::from_millis(1500);
const TRIES: usize = 3;
/// Who takes longer hangs.
const HANGS: Duration = Duration::from_secs(120);

/// A program that is ready to run, in a folder of its own.
pub struct Guest {
    folder: TempDir,
    words: Vec<PathBuf>,
    environment: Vec<(String, String)>,
    options: Vec<String>,
    library: PathBuf,
}

/// How a program ended, and what it printed.
#[derive(Debug)]
pub struct Ran {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    took: Duration,
}

/// A program that behaved as it does alone.
pub struct Recorded {
    pub alone: Ran,
    pub recorded: Ran,
    folder: TempDir,
}

impl Guest {
    /// A program of `programs/`, compiled.
    pub fn compiled(source: &str) -> Guest {
        Guest::built(source, compiler(source), &[])
    }

    /// As [`Guest::compiled`], by this compiler and with these arguments after the source.
    pub fn built(source: &str, compiler: &str, arguments: &[&str]) -> Guest {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        compile(compiler, source, &program, arguments);
        Guest::of(folder, vec![program])
    }

    /// A program linked with a library, both of `programs/`.
    pub fn linked(source: &str, library: &str) -> Guest {
        let folder = tempfile::tempdir().unwrap();
        let [program, object] = ["program", "libguest.so"].map(|name| folder.path().join(name));
        compile("cc", library, &object, &["-shared", "-fPIC"]);
        let search = format!("-Wl,-rpath,{}", folder.path().display());
        compile("cc", source, &program, &[object.to_str().unwrap(), &search]);
        Guest::of(folder, vec![program])
    }

    /// A program of `programs/` that Python runs.
    pub fn python(source: &str) -> Guest {
        let python = oracle::venv_python();
        Guest::of(tempfile::tempdir().unwrap(), vec![python, programs().join(source)])
    }

    /// Any command.
    pub fn command(words: &[&str]) -> Guest {
        Guest::of(tempfile::tempdir().unwrap(), words.iter().map(PathBuf::from).collect())
    }

    fn of(folder: TempDir, words: Vec<PathBuf>) -> Guest {
        let (environment, options) = Default::default();
        Guest { folder, words, environment, options, library: kymo::library() }
    }

    /// The command and its first arguments.
    pub fn words(&self) -> &[PathBuf] {
        &self.words
    }

    /// Where the program lies and runs.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A variable of its environment.
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Guest {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// An argument of `kymo record`.
    pub fn option(mut self, option: &str) -> Guest {
        self.options.push(option.to_owned());
        self
    }

    /// The library that is injected, and not the one of the tests.
    pub fn injects(mut self, library: PathBuf) -> Guest {
        self.library = library;
        self
    }

    /// Runs it alone and recorded with these arguments, and compares.
    #[track_caller]
    pub fn behaves_as_alone(&self, arguments: &[&str]) -> Recorded {
        self.compare(arguments, |ran| ran.stderr.clone())
    }

    /// As [`Guest::behaves_as_alone`], for a program that says other things on stderr each
    /// time.
    #[track_caller]
    pub fn behaves_as_alone_but_for_stderr(&self, arguments: &[&str]) -> Recorded {
        self.compare(arguments, |_| String::new())
    }

    #[track_caller]
    fn compare(&self, arguments: &[&str], stderr: impl Fn(&Ran) -> String) -> Recorded {
        let mut fastest = [HANGS; 2];
        for _ in 0..TRIES {
            let alone = self.run_alone(arguments);
            let folder = tempfile::tempdir().unwrap();
            let recorded = self.run_recorded(arguments, folder.path());
            let seen = |ran: &Ran| (ran.status, ran.stdout.clone(), stderr(ran));
            assert_eq!(seen(&alone), seen(&recorded), "{arguments:?}: alone, recorded");
            fastest = [alone.took.min(fastest[0]), recorded.took.min(fastest[1])];
            if fastest[1] < fastest[0] + LONGER {
                return Recorded { alone, recorded, folder };
            }
        }
        panic!("{arguments:?} takes {:?} alone and {:?} recorded", fastest[0], fastest[1]);
    }

    fn run_alone(&self, arguments: &[&str]) -> Ran {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]);
        for name in kymo::COLLECTORS {
            command.env_remove(name);
        }
        self.run(command, arguments)
    }

    /// Runs it with its trace in `folder`.
    pub fn run_recorded(&self, arguments: &[&str], folder: &Path) -> Ran {
        self.run(self.recorded(&[], folder), arguments)
    }

    /// The command that runs it with its trace in `folder`.
    pub fn recorded(&self, arguments: &[&str], folder: &Path) -> Command {
        let mut command = kymo::kymo();
        command.env("KYMOGRAPH_LIBRARY", &self.library);
        command.args(["record", "-q", "-o"]).arg(folder.join("t.pftrace"));
        command.args(&self.options).arg("--").args(&self.words).args(arguments);
        command
    }

    #[track_caller]
    fn run(&self, mut command: Command, arguments: &[&str]) -> Ran {
        command.args(arguments).current_dir(self.folder());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        // Not pipes: their ends may stay open in a child that outlives the program.
        let [mut stdout, mut stderr] = [(); 2].map(|()| tempfile::tempfile().unwrap());
        command.stdin(Stdio::null());
        command.stdout(stdout.try_clone().unwrap()).stderr(stderr.try_clone().unwrap());
        kymo::heed_signals(&mut command);
        without_core_files(&mut command);
        let began = Instant::now();
        // What outlives it is let live, as when it runs alone.
        let mut child = command.process_group(0).spawn().unwrap();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if began.elapsed() > HANGS {
                // SAFETY: the group of a child that was not waited for.
                unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
                panic!("{command:?} hangs; so far it said {}", content(&mut stderr));
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let took = began.elapsed();
        Ran { status, stdout: content(&mut stdout), stderr: content(&mut stderr), took }
    }
}

impl Recorded {
    /// Where the trace is.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("t.pftrace")
    }

    /// The trace, which is clean.
    #[track_caller]
    pub fn trace(&self) -> Trace {
        let trace = self.opened();
        trace.assert_clean();
        trace
    }

    /// The trace, of which something may be missing.
    #[track_caller]
    pub fn opened(&self) -> Trace {
        Trace::open(self.path())
    }
}

/// How many slices have this name.
#[track_caller]
pub fn count(trace: &Trace, name: &str) -> i64 {
    trace.one_i64(&format!("SELECT count(*) FROM slice WHERE name = '{name}'"))
}

/// How many events the trace says that were lost.
#[track_caller]
pub fn lost(trace: &Trace) -> i64 {
    trace.one_i64("SELECT sum(int_value) FROM metadata WHERE name LIKE '%kymograph.lost'")
}

fn programs() -> PathBuf {
    crate::root().join("tests/data/programs")
}

fn compiler(source: &str) -> &'static str {
    if source.ends_with(".cc") { "c++" } else { "cc" }
}

/// Warnings are errors, in our programs and not in NVTX's headers.
pub fn compile(compiler: &str, source: &str, to: &Path, arguments: &[&str]) {
    let output = Command::new(compiler)
        .args(["-O1", "-g", "-pthread", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(to)
        .arg(programs().join(source))
        .arg("-isystem")
        .arg(oracle::nvtx_headers())
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("cannot run {compiler}: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

pub fn without_core_files(command: &mut Command) {
    // SAFETY: setrlimit is async-signal-safe and reads the struct.
    unsafe {
        command.pre_exec(|| {
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            libc::setrlimit(libc::RLIMIT_CORE, &none);
            Ok(())
        });
    }
}

fn content(file: &mut File) -> String {
    let mut bytes = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}
