//! `kymo record` on programs that have a libtorch: its operators are in the trace as PyTorch's own
//! profiler would have them, and where its structs are not those that are known, nothing is read
//! of them. The libtorch is one of our own (backends/fakes/libtorch).

use harness::{fakes, kymo};
use std::path::PathBuf;
use std::process::Output;

use oracle::Trace;
use serde_json::Value;

/// What all programs begin with.
const PREPARE: &str = r#"
import ctypes, os, threading
torch = ctypes.CDLL(os.environ["LIBTORCH"])
torch.fake_torch_begin.restype = ctypes.c_void_p
torch.fake_torch_begin.argtypes = [ctypes.c_uint8, ctypes.c_char_p, ctypes.c_int64, ctypes.c_uint64]
torch.fake_torch_end.argtypes = [ctypes.c_void_p]
torch.fake_torch_says.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_int, ctypes.c_int64]
# As the CUDA driver does.
ctypes.CDLL(None).InitializeInjection()
FUNCTION, BACKWARD, USER = 0, 1, 7
names = {}

def begin(name, seq=-1, forward=0, scope=FUNCTION):
    text = names.setdefault(name, ctypes.create_string_buffer(name.encode()))
    return torch.fake_torch_begin(scope, ctypes.cast(text, ctypes.c_char_p), seq, forward)

class op:
    def __init__(self, *args, **kwargs):
        self.args, self.kwargs = args, kwargs
    def __enter__(self):
        self.op = begin(*self.args, **self.kwargs)
    def __exit__(self, *_):
        torch.fake_torch_end(self.op)

def on_a_thread(work, **kwargs):
    thread = threading.Thread(target=work, **kwargs)
    thread.start()
    thread.join()
"#;

const TRAINING: &str = r##"
def backward():
    with op("autograd::engine::evaluate_function: AddmmBackward0"):
        with op("AddmmBackward0", 7, 1, BACKWARD):
            with op("aten::mm"):
                pass

with op("forward", scope=USER):
    with op("aten::linear", 7):
        with op("aten::t", 7):
            pass
        with op("aten::addmm", 7):
            pass
on_a_thread(backward)
on_a_thread(lambda: op("aten::ones").__enter__() and None, daemon=True)
with op("Optimizer.step#SGD.step", scope=USER):
    pass
"##;

struct Run {
    folder: tempfile::TempDir,
    output: Output,
}

impl Run {
    fn new(program: &str, options: &[&str], fault: &str) -> Run {
        Run::with(program, options, fault, |_| {})
    }

    fn with(program: &str, options: &[&str], fault: &str, spoil: impl FnOnce(&PathBuf)) -> Run {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("libtorch_cpu.so.2");
        std::fs::copy(fakes::example("libfake_libtorch.so"), &library).unwrap();
        spoil(&library);
        let mut command = kymo::kymo();
        command.args(["record", "-o"]).arg(folder.path().join("t.pftrace"));
        command.args(options).arg("--").arg(oracle::venv_python()).arg("-c");
        command.arg(format!("{PREPARE}\n{program}\nprint('done')"));
        command.env("LIBTORCH", &library).env("FAKE_TORCH", fault);
        let output = command.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "done\n", "{output:?}");
        assert!(output.status.success());
        Run { folder, output }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("t.pftrace")
    }

    fn trace(&self) -> Trace {
        let trace = Trace::open(self.path());
        trace.assert_clean();
        trace
    }

    fn says(&self, text: &str) -> bool {
        let bytes = std::fs::read(self.path()).unwrap_or_default();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    }

    /// The events of its JSON that have a duration.
    fn events(&self, options: &[&str]) -> Vec<Value> {
        let json = self.folder.path().join("t.json");
        let mut command = kymo::kymo();
        command.arg("convert").arg(self.path()).arg(&json).args(options).arg("--force");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let all: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
        let all = all["traceEvents"].as_array().unwrap();
        all.iter().filter(|event| event["ph"] == "X").cloned().collect()
    }
}

