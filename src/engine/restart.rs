//! Restart points: places in the packets from which they can be read without what came before.
//!
//! Where a file may begin in the middle of a recording (a dump of the flight recorder, the next
//! of rotating files), the engine clears the incremental state of every sequence, so that each
//! states its clock, its defaults, its track and its strings again when it next uses them. What
//! is stated only once goes into a **preamble**: slices that are open, with the times at which
//! they really began, tracks and counters, devices, metadata.
//!
//! In a recording with restart points, arrows never *end*: they pass through their last event
//! instead. Where an arrow began may be in a file that is gone, and an end without a
//! beginning is a defect to trace_processor. The picture is the same, unless a program
//! uses the id of an arrow again.

use std::mem;

use super::Engine;

impl Engine {
    /// Makes a restart point. Returns its preamble; `out` stays as it is.
    pub(super) fn restart(&mut self) -> Vec<u8> {
        let out = mem::take(&mut self.output.packets);
        self.expire();
        self.clocks = self.now();
        self.describe();
        self.introduce();
        self.context().restate_process();
        for index in 0..self.lanes.threads.len() {
            if let Some(mut thread) = self.lanes.threads[index].take() {
                thread.restate(&mut self.context());
                self.lanes.threads[index] = Some(thread);
            }
        }
        self.expire();
        mem::replace(&mut self.output.packets, out)
    }

    pub(super) fn expire(&mut self) {
        self.process.expire();
        self.lanes.threads.iter_mut().flatten().for_each(|thread| thread.expire());
    }
}
