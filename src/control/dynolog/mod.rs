//! On demand, by a daemon: dynolog's clients, as Kineto has one.
//!
//! ```text
//!   dyno gputrace ──TCP──► daemon ◄── "req": pids, ready for a trace? ── every process,
//!                                 ─── "req": KEY=VALUE lines, or nothing ──►  now and then
//! ```
//! A process asks every few seconds whether there is a request for it; that also registers
//! it with the daemon, and a daemon that was started again knows it after the next
//! question. An answer is taken whenever it comes. Nothing here waits: the background
//! thread attends to a [`Client`] when its socket has something, or its time has come.
//!
//! What a stock daemon cannot stand is never done to it ([`wire`], [`socket`]): it aborts, or
//! waits ten seconds for a client that asked and is gone before it could answer. What
//! others cannot be trusted with is not taken from them: datagrams of other users,
//! lengths that lie, more text than any request has, more datagrams than any daemon sends.
//! All of that is counted.

mod ancestry;
mod random;
mod requests;
mod socket;
mod wire;

use std::io;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use super::{Broker, Trigger};
use crate::config::Daemon;
use random::Random;
use requests::Remarks;
pub use socket::{CLIENT, Received, Socket, listens};
pub use wire::{MAX_LENGTH, MAX_PIDS, MAX_TEXT, Malformed, Ready, reply, request};

/// Clients that ask at the same moment would have a daemon, which serves a hundred a
/// second, make the last ones wait: all spread their first question over this time.
const SPREAD: Duration = Duration::from_secs(1);
/// When to ask again if the daemon's queue was full.
const BUSY: Duration = Duration::from_secs(1);
/// Datagrams that are looked at in one go. Beyond that a daemon has gone mad, and is not
/// listened to until it is asked again.
const AT_ONCE: usize = 32;
/// How long a stock daemon takes to answer when it has nothing else to do, with room.
const ANSWER: Duration = Duration::from_millis(50);

/// What happened so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Questions that the daemon got.
    pub asked: u64,
    /// Questions that could not be sent.
    pub unsent: u64,
    /// Answers, most of them empty.
    pub answers: u64,
    /// Answers with a request.
    pub requests: u64,
    /// Datagrams that are no daemon's.
    pub malformed: u64,
    /// Datagrams of senders that are not trusted.
    pub foreign: u64,
}

/// A client of a daemon. It belongs to one thread, the background thread.
#[derive(Debug)]
pub struct Client {
    settings: Daemon,
    socket: Option<Socket>,
    /// When to ask.
    next: Instant,
    /// Nothing is read until then.
    resting: bool,
    /// When it asked, while there is no answer.
    asked: Option<Instant>,
    /// This process and its ancestors, as they were at first: to a daemon, other ancestors
    /// are another process.
    pids: Vec<i32>,
    random: Random,
    buffer: Vec<u8>,
    counts: Counts,
    problem: Option<String>,
    remarks: Remarks,
    /// What the broker knows of this.
    told: String,
}

impl Client {
    /// A client that asks for the first time within a second after `now`.
    pub fn new(settings: Daemon, now: Instant) -> Client {
        let mut random = Random::new();
        Client {
            settings,
            socket: None,
            next: now + random.part_of(SPREAD),
            resting: false,
            asked: None,
            pids: ancestry::of(std::process::id()),
            random,
            buffer: Vec::new(),
            counts: Counts::default(),
            problem: None,
            remarks: Remarks::default(),
            told: String::new(),
        }
    }