#[test]
fn they_are_slices_with_what_kineto_says_of_them() {
    let run = Run::new(TRAINING, &[], "");
    let trace = run.trace();
    let rows = trace.strings(
        "SELECT name || '|' || category || '|' || depth || '|' || \
         IFNULL(EXTRACT_ARG(arg_set_id, 'debug.Sequence number'), '') || '|' || \
         IFNULL(EXTRACT_ARG(arg_set_id, 'debug.Fwd thread id'), '') \
         FROM slice WHERE name != 'aten::ones' ORDER BY ts",
    );
    let expected = [
        "forward|user_annotation|0||",
        "aten::linear|cpu_op|1|7|",
        "aten::t|cpu_op|2|7|",
        "aten::addmm|cpu_op|2|7|",
        "autograd::engine::evaluate_function: AddmmBackward0|cpu_op|0||",
        "AddmmBackward0|cpu_op|1|7|1",
        "aten::mm|cpu_op|2||",
        "Optimizer.step#SGD.step|user_annotation|0||",
    ];
    assert_eq!(rows, expected);
    assert!(run.says("observed (as 2.2 to 2.15)"));
    // The one that shows the node's number last is the one that made it.
    let arrows = trace.strings(
        "SELECT a.name || '|' || b.name FROM flow \
         JOIN slice a ON a.id = slice_out JOIN slice b ON b.id = slice_in",
    );
    assert_eq!(arrows, ["aten::addmm|AddmmBackward0"]);
}

#[test]
fn json_has_them_as_kineto_writes_them() {
    let run = Run::new(TRAINING, &[], "");
    let events = run.events(&[]);
    let find = |name: &str| events.iter().find(|event| event["name"] == name).unwrap();
    let linear = &find("aten::linear")["args"];
    assert_eq!(
        (&linear["Sequence number"], &linear["Fwd thread id"], &linear["Record function id"]),
        (&Value::from(7), &Value::from(0), &Value::from(0))
    );
    // The engine's call of a node has the node's.
    for name in ["AddmmBackward0", "autograd::engine::evaluate_function: AddmmBackward0"] {
        let args = &find(name)["args"];
        assert_eq!((&args["Sequence number"], &args["Fwd thread id"]), (&7.into(), &1.into()));
    }
    assert_eq!(find("forward")["cat"], "user_annotation");
    let mut ids: Vec<_> = events.iter().map(|e| e["args"]["External id"].as_u64()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (1..=events.len() as u64).map(Some).collect::<Vec<_>>());
    let only = run.events(&["--category", "cpu_op"]);
    assert!(only.iter().all(|event| event["cat"] == "cpu_op") && only.len() == events.len() - 2);
}

#[test]
fn collectives_have_what_kineto_says_of_them() {
    let program = r#"
name = ctypes.create_string_buffer(b"allreduce")
torch.fake_torch_says(name, 1, 40, 1 << 33)
with op("record_param_comms"):
    pass
torch.fake_torch_says(None, 0, 0, 0)
with op("record_param_comms"):
    pass
"#;
    let run = Run::new(program, &[], "");
    let events = run.events(&[]);
    let [said, silent] = &events[..] else { panic!("{events:?}") };
    let ranks: Vec<String> = (0..29).map(|rank: i32| rank.to_string()).collect();
    let expected = serde_json::json!({
        "Collective name": "allreduce", "dtype": "Float", "In msg nelems": 1_i64 << 33,
        "Out msg nelems": 1_i64 << 33, "In split size": "[]", "Out split size": "[1, 2]",
        "Global rank start": 0, "Global rank stride": 1, "Group size": 40,
        "Process Group Name": "0", "Process Group Description": "default_pg",
        "Process Group Ranks": format!("[{}, ..., 39]", ranks.join(", ")), "Rank": 1, "Seq": 42,
    });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&said["args"][key], value, "{key} of {said}");
        assert_eq!(silent["args"].get(key), None, "{key} of {silent}");
    }
    assert!(run.says("collectives have no arguments: "));
}

