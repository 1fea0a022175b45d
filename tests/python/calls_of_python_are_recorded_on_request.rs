//! `kymo record --python functions`: calls of Python functions on all threads, nested as they were
//! called, with the names and numbers that PyTorch's profiler gives them. `modules`: those of
//! PyTorch's modules alone. `sampled`: stacks.

use harness::kymo;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use oracle::Trace;
use serde_json::Value;

const PROGRAM: &str = r#"import sys, threading
def inner(n):
    return n
def fails():
    raise ValueError(inner(3))
def outer():
    inner(1)
    try:
        fails()
    except ValueError:
        pass
def numbers():
    yield inner(1)
    yield inner(2)
outer()
assert list(numbers()) == [1, 2]
thread = threading.Thread(target=outer, daemon=True)
thread.start()
thread.join()
def deep(n):
    return n and deep(n - 1)
deep(950)
calls = []
sys.setprofile(lambda frame, event, arg: calls.append(event))
inner(7)
sys.setprofile(None)
print(calls.count("call"))
"#;

/// A module as PyTorch has it, and a program with two classes of them.
const MODULE: &str = "class Module:
    def _wrapped_call_impl(self, *args, **kwargs):
        return self._call_impl(*args, **kwargs)
    def _call_impl(self, *args, **kwargs):
        return self.forward(*args, **kwargs)
    __call__ = _wrapped_call_impl
def throws():
    try:
        yield 1
    except ValueError:
        yield 2
";
const NETWORK: &str = r#"import threading
from torch.nn.modules.module import Module
class Linear(Module):
    def forward(self, x):
        if x < 0:
            raise ValueError
        return x
class Net(Module):
    def __init__(self):
        self.a, self.b = Linear(), Linear()
    def forward(self, x):
        return self.b(self.a(x))
net = Net()
for x in range(3):
    net(x)
try:
    net(-1)
except ValueError:
    pass
thread = threading.Thread(target=lambda: [net(5) for _ in range(2)])
thread.start()
thread.join()
print(1)
"#;

/// Throws into generators of more functions than are remembered by their code.
const THROWS: &str = r#"import types
from torch.nn.modules.module import throws
def stands_around(other):
    yield from other
def another(n):
    return types.FunctionType(throws.__code__.replace(co_firstlineno=n), globals())
for n in range(70_000):
    generator = stands_around(another(n)())
    next(generator)
    assert generator.throw(ValueError) == 2
    generator.close()
print(1)
"#;

/// Works on two threads, and in a forked child, until each has seen our thread take many samples.
const WORKS: &str = r#"import os, threading
def rounds():
    for task in os.listdir("/proc/self/task"):
        with open("/proc/self/task/%s/status" % task) as file:
            status = file.read()
        if status.startswith("Name:\tkymograph\n"):
            return int(status.split("\nvoluntary_ctxt_switches:")[1].split()[0])
    return 0
def turns():
    return sum(range(100))
def works():
    enough = rounds() + 60
    while rounds() < enough:
        for _ in range(1000):
            turns()
thread = threading.Thread(target=works)
thread.start()
works()
thread.join()
pid = os.fork()
if pid == 0:
    works()
    os._exit(0)
os.waitpid(pid, 0)
print(1)
"#;

struct Run {
    folder: tempfile::TempDir,
    output: Output,
}

impl Run {
    fn path(&self) -> PathBuf {
        self.folder.path().join("t.pftrace")
    }

    fn says(&self, text: &str) -> bool {
        let bytes = std::fs::read(self.path()).unwrap_or_default();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    }

    /// Slices of calls in its JSON.
    fn calls(&self) -> Vec<Value> {
        let mut command = kymo::kymo();
        command.args(["convert", "t.pftrace", "t.json"]).current_dir(self.folder.path());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = std::fs::read(self.folder.path().join("t.json")).unwrap();
        let all: Value = serde_json::from_slice(&text).unwrap();
        let all = all["traceEvents"].as_array().unwrap().iter();
        // Those that are too deep for a viewer are no slices on the thread.
        all.filter(|event| event["cat"] == "python_function" && event["ph"] == "X")
            .cloned()
            .collect()
    }
}

fn run(options: &[&str]) -> Run {
    run_with(&oracle::venv_python(), PROGRAM, options)
}

fn run_with(python: &Path, program: &str, options: &[&str]) -> Run {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("program.py"), program).unwrap();
    let modules = folder.path().join("torch/nn/modules");
    std::fs::create_dir_all(&modules).unwrap();
    std::fs::write(modules.join("module.py"), MODULE).unwrap();
    for package in modules.ancestors().take(3) {
        std::fs::write(package.join("__init__.py"), "").unwrap();
    }
    let mut command = kymo::kymo();
    command.args(["record", "-o", "t.pftrace"]).args(options).arg("--");
    command.arg(python).arg("program.py").current_dir(folder.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    // The program's own profiler gets what it would get.
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1\n", "{output:?}");
    Run { folder, output }
}

/// The Pythons that this machine has, the tests' own among them: before 3.12 and from then on
/// calls are reported in different ways.
fn pythons() -> Vec<PathBuf> {
    let mut found = vec![oracle::venv_python()];
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let installed = std::fs::read_dir(home.join(".pyenv/versions")).into_iter().flatten();
    let installed = installed.flatten().map(|folder| folder.path().join("bin/python3"));
    let on_path = (9..14).map(|minor| PathBuf::from(format!("/usr/bin/python3.{minor}")));
    for python in installed.chain(on_path) {
        let is_known = "import sys; sys.exit(not (3, 9) <= sys.version_info < (3, 14))";
        let known = Command::new(&python).args(["-c", is_known]).status();
        if known.is_ok_and(|status| status.success()) {
            found.push(python);
        }
    }
    found
}

