//! In `kymo`: takes the arenas of processes that join, and starts an engine for each process
//! that has recorded something.

use std::fs;
use std::io::{self, PipeReader, PipeWriter, Write as _};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::TryRecvError;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::death::Process;
use super::member::{self, Member};
use super::socket::{self, Peer};
use super::whose;
use crate::clock;
use crate::config::Config;
use crate::engine::names::Names;
use crate::error::Error;
use crate::flight::{Dump, Ordered, Target};
use crate::join::IMAGE;
use crate::join::dump;
use crate::join::message::{self, Metadata, Subject};
use crate::page::{Page, Patterns, State};
use crate::queue::{About, Arena, Life, Pool};

/// How often arenas are looked at: by how much the engine of a process starts late at most.
const LOOK: Duration = Duration::from_millis(10);
/// How long a dump may take to be ordered.
const ORDER: Duration = Duration::from_secs(1);
/// In what is known of the command: it is over.
const OVER: i32 = 1 << 8;
/// Names of dead processes that are kept for children that they may have left.
const MAX_NAMES: usize = 64;

/// Collects what processes record. Made before the command starts, so that no process joins
/// too soon; set to work afterwards, since a process with threads forks badly.
#[derive(Debug)]
pub struct Collector {
    shared: Arc<Shared>,
    socket: PathBuf,
    thread: Option<JoinHandle<()>>,
}

/// What the thread of a [`Collector`] and who holds it have in common.
#[derive(Debug)]
struct Shared {
    listener: OwnedFd,
    finish: AtomicBool,
    /// Ends the wait for processes.
    wake: (PipeReader, PipeWriter),
    /// Whether a process that joined runs.
    alive: AtomicBool,
    /// The command's pid in the upper half, and, once it is over, what `wait` said of it.
    command: AtomicI64,
    state: Mutex<Outcome>,
}

/// What became of the processes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// Processes that joined.
    pub joined: u64,
    /// Processes that had recorded something and still ran when the recording ended: pid and
    /// name.
    pub outlived: Vec<(u32, String)>,
    /// Processes that tried to join with a library of another release.
    pub of_other_releases: u64,
    /// Why other processes could not be recorded that tried to join.
    pub refused: Vec<String>,
}

impl Collector {
    /// Listens in `folder`.
    ///
    /// # Errors
    /// No socket can be made there.
    pub fn create(folder: &Path) -> io::Result<Collector> {
        let (listener, socket) = socket::listen(folder)?;
        let shared = Shared {
            listener,
            finish: AtomicBool::new(false),
            wake: io::pipe()?,
            alive: AtomicBool::new(false),
            command: AtomicI64::new(0),
            state: Mutex::default(),
        };
        Ok(Collector { shared: Arc::new(shared), socket, thread: None })
    }

    /// Sets it to work. The command that was started has the pid `command`.
    ///
    /// # Errors
    /// There can be no further thread.
    pub fn start(&mut self, config: &Config, page: &Arc<Page>, command: u32) -> io::Result<()> {
        self.shared.command.store(i64::from(command) << 32, Ordering::Release);
        clock::choose(config.clock);
        let work = Work {
            shared: self.shared.clone(),
            config: config.clone(),
            page: page.clone(),
            homes: Vec::new(),
            waiting: Vec::new(),
        };
        let builder = std::thread::Builder::new().name("kymo collector".to_owned());
        self.thread = Some(builder.spawn(move || work.run())?);
        Ok(())
    }

    /// The command, which has this pid, is over; `signal`: what killed it, or 0.
    pub fn command_ended(&self, pid: u32, signal: i32) {
        let ended = i64::from(OVER | signal);
        self.shared.command.store(i64::from(pid) << 32 | ended, Ordering::Release);
    }

    /// Whether any process that joined still runs.
    pub fn anybody_runs(&self) -> bool {
        self.shared.alive.load(Ordering::Acquire)
    }

    /// Ends all engines, each when it has encoded what its process recorded so far.
    pub fn finish(mut self) -> Outcome {
        self.shared.finish.store(true, Ordering::Release);
        // At the worst it looks a moment later by itself.
        let _ = (&self.shared.wake.1).write_all(&[0]);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.shared.state().clone()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.socket);
    }
}

