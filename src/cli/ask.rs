//! Talks to processes that can be asked for traces.
//!
//! None of them is trusted: for root they may be another user's. All are asked at once, and
//! one that says nothing, or too much, costs [`TIMEOUT`] and no memory to speak of.

use super::Failure;
use super::shown::printable;
use super::sockets::{self, Socket};
use kymograph::Config;
use kymograph::control;
use kymograph_converters::order::Order as _;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long a process may take to answer what needs no waiting. It may be stopped.
pub(super) const TIMEOUT: Duration = Duration::from_secs(2);
/// What is read of a process at a time, and what it may say at all, apart from how far it is.
const MAX_LENGTH: usize = 64 << 10;
/// What it may say of that, a second.
const PROGRESS: usize = 64 << 10;

/// A process that can be asked for traces.
#[derive(Debug)]
pub(super) struct Process {
    pub pid: u32,
    /// Fit to be printed.
    pub command: String,
    /// Whether it runs as another user than `kymo`.
    pub foreign: bool,
    socket: Socket,
}

/// All of them. Sockets that processes left behind when they were killed are removed.
pub(super) fn processes() -> Result<Vec<Process>, Failure> {
    let (config, problems) = Config::from_env();
    if let Some(problem) = problems.first() {
        return Err(problem.into());
    }
    more_descriptors();
    // SAFETY: no arguments, cannot fail.
    let me = unsafe { libc::geteuid() };
    let mut processes = Vec::new();
    for socket in sockets::find(&control::folders(&config)) {
        processes.extend(match socket.connect() {
            // Not the pid of the name, which is that of the process's own namespace.
            Ok((_, peer)) => {
                let named = peer.pid == 0 || socket.is_answered_for();
                let pid = if named { socket.pid() } else { peer.pid };
                let command = if peer.pid == 0 { "?".to_owned() } else { command(pid) };
                Some(Process { pid, command, foreign: peer.uid != me, socket })
            }
            // It is there, but takes no connections: it may be stopped. Its owner is unknown.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Some(Process { pid: socket.pid(), command: "?".to_owned(), foreign: true, socket })
            }
            Err(_) => None,
        });
    }
    processes.order_by_key(|process| process.pid);
    Ok(processes)
}

/// Each conversation needs one.
fn more_descriptors() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the struct lives through both calls.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max.min(65_536);
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

fn command(pid: u32) -> String {
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let command = command.strip_suffix(&[0]).unwrap_or(&command);
    let words = command.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    printable(&words.collect::<Vec<_>>().join(" ")).into_owned()
}

impl Process {
    /// Begins a conversation; `lines` say what is asked.
    pub(super) fn ask(&self, lines: &str) -> Conversation {
        Conversation {
            socket: self.socket.clone(),
            foreign: self.foreign,
            stream: None,
            to_say: format!("{lines}\n\n").into_bytes(),
            received: Vec::new(),
            heard: [0; 2],
            asked: Instant::now(),
            last: Instant::now(),
            end: None,
        }
    }
}

/// How they are, in their order; nothing of those that do not say so in time.
pub(super) fn statuses(processes: &[Process]) -> Vec<Option<BTreeMap<String, String>>> {
    let mut asked: Vec<_> = processes.iter().map(|process| process.ask("status")).collect();
    let mut said = vec![BTreeMap::new(); asked.len()];
    while asked.iter().any(|conversation| conversation.end.is_none()) {
        for (conversation, said) in asked.iter_mut().zip(&mut said) {
            for line in conversation.lines() {
                if let Some((key, value)) = line.split_once('=') {
                    said.insert(key.to_owned(), value.to_owned());
                }
            }
            conversation.expect_an_answer();
        }
        wait(&asked.iter().collect::<Vec<_>>());
    }
    let ended = asked.iter().map(|conversation| matches!(conversation.end, Some(End::HungUp)));
    said.into_iter()
        .zip(ended)
        .map(|(said, whole)| (whole && !said.is_empty()).then_some(said))
        .collect()
}

