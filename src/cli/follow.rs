//! Sends the output to a trace processor while it is being written, so that the trace is
//! loaded when the recording ends.
//!
//! ```text
//!  processes ──append──► the output ──read, as far as it is whole──► kymo ──POST──► server
//! ```
//! `kymo` follows the file; the processes that are recorded know nothing of it. So a server
//! that is slow, hangs, or dies cannot be felt in them, nor cost an event: the file is what
//! is spilled to, and is whole whatever becomes of the server.
//!
//! A trace processor that was started again has forgotten everything. Whenever the
//! connection was lost the file is therefore sent anew, from its start; `/notify_eof`
//! before it makes a server that did not die begin anew as well.

use super::post::{Connection, Server};
use kymograph::control::Page;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Bytes per request.
const CHUNK: usize = 1 << 20;
/// How often the file is looked at, and how long to wait before another attempt to connect.
const INTERVAL: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// How long `kymo` waits when the recording is over and nothing moves; and for the server
/// when that has everything.
const PATIENCE: Duration = Duration::from_secs(5);
const LOADING: Duration = Duration::from_secs(600);
/// No length of a file.
const NOT_OVER: u64 = u64::MAX;

/// The thread that follows.
pub(super) struct Follow {
    thread: JoinHandle<()>,
    trouble: Arc<Mutex<String>>,
    /// The length of the file when it is finished.
    end: Arc<AtomicU64>,
    sent: Arc<AtomicU64>,
    url: String,
}

/// What the thread knows.
struct Follower {
    file: File,
    server: Server,
    page: Arc<Page>,
    end: Arc<AtomicU64>,
    connection: Option<Connection>,
    /// Bytes that this connection's server has.
    sent: Arc<AtomicU64>,
    /// Before the next attempt to connect.
    pause: Duration,
    /// What went wrong last.
    trouble: Arc<Mutex<String>>,
}

impl Follow {
    /// Begins to send `path`, as far as `page` says that it is whole.
    pub(super) fn start(server: Server, path: &Path, page: &Arc<Page>) -> io::Result<Follow> {
        let end = Arc::new(AtomicU64::new(NOT_OVER));
        let (sent, trouble) = (Arc::new(AtomicU64::new(0)), Arc::default());
        let url = server.url();
        let mut follower = Follower {
            file: File::open(path)?,
            server,
            page: page.clone(),
            end: end.clone(),
            connection: None,
            sent: sent.clone(),
            pause: INTERVAL,
            trouble: Arc::clone(&trouble),
        };
        let thread = thread::Builder::new().name("follow".into()).spawn(move || follower.run())?;
        Ok(Follow { thread, end, sent, trouble, url })
    }

    /// The file is finished and `length` bytes long: waits until the server has all of it,
    /// or nothing moves any more. Returns what to say.
    pub(super) fn finish(self, length: u64) -> String {
        self.end.store(length, Ordering::Release);
        self.thread.thread().unpark();
        let (mut before, mut since) = (NOT_OVER, Instant::now());
        while !self.thread.is_finished() {
            let sent = self.sent.load(Ordering::Relaxed);
            if sent != before {
                (before, since) = (sent, Instant::now());
            }
            if since.elapsed() > if sent == length { LOADING } else { PATIENCE } {
                // Its thread ends with this process.
                let trouble = self.trouble.lock().map_or_else(|_| String::new(), |t| t.clone());
                let why = if trouble.is_empty() { "it does not answer" } else { &trouble };
                return format!(
                    "the trace processor at {} does not have the trace: {why}; the file is \
                     complete, load that",
                    self.url
                );
            }
            thread::sleep(Duration::from_millis(2));
        }
        format!("loaded into the trace processor at {}", self.url)
    }
}

impl Follower {
    /// Returns when the server has everything.
    fn run(&mut self) {
        loop {
            let end = self.end.load(Ordering::Acquire);
            let over = end != NOT_OVER;
            let whole = if over { end } else { self.page.committed() };
            match self.send(whole, over) {
                Ok(true) => return,
                Ok(false) => {
                    self.pause = INTERVAL;
                    if self.sent.load(Ordering::Relaxed) == whole {
                        thread::park_timeout(INTERVAL);
                    }
                }
                Err(error) => {
                    self.connection = None;
                    if let Ok(mut trouble) = self.trouble.lock() {
                        *trouble = error.to_string();
                    }
                    thread::park_timeout(self.pause);
                    self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// Sends a piece of the first `whole` bytes. With the last one, if the file is `over`,
    /// also that it is; returns whether that was it.
    fn send(&mut self, whole: u64, over: bool) -> io::Result<bool> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None => {
                let mut fresh = self.server.connect()?;
                fresh.post("/notify_eof", &[])?;
                self.sent.store(0, Ordering::Relaxed);
                self.connection.insert(fresh)
            }
        };
        let mut sent = self.sent.load(Ordering::Relaxed);
        if sent < whole {
            let mut piece = vec![0; CHUNK.min((whole - sent) as usize)];
            self.file.read_exact_at(&mut piece, sent)?;
            let answer = connection.post("/parse", &piece)?;
            if let Some(why) = complaint(&answer) {
                return Err(io::Error::other(why));
            }
            sent += piece.len() as u64;
            self.sent.store(sent, Ordering::Relaxed);
        }
        let last = over && sent == whole;
        if last {
            connection.post("/notify_eof", &[])?;
        }
        Ok(last)
    }
}

/// The `error` of an `AppendTraceDataResult` (field 2), which a server answers with.
fn complaint(answer: &[u8]) -> Option<String> {
    let mut rest = answer;
    // `total_bytes_parsed` (field 1) is a varint.
    if rest.first() == Some(&0x08) {
        let end = rest[1..].iter().position(|byte| byte & 0x80 == 0)?;
        rest = &rest[end + 2..];
    }
    // Its length, one byte or two; the text goes on to the end.
    let text = rest.strip_prefix(&[0x12])?;
    let start = text.iter().position(|byte| byte & 0x80 == 0)? + 1;
    Some(String::from_utf8_lossy(&text[start..]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::complaint;

    #[test]
    fn what_a_server_complains_of() {
        assert_eq!(complaint(b""), None);
        assert_eq!(complaint(b"\x08\x90\x4e"), None);
        assert_eq!(complaint(b"\x12\x03bad").as_deref(), Some("bad"));
        assert_eq!(complaint(b"\x08\x90\x4e\x12\x03bad").as_deref(), Some("bad"));
        assert_eq!(complaint(b"\x08\x90"), None);
    }
}
