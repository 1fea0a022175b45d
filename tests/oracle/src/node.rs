//! The node process that `oracle.mjs` describes.
//!
//! Starting one takes three quarters of the time that a small trace takes, so those that are
//! done wait for the next trace.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::engine::Answer;

/// Processes that wait for a trace. They end by themselves with this one.
static IDLE: Mutex<Vec<Node>> = Mutex::new(Vec::new());
/// More than a test has traces open.
const MAX_IDLE: usize = 4;
/// Traces that a process loads: its memory only grows.
const MAX_TRACES: u32 = 100;
/// A trace after which a process is not used again, in bytes.
const LARGE: u64 = 4 << 20;

/// A process with a trace in it. Dropped, it waits for the next one.
#[derive(Debug)]
pub(crate) struct Loaded(Option<Node>);

/// One process. Killed when dropped; ends by itself when its stdin closes, so none is left
/// behind when a test aborts.
#[derive(Debug)]
pub(crate) struct Node {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    /// Reads stderr to its end, lest the child block on it.
    stderr: Option<JoinHandle<String>>,
    /// Traces that it has loaded.
    traces: u32,
    /// Whether it can load another.
    reusable: bool,
}

impl Loaded {
    pub(crate) fn new(trace: &Path) -> Result<Loaded, String> {
        let unpacked = unpack_zstd(trace).map_err(|error| error.to_string())?;
        let trace = unpacked.as_ref().map_or(trace, NamedTempFile::path);
        let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut node = match idle {
            Some(node) => node,
            None => Node::start(&[])?.0,
        };
        node.load(trace)?;
        Ok(Loaded(Some(node)))
    }

    pub(crate) fn ask(&mut self, sql: &str) -> Result<Answer, String> {
        self.0.as_mut().map_or_else(|| Err("no trace".to_owned()), |node| node.ask(sql))
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let Some(node) = self.0.take_if(|node| node.reusable && node.traces < MAX_TRACES) else {
            return;
        };
        let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE {
            idle.push(node);
        }
    }
}

impl Node {
    fn load(&mut self, trace: &Path) -> Result<(), String> {
        let large = std::fs::metadata(trace).is_ok_and(|file| file.len() > LARGE);
        self.reusable = false;
        self.traces += 1;
        self.send(&json!({ "load": trace }), "it takes no trace")?;
        self.answer()?;
        self.reusable = !large;
        Ok(())
    }

    /// Waits for requests on `port`, or on one of its own choice if that is 0. Returns also
    /// which it is.
    pub(crate) fn serve(port: u16) -> Result<(Node, u16), String> {
        let (node, ready) = Node::start(&["--serve".as_ref(), port.to_string().as_ref()])?;
        let port = ready["port"].as_u64().and_then(|port| port.try_into().ok());
        port.map(|port| (node, port)).ok_or_else(|| format!("no port in {ready}"))
    }

