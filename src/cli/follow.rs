//! Sends the output elsewhere while it is being written: to a trace processor, so that the
//! trace is loaded when the recording ends, or into a pipe.
//!
//! ```text
//!  processes ──append──► the output ──read, as far as it is whole──► kymo ──► server, pipe
//! ```
//! `kymo` follows the file; the processes that are recorded know nothing of it. So a server
//! that is slow, hangs, or dies, or a reader that goes away, cannot be felt in them, nor
//! cost an event: the file is what is spilled to, and is whole whatever becomes of them.
//!
//! A trace processor that was started again has forgotten everything, and so has the next
//! reader of a pipe. Whenever a destination was lost the file is therefore sent anew, from
//! its start.

use super::destination::{Destination, Reached};
use kymograph::control::Page;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Bytes per request.
const CHUNK: usize = 1 << 20;
/// How often the file is looked at, and how long to wait before another attempt to connect.
const INTERVAL: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(2);
/// How long `kymo` waits when the recording is over and nothing moves: for a place that it
/// never reached, for one that it did, and for a server that has everything.
const NOBODY: Duration = Duration::from_secs(5);
const TIMEOUT: Duration = Duration::from_secs(30);
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
    ever: Arc<AtomicBool>,
    name: String,
}

/// What the thread knows.
struct Follower {
    file: File,
    destination: Destination,
    page: Arc<Page>,
    end: Arc<AtomicU64>,
    reached: Option<Reached>,
    /// Bytes that it has.
    sent: Arc<AtomicU64>,
    /// Whether it was ever reached.
    ever: Arc<AtomicBool>,
    /// Before the next attempt to connect.
    pause: Duration,
    /// What went wrong last.
    trouble: Arc<Mutex<String>>,
}

impl Follow {
    /// Begins to send `path`, as far as `page` says that it is whole.
    pub(super) fn start(
        destination: Destination,
        path: &Path,
        page: &Arc<Page>,
    ) -> io::Result<Follow> {
        let end = Arc::new(AtomicU64::new(NOT_OVER));
        let (sent, ever, trouble) = (Arc::default(), Arc::default(), Arc::default());
        let name = destination.name();
        let mut follower = Follower {
            file: File::open(path)?,
            destination,
            page: page.clone(),
            end: end.clone(),
            reached: None,
            sent: Arc::clone(&sent),
            ever: Arc::clone(&ever),
            pause: INTERVAL,
            trouble: Arc::clone(&trouble),
        };
        let thread = thread::Builder::new().name("follow".into()).spawn(move || follower.run())?;
        Ok(Follow { thread, end, sent, ever, trouble, name })
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
            let timeout = match self.ever.load(Ordering::Relaxed) {
                true if sent == length => LOADING,
                true => TIMEOUT,
                false => NOBODY,
            };
            if since.elapsed() > timeout {
                // Its thread ends with this process.
                let trouble = self.trouble.lock().map_or_else(|_| String::new(), |t| t.clone());
                let why = if trouble.is_empty() { "it does not answer" } else { &trouble };
                return format!(
                    "{} does not have the whole trace: {why}; the output has",
                    self.name
                );
            }
            thread::sleep(Duration::from_millis(2));
        }
        format!("{} has the whole trace", self.name)
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
                    self.reached = None;
                    if let Ok(mut trouble) = self.trouble.lock() {
                        let text = error.to_string();
                        *trouble = text.split(" (os error").next().unwrap_or_default().to_owned();
                    }
                    thread::park_timeout(self.pause);
                    self.pause = (self.pause * 2).min(MAX_PAUSE);
                }
            }
        }
    }

    /// Sends a piece of the first `whole` bytes. With the last one, if the file is `over`,
    /// also that it is; returns whether that was it.
    fn send(&mut self, whole: u64, over: bool) -> io::Result<bool> {
        let reached = match &mut self.reached {
            Some(reached) => reached,
            None => {
                self.sent.store(0, Ordering::Relaxed);
                let reached = self.destination.reach()?;
                self.ever.store(true, Ordering::Relaxed);
                self.reached.insert(reached)
            }
        };
        let mut sent = self.sent.load(Ordering::Relaxed);
        if sent < whole {
            let mut piece = vec![0; CHUNK.min((whole - sent) as usize)];
            self.file.read_exact_at(&mut piece, sent)?;
            reached.put(&piece)?;
            sent += piece.len() as u64;
            self.sent.store(sent, Ordering::Relaxed);
        }
        let last = over && sent == whole;
        if last {
            reached.end()?;
        }
        Ok(last)
    }
}
