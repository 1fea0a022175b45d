//! How an engine runs: by itself on the background thread of the process that it records, or
//! step by step by a thread that drives many engines:
//!
//! ```text
//!  begin ──► tick, tick, … ──► end
//! ```

use std::time::{Duration, Instant};

use super::Engine;
use super::control_block::Request;
use super::ending::Ending;
use super::nesting::Pass;
use super::parts::Parts;
use crate::page::{self, State};
use crate::process::identity;
use crate::sources;

/// How long sources may take when others close the recording.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(2);
/// How often names of threads are looked up while another process is recorded: it may be
/// gone when it ends.
const NAMES: Duration = Duration::from_secs(1);

impl Engine {
    /// Records this process until it is told to stop.
    ///
    /// `attend` is called every few milliseconds: what else its thread has to look after.
    pub(crate) fn run(mut self, attend: &mut dyn FnMut()) {
        self.begin();
        let mut closing_since = None;
        loop {
            let request = self.shared.wait(self.nap());
            attend();
            let page = self.member.as_ref().map(page::Process::page);
            let closing = matches!(request, Request::Close)
                || page.is_some_and(|page| page.state() != State::Recording);
            // What sources still have comes through the queues that are emptied here.
            let since: Instant = *closing_since.get_or_insert_with(Instant::now);
            let closed =
                closing && (sources::stop(Duration::ZERO) || since.elapsed() > CLOSING_TIMEOUT);
            if matches!(request, Request::Stop) || closed {
                break;
            }
            if !closing {
                closing_since = None;
            }
            if self.is_due() && identity::is_alone() {
                self.end(Ending::Stopped, None);
                // As the system does when the last thread ends.
                // SAFETY: no locks are held.
                unsafe { libc::exit(0) };
            }
            self.tick(request);
        }
        self.end(Ending::Stopped, None);
    }

    /// Writes what comes first.
    pub(crate) fn begin(&mut self) {
        self.shared.moves();
        if self.parts.as_ref().is_some_and(Parts::is_before_the_first) {
            self.rotate();
        }
        if self.past.is_none() {
            self.compare_clocks();
        }
        self.describe();
        self.introduce();
        self.write();
    }

    /// Empties the queues; writes to the sink if that is due or asked for, goes on to the
    /// next file, and begins and continues dumps of the flight recorder. That the recording
    /// is to end is the caller's to see.
    pub(crate) fn tick(&mut self, request: Request) {
        if self.origin.is_this_process() {
            self.origin.pool.look_after_kept();
        }
        let asked = matches!(request, Request::Flush(_));
        if asked || self.is_due() {
            if asked {
                self.pass_all();
                self.leaves(Pass::Flush);
            } else {
                self.pass(Pass::Due);
                self.leaves(Pass::Due);
            }
            self.look_at_names();
            self.write();
            self.rotate();
        } else {
            self.pass(Pass::Normal);
        }
        self.dump();
        if let Request::Flush(ticket) = request {
            self.shared.flushed(ticket);
        }
    }

    /// How long to wait before the next [`Engine::tick`].
    pub(crate) fn nap(&self) -> Duration {
        if self.lanes.behind || self.is_dumping() {
            return Duration::ZERO;
        }
        // A small buffer fills sooner.
        let nap = Duration::from_millis((self.buffer >> 23).clamp(1, 10));
        nap.min(self.output.interval)
    }

    /// Whether a queue was not emptied in the last [`Engine::tick`].
    pub(crate) fn is_behind(&self) -> bool {
        self.lanes.behind
    }

    /// Whether the sink is to be written to now.
    fn is_due(&self) -> bool {
        self.output.flushed.elapsed() >= self.output.interval
    }

    /// The names that threads of another process have given themselves, as long as they can
    /// be asked for.
    fn look_at_names(&mut self) {
        if self.origin.is_this_process() || self.lanes.named.elapsed() < NAMES {
            return;
        }
        self.lanes.named = Instant::now();
        for index in 0..self.lanes.threads.len() {
            if let Some(mut thread) = self.lanes.threads[index].take() {
                if thread.has_recorded() {
                    thread.refresh_name(&mut self.context());
                }
                self.lanes.threads[index] = Some(thread);
            }
        }
    }
}
