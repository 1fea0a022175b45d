//! Runs the command as if `kymo` were not there.
//!
//! It gets what `kymo` was started with (see [`Inherited`]), signals sent to `kymo` reach
//! it, and `kymo` ends the way it ends.

use super::inherited::Inherited;
use super::{Failure, say};
use std::ffi::CString;
use std::io::{self, Read};
use std::os::fd::{FromRawFd, IntoRawFd};
use std::process::ExitCode;
use std::time::Duration;

/// Signals that are meant for the command when they are sent to `kymo`.
const FORWARDED: [libc::c_int; 8] = [
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGWINCH,
    libc::SIGINT,
    libc::SIGQUIT,
];

/// A started command.
pub(super) struct Running {
    pid: libc::pid_t,
    awaited: libc::sigset_t,
}

/// How the command ended, as `wait` says it.
#[derive(Clone, Copy)]
pub(super) struct Ended(libc::c_int);

/// Starts `words` with the environment `environment`.
pub(super) fn start(words: &[CString], environment: &[CString]) -> Result<Running, Failure> {
    let inherited = Inherited::get();
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        let each = strings.iter().map(|s| s.as_ptr());
        each.chain([std::ptr::null()]).collect()
    };
    let (argv, envp) = (pointers(words), pointers(environment));
    let (mut report, sender) = io::pipe()?;
    let sender = sender.into_raw_fd();
    let awaited = block()?;
    // SAFETY: this process has one thread, so the child may do anything; it only makes
    // system calls, on arrays that end with a null pointer and outlive the fork.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => Err(Failure(format!("cannot start a process: {}", io::Error::last_os_error()))),
        0 => {
            inherited.restore();
            // SAFETY: as above.
            unsafe {
                libc::execvpe(argv[0], argv.as_ptr(), envp.as_ptr());
                // The pipe closes by itself when exec succeeds.
                let errno = (*libc::__errno_location()).to_ne_bytes();
                libc::write(sender, errno.as_ptr().cast(), errno.len());
                libc::_exit(127)
            }
        }
        pid => {
            // SAFETY: ours, and used by nothing else in this process.
            drop(unsafe { io::PipeWriter::from_raw_fd(sender) });
            let mut errno = [0; 4];
            if report.read_exact(&mut errno).is_ok() {
                let error = io::Error::from_raw_os_error(i32::from_ne_bytes(errno));
                let name = words[0].to_string_lossy();
                return Err(Failure(format!("cannot run {name}: {error}")));
            }
            Ok(Running { pid, awaited })
        }
    }
}

/// Blocks what [`Running::wait`] waits for, so that nothing gets lost before it does.
fn block() -> io::Result<libc::sigset_t> {
    let mut set = std::mem::MaybeUninit::uninit();
    // SAFETY: `set` is initialised by `sigemptyset` before anything reads it; the default
    // handler of SIGCHLD is set because `wait` reports nothing while it is ignored.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in FORWARDED.into_iter().chain([libc::SIGCHLD]) {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        let error = libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
        match error {
            0 => Ok(set.assume_init()),
            _ => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

impl Running {
    /// The command's.
    pub(super) fn pid(&self) -> u32 {
        self.pid as u32
    }

    /// Waits for the end; calls `tick` every `interval` if there is one.
    pub(super) fn wait(&self, interval: Option<Duration>, mut tick: impl FnMut()) -> Ended {
        loop {
            let mut status = 0;
            // SAFETY: `status` outlives the call.
            match unsafe { libc::waitpid(self.pid, &mut status, libc::WNOHANG) } {
                0 => {}
                -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => continue,
                // No other process can wait for it; if it is gone, say "failed".
                -1 => return Ended(1 << 8),
                _ => return Ended(status),
            }
            self.take_signal(interval);
            tick();
        }
    }

    /// Waits for a signal, and passes it on if it is for the command.
    fn take_signal(&self, interval: Option<Duration>) {
        // Without a tick still now and then, should a SIGCHLD get lost.
        let interval = interval.unwrap_or(Duration::from_secs(10));
        let timeout = libc::timespec {
            tv_sec: interval.as_secs() as libc::time_t,
            tv_nsec: interval.subsec_nanos().into(),
        };
        let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
        // SAFETY: all three live through the call; `info` is valid also when untouched.
        let (signal, info) = unsafe {
            let signal = libc::sigtimedwait(&self.awaited, info.as_mut_ptr(), &timeout);
            (signal, info.assume_init())
        };
        // What the terminal sends (Ctrl-C) goes to the command as well; a second one would
        // mean something else to it.
        let from_terminal = info.si_code > 0;
        if FORWARDED.contains(&signal) && !from_terminal {
            // SAFETY: no pointers. The pid is ours until `waitpid` reports its end.
            unsafe { libc::kill(self.pid, signal) };
        }
    }
}

impl Ended {
    /// The signal that ended it.
    pub(super) fn signal(self) -> Option<libc::c_int> {
        libc::WIFSIGNALED(self.0).then(|| libc::WTERMSIG(self.0))
    }

    /// Ends `kymo` as the command ended; returns only if that was by `exit`.
    pub(super) fn imitate(self) -> ExitCode {
        if !libc::WIFSIGNALED(self.0) {
            return ExitCode::from(libc::WEXITSTATUS(self.0) as u8);
        }
        let signal = libc::WTERMSIG(self.0);
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: each struct lives through its call. The default handler ends this
        // process, in which nothing else is going on, without a second core file.
        unsafe {
            libc::setrlimit(libc::RLIMIT_CORE, &none);
            libc::signal(signal, libc::SIG_DFL);
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, signal);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
            libc::kill(libc::getpid(), signal);
        }
        // Not reached for any signal that ends a process.
        say(&format!("the command was ended by signal {signal}"));
        ExitCode::from(128_u8.wrapping_add(signal as u8))
    }
}
