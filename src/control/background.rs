//! The one background thread of a process that can be asked for traces.
//!
//! ```text
//!  wait for descriptors, or until something is due
//!    │  a request's warm-up begins       a recording of the program's own begins
//!    ▼                                   ▼
//!  make a recording, run its engine    run its engine
//!    └── meanwhile, every few milliseconds: attend to triggers, let time pass ──┘
//! ```
//! So there is never a second thread, and while nothing is recorded there is nothing to do:
//! it wakes up now and then, to see whether it is the last thread of the process.

use std::os::fd::RawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::broker::{Broker, Work};
use super::trigger::Trigger;
use crate::clock;
use crate::error::Error;
use crate::process::identity;
use crate::recording::{self, requested};
use crate::session::{Done, Refusal, Request, Ticket};

/// How often the thread looks whether it is alone, at least. With the questions to a daemon
/// and its answers it still wakes up less than once a second.
const LOOK: Duration = Duration::from_millis(1500);
/// How long goodbyes may take.
const GOODBYE: Duration = Duration::from_millis(100);

/// See the module.
pub(super) struct Background {
    broker: Arc<Broker>,
    triggers: Vec<Box<dyn Trigger>>,
    descriptors: Vec<RawFd>,
    polled: Vec<libc::pollfd>,
}

impl Background {
    /// Starts the thread.
    pub fn start(broker: Arc<Broker>, triggers: Vec<Box<dyn Trigger>>) -> Result<(), Error> {
        let mut background =
            Background { broker, triggers, descriptors: Vec::new(), polled: Vec::new() };
        recording::spawn(move || {
            let broker = background.broker.clone();
            let _ = catch_unwind(AssertUnwindSafe(|| background.run()));
            // Sockets go, too, so that no client waits for answers.
            drop(background);
            broker.closed();
        })
    }

    fn run(&mut self) {
        loop {
            match self.broker.next() {
                Work::Job(job) => {
                    let _ = catch_unwind(AssertUnwindSafe(|| job(&mut || self.attend())));
                    self.broker.program_is(None);
                }
                Work::Record(ticket, request) => self.record(ticket, *request),
                Work::Wait(due) => {
                    if identity::is_alone() {
                        // As the system does when the last thread ends.
                        // SAFETY: no locks are held.
                        unsafe { libc::exit(0) };
                    }
                    self.wait(due);
                }
                Work::End => return self.say_goodbye(),
            }
        }
    }

    /// While something is recorded: does what is due, without waiting.
    fn attend(&mut self) {
        self.poll(Duration::ZERO);
        self.broker.tick();
    }

    fn wait(&mut self, due: Option<u64>) {
        let now = clock::system(libc::CLOCK_BOOTTIME);
        let due = due.map(|due| Duration::from_nanos(due.saturating_sub(now)));
        let instant = Instant::now();
        let theirs = self.triggers.iter().filter_map(|trigger| trigger.due()).min();
        let theirs = theirs.map(|due| due.saturating_duration_since(instant));
        self.poll([due, theirs, Some(LOOK)].into_iter().flatten().min().unwrap_or(LOOK));
    }

    /// Waits for what can be read; then lets each trigger do what it has to.
    fn poll(&mut self, time: Duration) {
        self.descriptors.clear();
        self.descriptors.extend(self.broker.wake_descriptor());
        for trigger in &self.triggers {
            trigger.descriptors(&mut self.descriptors);
        }
        let poll = |fd: &RawFd| libc::pollfd { fd: *fd, events: libc::POLLIN, revents: 0 };
        self.polled.clear();
        self.polled.extend(self.descriptors.iter().map(poll));
        let time = libc::timespec {
            tv_sec: time.as_secs() as libc::time_t,
            tv_nsec: time.subsec_nanos().into(),
        };
        let count = self.polled.len() as libc::nfds_t;
        // SAFETY: as many pollfds as are said; all signals stay blocked.
        let ready =
            unsafe { libc::ppoll(self.polled.as_mut_ptr(), count, &time, std::ptr::null()) };
        if ready > 0 {
            self.broker.woken();
        }
        let now = Instant::now();
        for trigger in &mut self.triggers {
            if ready > 0 || trigger.due().is_some_and(|due| due <= now) {
                trigger.attend(&self.broker);
            }
        }
    }

    /// Makes the recording that a request asks for.
    fn record(&mut self, ticket: Ticket, request: Request) {
        let broker = self.broker.clone();
        let mut path = request.config.output_path(std::process::id(), false);
        let result = catch_unwind(AssertUnwindSafe(|| self.try_record(&request, &mut path)));
        let result = result.unwrap_or_else(|_| Err(Refusal::Failed("the writer panicked".into())));
        if broker.is_discarded() && !matches!(result, Err(Refusal::Output(_))) {
            // Best effort: the file is ours and not wanted.
            let _ = std::fs::remove_file(&path);
        }
        broker.finished(ticket, result);
    }

    fn try_record(
        &mut self,
        request: &Request,
        path: &mut std::path::PathBuf,
    ) -> Result<Done, Refusal> {
        let refused = |error: Error| match error {
            Error::AlreadyRecording => Refusal::ProgramRecords,
            error => Refusal::Output(error.to_string()),
        };
        *path = std::path::absolute(&*path).map_err(|error| Refusal::Output(error.to_string()))?;
        let prepared = requested::prepare(request, path).map_err(refused)?;
        self.broker.prepared(prepared.shared());
        let broker = self.broker.clone();
        let summary = prepared.run(|| broker.ready(), &mut || self.attend());
        let (opened, closed) = summary.1;
        let (events, lost, failure) = (summary.0.events, summary.0.lost, summary.0.failure);
        Ok(Done { path: path.clone(), opened, closed, iterations: None, events, lost, failure })
    }

    /// Lets triggers deliver their last answers.
    fn say_goodbye(&mut self) {
        let deadline = Instant::now() + GOODBYE;
        for trigger in &mut self.triggers {
            while !trigger.end(&self.broker) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}
