//! Where requests arrive and answers come from.
//!
//! Everybody may come to the broker: the background thread with requests that triggers have
//! brought, the program's threads with `step()` and with recordings of their own. It holds
//! the [`Machine`] and what that does not know: the requests themselves, and the recording
//! that is made for one. What the machine wants done is done here if it is quick (an edge
//! of the window), and left to the background thread if not.
//!
//! Answers are given outside the lock: a receiver may come back with a question.

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::held::Pipe;
use crate::clock;
use crate::config::Config;
use crate::engine::control_block::Shared;
use crate::engine::window::Side;
use crate::error::Error;
use crate::flight::Ordered;
use crate::process::job;
use crate::recorder::steps;
use crate::recording::{self, Job};
use crate::session::{Action, Done, Machine, Now, Origin, Outcome, Phase, Refusal, Request};
use crate::session::{Ticket, check_output};

/// Takes the answer to a request.
pub type Answer = Box<dyn FnOnce(&Outcome) + Send>;

/// Outcomes that are remembered for those who ask later.
const REMEMBERED: usize = 16;

/// See the module.
pub struct Broker {
    config: Config,
    /// What was wrong with that, a line each.
    problems: Vec<String>,
    /// The process that is asked, if that is not this one.
    other: Option<Other>,
    state: Mutex<State>,
    /// Signalled when something changes that a thread may wait for.
    changed: Condvar,
    wake: Pipe,
    /// Whether `step()` has to come to the broker.
    awaits_step: AtomicBool,
}

#[derive(Default)]
struct State {
    machine: Machine,
    /// The request that is pending or served; a few more while answers are on their way.
    requests: Vec<(Ticket, Request, Option<Answer>)>,
    /// Background: to be prepared.
    prepare: Option<Ticket>,
    /// The recording that is made for the request that is served.
    recording: Option<Arc<Shared>>,
    /// Why what was recorded is to be thrown away.
    discard: Option<Refusal>,
    /// The iterations of the window, when it was open.
    iterations: Option<(u64, u64)>,
    /// Background: a recording of the program's own.
    job: Option<Job>,
    ended: VecDeque<(Ticket, Outcome)>,
    /// How it goes with the daemon that is asked, for people.
    daemon: Option<String>,
    closing: bool,
    closed: bool,
}

impl std::fmt::Debug for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Broker").field("machine", &self.lock().machine).finish_non_exhaustive()
    }
}

/// What a process can be asked about itself.
#[derive(Clone, PartialEq, Debug)]
pub struct Status {
    /// Where requests are.
    pub phase: Phase,
    /// Where the program's own recording is.
    pub program: Option<Phase>,
    /// Whether a request waits for its start.
    pub pending: bool,
    /// What was wrong with the configuration, a line each.
    pub problems: Vec<String>,
    /// How often the program called `step()`.
    pub steps: u64,
    /// How far the request that is served has come, of how much: nanoseconds, or steps.
    pub progress: Option<(u64, u64)>,
    /// How it goes with the daemon that is asked for requests, for people.
    pub daemon: Option<String>,
    /// The process.
    pub pid: u32,
    /// Which rank of its job it is.
    pub rank: Option<i64>,
}

/// A process that another one answers for.
struct Other {
    pid: u32,
    rank: Option<i64>,
    recording: Arc<Shared>,
}

/// What the background thread has to do.
pub(super) enum Work {
    /// Run this.
    Job(Job),
    /// Make a recording for this request, which is in its warm-up.
    Record(Ticket, Box<Request>),
    /// Wait, until this time of `CLOCK_BOOTTIME` at most.
    Wait(Option<u64>),
    /// End.
    End,
}

/// The time, on both clocks; of a few tries the one in which they were read most nearly at
/// once, as several processes convert the same time of day.
fn now() -> Now {
    let read = || {
        let boot = clock::system(libc::CLOCK_BOOTTIME);
        let wall = clock::system(libc::CLOCK_REALTIME);
        let width = clock::system(libc::CLOCK_BOOTTIME) - boot;
        (width, Now { boot: boot + width / 2, wall })
    };
    let tries = [read(), read(), read()];
    let [(_, first), ..] = tries;
    tries.into_iter().min_by_key(|(width, _)| *width).map_or(first, |(_, now)| now)
}

/// Answers that are to be given once the lock is released.
type Answers = Vec<(Answer, Outcome)>;

fn give(answers: Answers) {
    for (answer, outcome) in answers {
        answer(&outcome);
    }
}