#[test]
fn categories_choose_among_them() {
    let names = |options: &[&str]| {
        let run = Run::new(TRAINING, options, "");
        run.trace().strings("SELECT DISTINCT category FROM slice ORDER BY 1")
    };
    assert_eq!(names(&["--category", "cpu_op"]), ["cpu_op"]);
    assert_eq!(names(&["--category", "user_annotation"]), ["user_annotation"]);
    let off = Run::new(TRAINING, &["--pytorch", "off"], "");
    assert!(!off.says("cpu_op"));
}

#[test]
fn ends_need_not_nest_nor_come_on_the_same_thread() {
    let program = r#"
outer = begin("outer", scope=USER)
inner = begin("inner", scope=USER)
torch.fake_torch_end(outer)
torch.fake_torch_end(inner)
with op("around", scope=USER):
    elsewhere = begin("ends elsewhere", scope=USER)
    on_a_thread(lambda: torch.fake_torch_end(elsewhere))
with op("after", scope=USER):
    pass
with op("x" * 5000, scope=USER):
    pass
for depth in range(100):
    begin("deep %d" % depth)
"#;
    let run = Run::new(program, &[], "");
    let trace = Trace::open(run.path());
    trace.clean_except(&["traced_buf_trace_writer_packet_loss"]);
    let rows = trace.strings(
        "SELECT name || '|' || depth || '|' || (dur >= 0) FROM slice WHERE name NOT GLOB 'deep*' \
         AND name NOT GLOB 'xx*' ORDER BY ts",
    );
    let expected = ["outer|0|1", "inner|1|1", "around|0|1", "ends elsewhere|1|1", "after|0|1"];
    assert_eq!(rows, expected);
    assert_eq!(trace.one_i64("SELECT LENGTH(name) FROM slice WHERE name GLOB 'xx*'"), 5000);
    // As many as are followed; the others are said to be lost.
    assert_eq!(trace.one_i64("SELECT COUNT(*) FROM slice WHERE name GLOB 'deep*'"), 64);
    assert!(String::from_utf8_lossy(&run.output.stderr).contains("36 lost"), "{:?}", run.output);
}

/// `with record_function(…)` begins in a call of `__enter__`, and ends in one of `__exit__`.
#[test]
fn annotations_cross_calls_of_python() {
    let program = r#"
def helper():
    pass

with op("outer", scope=USER):
    with op("inner", scope=USER):
        helper()
    helper()
helper()
"#;
    let run = Run::new(program, &["--python", "functions"], "");
    run.trace();
    let events = run.events(&[]);
    let named = |text: &str| -> Vec<&Value> {
        events.iter().filter(|e| e["name"].as_str().is_some_and(|n| n.ends_with(text))).collect()
    };
    let span = |event: &Value| {
        let start = event["ts"].as_f64().unwrap();
        (start, start + event["dur"].as_f64().unwrap())
    };
    let is_in = |event: &Value, around: &Value| {
        let (event, around) = (span(event), span(around));
        around.0 <= event.0 && event.1 <= around.1
    };
    let (outer, inner, calls) = (named("outer")[0], named("inner")[0], named(": helper"));
    assert_eq!(calls.len(), 3, "{events:?}");
    assert_eq!(outer["cat"], "user_annotation");
    assert_eq!(outer["tid"], calls[0]["tid"]);
    assert!(is_in(inner, outer));
    assert_eq!([0, 1, 2].map(|n| is_in(calls[n], outer)), [true, true, false]);
    assert_eq!([0, 1, 2].map(|n| is_in(calls[n], inner)), [true, false, false]);
    // The caller is what called it, not where the annotation began.
    let module = named(": <module>");
    for call in calls {
        let parent = &call["args"]["Python parent id"];
        assert!(module.iter().any(|event| event["args"]["Python id"] == *parent), "{call}");
    }
}

