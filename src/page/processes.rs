//! The processes of a recording: which there were, and which still record.

use super::Page;
use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};

/// See the module.
#[derive(Debug, Default)]
pub struct Processes {
    /// By their pids: how many of their engines run.
    running: HashMap<u32, u32>,
    serial: u32,
}

impl Processes {
    pub(super) fn seen(&self) -> u32 {
        self.running.len() as u32
    }
}

impl Page {
    pub(super) fn processes(&self) -> MutexGuard<'_, Processes> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a process that is about to record. One that called `exec` is the same process.
    pub fn register(self: &Arc<Page>, pid: u32) -> Process {
        let mut processes = self.processes();
        *processes.running.entry(pid).or_default() += 1;
        processes.serial += 1;
        Process { page: Arc::clone(self), pid, serial: processes.serial }
    }

    /// How many processes record.
    pub fn recording(&self) -> u32 {
        self.processes().running.values().filter(|engines| **engines > 0).count() as u32
    }
}

/// That a process records. Dropping it says that the process is done.
#[derive(Debug)]
pub struct Process {
    page: Arc<Page>,
    pid: u32,
    serial: u32,
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
        if let Some(engines) = self.page.processes().running.get_mut(&self.pid) {
            *engines = engines.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_becomes_another_program_is_one() {
        let page = Arc::new(Page::new());
        let (first, other) = (page.register(7), page.register(8));
        let second = page.register(7);
        assert_eq!((first.serial(), other.serial(), second.serial()), (1, 2, 3));
        assert_eq!((page.recording(), page.totals().processes), (2, 2));
        drop(first);
        assert_eq!(page.recording(), 2);
        drop((second, other));
        assert_eq!((page.recording(), page.totals().processes), (0, 2));
    }
}