impl Broker {
    /// A broker of a process that is traced as `config` says unless a request says otherwise.
    pub(super) fn new(config: Config, problems: Vec<String>) -> std::io::Result<Broker> {
        Ok(Broker {
            config,
            problems,
            other: None,
            state: Mutex::default(),
            changed: Condvar::new(),
            wake: Pipe::new()?,
            awaits_step: AtomicBool::new(false),
        })
    }

    /// A broker for another process, which is being recorded from here.
    pub(super) fn of_another(
        config: Config,
        pid: u32,
        rank: Option<i64>,
        recording: Arc<Shared>,
    ) -> std::io::Result<Broker> {
        let mut broker = Broker::new(config, Vec::new())?;
        broker.other = Some(Other { pid, rank, recording });
        broker.lock_as_it_is().machine.program_is(Some(Phase::CollectTrace));
        Ok(broker)
    }

    /// How the process wants to be traced unless a request says otherwise.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The time, on both clocks.
    pub fn now(&self) -> Now {
        now()
    }

    fn lock_as_it_is(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock_as_it_is();
        state.machine.count_steps(steps::count());
        state
    }

    /// After the machine was asked something.
    fn unlock(&self, state: MutexGuard<'_, State>) {
        self.awaits_step.store(state.machine.awaits_step(), Ordering::SeqCst);
        drop(state);
        self.changed.notify_all();
    }

    /// Why a request would be refused now, whatever it asks for.
    pub fn obstacle(&self) -> Option<Refusal> {
        self.lock().machine.obstacle()
    }

    /// How it is going.
    pub fn status(&self) -> Status {
        let state = self.lock();
        let machine = &state.machine;
        Status {
            phase: machine.phase(),
            program: machine.program(),
            pending: machine.pending().is_some(),
            problems: self.problems.clone(),
            steps: machine.steps(),
            progress: machine.progress(now()),
            daemon: state.daemon.clone(),
            pid: self.other.as_ref().map_or_else(std::process::id, |other| other.pid),
            rank: match &self.other {
                Some(other) => other.rank,
                None => job::place().into_iter().find(|(key, _)| key == "rank").map(|rank| rank.1),
            },
        }
    }

    /// Has the flight recorder write what it holds into the next numbered file.
    pub(super) fn order_dump(&self, why: &str, timeout: Duration) -> Result<Ordered, Error> {
        match &self.other {
            Some(other) => recording::order_dump_of(&other.recording, why, timeout),
            None => recording::order_dump(why, timeout),
        }
    }

    /// How it goes with the daemon, from now on.
    pub(super) fn daemon_is(&self, what: String) {
        self.lock().daemon = Some(what);
    }

    /// Hands a request over. The answer comes exactly once, from any thread; at once if it
    /// is a refusal.
    pub fn submit(&self, request: Request, answer: Answer) -> Option<Ticket> {
        if let Err(refusal) = self.check_output(&request) {
            answer(&Outcome::Refused(refusal));
            return None;
        }
        let mut state = self.lock();
        match state.machine.submit(now(), &request.window) {
            Ok(ticket) => {
                state.requests.push((ticket, request, Some(answer)));
                self.unlock(state);
                self.wake();
                Some(ticket)
            }
            Err(refusal) => {
                drop(state);
                answer(&Outcome::Refused(refusal));
                None
            }
        }
    }

    /// The requester chooses where this process writes, with its rights.
    fn check_output(&self, request: &Request) -> Result<(), Refusal> {
        let folders = &self.config.trace_dirs;
        let daemons = [std::path::PathBuf::from("/tmp")];
        let folders = match request.origin {
            Origin::Daemon if folders.is_empty() => &daemons[..],
            _ => folders,
        };
        let path = request.config.output_path(std::process::id(), false);
        check_output(&path, folders)
    }

    /// The request that is served or else the one that is pending.
    pub fn current(&self) -> Option<Ticket> {
        let state = self.lock();
        state.machine.active().or(state.machine.pending())
    }

    /// What became of a request, if it ended not long ago.
    pub fn outcome(&self, ticket: Ticket) -> Option<Outcome> {
        let state = self.lock();
        let found = state.ended.iter().find(|(other, _)| *other == ticket);
        found.map(|(_, outcome)| outcome.clone())
    }

    /// Ends a request early; what was recorded of it is kept.
    pub fn stop(&self, ticket: Ticket) {
        self.change(|state| state.machine.stop(now(), ticket));
    }

