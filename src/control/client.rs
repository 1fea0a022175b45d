//! One client of a [`super::socket::Socket`].

use std::fmt::Write;
use std::io;
use std::sync::mpsc::TryRecvError;
use std::time::{Duration, Instant};

use super::broker::{Broker, Status};
use super::held::Held;
use super::snapshot::Taking;
use crate::flight::Ordered;
use crate::session::{Dialect, Origin, Outcome, Phase, Ticket, parse};

/// How much a client may say.
const MAX_LENGTH: usize = 64 << 10;
/// How long it may take to say it, and to read an answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long it may take where others wait for its place.
const BUSY: Duration = Duration::from_millis(250);
/// How often it hears that we are still there, if there is nothing else to tell.
const SIGN: Duration = Duration::from_millis(500);

#[derive(Debug)]
enum State {
    /// It has not said everything.
    Speaking,
    /// It waits for the end of this request.
    Waiting(Ticket),
    /// It waits for a dump of the flight recorder.
    Dumping(Ordered),
    /// It waits for a snapshot of PyTorch's memory.
    Snapshot(Taking),
    /// It has heard everything once `output` is empty.
    Leaving,
}

#[derive(Debug)]
pub(super) struct Client {
    pub socket: Held,
    state: State,
    since: Instant,
    input: Vec<u8>,
    output: Vec<u8>,
    last_news: String,
    told: Instant,
}

impl Client {
    pub fn new(socket: Held) -> Client {
        Client {
            socket,
            state: State::Speaking,
            since: Instant::now(),
            input: Vec::new(),
            output: Vec::new(),
            last_news: String::new(),
            told: Instant::now(),
        }
    }

    /// Does what can be done without waiting; `news`: tells it how it is going. Returns
    /// whether it is to be kept.
    pub fn attend(&mut self, broker: &Broker, news: bool) -> bool {
        let here = self.listen();
        if let State::Speaking = self.state {
            match self.input.windows(2).position(|end| end == b"\n\n") {
                Some(end) => {
                    let said = self.input[..=end].to_vec();
                    self.serve(&said, broker);
                }
                None if !here || self.since.elapsed() > TIMEOUT => return false,
                None if self.input.len() > MAX_LENGTH => {
                    self.finish("refused the request is too long")
                }
                None => {}
            }
        }
        if let State::Waiting(ticket) = self.state {
            if let Some(outcome) = broker.outcome(ticket) {
                self.finish(&outcome_lines(&outcome));
            } else if !here {
                broker.stop(ticket);
                return false;
            } else if news {
                self.tell_news(broker);
            }
        }
        if let State::Dumping(ordered) = &self.state {
            match dump_lines(ordered) {
                Some(line) => self.finish(&line),
                None if news => self.tell("progress ProcessTrace 0 0".to_owned()),
                None => {}
            }
        }
        if let State::Snapshot(taking) = &mut self.state {
            match taking.attend() {
                Some(Ok(path)) => {
                    let path = flat(&path.to_string_lossy());
                    self.finish(&format!("path={path}\nsnapshot=1\ndone"));
                }
                Some(Err(why)) => self.finish(&format!("refused {}", flat(&why))),
                None if news => self.tell("progress ProcessTrace 0 0".to_owned()),
                None => {}
            }
        }
        let sent = self.send();
        let waits = !matches!(self.state, State::Leaving);
        let patient = waits || self.since.elapsed() < TIMEOUT;
        sent && patient && (waits || !self.output.is_empty())
    }

    /// Whether it could have said what it wants by now.
    pub fn is_silent(&self) -> bool {
        matches!(self.state, State::Speaking) && self.since.elapsed() > BUSY
    }