impl Shared {
    fn state(&self) -> std::sync::MutexGuard<'_, Outcome> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A process that joined, with the children that it forked: all that record into one arena.
struct Home {
    arena: Arc<Arena>,
    metadata: Arc<Vec<(String, String)>>,
    /// The process that made it, as `kymo` sees it, and as it sees itself.
    pid: (u32, u32),
    /// Which program that process was.
    image: String,
    residents: Vec<Resident>,
}

/// A process that records into an arena.
struct Resident {
    number: u32,
    about: About,
    pid: u32,
    process: Arc<Process>,
    names: Arc<Names>,
    replaced: Arc<AtomicBool>,
    is_command: Arc<AtomicBool>,
    /// Once it has recorded something.
    member: Option<Member>,
    over: bool,
}

/// What the collector's thread does.
struct Work {
    shared: Arc<Shared>,
    config: Config,
    page: Arc<Page>,
    homes: Vec<Home>,
    waiting: Vec<Waiting>,
}

impl Work {
    fn run(mut self) {
        loop {
            // Read before anything is looked at: what came before it is seen.
            let finish = self.shared.finish.load(Ordering::Acquire);
            self.accept();
            self.look();
            self.answer();
            let alive = self.homes.iter().any(Home::is_alive);
            self.shared.alive.store(alive, Ordering::Release);
            if self.page.state() != State::Recording {
                // Where there is an engine, only once that has had the sources end.
                let unread = self.homes.iter().filter(|home| !home.is_read());
                unread.for_each(|home| home.arena.close());
            }
            if finish {
                return self.finish();
            }
            self.wait();
        }
    }