/// Waits until one of them says something, or a moment.
pub(super) fn wait(conversations: &[&Conversation]) {
    let open = conversations.iter().filter(|conversation| conversation.end.is_none());
    let mut polled: Vec<_> = open
        .filter_map(|conversation| {
            let fd = conversation.stream.as_ref()?.as_raw_fd();
            Some(libc::pollfd { fd, events: libc::POLLIN, revents: 0 })
        })
        .collect();
    // SAFETY: as many pollfds as it is told, which live through the call.
    unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, 20) };
}

/// An answer that comes line by line.
#[derive(Debug)]
pub(super) struct Conversation {
    socket: Socket,
    foreign: bool,
    /// None while the process takes no connections.
    stream: Option<UnixStream>,
    to_say: Vec<u8>,
    received: Vec<u8>,
    /// Bytes it said: of how far it is, and of everything else.
    heard: [usize; 2],
    asked: Instant,
    last: Instant,
    end: Option<End>,
}

/// How a conversation ended.
#[derive(Debug)]
pub(super) enum End {
    /// The process has hung up: it said everything, or it ended.
    HungUp,
    /// It did not say anything for too long.
    Silent,
    /// It says more than there can be to say.
    TooMuch,
    /// It cannot be reached.
    Failed(io::Error),
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            End::HungUp => f.write_str("the process ended before it could finish the trace"),
            End::Silent => {
                write!(f, "it has not answered for {} s; is it stopped?", TIMEOUT.as_secs())
            }
            End::TooMuch => f.write_str("it answers nonsense, and is not listened to any more"),
            End::Failed(error) => write!(f, "it does not answer: {error}"),
        }
    }
}

impl Conversation {
    /// What it has said since; does not wait.
    pub(super) fn lines(&mut self) -> Vec<String> {
        if self.end.is_some() {
            return Vec::new();
        }
        match self.exchange() {
            Ok(()) => {}
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => {}
                io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
                    self.end = Some(End::HungUp);
                }
                _ => self.end = Some(End::Failed(error)),
            },
        }
        let Some(end) = self.received.iter().rposition(|byte| *byte == b'\n') else {
            return Vec::new();
        };
        self.last = Instant::now();
        let said: Vec<u8> = self.received.drain(..=end).collect();
        let lines: Vec<_> = String::from_utf8_lossy(&said).lines().map(str::to_owned).collect();
        for line in &lines {
            self.heard[usize::from(!line.starts_with("progress "))] += line.len() + 1;
        }
        let most = PROGRESS * (self.asked.elapsed().as_secs() as usize + 1);
        if self.heard[0] > most || self.heard[1] > MAX_LENGTH {
            self.end = Some(End::TooMuch);
        }
        lines
    }

    /// Says what is to be said, and reads what there is, up to a limit.
    fn exchange(&mut self) -> io::Result<()> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => none.insert(self.socket.connect()?.0),
        };
        while !self.to_say.is_empty() {
            let said = stream.write(&self.to_say)?;
            self.to_say.drain(..said);
        }
        let mut buffer = [0; 4096];
        while self.received.len() < MAX_LENGTH {
            match stream.read(&mut buffer) {
                Ok(0) => {
                    self.end = Some(End::HungUp);
                    return Ok(());
                }
                Ok(n) => self.received.extend_from_slice(&buffer[..n]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if !self.received.contains(&b'\n') {
            self.end = Some(End::TooMuch);
        }
        Ok(())
    }

    /// Gives up on a process that should have answered by now.
    pub(super) fn expect_an_answer(&mut self) {
        if self.end.is_none() && self.asked.elapsed() >= TIMEOUT {
            self.end = Some(End::Silent);
        }
    }

    /// Gives up on another user's process that has fallen silent, though it says now and then
    /// that it is still there. One's own is waited for: it may be stopped, and go on.
    pub(super) fn expect_news(&mut self) {
        if self.end.is_none() && self.foreign && self.last.elapsed() >= TIMEOUT {
            self.end = Some(End::Silent);
        }
    }

    /// How it ended, if it did.
    pub(super) fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }
}
