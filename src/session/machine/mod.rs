//! The state machine: see the module above.

#[cfg(test)]
mod tests;

use std::time::Duration;

use super::request::{Refusal, Start, Window};

/// A moment, on the clock that windows are measured with and on the one that people use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Now {
    /// Nanoseconds of `CLOCK_BOOTTIME`.
    pub boot: u64,
    /// Nanoseconds since 1970.
    pub wall: u64,
}

/// Names a request that was accepted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ticket(pub u64);

/// Where the machine is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Nothing is recorded. A request may be pending.
    WaitForRequest,
    /// Sources are on; what they say is discarded.
    Warmup,
    /// The window is open.
    CollectTrace,
    /// The window is closed, and the trace is written.
    ProcessTrace,
    /// What was recorded is thrown away.
    Cancelling,
}

/// What the caller has to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Switch the sources on and discard what they say; then [`Machine::ready`]. If that
    /// fails, [`Machine::finished`].
    Prepare(Ticket),
    /// What happens from `at` on (nanoseconds of `CLOCK_BOOTTIME`) belongs to the trace.
    Open {
        /// For this request.
        ticket: Ticket,
        /// Exact, whenever this is carried out.
        at: u64,
    },
    /// What begins at `at` or later does not. Write the trace, then [`Machine::finished`].
    Close {
        /// For this request.
        ticket: Ticket,
        /// Exact, whenever this is carried out.
        at: u64,
    },
    /// Throw away what was recorded and tell who asked, then [`Machine::finished`].
    Discard(Ticket, Refusal),
    /// It had not begun: tell who asked.
    Refuse(Ticket, Refusal),
}

