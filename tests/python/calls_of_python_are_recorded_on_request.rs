//! `kymo record --python functions`: calls of Python functions on all threads, nested as they were
//! called, with the names and numbers that PyTorch's profiler gives them.

use harness::kymo;
use std::process::Output;

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
deep(600)
calls = []
sys.setprofile(lambda frame, event, arg: calls.append(event))
inner(7)
sys.setprofile(None)
print(calls.count("call"))
"#;

struct Run {
    folder: tempfile::TempDir,
    output: Output,
}

fn run(options: &[&str]) -> Run {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("program.py"), PROGRAM).unwrap();
    let mut command = kymo::kymo();
    command.args(["record", "-o", "t.pftrace"]).args(options).arg("--");
    command.arg(oracle::venv_python()).arg("program.py").current_dir(folder.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    // The program's own profiler gets what it would get.
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1\n", "{output:?}");
    Run { folder, output }
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
    assert!((400..601).contains(&deep), "{deep}");
    let said = String::from_utf8_lossy(&run.output.stderr).into_owned();
    assert!(said.contains(" lost"), "{said}");
}

#[test]
fn json_numbers_them() {
    let run = run(&["--python", "functions"]);
    let output = kymo::kymo()
        .args(["convert", "t.pftrace", "t.json"])
        .current_dir(run.folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read(run.folder.path().join("t.json")).unwrap();
    let all: Value = serde_json::from_slice(&text).unwrap();
    let calls: Vec<_> = all["traceEvents"]
        .as_array()
        .unwrap()
        .iter()
        // Those that are too deep for a viewer are no slices on the thread.
        .filter(|event| event["cat"] == "python_function" && event["ph"] == "X")
        .collect();
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
fn nothing_is_recorded_unasked() {
    let run = run(&[]);
    assert!(
        !run.folder.path().join("t.pftrace").exists() || {
            let bytes = std::fs::read(run.folder.path().join("t.pftrace")).unwrap();
            !bytes.windows(15).any(|window| window == b"python_function")
        }
    );
}