fn is_monitored(python: &Path) -> bool {
    let asks = "import sys; sys.exit(not hasattr(sys, 'monitoring'))";
    Command::new(python).args(["-c", asks]).status().unwrap().success()
}

#[test]
fn they_nest_as_they_were_called() {
    let run = run(&["--python", "functions"]);
    let trace = Trace::open(run.folder.path().join("t.pftrace"));
    trace.clean_except(&["traced_buf_trace_writer_packet_loss"]);
    let count = |name: &str| {
        let sql = format!("SELECT COUNT(*) FROM slice WHERE name = 'program.py({name}'");
        trace.one_i64(&sql)
    };
    // Twice in `outer`, each with `fails`, and twice in `numbers`, which is entered three times.
    assert_eq!((count("2): inner"), count("4): fails"), count("12): numbers")), (6, 2, 3));
    assert_eq!(count("6): outer"), 2);
    let around = trace.strings(
        "SELECT DISTINCT p.name || ' > ' || s.name FROM slice s JOIN slice p ON p.id = s.parent_id \
         WHERE s.name IN ('program.py(2): inner', 'program.py(4): fails') ORDER BY 1",
    );
    let expected = [
        "program.py(12): numbers > program.py(2): inner",
        "program.py(4): fails > program.py(2): inner",
        "program.py(6): outer > program.py(2): inner",
        "program.py(6): outer > program.py(4): fails",
    ];
    assert_eq!(around, expected);
    // What is too deep is said to be lost.
    let deep = count("20): deep");
    assert!((400..951).contains(&deep), "{deep}");
    let said = String::from_utf8_lossy(&run.output.stderr).into_owned();
    assert!(said.contains(" lost"), "{said}");
}

#[test]
fn json_numbers_them() {
    let calls = run(&["--python", "functions"]).calls();
    let id = |event: &Value| event["args"]["Python id"].as_u64().unwrap();
    let inner: Vec<_> = calls.iter().filter(|e| e["name"] == "program.py(2): inner").collect();
    assert_eq!(inner.len(), 6);
    for call in inner {
        let parent = call["args"]["Python parent id"].as_u64().unwrap();
        let caller = calls.iter().find(|event| id(event) == parent).unwrap();
        assert!(caller["ts"].as_f64() <= call["ts"].as_f64() && caller["tid"] == call["tid"]);
    }
}

#[test]
fn every_python_reports_them() {
    for python in pythons() {
        let run = run_with(&python, PROGRAM, &["--python", "functions"]);
        let calls = run.calls();
        let count = |name: &str| {
            let name = format!("program.py({name}");
            calls.iter().filter(|event| event["name"] == *name).count()
        };
        assert_eq!((count("4): fails"), count("12): numbers"), count("6): outer")), (2, 3, 2));
        // With `sys.monitoring`, those under the program's own profiler as well.
        let how = if is_monitored(&python) { "sys.monitoring, tool" } else { "PyEval_SetProfile" };
        assert!(run.says(how), "{python:?}: {how}");
        let inner = if is_monitored(&python) { 7 } else { 6 };
        assert_eq!(count("2): inner"), inner, "{python:?}");
    }
}

#[test]
fn exceptions_reach_generators_of_any_code() {
    for python in pythons() {
        let run = run_with(&python, THROWS, &["--python", "functions"]);
        let said = String::from_utf8_lossy(&run.output.stderr).into_owned();
        // More names than there are numbers for.
        assert!(said.contains(" lost") || !is_monitored(&python), "{python:?}: {said}");
    }
}

#[test]
fn modules_have_names_and_numbers() {
    for python in pythons() {
        for how in ["modules", "functions"] {
            let calls = run_with(&python, NETWORK, &["--python", how]).calls();
            let count = |name: &str| calls.iter().filter(|event| event["name"] == *name).count();
            let modules = ["Net_0", "Linear_0", "Linear_1"].map(|n| format!("nn.Module: {n}"));
            // The first one raises in the fourth call, and the second is not called then.
            assert_eq!(modules.each_ref().map(|name| count(name)), [6, 6, 5], "{python:?}");
            assert_eq!(calls.len() == 17, how == "modules", "{python:?}: {}", calls.len());
            for call in calls.iter().filter(|event| event["name"] == *modules[2]) {
                assert_eq!(call["args"]["Python module id"], 1, "{call}");
                let around = calls.iter().find(|event| event["name"] == *modules[0]).unwrap();
                assert!(around["args"]["Python module id"] == 0);
            }
        }
    }
}

#[test]
fn stacks_are_sampled_without_the_lock() {
    for python in pythons() {
        let run = run_with(&python, WORKS, &["--python", "sampled=100"]);
        assert!(run.says("sampled 100 times a second (as 3."), "{python:?}: {:?}", run.output);
        let trace = Trace::open(run.path());
        let stacks = trace.strings(
            "SELECT track_id || '|' || EXTRACT_ARG(arg_set_id, 'debug.Stack') FROM slice \
             WHERE category = 'python_sample'",
        );
        let works: Vec<_> = stacks.iter().filter(|stack| stack.contains("): works")).collect();
        let mut threads: Vec<_> =
            works.iter().filter_map(|stack| stack.split('|').next()).collect();
        threads.sort_unstable();
        threads.dedup();
        // The main thread, the other one, and that of the child.
        assert_eq!(threads.len(), 3, "{python:?}: {stacks:?} {:?}", run.output);
        let main = "|program.py(1): <module>;program.py(11): works";
        assert!(works.iter().any(|stack| stack.contains(main)), "{stacks:?}");
    }
}

#[test]
fn nothing_is_recorded_unasked() {
    let run = run(&[]);
    assert!(!run.says("python_function") && !run.says("python_sample"));
}