/// When a request's phases begin, as soon as that is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Plan {
    Time {
        warm: u64,
        start: u64,
        end: u64,
        /// Others open their window at the same moment: rather record less than later.
        fixed: bool,
    },
    Iterations {
        warm: u64,
        start: u64,
        end: u64,
    },
    /// Ranges of the program, which the engine looks for: how many, and how many are over.
    Ranges {
        count: u64,
        over: u64,
        /// Whether the first has begun.
        begun: bool,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Job {
    ticket: Ticket,
    plan: Plan,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    WaitForRequest,
    /// When the sources were on, once they are.
    Warmup(Job, Option<u64>),
    CollectTrace(Job),
    ProcessTrace(Ticket),
    Cancelling(Ticket),
}

/// How long before a start that others share sources are switched on at least, since that
/// takes a moment: 250 ms.
const LEAD: u64 = 250_000_000;

/// See the module. Times must not run backwards.
#[derive(Debug)]
pub struct Machine {
    state: State,
    pending: Option<Job>,
    /// Where the program's own recording is, if it has one.
    program: Option<Phase>,
    /// How often the program called `step()`.
    steps: u64,
    tickets: u64,
}

impl Default for Machine {
    fn default() -> Self {
        Machine { state: State::WaitForRequest, pending: None, program: None, steps: 0, tickets: 0 }
    }
}

impl Machine {
    /// Where requests are: the program's own recording is in [`Machine::program`].
    pub fn phase(&self) -> Phase {
        match self.state {
            State::WaitForRequest => Phase::WaitForRequest,
            State::Warmup(..) => Phase::Warmup,
            State::CollectTrace(_) => Phase::CollectTrace,
            State::ProcessTrace(_) => Phase::ProcessTrace,
            State::Cancelling(_) => Phase::Cancelling,
        }
    }

    /// Where the program's own recording is.
    pub fn program(&self) -> Option<Phase> {
        self.program
    }

    /// How often the program called `step()`: the number of the iteration that runs.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The request that is being served.
    pub fn active(&self) -> Option<Ticket> {
        match self.state {
            State::WaitForRequest => None,
            State::Warmup(job, _) | State::CollectTrace(job) => Some(job.ticket),
            State::ProcessTrace(ticket) | State::Cancelling(ticket) => Some(ticket),
        }
    }

    /// The request that waits for its start.
    pub fn pending(&self) -> Option<Ticket> {
        self.pending.map(|job| job.ticket)
    }

    /// Why a request would be refused now, whatever it asks for.
    pub fn obstacle(&self) -> Option<Refusal> {
        match (self.program, self.phase(), self.pending) {
            (Some(_), ..) => Some(Refusal::ProgramRecords),
            (_, Phase::WaitForRequest, None) => None,
            (_, Phase::WaitForRequest, Some(_)) => Some(Refusal::Pending),
            _ => Some(Refusal::Busy),
        }
    }

    /// Whether a call of `step()` may change anything but the number of steps.
    pub fn awaits_step(&self) -> bool {
        let job = match self.state {
            State::Warmup(job, _) | State::CollectTrace(job) => Some(job),
            _ => self.pending,
        };
        matches!(job, Some(Job { plan: Plan::Iterations { .. }, .. }))
    }

    /// A request arrives. Then [`Machine::tick`].
    ///
    /// # Errors
    /// Why it is refused.
    pub fn submit(&mut self, now: Now, window: &Window) -> Result<Ticket, Refusal> {
        if let Some(obstacle) = self.obstacle() {
            return Err(obstacle);
        }
        let plan = self.plan(now, window)?;
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.pending = Some(Job { ticket, plan });
        Ok(ticket)
    }

    fn plan(&self, now: Now, window: &Window) -> Result<Plan, Refusal> {
        match *window {
            Window::Time { duration, .. } if duration.is_zero() => Err(Refusal::Empty),
            Window::Time { start, warmup, duration } => time_plan(now, start, warmup, duration),
            Window::Iterations { count: 0, .. } | Window::Ranges { count: 0 } => {
                Err(Refusal::Empty)
            }
            Window::Ranges { count } => Ok(Plan::Ranges { count, over: 0, begun: false }),
            Window::Iterations { otherwise, .. } if self.steps == 0 => match otherwise {
                Some((duration, warmup)) => time_plan(now, Start::Now, warmup, duration),
                None => Err(Refusal::NoSteps),
            },
            Window::Iterations { start, roundup, warmup, count, .. } => {
                // A window opens where an iteration begins, so the next one is the earliest.
                let lead = warmup.max(1);
                let earliest = self.steps.saturating_add(lead);
                let start = if start >= earliest {
                    start
                } else {
                    earliest.checked_next_multiple_of(roundup.max(1)).unwrap_or(earliest)
                };
                Ok(Plan::Iterations { warm: start - lead, start, end: start.saturating_add(count) })
            }
        }
    }

    /// Time passes. To be called again until it returns `None`, and when [`Machine::due`]
    /// says.
    pub fn tick(&mut self, now: Now) -> Option<Action> {
        match self.state {
            State::WaitForRequest => self.begin(now),
            State::Warmup(job, Some(ready)) => match job.plan {
                Plan::Time { start, end, fixed, .. } if now.boot >= start => {
                    let at = start.max(ready);
                    let end = if fixed { end } else { end + (at - start) };
                    if at >= end {
                        let late = Duration::from_nanos(at - start);
                        return Some(self.discard(job.ticket, Refusal::Late(late)));
                    }
                    let plan = Plan::Time { warm: at, start: at, end, fixed };
                    self.state = State::CollectTrace(Job { plan, ..job });
                    Some(Action::Open { ticket: job.ticket, at })
                }
                Plan::Ranges { .. } => {
                    self.state = State::CollectTrace(job);
                    None
                }
                _ => None,
            },
            State::CollectTrace(job) => match job.plan {
                Plan::Time { end, .. } if now.boot >= end => Some(self.close(job.ticket, end)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Begins what is pending if it is due.
    fn begin(&mut self, now: Now) -> Option<Action> {
        let job = self.pending.filter(|_| self.program.is_none())?;
        let plan = match job.plan {
            Plan::Time { warm, .. } if now.boot < warm => return None,
            Plan::Time { start, end, fixed: true, .. } if now.boot >= end => {
                self.pending = None;
                let late = Duration::from_nanos(now.boot - start);
                return Some(Action::Refuse(job.ticket, Refusal::Late(late)));
            }
            Plan::Time { warm, start, end, fixed: false } => {
                let late = now.boot - warm;
                Plan::Time { warm: now.boot, start: start + late, end: end + late, fixed: false }
            }
            Plan::Iterations { warm, .. } if self.steps < warm => return None,
            plan => plan,
        };
        self.pending = None;
        self.state = State::Warmup(Job { plan, ..job }, None);
        Some(Action::Prepare(job.ticket))
    }

    /// The sources are on. Then [`Machine::tick`].
    pub fn ready(&mut self, now: Now) {
        if let State::Warmup(_, ready @ None) = &mut self.state {
            *ready = Some(now.boot);
        }
    }

    /// The program has called `step()` so often while no request waited for that.
    pub fn count_steps(&mut self, steps: u64) {
        self.steps = self.steps.max(steps);
    }

    /// The program ends an iteration and begins the one of this number. Then
    /// [`Machine::tick`].
    pub fn step(&mut self, now: Now, number: u64) -> Option<Action> {
        self.count_steps(number);
        match &mut self.state {
            State::WaitForRequest => {
                let by_steps =
                    matches!(self.pending, Some(Job { plan: Plan::Iterations { .. }, .. }));
                if by_steps { self.begin(now) } else { None }
            }
            State::Warmup(job, ready) => {
                let Plan::Iterations { start, end, .. } = &mut job.plan else {
                    return None;
                };
                if self.steps < *start {
                    return None;
                }
                // Whole iterations, and as many as were asked for: the next one if the sources
                // are not on, this one if it has begun before the first look.
                let begins = if ready.is_none() { self.steps + 1 } else { self.steps };
                let late = begins - *start;
                (*start, *end) = (begins, end.saturating_add(late));
                if ready.is_none() {
                    return None;
                }
                let job = *job;
                self.state = State::CollectTrace(job);
                Some(Action::Open { ticket: job.ticket, at: now.boot })
            }
            State::CollectTrace(Job { ticket, plan: Plan::Iterations { end, .. } })
                if self.steps >= *end =>
            {
                let ticket = *ticket;
                Some(self.close(ticket, now.boot))
            }
            _ => None,
        }
    }

    /// How far the engine has come with the ranges that a request asks for: whether the first
    /// has begun, how many are over, and whether these are all.
    pub fn ranges(&mut self, now: Now, progress: (bool, u64, bool)) -> Option<Action> {
        let State::CollectTrace(job) = &mut self.state else { return None };
        let Plan::Ranges { over, begun, .. } = &mut job.plan else { return None };
        (*begun, *over) = (progress.0, progress.1);
        let ticket = job.ticket;
        progress.2.then(|| self.close(ticket, now.boot))
    }

    fn close(&mut self, ticket: Ticket, at: u64) -> Action {
        self.state = State::ProcessTrace(ticket);
        Action::Close { ticket, at }
    }

    fn discard(&mut self, ticket: Ticket, why: Refusal) -> Action {
        self.state = State::Cancelling(ticket);
        Action::Discard(ticket, why)
    }

    /// What [`Action::Close`], [`Action::Discard`] or a failing [`Action::Prepare`] led to
    /// is done.
    pub fn finished(&mut self) {
        self.state = State::WaitForRequest;
    }

    /// Ends a request early. What was recorded of it is kept.
    pub fn stop(&mut self, now: Now, ticket: Ticket) -> Option<Action> {
        match self.state {
            State::CollectTrace(Job { plan: Plan::Ranges { begun: false, .. }, .. }) => {
                self.cancel(ticket, Refusal::NoRange)
            }
            State::CollectTrace(job) if job.ticket == ticket => {
                let opened = match job.plan {
                    Plan::Time { start, .. } => start,
                    Plan::Iterations { .. } | Plan::Ranges { .. } => 0,
                };
                Some(self.close(ticket, now.boot.max(opened)))
            }
            State::ProcessTrace(_) => None,
            _ => self.cancel(ticket, Refusal::Stopped),
        }
    }

    /// Ends a request. What was recorded of it is thrown away.
    pub fn cancel(&mut self, ticket: Ticket, why: Refusal) -> Option<Action> {
        if self.pending() == Some(ticket) {
            self.pending = None;
            return Some(Action::Refuse(ticket, why));
        }
        match self.state {
            State::WaitForRequest | State::Cancelling(_) => None,
            _ if self.active() != Some(ticket) => None,
            _ => Some(self.discard(ticket, why)),
        }
    }

    /// A source has no room for more.
    pub fn exhausted(&mut self, now: Now) -> Option<Action> {
        match self.state {
            State::Warmup(job, _) => Some(self.discard(job.ticket, Refusal::Exhausted)),
            State::CollectTrace(job) => self.stop(now, job.ticket),
            _ => None,
        }
    }

    /// The program wants to record: everything else ends. To be called again until it
    /// returns `None`; then the program has the machine, once [`Machine::phase`] is
    /// [`Phase::WaitForRequest`].
    pub fn preempt(&mut self) -> Option<Action> {
        self.program.get_or_insert(Phase::Warmup);
        let ticket = self.pending().or(match self.state {
            State::Warmup(job, _) | State::CollectTrace(job) => Some(job.ticket),
            // Its window is closed: it needs time, but does not stand in the way.
            _ => None,
        })?;
        self.cancel(ticket, Refusal::Preempted)
    }

    /// Where the program's own recording has come to; `None`: it is over.
    pub fn program_is(&mut self, phase: Option<Phase>) {
        self.program = phase;
    }

    /// When [`Machine::tick`] has something to do, in nanoseconds of `CLOCK_BOOTTIME`, if
    /// nothing else happens before.
    pub fn due(&self) -> Option<u64> {
        match (self.state, self.pending) {
            (State::WaitForRequest, Some(job)) if self.program.is_none() => match job.plan {
                Plan::Time { warm, .. } => Some(warm),
                Plan::Iterations { .. } | Plan::Ranges { .. } => None,
            },
            (State::Warmup(Job { plan: Plan::Time { start, .. }, .. }, Some(_)), _) => Some(start),
            (State::CollectTrace(Job { plan: Plan::Time { end, .. }, .. }), _) => Some(end),
            _ => None,
        }
    }

    /// When the window will open, for a window by time, as soon as nothing can change that;
    /// so that nothing that is recorded then is discarded before [`Action::Open`] is
    /// carried out.
    pub fn opens(&self) -> Option<u64> {
        match self.state {
            State::Warmup(Job { plan: Plan::Time { start, .. }, .. }, Some(ready)) => {
                Some(start.max(ready))
            }
            _ => None,
        }
    }

    /// When the window will close, for an open window by time, unless it is stopped.
    pub fn closes(&self) -> Option<u64> {
        match self.state {
            State::CollectTrace(Job { plan: Plan::Time { end, .. }, .. }) => Some(end),
            _ => None,
        }
    }

    /// How far the request that is served has come, of how much: nanoseconds, or steps.
    pub fn progress(&self, now: Now) -> Option<(u64, u64)> {
        let State::CollectTrace(job) = self.state else {
            return None;
        };
        Some(match job.plan {
            Plan::Time { start, end, .. } => (now.boot.clamp(start, end) - start, end - start),
            Plan::Iterations { start, end, .. } => {
                (self.steps.clamp(start, end) - start, end - start)
            }
            Plan::Ranges { count, over, .. } => (over.min(count), count),
        })
    }

    /// The first iteration of the window and the first after it, for a window by
    /// iterations.
    pub fn iterations(&self) -> Option<(u64, u64)> {
        match self.state {
            State::CollectTrace(Job { plan: Plan::Iterations { start, end, .. }, .. }) => {
                Some((start, end))
            }
            _ => None,
        }
    }
}

fn time_plan(
    now: Now,
    start: Start,
    warmup: Duration,
    duration: Duration,
) -> Result<Plan, Refusal> {
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 4);
    let (fixed, start) = match start {
        Start::Now => (false, now.boot.saturating_add(nanos(warmup))),
        Start::At(wall) if wall < now.wall => {
            return Err(Refusal::Past(Duration::from_nanos(now.wall - wall)));
        }
        Start::At(wall) => {
            let left = wall - now.wall;
            if left < nanos(warmup) {
                return Err(Refusal::TooSoon(Duration::from_nanos(left), warmup));
            }
            (true, now.boot.saturating_add(left))
        }
    };
    let lead = if fixed { nanos(warmup).max(LEAD) } else { nanos(warmup) };
    let warm = start.saturating_sub(lead);
    Ok(Plan::Time { warm, start, end: start.saturating_add(nanos(duration)), fixed })
}
