//! `kymo record` on Python programs that import PyTorch: its operators are in the trace, and
//! the program does not notice. PyTorch is one of our own here, which writes down what is
//! asked of it (tests/data/pytorch).

use harness::kymo;
use harness::kymo::Guarded;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use oracle::Trace;

/// A run of Python, with and without `kymo record`.
struct Run {
    folder: tempfile::TempDir,
    python: PathBuf,
    args: Vec<String>,
    options: Vec<&'static str>,
    variables: Vec<(&'static str, String)>,
    input: Option<&'static str>,
}

impl Run {
    fn new(args: &[&str]) -> Run {
        Run {
            folder: tempfile::tempdir().unwrap(),
            python: oracle::venv_python(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            options: Vec::new(),
            variables: vec![("PYTHONPATH", data("").display().to_string())],
            input: None,
        }
    }

    fn code(code: &str) -> Run {
        Run::new(&["-c", code])
    }

    fn options(mut self, options: &[&'static str]) -> Run {
        self.options = options.to_vec();
        self
    }

    fn var(mut self, name: &'static str, value: &str) -> Run {
        self.variables.retain(|(other, _)| *other != name);
        self.variables.push((name, value.to_owned()));
        self
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    fn output(&self) -> PathBuf {
        self.folder.path().join("t.pftrace")
    }

    fn run(&self, mut command: Command) -> Output {
        let _ = std::fs::remove_file(self.log());
        command.args(&self.args).envs(self.variables.iter().map(|(k, v)| (k, v)));
        command.env("FAKE_TORCH_LOG", self.log()).env("PYTHONDONTWRITEBYTECODE", "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Guarded::start(&mut command);
        let mut stdin = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut stdin, self.input.unwrap_or_default().as_bytes()).unwrap();
        drop(stdin);
        child.wait_with_output()
    }

    fn plain(&self) -> Output {
        self.run(Command::new(&self.python))
    }

    fn recorded(&self) -> Output {
        let mut command = kymo::kymo();
        command.args(["record", "-q", "-o"]).arg(self.output());
        command.args(&self.options).arg("--").arg(&self.python);
        self.run(command)
    }

    /// Runs both ways, which must look the same, and returns what the recorded one logged.
    #[track_caller]
    fn same(&self) -> Vec<String> {
        let (plain, recorded) = (self.plain(), self.recorded());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(text(&recorded.stdout), text(&plain.stdout));
        assert_eq!(text(&recorded.stderr), text(&plain.stderr));
        assert_eq!(recorded.status, plain.status);
        let log = std::fs::read_to_string(self.log()).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    fn trace(&self) -> Trace {
        let trace = Trace::open(self.output());
        trace.assert_clean();
        trace
    }

    /// How many operators the trace has.
    #[track_caller]
    fn operators(&self) -> i64 {
        self.trace().one_i64("SELECT COUNT(*) FROM slice WHERE name = 'aten::add'")
    }

    /// Whether the trace says this of itself.
    fn says(&self, text: &str) -> bool {
        let bytes = std::fs::read(self.output()).unwrap();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    }
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/pytorch").join(name)
}

#[test]
fn all_ways_to_import_it_are_seen() {
    let ways = [
        "import torch; torch.add()",
        "from torch import nn; nn.layer()",
        "import torch.nn; torch.nn.layer()",
        "import importlib; importlib.import_module('torch').add()",
        "import importlib; importlib.import_module('torch.nn').layer()",
        "__import__('torch').add()",
        "exec('import torch'); torch.add()",
        "def work():\n import torch\n torch.add()\n\
         import threading; t = threading.Thread(target=work); t.start(); t.join()",
        "import torch, threading, _thread\n\
         from concurrent.futures import ThreadPoolExecutor\n\
         with ThreadPoolExecutor(1) as pool: pool.submit(torch.add).result()",
    ];
    for way in ways {
        let run = Run::code(way);
        let log = run.same();
        assert_eq!(run.operators(), 1, "{way}");
        assert_eq!(log[..3], ["importing", "imported", "enable NVTX shapes=False"], "{way}");
        assert!(!log.iter().any(|line| line.contains("Leaked")), "{way}: {log:?}");
        assert!(run.says("nvtx; PyTorch 2.99.0"), "{way}");
    }
}

#[test]
fn all_ways_to_start_a_program_are_seen() {
    let script = data("looks.py");
    let mut stdin = Run::new(&[]);
    stdin.input = Some("import torch\ntorch.add()\nprint(1)\n");
    let runs = [
        (Run::new(&[script.to_str().unwrap()]), 0),
        (Run::new(&["-m", "looks"]), 0),
        (Run::new(&["-X", "dev", "-m", "looks"]), 0),
        (Run::new(&["-m", "looks"]).var("PYTHONMALLOC", "debug"), 0),
        (stdin, 1),
        (Run::new(&["-m", "looks"]).var("PYTHONPATH", &with_site()), 0),
    ];
    for (run, operators) in runs {
        let log = run.same();
        assert!(log.contains(&"enable NVTX shapes=False".to_owned()), "{:?}", run.args);
        assert!(log.contains(&"disable NVTX".to_owned()), "{:?}: {log:?}", run.args);
        if operators > 0 {
            assert_eq!(run.operators(), operators, "{:?}", run.args);
        }
    }
    // These ignore PYTHONPATH, so that the program has to find it.
    for flags in ["-I", "-E", "-S", "-s"] {
        let find = format!("import sys; sys.path.insert(0, {:?}); import torch", data(""));
        let log = Run::new(&[flags, "-B", "-c", &find]).same();
        assert!(log.contains(&"enable NVTX shapes=False".to_owned()), "{flags}: {log:?}");
    }
}

fn with_site() -> String {
    format!("{}:{}", data("").display(), data("site").display())
}

#[test]
fn the_programs_own_profilers_come_first() {
    let run = Run::new(&["-m", "threads"]);
    let log = run.same();
    // Two around the profiler in each of four threads, and one of the program's emit_nvtx.
    assert_eq!(run.operators(), 9);
    assert_eq!(log.iter().filter(|line| *line == "enable KINETO shapes=False").count(), 5);
    assert!(!log.iter().any(|line| line.contains("Leaked")), "{log:?}");
    let balance = |word: &str| log.iter().filter(|line| line.starts_with(word)).count();
    assert_eq!(balance("enable"), balance("disable"));
}

/// A daemon thread that outlives the interpreter cannot be left in order.
#[test]
fn daemon_threads_are_seen_on_request() {
    let code = "import torch, threading\n\
                t = threading.Thread(target=torch.add, daemon=True); t.start(); t.join()\n\
                torch.add()";
    let (auto, on) = (Run::code(code), Run::code(code).options(&["--pytorch", "on"]));
    auto.same();
    on.same();
    assert_eq!((auto.operators(), on.operators()), (1, 2));
    let import = "import threading\ndef work():\n import torch\n torch.add()\n\
                  t = threading.Thread(target=work, daemon=True); t.start(); t.join()\n\
                  import torch; t = threading.Thread(target=torch.add); t.start(); t.join()";
    let (auto, on) = (Run::code(import), Run::code(import).options(&["--pytorch", "on"]));
    auto.same();
    on.same();
    assert_eq!((auto.operators(), on.operators()), (1, 2));
}

#[test]
fn children_are_seen() {
    let run = Run::new(&["-m", "processes"]);
    run.same();
    assert_eq!(run.operators(), 4);
    let processes = "SELECT COUNT(DISTINCT upid) FROM slice s JOIN thread_track t \
                     ON t.id = s.track_id JOIN thread USING (utid)";
    assert_eq!(run.trace().one_i64(processes), 4);
}

#[test]
fn an_import_that_fails_fails_as_before() {
    let broken = |code: &str| Run::code(code).var("FAKE_TORCH_BROKEN", "1");
    assert_eq!(broken("import torch").same(), [""; 0]);
    assert_eq!(broken("from torch import nn").same(), [""; 0]);
    assert_eq!(Run::code("import torch").var("PYTHONPATH", "").same(), [""; 0]);
    assert_eq!(Run::code("import torch.nowhere").same().last().unwrap(), "disable NVTX");

    let again = broken(
        "import os, sys\n\
         try: import torch\n\
         except ImportError: print('no')\n\
         del os.environ['FAKE_TORCH_BROKEN']\n\
         for name in [n for n in sys.modules if n.startswith('torch')]: del sys.modules[name]\n\
         import torch; torch.add()",
    );
    again.same();
    assert_eq!(again.operators(), 1);
}

#[test]
fn something_else_of_that_name_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("torch");
    std::fs::create_dir(&package).unwrap();
    std::fs::write(package.join("__init__.py"), "from torch.light import on\n").unwrap();
    std::fs::write(package.join("light.py"), "on = print\n").unwrap();
    let run =
        Run::code("import torch; torch.on(1)").var("PYTHONPATH", folder.path().to_str().unwrap());
    run.same();
}

#[test]
fn a_build_without_cuda_tells_through_itt() {
    let run = Run::code("import torch; torch.add()").var("FAKE_TORCH_CPU", "1");
    assert!(run.same().contains(&"enable ITT shapes=False".to_owned()));
    let trace = run.trace();
    let found = "SELECT COUNT(*) FROM slice WHERE name = 'aten::add' AND category = 'PyTorch'";
    assert_eq!(trace.one_i64(found), 1);
    assert!(run.says("itt, names only; PyTorch 2.99.0"));
}

#[test]
fn shapes_are_recorded_on_request() {
    let run = Run::code("import torch; torch.add()").options(&["--pytorch", "shapes"]);
    assert!(run.same().contains(&"enable NVTX shapes=True".to_owned()));
    assert!(run.says("nvtx, with shapes; PyTorch 2.99.0"));
}

#[test]
fn it_is_left_alone_where_nobody_listens() {
    let quiet: [&[&str]; 3] =
        [&["--pytorch", "off"], &["--set", "PYTORCH=off"], &["--category", "mine"]];
    for options in quiet {
        let log = Run::code("import torch; torch.add()").options(options).same();
        assert_eq!(log, ["importing", "imported"], "{options:?}");
    }
    let run = Run::code("import torch; torch.add()");
    let run = run.var("NVTX_INJECTION64_PATH", "/other.so");
    let run = run.var("INTEL_LIBITTNOTIFY64", "/other.so");
    let _ = run.recorded();
    let log = std::fs::read_to_string(run.log()).unwrap();
    assert_eq!(log, "importing\nimported\n", "another tool's collector");

    let on = ["--pytorch", "on", "--category", "mine"];
    let log = Run::code("import torch").options(&on).same();
    assert!(log.contains(&"enable NVTX shapes=False".to_owned()));
}