    /// Waits for a process that joins, or one that dies.
    fn wait(&self) {
        let residents = self.homes.iter().flat_map(|home| &home.residents);
        let running = residents.filter(|resident| !resident.process.was_seen_dead());
        let descriptors = running.filter_map(|resident| resident.process.descriptor());
        let poll = |fd: RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let ours = [self.shared.listener.as_raw_fd(), self.shared.wake.0.as_raw_fd()];
        let mut polled: Vec<_> = ours.into_iter().chain(descriptors).map(poll).collect();
        let time = LOOK.as_millis() as libc::c_int;
        // SAFETY: as many pollfds as are said.
        unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, time) };
    }

    /// Accepts the processes that have joined.
    fn accept(&mut self) {
        while let Some(peer) = socket::accept(&self.shared.listener) {
            match peer.and_then(request) {
                Ok(Request::Dump { socket, pid, metadata }) => {
                    self.order_dump(socket, pid, &metadata)
                }
                Ok(Request::Join(home)) => {
                    self.shared.state().joined += 1;
                    // The program whose place this one has taken records no more. A program
                    // that links the library as well joins twice.
                    let others = self.homes.iter().filter(|other| other.image != home.image);
                    for old in others.flat_map(|other| &other.residents) {
                        if old.pid == home.pid.0 {
                            old.replaced.store(true, Ordering::Release);
                        }
                    }
                    self.homes.push(home);
                }
                Err(why) if why.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(why) if why.kind() == io::ErrorKind::Unsupported => {
                    self.shared.state().of_other_releases += 1;
                }
                Err(why) => {
                    let mut state = self.shared.state();
                    let why = why.to_string();
                    if !state.refused.contains(&why) && state.refused.len() < 8 {
                        state.refused.push(why);
                    }
                }
            }
        }
    }

    /// A process wants what is held of it to be written.
    fn order_dump(&mut self, socket: OwnedFd, pid: u32, metadata: &Metadata) {
        // It may have recorded its first event a moment ago.
        self.look();
        let text =
            |key: &str| metadata.iter().find(|(k, _)| k == key).map(|(_, value)| value.clone());
        let target = text("path").map_or(Target::Next, |path| Target::Path(path.into()));
        let residents = self.homes.iter().flat_map(|home| &home.residents);
        let of_it = residents.filter(|resident| resident.pid == pid);
        let member = of_it.filter_map(|resident| resident.member.as_ref()).next_back();
        let ordered = member
            .ok_or(Error::NoFlight)
            .and_then(|member| member.order_dump(target, &text("why").unwrap_or_default(), ORDER));
        match ordered {
            Ok(answer) => self.waiting.push(Waiting { socket, answer }),
            Err(error) => reply(&socket, Err(error)),
        }
    }

    /// Tells those who wait what has become of their dumps.
    fn answer(&mut self) {
        self.waiting.retain(|Waiting { socket, answer }| match answer.try_recv() {
            Err(TryRecvError::Empty) => true,
            Err(TryRecvError::Disconnected) => {
                reply(socket, Err(Error::NoFlight));
                false
            }
            Ok(result) => {
                reply(socket, result);
                false
            }
        });
    }

    /// Starts engines, and lets go of those that have ended.
    fn look(&mut self) {
        let command = self.shared.command.load(Ordering::Acquire);
        for home in &mut self.homes {
            home.arena.flushes().beat();
            home.settle();
            for resident in &mut home.residents {
                if i64::from(resident.pid) == command >> 32 {
                    resident.is_command.store(true, Ordering::Release);
                    if command as i32 & OVER != 0 {
                        resident.process.died_of(command as i32 & 0x7f);
                    }
                }
                let dead = resident.process.is_dead() || resident.replaced.load(Ordering::Acquire);
                if resident.member.is_none() && !resident.over {
                    if resident.names.pool.has_records() {
                        resident.start(&home.arena, &home.metadata, &self.config, &self.page);
                    } else if dead {
                        resident.over = true;
                        resident.names.refresh();
                        resident.names.pool.reclaim();
                        home.arena.release(resident.number);
                    }
                } else if let Some(member) = resident.member.take_if(|member| member.is_done()) {
                    member.wait();
                    resident.over = true;
                }
            }
            home.forget();
        }
        self.homes.retain(|home| {
            let stays = !home.residents.iter().all(|resident| resident.over);
            if !stays {
                home.arena.close();
                home.report(&self.page);
            }
            stays
        });
    }

    /// Everything that was recorded until now is encoded; then it is over.
    fn finish(mut self) {
        self.page.set_state(State::Closing);
        let residents = self.homes.iter_mut().flat_map(|home| &mut home.residents);
        let members: Vec<_> = residents
            .filter_map(|resident| Some((resident.member.take()?, resident.pid)))
            .collect();
        members.iter().for_each(|(member, _)| member.end());
        for (member, pid) in members {
            if !member.process.is_dead() {
                let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
                self.shared.state().outlived.push((pid, name.trim_end().to_owned()));
            }
            member.wait();
        }
        for home in &self.homes {
            home.arena.close();
            home.report(&self.page);
        }
        // Whatever was recorded in between is counted where it is.
    }
}

/// What a process wants.
enum Request {
    Join(Home),
    /// What is held of it is to be written.
    Dump {
        socket: OwnedFd,
        pid: u32,
        metadata: Metadata,
    },
}

/// A process that waits for a dump.
struct Waiting {
    socket: OwnedFd,
    answer: Ordered,
}

/// What a process has sent.
fn request(peer: Peer) -> io::Result<Request> {
    let wrong = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
    let Peer { socket, pid, uid, subject, metadata, file } = peer;
    // SAFETY: no arguments, cannot fail.
    let me = unsafe { libc::geteuid() };
    if uid != me && uid != 0 && me != 0 {
        return Err(wrong("a process of another user tried to join"));
    }
    match subject {
        Subject::Join => {}
        Subject::Dump => return Ok(Request::Dump { socket, pid, metadata }),
        Subject::Keep | Subject::Dumped => return Err(io::ErrorKind::Unsupported.into()),
    }
    let arena = Arena::open(file.ok_or_else(|| wrong("a process sent no memory"))?)?;
    let inside = arena.about(1).map_or(0, |about| about.pid);
    let image = metadata.iter().find(|(key, _)| key == IMAGE).map(|(_, image)| image.clone());
    let image = image.unwrap_or_default();
    let (arena, metadata) = (Arc::new(arena), Arc::new(metadata));
    let pid = (pid, inside);
    let mut home = Home { arena, metadata, pid, image, residents: Vec::new() };
    home.settle();
    Ok(Request::Join(home))
}

