//! Chapters: stretches of the packets that can be read without what came before.
//!
//! Where a file may begin in the middle of a recording (a flight recorder's dump, the next
//! of rotating files) the engine **turns** a chapter: it forgets what every sequence has
//! said, so that all of it is said anew as it is used, and makes a **preamble** of what
//! would not be: slices that are open, with the times at which they really began, tracks
//! and counters, devices, facts.
//!
//! In a recording with chapters, arrows never *end*: they pass through their last event
//! instead. Where an arrow began may be in a file that is gone, and an end without a
//! beginning is a defect to trace_processor. The picture is the same, unless a program
//! uses the id of an arrow again.

use std::mem;

use super::Engine;

impl Engine {
    /// Turns the chapter. Returns the preamble of the new one; `out` stays as it is.
    pub(super) fn turn(&mut self) -> Vec<u8> {
        let out = mem::take(&mut self.out);
        self.expire();
        self.clocks = self.now();
        self.describe();
        self.introduce();
        self.context().restate_process();
        for index in 0..self.threads.len() {
            if let Some(mut thread) = self.threads[index].take() {
                thread.restate(&mut self.context());
                self.threads[index] = Some(thread);
            }
        }
        self.expire();
        mem::replace(&mut self.out, out)
    }

    pub(super) fn expire(&mut self) {
        self.process.expire();
        self.threads.iter_mut().flatten().for_each(|thread| thread.expire());
    }
}