    /// Ends a request; what was recorded of it is thrown away.
    pub fn cancel(&self, ticket: Ticket) {
        self.change(|state| state.machine.cancel(ticket, Refusal::Cancelled));
    }

    fn change(&self, change: impl FnOnce(&mut State) -> Option<Action>) {
        let mut answers = Answers::new();
        let mut state = self.lock();
        if let Some(action) = change(&mut state) {
            state.act(action, &mut answers);
        }
        self.unlock(state);
        give(answers);
        self.wake();
    }

    /// The program ends an iteration and begins the one of this number. Cheap when no
    /// request waits for that.
    pub(crate) fn step(&self, number: u64) {
        if !self.awaits_step.load(Ordering::SeqCst) {
            return;
        }
        let mut answers = Answers::new();
        let mut state = self.lock_as_it_is();
        let recording = state.recording.clone();
        let action = match &recording {
            Some(recording) => recording.window.decide(|| {
                let action = state.machine.step(now(), number);
                let side = match action {
                    Some(Action::Open { .. }) => Some(Side::Opens),
                    Some(Action::Close { .. }) => Some(Side::Closes),
                    _ => None,
                };
                (side, action)
            }),
            None => state.machine.step(now(), number),
        };
        let prepare = matches!(action, Some(Action::Prepare(_)));
        match action {
            Some(Action::Open { .. }) => state.iterations = state.machine.iterations(),
            Some(Action::Close { .. }) => recording.iter().for_each(|r| r.end()),
            Some(action) => state.act(action, &mut answers),
            None => {}
        }
        self.unlock(state);
        give(answers);
        if prepare {
            self.wake();
        }
    }

    /// The program wants to record: ends what others had asked for, and waits until that is
    /// out of the way. Returns whether it is.
    pub(crate) fn preempt(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut answers = Answers::new();
        let mut state = self.lock();
        while let Some(action) = state.machine.preempt() {
            state.act(action, &mut answers);
        }
        while state.machine.phase() != Phase::WaitForRequest {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.machine.program_is(None);
                break;
            }
            self.wake();
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let free = state.machine.program().is_some();
        self.unlock(state);
        give(answers);
        free
    }

    /// Waits until the program's last recording, which ends before this is told so, is known to
    /// be over: while `is_over`, and as long as `timeout`.
    pub(crate) fn settle(&self, is_over: impl Fn() -> bool, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        let mut state = self.lock();
        while state.machine.program().is_some() && is_over() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        self.unlock(state);
    }

    /// The program records, unless that is over already.
    pub(crate) fn program_records(&self) {
        let mut state = self.lock();
        if state.machine.program().is_some() {
            state.machine.program_is(Some(Phase::CollectTrace));
        }
        self.unlock(state);
    }

    /// Where the program's own recording has come to.
    pub(crate) fn program_is(&self, phase: Option<Phase>) {
        let mut state = self.lock();
        state.machine.program_is(phase);
        self.unlock(state);
        self.wake();
    }

    /// Lets the background thread run the program's own recording. Gives it back if that
    /// thread is about to end.
    pub(crate) fn hand_over(&self, job: Job) -> Result<(), Job> {
        let mut state = self.lock();
        if state.closing {
            return Err(job);
        }
        state.job = Some(job);
        self.unlock(state);
        self.wake();
        Ok(())
    }

    /// The process ends: ends what is being recorded, and keeps it.
    pub(super) fn close(&self) {
        let mut answers = Answers::new();
        let mut state = self.lock();
        state.closing = true;
        let machine = &mut state.machine;
        let pending = machine.pending().and_then(|t| machine.cancel(t, Refusal::Ended));
        let active = machine.active().and_then(|ticket| match machine.phase() {
            Phase::Warmup => machine.cancel(ticket, Refusal::Ended),
            _ => machine.stop(now(), ticket),
        });
        for action in [pending, active].into_iter().flatten() {
            state.act(action, &mut answers);
        }
        self.unlock(state);
        give(answers);
        self.wake();
    }