/// Best effort: the process that asked may be gone.
fn reply(socket: &OwnedFd, result: Result<Dump, Error>) {
    let message = message::write(message::Subject::Dumped, &dump::write(result));
    let _ = message::send(socket.as_fd(), &message, None);
}

impl Home {
    /// Takes in the processes that have begun to record since the last time.
    fn settle(&mut self) {
        for number in 1..=self.arena.highest() {
            let Some(about) = self.arena.about(number) else { continue };
            if matches!(about.life, Life::Free | Life::Entering) {
                continue;
            }
            // Numbers are given again as soon as their process is read to its end.
            let known = |resident: &Resident| {
                let it = &resident.about;
                resident.number == number && (it.pid, it.began) == (about.pid, about.began)
            };
            if self.residents.iter().any(known) {
                continue;
            }
            let names = self.names_of(number, &about);
            let (pid, process) = self.process_of(&about);
            self.residents.push(Resident {
                number,
                about,
                pid,
                process,
                names: Arc::new(names),
                replaced: Arc::default(),
                is_command: Arc::default(),
                member: None,
                over: false,
            });
        }
    }

    /// The process that records as this member.
    fn process_of(&self, about: &About) -> (u32, Arc<Process>) {
        let (outside, inside) = self.pid;
        let found = match self.parent_of(about) {
            None if about.pid == inside => Some(outside),
            None => Some(about.pid),
            Some(parent) => {
                whose::find(about.pid, parent.pid, (parent.about.began.1, about.began.1))
            }
        };
        let process = found.map_or_else(|| Process::gone(about.pid), Process::open);
        (found.unwrap_or(about.pid), Arc::new(process))
    }

    /// The process that a member was forked from: the newest of those that have had its number,
    /// and were there then.
    fn parent_of(&self, about: &About) -> Option<&Resident> {
        let number = about.parent?;
        let is_it = |r: &&Resident| r.number == number && r.about.began.0 <= about.began.0;
        self.residents.iter().rev().find(is_it)
    }

    fn names_of(&self, number: u32, about: &About) -> Names {
        let pool = Arc::new(Pool::view(self.arena.clone(), number));
        let parent = self.parent_of(about);
        if let Some(parent) = parent {
            parent.names.refresh();
        }
        Names::new(pool, parent.map(|parent| &*parent.names), about.names)
    }

    /// What its processes saw without recording it.
    fn report(&self, page: &Page) {
        let (matched, left_out) = self.arena.observed();
        page.match_patterns(Patterns::Categories, matched);
        page.leave_out(left_out);
    }

    /// Whether an engine reads what any of its processes records.
    fn is_read(&self) -> bool {
        self.residents.iter().any(|resident| resident.member.is_some())
    }

    fn is_alive(&self) -> bool {
        self.residents.iter().any(|resident| !resident.over && !resident.process.is_dead())
    }

    /// Lets go of processes that are over; of some only later, as their children have their
    /// names from them. The first is kept as long as there is any.
    fn forget(&mut self) {
        let over = self.residents.iter().filter(|resident| resident.over).count();
        let mut surplus = over.saturating_sub(MAX_NAMES);
        self.residents.retain(|resident| {
            let goes = resident.over && resident.number != 1 && surplus > 0;
            surplus -= usize::from(goes);
            !goes
        });
    }
}

impl Resident {
    fn start(
        &mut self,
        arena: &Arc<Arena>,
        metadata: &Arc<Vec<(String, String)>>,
        config: &Config,
        page: &Arc<Page>,
    ) {
        let subject = member::Subject {
            arena: arena.clone(),
            number: self.number,
            about: self.about,
            pid: self.pid,
            metadata: metadata.clone(),
            names: self.names.clone(),
            process: self.process.clone(),
            replaced: self.replaced.clone(),
            is_command: self.is_command.clone(),
        };
        match Member::start(subject, config, page) {
            Ok(member) => self.member = Some(member),
            Err(error) => {
                // How much that is cannot be known.
                page.add(0, 1, 0);
                page.note(&format!("process {} is not recorded: {error}", self.pid));
                self.over = true;
            }
        }
    }
}
