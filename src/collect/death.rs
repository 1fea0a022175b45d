//! Notices that a process is dead, and of what it died.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// A process, by a descriptor that stands for it and for no later one with its number.
#[derive(Debug)]
pub(super) struct Process {
    pid: u32,
    descriptor: Option<OwnedFd>,
    dead: AtomicBool,
    /// The signal that it died of; 0 if it is not known, or if there was none.
    signal: AtomicI32,
    /// Whether it is known what it died of.
    known: AtomicBool,
}

impl Process {
    /// The process that has this number now.
    pub fn open(pid: u32) -> Process {
        // SAFETY: takes numbers; the descriptor is new and ours. Linux 5.3.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) } as RawFd;
        // SAFETY: just opened.
        let descriptor = (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) });
        let (dead, known) = (AtomicBool::new(false), AtomicBool::new(false));
        Process { pid, descriptor, dead, signal: AtomicI32::new(0), known }
    }

    /// One that had this number, and is dead.
    pub fn gone(pid: u32) -> Process {
        let (dead, known) = (AtomicBool::new(true), AtomicBool::new(false));
        Process { pid, descriptor: None, dead, signal: AtomicI32::new(0), known }
    }

    /// Readable once the process is dead; `None` where the kernel has no such thing.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.descriptor.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Whether it is dead. A zombie is. The first look also finds out what it died of, which
    /// the kernel tells until the parent has waited for it.
    pub fn is_dead(&self) -> bool {
        if self.dead.load(Ordering::Acquire) {
            return true;
        }
        if !self.looks_dead() {
            return false;
        }
        // Whoever waits for it may come in between.
        let status = (0..3).find_map(|_| self.status());
        status.into_iter().for_each(|status| self.died_of(status & 0x7f));
        self.dead.store(true, Ordering::Release);
        true
    }

    /// What wait(2) says of it, from the process table or, once its parent has waited for it, from
    /// the descriptor: Linux 6.15.
    fn status(&self) -> Option<i32> {
        match state(self.pid) {
            Some(('Z', status)) => Some(status),
            _ => exit_code(self.descriptor()?),
        }
    }

    /// Whether its death has been noticed.
    pub fn was_seen_dead(&self) -> bool {
        self.dead.load(Ordering::Acquire)
    }

    fn looks_dead(&self) -> bool {
        match self.descriptor() {
            Some(fd) => {
                let mut polled = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
                // SAFETY: one pollfd.
                unsafe { libc::poll(&mut polled, 1, 0) == 1 }
            }
            None => match state(self.pid) {
                Some((state, _)) => matches!(state, 'Z' | 'X'),
                None => !exists(self.pid),
            },
        }
    }

    /// The signal that killed it, if it was seen.
    pub fn signal(&self) -> Option<i32> {
        Some(self.signal.load(Ordering::Acquire)).filter(|signal| *signal != 0)
    }

    /// Its parent has waited for it and reports: it died of this signal, or (0) of none.
    pub fn died_of(&self, signal: i32) {
        self.signal.store(signal, Ordering::Release);
        self.known.store(true, Ordering::Release);
    }

    /// Whether it is known what it died of.
    pub fn is_known(&self) -> bool {
        self.known.load(Ordering::Acquire)
    }
}

/// `struct pidfd_info` of linux/pidfd.h, in its first version.
#[repr(C)]
#[derive(Default)]
struct Info {
    mask: u64,
    cgroup: u64,
    /// Of the process, its thread group and its parent; four users and four groups.
    ids: [u32; 11],
    exit_code: i32,
}

const _: () = assert!(size_of::<Info>() == 64);
/// `PIDFD_GET_INFO`: `_IOWR(0xff, 11, struct pidfd_info)`.
const GET_INFO: libc::c_ulong = 0xc040_ff0b;
/// `PIDFD_INFO_EXIT`.
const EXIT: u64 = 1 << 3;

/// What wait(2) has said of the process of a pidfd, if its parent has waited for it.
fn exit_code(fd: RawFd) -> Option<i32> {
    let mut info = Info { mask: EXIT, ..Info::default() };
    // SAFETY: `info` is as large as the number of the request says.
    let answer = unsafe { libc::ioctl(fd, GET_INFO as _, &raw mut info) };
    (answer == 0 && info.mask & EXIT != 0).then_some(info.exit_code)
}

/// State, and status as wait(2) says it, of a process: proc(5).
fn state(pid: u32) -> Option<(char, i32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?.chars().next()?;
    // Field 52; the state is field 3.
    let status = fields.nth(48).and_then(|field| field.parse().ok()).unwrap_or(0);
    Some((state, status))
}

/// Whether there is a process with this number.
pub(super) fn exists(pid: u32) -> bool {
    // SAFETY: no pointers; signal 0 only asks.
    let answer = unsafe { libc::kill(pid as libc::pid_t, 0) };
    answer == 0 || io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_is_dead_before_anybody_waits_for_it() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let process = Process::open(child.id());
        assert!(!process.is_dead());
        assert_eq!(process.signal(), None);
        child.kill().unwrap();
        while !process.is_dead() {
            std::thread::yield_now();
        }
        assert_eq!(process.signal(), Some(libc::SIGKILL));
        child.wait().unwrap();
        assert!(process.is_dead());
        assert_eq!(process.signal(), Some(libc::SIGKILL), "somebody has looked in time");
        // A late look sees it as well, where the kernel keeps it.
        let late = Command::new("sleep").arg("60").spawn().unwrap();
        let (seen, mut late) = (Process::open(late.id()), late);
        late.kill().unwrap();
        late.wait().unwrap();
        assert!(seen.is_dead());
        assert!(matches!(seen.signal(), None | Some(libc::SIGKILL)));
    }
}
