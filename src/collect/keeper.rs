//! In `kymo record --wait`: finishes what a process was asked to record, and recorded by itself, if
//! the process is killed meanwhile.
//!
//! ```text
//!  process                                          kymo record --wait
//!  ┌──────────────────────────────┐                 ┌──────────────────────────────────┐
//!  │ threads ─push─► arena ─► engine ─► output      │ maps the arena, and waits for    │
//!  │                   ▲          │                 │ the death of the process; then:  │
//!  │                   └──────────┼── same memory ──┼─► engine ─► output               │
//!  └──────────────────────────────┘                 └──────────────────────────────────┘
//! ```
//! The arena keeps what was read (`queue/kept.rs`), so the trace is made anew from its beginning.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use super::death::Process;
use super::recover::Recovered;
use super::socket::{self, Peer};
use crate::clock;
use crate::config::Config;
use crate::engine::ending::Ending;
use crate::engine::stats::Summary;
use crate::join::message::{Metadata, Subject};
use crate::join::{IMAGE, OUTPUT};
use crate::queue::Arena;
use crate::sink;

/// How often it is looked whether the command is over.
const LOOK: libc::c_int = 20;

/// See the module. Made before the command starts, and set to work afterwards.
#[derive(Debug)]
pub struct Keeper {
    shared: Arc<Shared>,
    socket: PathBuf,
    thread: Option<JoinHandle<Vec<Said>>>,
}

#[derive(Debug)]
struct Shared {
    listener: OwnedFd,
    finish: AtomicBool,
}

/// What became of a recording whose process was killed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Said {
    /// For people.
    pub text: String,
    /// Whether something is missing.
    pub is_bad: bool,
}

/// A process that records by itself.
struct Kept {
    pid: u32,
    image: String,
    process: Process,
    arena: Arc<Arena>,
    metadata: Metadata,
}

impl Keeper {
    /// Listens in `folder`.
    ///
    /// # Errors
    /// No socket can be made there.
    pub fn create(folder: &Path) -> io::Result<Keeper> {
        let (listener, socket) = socket::listen(folder)?;
        let shared = Arc::new(Shared { listener, finish: AtomicBool::new(false) });
        Ok(Keeper { shared, socket, thread: None })
    }

    /// Sets it to work.
    ///
    /// # Errors
    /// There can be no further thread.
    pub fn start(&mut self) -> io::Result<()> {
        let shared = self.shared.clone();
        let builder = std::thread::Builder::new().name("kymo keeper".to_owned());
        self.thread = Some(builder.spawn(move || shared.run())?);
        Ok(())
    }

    /// Ends it, after what dead processes have left is written. Returns what that was.
    pub fn finish(mut self) -> Vec<Said> {
        self.shared.finish.store(true, Ordering::Release);
        let thread = self.thread.take();
        thread.and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.socket);
    }
}

impl Shared {
    fn run(&self) -> Vec<Said> {
        let (mut kept, mut said) = (Vec::new(), Vec::new());
        loop {
            // Read first: what came before it is seen.
            let finish = self.finish.load(Ordering::Acquire);
            while let Some(peer) = socket::accept(&self.listener) {
                // A process that sends something else, or may not be trusted, is not kept.
                let _ = peer.and_then(|peer| take(&mut kept, peer));
            }
            kept.retain_mut(|it: &mut Kept| {
                let dead = it.process.is_dead();
                if dead {
                    said.extend(it.write());
                }
                !dead
            });
            if finish {
                return said;
            }
            self.wait(&kept);
        }
    }

    /// Waits for a process that begins a recording, or one that dies.
    fn wait(&self, kept: &[Kept]) {
        let descriptors = kept.iter().filter_map(|it| it.process.descriptor());
        let all = [self.listener.as_raw_fd()].into_iter().chain(descriptors);
        let poll = |fd: RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut polled: Vec<_> = all.map(poll).collect();
        // SAFETY: as many pollfds as are said.
        unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, LOOK) };
    }
}