    /// What to wait for with `poll`, besides the time.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.socket.as_ref().filter(|_| !self.resting)?.descriptor()
    }

    /// When it wants to be attended to even if nothing comes.
    pub fn due(&self) -> Instant {
        self.next
    }

    /// What happened so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// How it goes, in a line.
    fn condition(&self) -> String {
        let name = &self.settings.name;
        let now = match (&self.problem, self.counts) {
            (Some(problem), _) => problem.clone(),
            (None, Counts { answers: 0, .. }) => format!("{name} has not answered yet"),
            (None, Counts { requests, .. }) => {
                format!("{name} answers; requests so far: {requests}")
            }
        };
        match self.remarks.last() {
            Some(remark) if self.problem.as_ref() != Some(&remark) => format!("{now}; {remark}"),
            _ => now,
        }
    }

    /// What is wrong, if something is: for people.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Takes what came: the texts of requests.
    pub fn receive(&mut self) -> Vec<String> {
        let mut texts = Vec::new();
        for _ in 0..AT_ONCE {
            let Some(socket) = &self.socket else {
                return texts;
            };
            self.buffer.resize(MAX_LENGTH, 0);
            match socket.receive(&mut self.buffer) {
                Ok(Received::Nothing) => return texts,
                Ok(Received::Datagram(length)) => texts.extend(self.read(length)),
                Ok(Received::Foreign(uid)) => {
                    self.counts.foreign += 1;
                    self.complain(foreign(uid));
                }
                Err(error) => {
                    self.lose(&error);
                    return texts;
                }
            }
        }
        self.resting = true;
        texts
    }

    fn read(&mut self, length: usize) -> Option<String> {
        match reply(&self.buffer[..length.min(MAX_LENGTH)], length) {
            Ok(Some(text)) => {
                self.counts.answers += 1;
                self.asked = None;
                if text.trim_matches([' ', '\t', '\n', '\r', '\0']).is_empty() {
                    return None;
                }
                self.counts.requests += 1;
                Some(text.to_owned())
            }
            Ok(None) => None,
            Err(error) => {
                self.counts.malformed += 1;
                self.complain(format!("a datagram of the daemon makes no sense: {error}"));
                None
            }
        }
    }

    /// Something came that was not read.
    fn complain(&mut self, what: String) {
        self.remarks.add(what.clone());
        self.problem = Some(what);
    }

    /// From the next question on.
    fn poll_every(&mut self, poll: Duration) {
        self.settings.poll = poll.clamp(Daemon::SHORTEST_POLL, Daemon::MAX_POLL);
    }

    /// Asks the daemon, if it is time to.
    pub fn ask(&mut self, now: Instant, ready: Ready) {
        if now < self.next {
            return;
        }
        self.resting = false;
        let poll = self.settings.poll;
        // Never later than `poll`, and never in step with others.
        self.next = now + poll.mul_f64(0.8) + self.random.part_of(poll.mul_f64(0.2));
        match self.send(ready) {
            Ok(()) => {
                self.counts.asked += 1;
                self.asked = Some(now);
                self.problem = None;
            }
            Err(error) => {
                self.counts.unsent += 1;
                if error.kind() == io::ErrorKind::WouldBlock {
                    self.next = self.next.min(now + BUSY + self.random.part_of(SPREAD));
                }
                self.lose(&error);
            }
        }
    }

    /// Whether it may end: nothing was asked that the daemon is about to answer.
    pub fn is_settled(&mut self, now: Instant) -> bool {
        self.receive();
        self.asked.is_none_or(|asked| now.saturating_duration_since(asked) > ANSWER)
    }

    fn send(&mut self, ready: Ready) -> io::Result<()> {
        let mut socket = match self.socket.take().filter(Socket::is_there) {
            Some(socket) => socket,
            None => {
                let name = format!("{CLIENT}{}", self.random.uuid());
                Socket::open(&self.settings, &name)?
            }
        };
        let sent = request(ready, self.settings.job, &self.pids)
            .map_or(Ok(()), |datagram| socket.send(&datagram));
        self.socket = Some(socket);
        sent
    }

    /// Something failed: what it means, and whether the socket is still of use.
    fn lose(&mut self, error: &io::Error) {
        let Daemon { name: daemon, folder, .. } = &self.settings;
        let place = match folder {
            Some(folder) => format!("in {}", folder.display()),
            None => "in this network namespace".to_owned(),
        };
        use io::ErrorKind::{ConnectionRefused, NotFound, WouldBlock};
        self.problem = Some(match error.kind() {
            ConnectionRefused | NotFound => format!(
                "there is no daemon {daemon} {place}; start it with --enable_ipc_monitor, or set \
                 KINETO_IPC_SOCKET_DIR for both"
            ),
            WouldBlock => format!("the daemon {daemon} is busy"),
            _ => {
                self.socket = None;
                format!("cannot reach the daemon {daemon} {place}: {error}")
            }
        });
    }
}

impl Trigger for Client {
    fn descriptors(&self, to: &mut Vec<RawFd>) {
        to.extend(self.descriptor());
    }

    fn due(&self) -> Option<Instant> {
        Some(self.next)
    }

    fn attend(&mut self, broker: &Broker) {
        for text in self.receive() {
            self.hand_over(&text, broker);
        }
        // A request that cannot be followed now stays with the daemon.
        let ready = if broker.obstacle().is_none() { Ready::Activities } else { Ready::Nothing };
        self.ask(Instant::now(), ready);
        let condition = self.condition();
        if condition != self.told {
            self.told.clone_from(&condition);
            broker.daemon_is(condition);
        }
    }

    fn end(&mut self, _desk: &Broker) -> bool {
        self.is_settled(Instant::now())
    }
}

fn foreign(uid: Option<u32>) -> String {
    match uid {
        Some(uid) => format!(
            "a daemon of user {uid} was not listened to; if it is the right one, set \
             DAEMON_UID={uid}"
        ),
        None => "a process that is not the daemon sent a datagram, which was not read".to_owned(),
    }
}

#[cfg(test)]
mod kinetos_tests;
#[cfg(test)]
mod tests;
