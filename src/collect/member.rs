//! The engine of one recorded process: a thread of `kymo`.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::death::Process;
use crate::clock::{self, Anchor, Converter};
use crate::config::{CategoryFilter, Config};
use crate::control::Proxy;
use crate::engine::Engine;
use crate::engine::control_block::{Request, Shared};
use crate::engine::ending::Ending;
use crate::engine::host::Host;
use crate::engine::names::Names;
use crate::engine::origin::Origin;
use crate::engine::window::Window;
use crate::error::Error;
use crate::flight::{Ordered, Target};
use crate::page::{self, Page, State};
use crate::queue::{About, Arena, Life};
use crate::recording;
use crate::sink;

/// A process whose records are to be encoded.
pub(super) struct Subject {
    pub arena: Arc<Arena>,
    pub number: u32,
    pub about: About,
    /// Its pid, as `kymo` sees it.
    pub pid: u32,
    pub metadata: Arc<Vec<(String, String)>>,
    pub names: Arc<Names>,
    pub process: Arc<Process>,
    /// Another program has taken its place.
    pub replaced: Arc<AtomicBool>,
    /// It is the command that `kymo` has started.
    pub is_command: Arc<AtomicBool>,
}

/// How long sources that are to end are waited for.
const SOURCES: Duration = Duration::from_secs(2);
/// How long a dump may take to be ordered.
const ORDER: Duration = Duration::from_secs(1);

/// A process whose records are encoded.
pub(super) struct Member {
    pub process: Arc<Process>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Member {
    /// Starts the engine.
    ///
    /// # Errors
    /// The output cannot be opened, or there can be no further thread.
    pub fn start(subject: Subject, config: &Config, page: &Arc<Page>) -> Result<Member, Error> {
        let sink = sink::open_shared(config, page.clone())?;
        let host = Box::new(Elsewhere::new(subject.arena.clone()));
        let window = match page.capture() {
            Some(_) => Window::closed(),
            None => Window::from(page.opens()),
        };
        let shared = Arc::new(Shared::new(config.clone(), window, subject.pid, host));
        page.capture().into_iter().for_each(|rule| shared.captures.by(rule.clone()));
        let process = subject.process.clone();
        let entry = page.register(subject.pid);
        let theirs = shared.clone();
        let builder = std::thread::Builder::new().name(format!("kymo {}", subject.pid));
        let run = move || run(&subject, theirs, sink, entry);
        let thread = builder.spawn(run).map_err(|source| Error::Thread { source })?;
        Ok(Member { process, shared, thread: Some(thread) })
    }

    /// Whether everything is encoded.
    pub fn is_done(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Has what is held of the process be written.
    pub fn order_dump(
        &self,
        target: Target,
        why: &str,
        timeout: Duration,
    ) -> Result<Ordered, Error> {
        recording::order_dump_to(&self.shared, target, why, timeout)
    }

    /// Has the engine end: its process is dead, or what it records from now on is not wanted.
    pub fn end(&self) {
        self.shared.process_died();
    }

    /// Waits for the end of the engine, which was told to.
    pub fn wait(mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic is counted as what was not written.
            let _ = thread.join();
        }
    }
}

/// The engine's whole life.
fn run(subject: &Subject, shared: Arc<Shared>, sink: Box<dyn sink::Sink>, entry: page::Process) {
    let Subject { arena, number, about, names, .. } = subject;
    let page = entry.page().clone();
    let origin = Origin::from_metadata(subject.pid, &subject.metadata, names.clone());
    let origin = if about.parent.is_some() { origin.forked(about.began.1) } else { origin };
    let first = Anchor { ticks: about.began.0, nanos: about.began.1 };
    let converter = Converter::calibrate(first, origin.counter);
    let rank = origin.place.iter().find(|(key, _)| key == "rank").map(|(_, rank)| *rank);
    // Best effort: it is recorded all the same.
    let mut proxy = Proxy::open(&shared.config, subject.pid, rank, shared.clone()).ok();
    let mut engine = Engine::new(shared.clone(), origin, sink, Some(entry), first, converter);
    engine.begin();
    let (ending, at) = loop {
        let request = shared.wait(engine.nap());
        proxy.iter_mut().for_each(Proxy::attend);
        // Read first: a recording ends with its command, and by then it is known of what that died.
        let over = page.state() != State::Recording;
        if let Some(ending) = subject.ending() {
            break (ending, Some(clock::system(libc::CLOCK_BOOTTIME)));
        }
        if over || matches!(request, Request::Stop | Request::Close) {
            subject.end_sources(&mut engine, &shared);
            break (Ending::Stopped, None);
        }
        let flush = arena.wanted_flush(*number);
        engine.tick(flush.map_or(request, |_| Request::Flush(0)));
        if let Some(flush) = flush {
            let total = shared.total();
            arena.flushed(*number, flush, (total.events, total.lost));
        }
    };
    if let Some(why) = subject.dump_for(ending, &shared.config) {
        // Written by the end of the engine, which sees the last of it.
        let ordered = recording::order_dump_of(&shared, &why, ORDER);
        engine.last_is_dumped(ordered.is_ok());
    }
    engine.end(ending, at);
    // Processes that wait for a dump learn its result.
    proxy.iter_mut().for_each(Proxy::attend);
    if ending != Ending::Stopped {
        names.pool.reclaim();
        arena.release(*number);
    }
}

impl Subject {
    /// Has the sources of the process end, which goes on, and reads what they push meanwhile.
    fn end_sources(&self, engine: &mut Engine, shared: &Shared) {
        let flushes = self.arena.flushes();
        flushes.stop();
        let since = Instant::now();
        while !flushes.is_idle() && self.ending().is_none() {
            if since.elapsed() >= SOURCES {
                let why = "what devices did last is missing: it was not told within 2 s of the end";
                return shared.state("sources", why);
            }
            engine.tick(Request::None);
            std::thread::sleep(engine.nap());
        }
    }