#[test]
fn a_program_may_fork_and_end_inside_of_one() {
    let program = r#"
with op("aten::outer"):
    pid = os.fork()
    with op("aten::inner"):
        pass
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
begin("aten::until the end")
import atexit
atexit.register(lambda: op("aten::at exit").__enter__())
"#;
    let run = Run::new(program, &[], "");
    let rows = run
        .trace()
        .strings("SELECT name || '|' || COUNT(*) FROM slice GROUP BY name ORDER BY name");
    let expected = ["aten::at exit|1", "aten::inner|2", "aten::outer|1", "aten::until the end|1"];
    assert_eq!(rows, expected);
}

#[test]
fn what_is_not_known_is_left_alone_and_said() {
    let reasons = [
        ("layout", "its operators are laid out in an unknown way"),
        ("deaf", "it does not call observers"),
        ("disabled", "this thread has switched observers off"),
    ];
    for (fault, reason) in reasons {
        let run = Run::new(TRAINING, &[], fault);
        assert!(run.says(reason), "{fault}: {:?}", run.output);
        assert_eq!(run.trace().one_i64("SELECT COUNT(*) FROM slice WHERE category = 'cpu_op'"), 0);
    }
    let missing = "_ZN2at14RecordFunction9_setAsyncEv";
    let run = Run::with(TRAINING, &[], "", |library| fakes::rename(library, missing));
    assert!(run.says(missing) && !run.says("cpu_op"));
}

#[test]
fn steps_are_annotations_that_nest() {
    let program = r#"
us = ctypes.CDLL(None)
with op("all of it", scope=USER):
    for step in range(3):
        with op("aten::linear"):
            pass
        with op("Optimizer.step", scope=USER):
            us.kymo_step()
            with op("aten::add_"):
                pass
"#;
    let run = Run::new(program, &[], "");
    let events = run.events(&[]);
    let nanos = |micros: &Value| (micros.as_f64().unwrap() * 1e3).round() as i64;
    let span = |event: &Value| {
        let begin = nanos(&event["ts"]);
        (begin, begin + nanos(&event["dur"]))
    };
    let named = |name: &str| -> Vec<_> {
        events.iter().filter(|event| event["name"].as_str().unwrap().starts_with(name)).collect()
    };
    let steps = named("ProfilerStep#");
    assert!(steps.len() >= 2, "{events:?}");
    let thread = &named("all of it")[0]["tid"];
    for step in steps {
        assert_eq!((&step["cat"], &step["tid"]), (&Value::from("user_annotation"), thread));
        assert!(step["args"]["External id"].is_u64());
        let (begin, end) = span(step);
        for (other_begin, other_end) in events.iter().map(span) {
            let apart = other_end <= begin || end <= other_begin;
            let nests = (begin <= other_begin && other_end <= end)
                || (other_begin <= begin && end <= other_end);
            assert!(apart || nests, "{step} {other_begin} {other_end}");
        }
    }
}

#[test]
fn the_plugin_of_tensorboard_finds_operators() {
    let run = Run::new(TRAINING, &[], "");
    run.events(&[]);
    let script = "import sys; from torch_tb_profiler.profiler.data import RunProfileData as Data; \
        from torch_tb_profiler import io; \
        data = Data.parse('worker', '1', sys.argv[1], sys.argv[2]); data.process(); \
        print(sorted((op.name, op.calls) for op in data.op_list_groupby_name))";
    let python = std::process::Command::new(oracle::readers_python())
        .args(["-W", "ignore", "-c", script])
        .args([run.folder.path().join("t.json"), run.folder.path().to_owned()])
        .output()
        .unwrap();
    let found = String::from_utf8_lossy(&python.stdout);
    for operator in ["('aten::addmm', 1)", "('aten::linear', 1)", "('aten::mm', 1)"] {
        assert!(found.contains(operator), "{found}{}", String::from_utf8_lossy(&python.stderr));
    }
}