/// A process has begun a recording.
fn take(kept: &mut Vec<Kept>, peer: Peer) -> io::Result<()> {
    let Peer { pid, uid, subject, metadata, file, .. } = peer;
    // SAFETY: no arguments, cannot fail.
    if subject != Subject::Keep || uid != unsafe { libc::geteuid() } {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let image = fact(&metadata, IMAGE).unwrap_or_default().to_owned();
    match file {
        Some(file) => {
            // The program whose place this one has taken. What it left in the same output is
            // being replaced.
            let output = fact(&metadata, OUTPUT);
            kept.retain(|old| old.pid != pid || fact(&old.metadata, OUTPUT) != output);
            let (arena, process) = (Arc::new(Arena::open(file)?), Process::open(pid));
            kept.push(Kept { pid, image, process, arena, metadata });
        }
        None => {
            let known = kept.iter_mut().find(|it| it.pid == pid && it.image == image);
            known.ok_or(io::ErrorKind::NotFound)?.metadata = metadata;
        }
    }
    Ok(())
}

fn fact<'a>(metadata: &'a Metadata, key: &str) -> Option<&'a str> {
    metadata.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
}

impl Kept {
    /// Writes what its process could not, if there is anything.
    fn write(&self) -> Option<Said> {
        let output = PathBuf::from(fact(&self.metadata, OUTPUT)?);
        let recovered = Recovered::of(self.arena.clone(), self.metadata.clone())?;
        let is_whole = recovered.is_whole();
        let (pid, shown) = (self.pid, output.display().to_string());
        let ending = Ending::Killed { signal: self.process.signal() };
        let how = ending.cut_short().unwrap_or_default();
        let of = format!("process {pid} ended while it was recorded ({how})");
        let (text, is_bad) = match recovered.write_over(&output, ending) {
            Ok(None) if is_whole => return None,
            Ok(Some(summary)) if is_whole => (
                format!(
                    "{of}: {shown} has all of it, {} events, {} lost",
                    summary.events, summary.lost
                ),
                summary.lost > 0,
            ),
            Ok(rest) => {
                let rest = rest.map_or(String::new(), |summary| {
                    let beside = beside(&output);
                    format!(", and {} that came later are in {}", summary.events, beside.display())
                });
                let why = "what the program had read, and not written yet, of one flush interval \
                           at most, is lost; a larger BUFFER keeps more";
                (format!("{of}: {shown} has the events up to its last flush{rest}; {why}"), true)
            }
            Err(error) => (format!("{of}: {shown} cannot be finished: {error}"), true),
        };
        Some(Said { text, is_bad })
    }
}

/// Where that goes which came after the last flush.
fn beside(output: &Path) -> PathBuf {
    let name = output.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    let (stem, extension) = name.split_once('.').unwrap_or((&name, "pftrace"));
    output.with_file_name(format!("{stem}.recovered.{extension}"))
}

impl Recovered {
    /// Writes all of it in place of what the process itself has written, or the rest of it beside
    /// that. Returns nothing if there is nothing.
    fn write_over(self, output: &Path, ending: Ending) -> io::Result<Option<Summary>> {
        let to = if self.is_whole() { output.to_owned() } else { beside(output) };
        let mut config = Config::to_file(output);
        (config.safe, config.mode) = (true, Some(0o600));
        // Under a name of its own until it is whole.
        let draft = to.with_added_extension(format!("{}.part", std::process::id()));
        let failed = |error: crate::Error| io::Error::other(error.to_string());
        let sink = sink::open_file(&config, &draft).map_err(failed)?;
        let now = clock::system(libc::CLOCK_BOOTTIME);
        let written = self.write_until(config, sink, "kymo record --wait", (ending, now));
        let summary = written.inspect_err(|_| _ = fs::remove_file(&draft))?;
        if let Some(why) = &summary.failure {
            let _ = fs::remove_file(&draft);
            return Err(io::Error::other(why.clone()));
        }
        if summary.events + summary.lost == 0 {
            let _ = fs::remove_file(&draft);
            return Ok(None);
        }
        fs::rename(&draft, &to)?;
        Ok(Some(summary))
    }
}
