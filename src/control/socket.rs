//! Requests of `kymo ps`, `kymo trigger` and `kymo stop`: see [`Socket`].

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::broker::Broker;
use super::client::Client;
use super::folder;
use super::held::Held;
use super::reach;
use super::trigger::Trigger;
use crate::config::Config;

/// Clients at a time; further ones wait to be accepted.
const MAX: usize = 32;
/// How often clients hear how it is going.
const NEWS: Duration = Duration::from_millis(100);

/// A socket on which a process can be asked, by its own user and by root.
///
/// A client says what it wants in lines, ended by an empty one, and gets lines back:
///
/// ```text
/// trigger                 status                stop, or dump     cancel
/// TIME=500ms
/// OUTPUT=/tmp/t.pftrace
///
/// accepted                pid=4711              accepted          accepted
/// progress Warmup 0 0     state=CollectTrace    path=…            refused it was cancelled
/// path=/tmp/t.pftrace     steps=12              …
/// …                       …                     done
/// done
/// ```
/// The last line is `done`, after the facts of the trace, or `refused` and why. A client
/// that hangs up before that stops its request: what was recorded so far is kept.
#[derive(Debug)]
pub struct Socket {
    listener: Option<Held>,
    path: PathBuf,
    clients: Vec<Client>,
    news: Instant,
}

impl Socket {
    /// Starts to listen.
    ///
    /// # Errors
    /// No socket can be made; says where.
    pub fn open(config: &Config) -> io::Result<Socket> {
        Socket::named(config, &folder::name(std::process::id()))
    }

    /// As [`Socket::open`], for another process, in whose place this one answers.
    ///
    /// # Errors
    /// As [`Socket::open`].
    pub fn open_for(config: &Config, pid: u32) -> io::Result<Socket> {
        Socket::named(config, &folder::name_for(pid))
    }

    fn named(config: &Config, name: &str) -> io::Result<Socket> {
        let folder = folder::create(config)?;
        folder::sweep(&folder);
        let path = folder.join(name);
        // Under its name when it listens: one that does not is taken for a dead one.
        let early = folder.join(format!(".{name}"));
        // Of a process that had our pid.
        let _ = std::fs::remove_file(&early);
        let listener = UnixListener::bind(&early)?;
        let named = std::fs::set_permissions(&early, PermissionsExt::from_mode(0o600))
            // In the place of one of a process that had our pid, or of this one before it
            // called `exec`.
            .and_then(|()| std::fs::rename(&early, &path));
        if let Err(error) = named {
            let _ = std::fs::remove_file(&early);
            return Err(error);
        }
        let listener = Some(Held::new(listener)?);
        Ok(Socket { listener, path, clients: Vec::new(), news: Instant::now() })
    }

    fn accept(&mut self) {
        while self.clients.len() < MAX {
            let Some(fd) = self.listener.as_ref().and_then(Held::get) else {
                return;
            };
            let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
            // SAFETY: no pointers but null; the address of a client is of no interest.
            let fd =
                unsafe { libc::accept4(fd, std::ptr::null_mut(), std::ptr::null_mut(), flags) };
            if fd == -1 {
                return;
            }
            // SAFETY: just opened.
            let fd = unsafe { OwnedFd::from_raw_fd(fd) };
            // Others cannot even reach the socket, unless its folder was opened up.
            if !is_trusted(&fd) {
                continue;
            }
            if let Ok(socket) = Held::new(fd) {
                self.clients.push(Client::new(socket));
            }
        }
    }
}

impl Trigger for Socket {
    fn descriptors(&self, to: &mut Vec<RawFd>) {
        if self.clients.len() < MAX {
            to.extend(self.listener.as_ref().and_then(Held::get));
        }
        to.extend(self.clients.iter().filter_map(|client| client.socket.get()));
    }

    fn due(&self) -> Option<Instant> {
        (!self.clients.is_empty()).then(|| self.news + NEWS)
    }

    fn attend(&mut self, broker: &Broker) {
        self.accept();
        let now = Instant::now();
        let news = now >= self.news + NEWS;
        if news {
            self.news = now;
        }
        self.clients.retain_mut(|client| client.attend(broker, news));
        if self.clients.len() == MAX {
            // A client may wait behind those that send nothing.
            self.clients.retain(|client| !client.is_silent());
        }
    }

    fn end(&mut self, broker: &Broker) -> bool {
        self.attend(broker);
        self.clients.is_empty()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // A forked child's copy is not its own.
        if self.listener.take().is_some_and(|listener| listener.get().is_some()) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Whether the other end is this user or root.
fn is_trusted(socket: &OwnedFd) -> bool {
    // SAFETY: no arguments, cannot fail.
    let me = unsafe { libc::geteuid() };
    reach::peer(socket).is_ok_and(|peer| peer.uid == me || peer.uid == 0)
}
