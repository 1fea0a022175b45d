//! Names that a program gives its threads and itself while nothing is recorded, or while an
//! earlier trace does: every trace that is asked for later has them.

use std::collections::BTreeMap;
use std::fs;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

use kymograph_backends::environment::gettid;
use kymograph_protos::record::{Kind, Record};

use super::armed::armed;
#[cfg(feature = "inject")]
use crate::intern::INTERNER;

/// Threads whose names are kept.
const MAX: usize = 4096;
/// Bytes of a name; longer ones are cut.
const MAX_LENGTH: usize = 256;

/// See the module.
#[derive(Debug, Default)]
pub struct Names(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    process: Option<Vec<u8>>,
    threads: BTreeMap<u32, Thread>,
}

#[derive(Debug)]
struct Thread {
    name: Vec<u8>,
    /// Which of the threads with this id it is.
    started: Option<u64>,
}

/// Names of threads that were given before the process could be asked for traces, in the process
/// with this pid: a child begins with none, as another thread may have held the lock when it was
/// forked. Never freed.
static EARLY: AtomicPtr<(u32, Names)> = AtomicPtr::new(ptr::null_mut());

fn early() -> Option<&'static Names> {
    // SAFETY: null, or leaked.
    let early = unsafe { EARLY.load(Ordering::Acquire).as_ref() };
    early.filter(|(pid, _)| *pid == std::process::id()).map(|(_, names)| names)
}

/// A thread is called so, in all traces to come. Returns whether it had a name before.
#[cfg(feature = "inject")]
pub(crate) fn remember_name(tid: u32, name: &[u8]) -> bool {
    INTERNER.publish_thread(tid, name);
    let names = early().unwrap_or_else(|| {
        let new = Box::leak(Box::new((std::process::id(), Names::default())));
        EARLY.store(new, Ordering::Release);
        &new.1
    });
    let known = names.thread(tid).is_some();
    names.set(tid, &name[..name.len().min(MAX_LENGTH)]);
    known
}

/// What a thread was called by the program, if by anything.
pub(crate) fn name_of(tid: u32) -> Option<Vec<u8>> {
    let told = armed().and_then(|armed| armed.names.thread(tid));
    told.or_else(|| early()?.thread(tid))
}

impl Names {
    /// `head` names something: a thread, unless it is the calling one, in `arg`.
    pub fn say(&self, head: &Record, name: &[u8]) {
        let name = &name[..name.len().min(MAX_LENGTH)];
        let me = || gettid() as u32;
        if head.kind == Kind::ProcessName as u8 {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            known.process = Some(name.to_vec());
            return;
        }
        self.set(if head.arg == 0 { me() } else { head.arg as u32 }, name);
    }

    fn set(&self, tid: u32, name: &[u8]) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.threads.len() >= MAX {
            known.threads.retain(|tid, thread| thread.is_it(started(*tid)));
        }
        if known.threads.len() < MAX || known.threads.contains_key(&tid) {
            let name = name.to_vec();
            known.threads.insert(tid, Thread { name, started: started(tid) });
        }
    }

    /// What the process is called.
    pub fn process(&self) -> Option<Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).process.clone()
    }

    /// What a thread is called that runs now, or did a moment ago.
    pub fn thread(&self, tid: u32) -> Option<Vec<u8>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = started(tid);
        let thread = known.threads.get(&tid)?;
        (now.is_none() || thread.is_it(now)).then(|| thread.name.clone())
    }
}

impl Thread {
    fn is_it(&self, started: Option<u64>) -> bool {
        self.started == started
    }
}

/// When the thread with this id began, in ticks since the machine did; `None` if there is
/// none.
fn started(tid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/self/task/{tid}/stat")).ok()?;
    // The 22nd field; the second one, in parentheses, may contain anything.
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(kind: Kind, arg: u64) -> Record {
        Record { kind: kind as u8, arg, ..Record::default() }
    }

    #[test]
    fn a_name_is_its_threads_and_not_that_of_the_next_with_its_id() {
        let names = Names::default();
        names.say(&head(Kind::ProcessName, 0), b"trainer");
        assert_eq!(names.process().as_deref(), Some(&b"trainer"[..]));
        let me = gettid() as u32;
        assert_eq!(names.thread(me), None);
        names.say(&head(Kind::ThreadName, 0), b"first");
        names.say(&head(Kind::ThreadName, me.into()), &[b'n'; 300]);
        assert_eq!(names.thread(me), Some(vec![b'n'; 256]));
        let other = || names.0.lock().unwrap();
        other().threads.get_mut(&me).unwrap().started = Some(1);
        assert_eq!(names.thread(me), None, "it was another thread's");
        for tid in 0..2 * MAX as u32 {
            other().threads.insert(u32::MAX - tid, Thread { name: vec![], started: Some(1) });
        }
        names.say(&head(Kind::ThreadName, 0), b"me");
        assert_eq!(names.thread(me), Some(b"me".to_vec()));
        assert_eq!(other().threads.len(), 1, "those of threads that are gone made room");
    }
}