    /// Reads what there is; whether the client is still there.
    fn listen(&mut self) -> bool {
        let mut buffer = [0; 4096];
        loop {
            match self.socket.read(&mut buffer) {
                Ok(0) => return false,
                Ok(n) if self.input.len() <= MAX_LENGTH => {
                    self.input.extend_from_slice(&buffer[..n])
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
    }

    /// Writes what there is room for; whether the client can still be reached.
    fn send(&mut self) -> bool {
        while !self.output.is_empty() {
            match self.socket.write(&self.output) {
                Ok(n) => drop(self.output.drain(..n)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
        true
    }

    fn serve(&mut self, said: &[u8], broker: &Broker) {
        let end = said.iter().position(|byte| *byte == b'\n').unwrap_or(said.len());
        let (command, rest) = said.split_at(end);
        match command {
            b"trigger" => {
                match parse(rest, Dialect::Ours, Origin::Control, broker.config(), broker.now()) {
                    Ok(parsed) => {
                        for problem in parsed.problems {
                            self.say(&format!("problem {problem}"));
                        }
                        let (sender, refusal) = std::sync::mpsc::channel();
                        let answer = Box::new(move |outcome: &Outcome| {
                            let _ = sender.send(outcome.clone());
                        });
                        match broker.submit(parsed.request, answer) {
                            Some(ticket) => self.wait_for(ticket),
                            None => match refusal.try_recv() {
                                Ok(outcome) => self.finish(&outcome_lines(&outcome)),
                                Err(_) => self.finish("refused it is not known why"),
                            },
                        }
                    }
                    Err(refusal) => self.finish(&format!("refused {refusal}")),
                }
            }
            b"status" => self.finish(&status_lines(&broker.status())),
            b"stop" | b"cancel" => match broker.current() {
                Some(ticket) => {
                    self.wait_for(ticket);
                    if command == b"stop" { broker.stop(ticket) } else { broker.cancel(ticket) }
                }
                None => self.finish("refused there is nothing to stop: no trace was asked for"),
            },
            // Into a file whose place the program's own options say: there is no path to check.
            b"dump" => match broker.order_dump("asked by kymo trigger", TIMEOUT) {
                Ok(ordered) => {
                    self.state = State::Dumping(ordered);
                    self.say("accepted");
                }
                Err(error) => self.finish(&format!("refused {}", flat(&error.to_string()))),
            },
            b"memory-snapshot" => {
                let folders = &broker.config().trace_dirs;
                match Taking::begin(rest, folders, std::process::id()) {
                    Ok(taking) => {
                        self.state = State::Snapshot(taking);
                        self.say("accepted");
                    }
                    Err(why) => self.finish(&format!("refused {}", flat(&why))),
                }
            }
            _ => self.finish("refused there is no such command; update kymo or libkymograph.so"),
        }
    }

    fn wait_for(&mut self, ticket: Ticket) {
        self.state = State::Waiting(ticket);
        self.say("accepted");
    }

    fn tell_news(&mut self, broker: &Broker) {
        let status = broker.status();
        let (done, of) = status.progress.unwrap_or_default();
        self.tell(format!("progress {:?} {done} {of}", status.phase));
    }

    /// Tells news, and what is none now and then: a client that waits must be able to tell that from
    /// silence. A client that does not read is not worth much memory.
    fn tell(&mut self, news: String) {
        let is_due = news != self.last_news || self.told.elapsed() >= SIGN;
        if is_due && self.output.len() < MAX_LENGTH {
            self.say(&news);
            self.last_news = news;
            self.told = Instant::now();
        }
    }

    fn say(&mut self, line: &str) {
        self.output.extend_from_slice(line.as_bytes());
        self.output.push(b'\n');
    }

    fn finish(&mut self, line: &str) {
        self.say(line);
        self.state = State::Leaving;
        self.since = Instant::now();
    }
}

/// One line, whatever is in it.
fn flat(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

fn outcome_lines(outcome: &Outcome) -> String {
    let done = match outcome {
        Outcome::Refused(why) => return format!("refused {}", flat(&why.to_string())),
        Outcome::Done(done) => done,
    };
    let mut lines = format!(
        "path={}\nopened={}\nclosed={}\nevents={}\nlost={}\n",
        flat(&done.path.to_string_lossy()),
        done.opened,
        done.closed,
        done.events,
        done.lost
    );
    if let Some((first, end)) = done.iterations {
        let _ = writeln!(lines, "first_iteration={first}\nend_iteration={end}");
    }
    if let Some(failure) = &done.failure {
        let _ = writeln!(lines, "failure={}", flat(failure));
    }
    lines + "done"
}

/// What came of a dump; `None` while it is being written.
fn dump_lines(ordered: &Ordered) -> Option<String> {
    match ordered.try_recv() {
        Err(TryRecvError::Empty) => None,
        Err(TryRecvError::Disconnected) => Some("refused the recording has ended".to_owned()),
        Ok(Err(error)) => Some(format!("refused {}", flat(&error.to_string()))),
        Ok(Ok(dump)) => Some(format!(
            "path={}\nevents={}\nlost={}\nseconds={:.3}\nmissing={:.3}\ndone",
            flat(&dump.path.to_string_lossy()),
            dump.events,
            dump.lost,
            dump.covers.as_secs_f64(),
            dump.missing.as_secs_f64()
        )),
    }
}

fn status_lines(status: &Status) -> String {
    let state = match (status.program, status.phase, status.pending) {
        (Some(_), ..) => "ProgramRecords".to_owned(),
        (None, Phase::WaitForRequest, true) => "Pending".to_owned(),
        (None, phase, _) => format!("{phase:?}"),
    };
    let (done, of) = status.progress.unwrap_or_default();
    let rank = status.rank.map_or(String::new(), |rank| format!("rank={rank}\n"));
    let daemon =
        status.daemon.as_ref().map_or(String::new(), |it| format!("\ndaemon={}", flat(it)));
    let problems: String =
        status.problems.iter().map(|problem| format!("problem={}\n", flat(problem))).collect();
    format!(
        "{problems}{rank}pid={}\nstate={state}\nsteps={}\nprogress={done} {of}\nversion={}{daemon}",
        status.pid,
        status.steps,
        env!("CARGO_PKG_VERSION")
    )
}
