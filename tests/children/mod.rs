//! Processes that tests start, which end with the test, also when it fails: one that goes on holds
//! the pipes of whoever runs the tests.

// Each test file uses some of it.
#![allow(dead_code)]

use std::ops::{Deref, DerefMut};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output};

/// A process with all that it starts: in a group of its own, which is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Guarded {
    child: Option<Child>,
    group: i32,
}

impl Guarded {
    #[track_caller]
    pub(crate) fn start(command: &mut Command) -> Guarded {
        let child = command.process_group(0).spawn().unwrap();
        let group = child.id() as i32;
        Guarded { child: Some(child), group }
    }

    /// Waits for its end, and for all that it says until then.
    pub(crate) fn wait_with_output(mut self) -> Output {
        self.child.take().unwrap().wait_with_output().unwrap()
    }
}

impl Deref for Guarded {
    type Target = Child;

    fn deref(&self) -> &Child {
        self.child.as_ref().unwrap()
    }
}

impl DerefMut for Guarded {
    fn deref_mut(&mut self) -> &mut Child {
        self.child.as_mut().unwrap()
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: takes numbers. The group has its number for as long as anybody is in it, or its
        // first process was not waited for.
        unsafe { libc::kill(-self.group, libc::SIGKILL) };
        if let Some(mut child) = self.child.take() {
            let _ = child.wait();
        }
    }
}