    fn start(args: &[&OsStr]) -> Result<(Node, Value), String> {
        let mut child = Command::new("node")
            // Optimising the engine takes longer than running it unoptimised on the traces
            // of a test: 0.3 s instead of 0.9 s for a small one, and still ahead at 20 MB.
            .arg("--liftoff-only")
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/oracle.mjs"))
            .arg(crate::tools::trace_processor()?)
            .args(args)
            .env_remove("NODE_OPTIONS")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot run node: {error}"))?;
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            unreachable!("both are piped");
        };
        let mut node = Node {
            stdin: child.stdin.take(),
            child,
            stdout: BufReader::new(stdout),
            stderr: Some(std::thread::spawn(|| read_all(stderr))),
            traces: 0,
            reusable: false,
        };
        let ready = node.answer()?;
        Ok((node, ready))
    }

    /// Of a server: bytes received since the last end of a trace, and how many ends.
    pub(crate) fn served(&mut self) -> Result<(u64, u64), String> {
        self.send(&Value::Null, "it takes no more questions")?;
        let answer = self.answer()?;
        let number = |name| answer[name].as_u64().unwrap_or_default();
        Ok((number("received"), number("ended")))
    }

    pub(crate) fn ask(&mut self, sql: &str) -> Result<Answer, String> {
        self.send(&Value::from(sql), "it takes no more queries")?;
        let mut answer = self.answer()?;
        serde_json::from_value(answer["columns"].take())
            .and_then(|columns| {
                let rows = serde_json::from_value(answer["rows"].take())?;
                Ok(Answer { columns, rows })
            })
            .map_err(|error| format!("cannot read the answer: {error}"))
    }

    fn send(&mut self, question: &Value, symptom: &str) -> Result<(), String> {
        let line = format!("{question}\n");
        match self.stdin.as_mut().map(|stdin| stdin.write_all(line.as_bytes())) {
            Some(Ok(())) => Ok(()),
            _ => Err(self.died(symptom)),
        }
    }

    fn answer(&mut self) -> Result<Value, String> {
        let mut line = String::new();
        let read = self.stdout.read_line(&mut line);
        if !matches!(read, Ok(length) if length > 0) {
            return Err(self.died("it said nothing"));
        }
        match serde_json::from_str::<Value>(&line) {
            Ok(Value::Object(mut answer)) => match answer.remove("error") {
                Some(Value::String(error)) => Err(error),
                Some(error) => Err(error.to_string()),
                None => Ok(json!(answer)),
            },
            _ => Err(self.died(&format!("it said {line:?}"))),
        }
    }

    /// What to say of a process that does not answer as it should.
    fn died(&mut self, symptom: &str) -> String {
        self.stdin = None;
        self.reusable = false;
        let _ = self.child.kill();
        let status = match self.child.wait() {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        let log = self.stderr.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        format!("trace_processor failed ({status}): {symptom}\n{}", log.trim_end())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The content of a zstd file. This build of trace_processor cannot read those itself.
fn unpack_zstd(trace: &Path) -> std::io::Result<Option<NamedTempFile>> {
    const MAGIC: [u8; 4] = 0xfd2f_b528_u32.to_le_bytes();
    let file = File::open(trace)?;
    let mut start = Vec::new();
    (&file).take(4).read_to_end(&mut start)?;
    if start != MAGIC {
        return Ok(None);
    }
    let unpacked = NamedTempFile::new()?;
    zstd::stream::copy_decode(start.as_slice().chain(file), unpacked.as_file())?;
    Ok(Some(unpacked))
}

fn read_all(mut stderr: ChildStderr) -> String {
    let mut bytes = Vec::new();
    let _ = stderr.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty() -> Node {
        let trace = NamedTempFile::new().unwrap();
        let (mut node, _) = Node::start(&[]).unwrap();
        node.load(trace.path()).unwrap();
        node
    }

    #[test]
    fn a_process_that_died_is_told_from_a_query_that_failed() {
        let mut node = empty();
        node.child.kill().unwrap();
        node.child.wait().unwrap();
        let error = node.ask("SELECT 1").unwrap_err();
        assert!(error.starts_with("trace_processor failed (signal: 9"), "{error}");
        assert!(error.contains("Loading trace"), "shows its log: {error}");
        assert!(!node.reusable);
    }

    #[test]
    fn no_process_outlives_its_node() {
        let node = empty();
        let process = format!("/proc/{}", node.child.id());
        assert!(Path::new(&process).exists());
        drop(node);
        assert!(!Path::new(&process).exists());
    }

    #[test]
    fn the_next_trace_finds_nothing_of_the_last_one() {
        let mut node = empty();
        node.ask("CREATE PERFETTO TABLE mine AS SELECT 1 AS one").unwrap();
        node.ask("CREATE VIEW yours AS SELECT 2 AS two").unwrap();
        node.ask("INCLUDE PERFETTO MODULE slices.with_context").unwrap();
        assert_eq!(node.ask("SELECT one FROM mine").unwrap().rows, [[json!(1)]]);
        let trace = NamedTempFile::new().unwrap();
        node.load(trace.path()).unwrap();
        for gone in ["mine", "yours", "thread_slice"] {
            let error = node.ask(&format!("SELECT * FROM {gone}")).unwrap_err();
            assert!(error.contains("no such table"), "{error}");
        }
        // One that cannot be read ends the process's use.
        std::fs::write(trace.path(), "no trace at all").unwrap();
        assert!(node.load(trace.path()).is_err() && !node.reusable);
    }
}