    /// Why what the flight recorders hold is to be written, if this ending is a reason.
    fn dump_for(&self, ending: Ending, config: &Config) -> Option<Cow<'static, str>> {
        let on = config.flight.and(Some(&config.dump_on))?;
        let command = self.is_command.load(Ordering::Acquire);
        let aborted = matches!(ending, Ending::Killed { signal: None | Some(libc::SIGABRT) });
        ending.crash(command).filter(|_| on.crash || on.abort && aborted)
    }

    /// How the process has ended, if it has.
    fn ending(&self) -> Option<Ending> {
        let dead = self.process.is_dead();
        if !dead && !self.replaced.load(Ordering::Acquire) {
            return None;
        }
        let life = self.arena.about(self.number).map(|about| about.life);
        if self.is_command.load(Ordering::Acquire) && dead && !self.process.is_known() {
            // `kymo` waits for it itself, and is about to say.
            return None;
        }
        Some(match (life, self.process.signal()) {
            (Some(Life::Becomes), _) => Ending::Exec,
            (_, Some(signal)) if dead => Ending::Killed { signal: Some(signal) },
            (Some(Life::Ends), _) => Ending::Exited,
            _ if dead => Ending::Killed { signal: None },
            _ => Ending::Unknown,
        })
    }
}

/// A process that is recorded from here. It checks by itself whether kymo still reads.
pub(super) struct Elsewhere {
    arena: Arc<Arena>,
    /// The flush of its sources that was asked for last; 0: none that is waited for.
    asked: AtomicU64,
}

impl Elsewhere {
    pub fn new(arena: Arc<Arena>) -> Elsewhere {
        Elsewhere { arena, asked: AtomicU64::new(0) }
    }
}

impl Host for Elsewhere {
    fn record(&self, _: Option<&CategoryFilter>) {}

    fn flush_sources(&self) -> bool {
        let flushes = self.arena.flushes();
        let round = match self.asked.load(Ordering::Relaxed) {
            0 => flushes.ask(),
            asked => asked,
        };
        let done = flushes.is_done(round);
        self.asked.store(if done { 0 } else { round }, Ordering::Relaxed);
        done
    }

    fn thread_name(&self, _: u32) -> Option<Vec<u8>> {
        None
    }

    fn over(&self, _: bool) {}
}
