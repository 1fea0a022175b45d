//! The processes of a recording: who they are, and which still record.
//!
//! A slot is taken, kept and freed by compare-and-exchange of one word, so that a process
//! may die between any two instructions.

use super::Page;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// A process.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Slot {
    /// The pid, with [`ACTIVE`] while it records: changed as one. 0: never used.
    pid: AtomicU64,
    serial: AtomicU32,
    zero: u32,
}

const FREE: u64 = 0;
const ACTIVE: u64 = 1 << 32;

const _: () = assert!(size_of::<Slot>() == 16);

impl Page {
    /// Enters this process, which is about to record. Again after `fork`, by the child;
    /// a process that called `exec` takes over what it entered before.
    pub fn register(self: &Arc<Page>) -> Process {
        self.register_for(std::process::id())
    }

    /// Enters another process, on whose behalf this one writes.
    pub fn register_for(self: &Arc<Page>, pid: u32) -> Process {
        let serial = self.layout().serial.fetch_add(1, Relaxed) + 1;
        let slot = self.claim(u64::from(pid));
        if let Some(slot) = slot {
            self.layout().slots[slot].serial.store(serial, Relaxed);
        }
        Process { page: Arc::clone(self), pid, by: std::process::id(), serial, slot }
    }

    /// A slot for `pid`: the one it had before `exec` or before it stopped recording,
    /// else a fresh one, else one whose process is done, else one whose process died.
    /// `None`: thousands are recording, and nobody waits for this one.
    fn claim(&self, pid: u64) -> Option<usize> {
        let find = |usable: &dyn Fn(u64) -> bool| {
            self.layout().slots.iter().position(|slot| {
                let found = slot.pid.load(Relaxed);
                let exchange = || slot.pid.compare_exchange(found, ACTIVE | pid, AcqRel, Relaxed);
                usable(found) && exchange().is_ok()
            })
        };
        if let Some(slot) = find(&|found| found & !ACTIVE == pid) {
            return Some(slot);
        }
        self.layout().processes.fetch_add(1, Relaxed);
        find(&|found| found == FREE)
            .or_else(|| find(&|found| found & ACTIVE == FREE))
            .or_else(|| find(&|found| !alive(found as u32)))
    }

    /// Processes that are recording and alive.
    pub fn recording(&self) -> Vec<u32> {
        let slots = self.layout().slots.iter();
        slots
            .map(|slot| slot.pid.load(Acquire))
            .filter(|found| found & ACTIVE != FREE && alive(*found as u32))
            .map(|found| found as u32)
            .collect()
    }
}

/// A process's entry in the page. Dropping it says that the process is done; a copy
/// that a forked child inherited says nothing when dropped.
#[derive(Debug)]
pub struct Process {
    page: Arc<Page>,
    pid: u32,
    /// The process that entered it.
    by: u32,
    serial: u32,
    slot: Option<usize>,
}

impl Process {
    /// A number that no other process of the recording has, from 1: the salt of ids that
    /// must differ between processes.
    pub fn serial(&self) -> u32 {
        self.serial
    }

    /// The page.
    pub fn page(&self) -> &Arc<Page> {
        &self.page
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let (Some(slot), true) = (self.slot, self.by == std::process::id()) else {
            return;
        };
        let pid = u64::from(self.pid);
        let slot = &self.page.layout().slots[slot];
        // Fails only if others thought us dead and took the slot.
        let _ = slot.pid.compare_exchange(ACTIVE | pid, FREE | pid, AcqRel, Relaxed);
    }
}

fn alive(pid: u32) -> bool {
    // SAFETY: no pointers; signal 0 only asks.
    let answer = unsafe { libc::kill(pid as libc::pid_t, 0) };
    // EPERM: there, but not ours.
    answer == 0 || io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
}