    /// After [`Broker::close`]: until those who wait have been told.
    pub(super) fn wait_until_closed(&self, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        let mut state = self.lock();
        while !state.closed {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends the wait of the background thread.
    pub(crate) fn wake(&self) {
        self.wake.wake();
    }

    pub(super) fn wake_descriptor(&self) -> Option<RawFd> {
        self.wake.reader()
    }

    pub(super) fn woken(&self) {
        self.wake.drain();
    }
}

/// For the background thread.
impl Broker {
    /// Lets time pass. Called while it waits and while it records.
    pub(super) fn tick(&self) -> Option<u64> {
        let mut answers = Answers::new();
        let mut state = self.lock();
        state.tick(&mut answers);
        let due = state.machine.due();
        self.unlock(state);
        give(answers);
        due
    }

    /// What to do next.
    pub(super) fn next(&self) -> Work {
        let due = self.tick();
        let mut state = self.lock();
        if let Some(job) = state.job.take() {
            return Work::Job(job);
        }
        if let Some(ticket) = state.prepare.take() {
            let found = state.requests.iter().find(|(other, ..)| *other == ticket);
            if let Some((_, request, _)) = found {
                return Work::Record(ticket, Box::new(request.clone()));
            }
        }
        if state.closing { Work::End } else { Work::Wait(due) }
    }

    /// The recording for the request that is served exists.
    pub(super) fn prepared(&self, recording: Arc<Shared>) {
        let mut state = self.lock();
        if state.discard.is_some() {
            recording.end();
        }
        state.recording = Some(recording);
    }

    /// Its sources are on.
    pub(super) fn ready(&self) {
        let mut answers = Answers::new();
        let mut state = self.lock();
        state.machine.ready(now());
        if let (Some(at), Some(recording)) = (state.machine.opens(), &state.recording) {
            recording.window.open_at(at);
        }
        state.tick(&mut answers);
        self.unlock(state);
        give(answers);
    }

    /// Whether what is being recorded is to be thrown away.
    pub(super) fn is_discarded(&self) -> bool {
        self.lock().discard.is_some()
    }

    /// It is over, and the files are closed.
    pub(super) fn finished(&self, ticket: Ticket, result: Result<Done, Refusal>) {
        let mut answers = Answers::new();
        let mut state = self.lock();
        let iterations = state.iterations.take();
        let outcome = match (state.discard.take(), result) {
            (Some(why), _) | (None, Err(why)) => Outcome::Refused(why),
            (None, Ok(done)) => Outcome::Done(Done { iterations, ..done }),
        };
        state.recording = None;
        state.prepare = None;
        state.machine.finished();
        state.end(ticket, outcome, &mut answers);
        self.unlock(state);
        give(answers);
    }

    /// The thread ends.
    pub(super) fn closed(&self) {
        let mut state = self.lock();
        state.closed = true;
        // A recording that came too late to be run.
        state.job = None;
        self.unlock(state);
    }
}

impl State {
    fn tick(&mut self, answers: &mut Answers) {
        if let Some(recording) = self.recording.clone()
            && self.machine.ranges(now(), recording.captures.progress()).is_some()
        {
            // Its window is closed already, by the end of the last range.
            recording.end();
        }
        while let Some(action) = self.machine.tick(now()) {
            self.act(action, answers);
        }
    }

    fn act(&mut self, action: Action, answers: &mut Answers) {
        match action {
            Action::Prepare(ticket) => self.prepare = Some(ticket),
            Action::Open { at, .. } => {
                if let Some(recording) = &self.recording {
                    recording.window.open_at(at);
                    if let Some(closes) = self.machine.closes() {
                        recording.window.close_at(closes);
                    }
                }
            }
            Action::Close { at, .. } => {
                let steps = self.machine.steps();
                self.iterations = self.iterations.map(|(first, end)| (first, end.min(steps)));
                if let Some(recording) = &self.recording {
                    recording.window.close_at(at);
                    recording.end();
                }
            }
            Action::Discard(ticket, why) => {
                if self.prepare.take().is_some() {
                    // Nothing had been done for it.
                    self.machine.finished();
                    return self.end(ticket, Outcome::Refused(why), answers);
                }
                self.discard = Some(why);
                if let Some(recording) = &self.recording {
                    recording.end();
                }
            }
            Action::Refuse(ticket, why) => self.end(ticket, Outcome::Refused(why), answers),
        }
    }

    fn end(&mut self, ticket: Ticket, outcome: Outcome, answers: &mut Answers) {
        if let Some(at) = self.requests.iter().position(|(other, ..)| *other == ticket) {
            let (.., answer) = self.requests.remove(at);
            answers.extend(answer.map(|answer| (answer, outcome.clone())));
        }
        if self.ended.len() == REMEMBERED {
            self.ended.pop_front();
        }
        self.ended.push_back((ticket, outcome));
    }
}
