//! The node process that `oracle.mjs` describes.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;

use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::engine::Answer;

/// One process with one trace. Killed when dropped; ends by itself when its stdin closes,
/// so none is left behind when a test aborts.
#[derive(Debug)]
pub(crate) struct Node {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    /// Reads stderr to its end, lest the child block on it.
    stderr: Option<JoinHandle<String>>,
}

impl Node {
    pub(crate) fn load(trace: &Path) -> Result<Node, String> {
        let unpacked = unpack_zstd(trace).map_err(|error| error.to_string())?;
        let trace = unpacked.as_ref().map_or(trace, NamedTempFile::path);
        Node::start(&[trace.as_os_str()]).map(|(node, _)| node)
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
        };
        let ready = node.answer()?;
        Ok((node, ready))
    }

    /// Of a server: bytes received since the last end of a trace, and how many ends.
    pub(crate) fn served(&mut self) -> Result<(u64, u64), String> {
        let sent = self.stdin.as_mut().map(|stdin| stdin.write_all(b"null\n"));
        if !matches!(sent, Some(Ok(()))) {
            return Err(self.died("it takes no more questions"));
        }
        let answer = self.answer()?;
        let number = |name| answer[name].as_u64().unwrap_or_default();
        Ok((number("received"), number("ended")))
    }

    pub(crate) fn ask(&mut self, sql: &str) -> Result<Answer, String> {
        let line = format!("{}\n", Value::from(sql));
        let sent = self.stdin.as_mut().map(|stdin| stdin.write_all(line.as_bytes()));
        if !matches!(sent, Some(Ok(()))) {
            return Err(self.died("it takes no more queries"));
        }
        let mut answer = self.answer()?;
        serde_json::from_value(answer["columns"].take())
            .and_then(|columns| {
                let rows = serde_json::from_value(answer["rows"].take())?;
                Ok(Answer { columns, rows })
            })
            .map_err(|error| format!("cannot read the answer: {error}"))
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
        Node::load(trace.path()).unwrap()
    }

    #[test]
    fn a_process_that_died_is_told_from_a_query_that_failed() {
        let mut node = empty();
        node.child.kill().unwrap();
        node.child.wait().unwrap();
        let error = node.ask("SELECT 1").unwrap_err();
        assert!(error.starts_with("trace_processor failed (signal: 9"), "{error}");
        assert!(error.contains("Loading trace"), "shows its log: {error}");
    }

    #[test]
    fn no_process_outlives_its_trace() {
        let node = empty();
        let process = format!("/proc/{}", node.child.id());
        assert!(Path::new(&process).exists());
        drop(node);
        assert!(!Path::new(&process).exists());
    }
}
