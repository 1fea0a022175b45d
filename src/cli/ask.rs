//! Talks to processes that can be asked for traces.

use super::Refusal;
use kymograph::Config;
use kymograph::control;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long a process may take to answer what needs no waiting. It may be stopped.
const PATIENCE: Duration = Duration::from_secs(5);

/// A process that can be asked for traces.
#[derive(Debug)]
pub(super) struct Process {
    pub pid: u32,
    pub command: String,
    path: std::path::PathBuf,
}

/// All of them. Sockets that processes left behind when they were killed are removed.
pub(super) fn processes() -> Result<Vec<Process>, Refusal> {
    let (config, problems) = Config::from_env();
    if let Some(problem) = problems.first() {
        return Err(problem.into());
    }
    let mut processes = Vec::new();
    for (pid, path) in control::sockets(&config) {
        match UnixStream::connect(&path) {
            Ok(_) => processes.push(Process { pid, command: command(pid), path }),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                let _ = std::fs::remove_file(&path);
            }
            Err(_) => {}
        }
    }
    Ok(processes)
}

fn command(pid: u32) -> String {
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let command = command.strip_suffix(&[0]).unwrap_or(&command);
    let words = command.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    words.collect::<Vec<_>>().join(" ").replace(|c: char| c.is_control(), "?")
}

/// An answer that comes line by line.
#[derive(Debug)]
pub(super) struct Conversation {
    stream: UnixStream,
    received: Vec<u8>,
    ended: bool,
}

impl Process {
    /// Asks; `lines` say what.
    pub(super) fn ask(&self, lines: &str) -> io::Result<Conversation> {
        let mut stream = UnixStream::connect(&self.path)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.write_all(lines.as_bytes())?;
        stream.write_all(b"\n\n")?;
        Ok(Conversation { stream, received: Vec::new(), ended: false })
    }

    /// How it is; nothing if it does not answer in time.
    pub(super) fn status(&self) -> BTreeMap<String, String> {
        let mut status = BTreeMap::new();
        let Ok(mut conversation) = self.ask("status") else {
            return status;
        };
        let deadline = Instant::now() + PATIENCE;
        loop {
            // Before it reads, so that what has come is read however late it is.
            let late = Instant::now() >= deadline;
            for line in conversation.lines(Duration::from_millis(50)) {
                if let Some((key, value)) = line.split_once('=') {
                    status.insert(key.to_owned(), value.to_owned());
                }
            }
            if late || conversation.ended {
                break;
            }
        }
        status
    }
}

impl Conversation {
    /// What it says next, after `time` at most.
    pub(super) fn lines(&mut self, time: Duration) -> Vec<String> {
        let _ = self.stream.set_read_timeout(Some(time.max(Duration::from_millis(1))));
        let mut buffer = [0; 4096];
        match self.stream.read(&mut buffer) {
            Ok(0) => self.ended = true,
            Ok(n) => self.received.extend_from_slice(&buffer[..n]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.ended = true,
        }
        let Some(end) = self.received.iter().rposition(|byte| *byte == b'\n') else {
            return Vec::new();
        };
        let said: Vec<u8> = self.received.drain(..=end).collect();
        String::from_utf8_lossy(&said).lines().map(str::to_owned).collect()
    }

    /// Whether the process has hung up: it said everything, or it ended.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }
}
