//! A signal requests a trace, where a process can be reached by nothing else.
//!
//! Only if the program does not handle the signal: a handler of the host is never replaced, and
//! one that it sets later takes the signal over.

use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::{Duration, Instant};

use super::broker::Broker;
use super::held::Pipe;
use super::trigger::Trigger;
use crate::session::{Origin, Request, Start, Window};

/// How long to record if `DURATION` does not say.
const DURATION: Duration = Duration::from_secs(1);

/// What the handler writes to; never freed.
static PIPE: AtomicPtr<Pipe> = AtomicPtr::new(ptr::null_mut());

/// See the module.
#[derive(Debug)]
pub struct Signal {
    pipe: &'static Pipe,
    /// How many have come.
    count: u32,
}

impl Signal {
    /// Handles `signal` from now on. `None` if the program does.
    pub fn handle(signal: libc::c_int) -> Option<Signal> {
        let pipe: &'static Pipe = Box::leak(Box::new(Pipe::new().ok()?));
        PIPE.store(ptr::from_ref(pipe).cast_mut(), Ordering::Release);
        // SAFETY: `before` is filled before it is read; the handler only calls what may be
        // called in one.
        unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            let known = libc::sigaction(signal, ptr::null(), &mut before) == 0;
            if !known || before.sa_sigaction != libc::SIG_DFL {
                return None;
            }
            let mut ours: libc::sigaction = std::mem::zeroed();
            let handler: extern "C" fn(libc::c_int) = on_signal;
            ours.sa_sigaction = handler as libc::sighandler_t;
            ours.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
            (libc::sigaction(signal, &ours, ptr::null_mut()) == 0)
                .then_some(Signal { pipe, count: 0 })
        }
    }
}

extern "C" fn on_signal(_: libc::c_int) {
    // SAFETY: errno is this thread's; the pipe is null or leaked, and waking it makes two
    // system calls.
    unsafe {
        let errno = *libc::__errno_location();
        if let Some(pipe) = PIPE.load(Ordering::Acquire).as_ref() {
            pipe.wake();
        }
        *libc::__errno_location() = errno;
    }
}

impl Trigger for Signal {
    fn descriptors(&self, to: &mut Vec<RawFd>) {
        to.extend(self.pipe.reader());
    }

    fn due(&self) -> Option<Instant> {
        None
    }

    fn attend(&mut self, broker: &Broker) {
        if !self.pipe.drain() {
            return;
        }
        self.count += 1;
        let mut config = broker.config().clone();
        let number = config.numbered_path(self.count);
        config.output = std::path::absolute(&number).unwrap_or(number);
        let duration = config.duration.unwrap_or(DURATION);
        let request = Request {
            origin: Origin::Signal,
            window: Window::Time { start: Start::Now, warmup: Duration::ZERO, duration },
            iteration_of: String::new(),
            config,
            trace_id: String::new(),
            group_trace_id: String::new(),
            custom: String::new(),
            remarks: Vec::new(),
        };
        // A signal has no answer; `kymo status` shows the outcome.
        broker.submit(request, Box::new(|_| ()));
    }
}
