//! The steps of a program, as we count them: a row of their own in the process.
//!
//! A step is written when it ends, since only then it is known whether it is to be shown: a
//! program whose own profiler marks steps gets no second numbering beside it. The last step
//! ends with its last work, not with the process.

use kymograph_protos::packet::{Sequence, Strings};
use kymograph_protos::record::{Record, StrId};

use super::context::Context;
use super::process::Process;
use super::record::{Decoded, category};

/// The category of our steps, and what the names of all steps begin with.
pub const STEP: &[u8] = b"ProfilerStep";

/// See the module.
#[derive(Debug, Default)]
pub struct Steps {
    /// The program's own profiler marks steps.
    theirs: bool,
    /// When the last work ended that is known of: of devices, and of the host.
    device: u64,
    host: u64,
}

impl Steps {
    /// A device worked until then.
    pub fn device_worked(&mut self, until: u64) {
        self.device = self.device.max(until);
    }

    /// A thread did something until then.
    pub fn host_worked(&mut self, until: u64) {
        self.host = self.host.max(until);
    }

    /// A range of the program begins.
    pub fn range(&mut self, name: &[u8]) {
        self.theirs |= name.strip_prefix(STEP).is_some_and(|rest| rest.starts_with(b"#"));
    }

    /// Whether ours are to be shown.
    pub fn are_shown(&self) -> bool {
        !self.theirs
    }

    /// When a step ends that began at `begun` and has no end.
    fn end_of(&self, begun: u64) -> u64 {
        let last = if self.device > begun { self.device } else { self.host };
        last.max(begun)
    }
}

impl Context<'_> {
    /// Whether a range is a step of ours.
    pub fn is_step(&self, head: &Record) -> bool {
        let category = category(head, self.strings);
        category != StrId::NONE && self.strings.text(category).bytes == STEP
    }

    /// Writes the step that runs: for a file that ends.
    pub fn tell_steps(&mut self) {
        if !self.process.steps.are_shown() {
            return;
        }
        let sequence = Sequence::new(0);
        let mut sequence = std::mem::replace(&mut self.process.sequence, sequence);
        let ranges = std::mem::take(&mut self.process.ranges);
        for range in ranges.running().filter(|range| !range.written) {
            self.write_step(range, &mut sequence);
        }
        self.process.ranges = ranges;
        self.process.sequence = sequence;
    }

    /// With the last of the trace: ends the step that runs.
    pub fn end_steps(&mut self) {
        // Apart from the rest, so that it can be borrowed along with it.
        let sequence = Sequence::new(0);
        let mut sequence = std::mem::replace(&mut self.process.sequence, sequence);
        let Process { ranges, steps, .. } = &mut *self.process;
        let mut ends: Vec<(u64, u64)> = Vec::new();
        for id in ranges.unwritten() {
            let begun = ranges.running().find(|range| range.id == id).map(|range| range.begun.time);
            ends.extend(begun.map(|begun| (id, steps.end_of(begun))));
        }
        for (id, time) in ends {
            self.range_end(id, time, &Decoded::default(), &mut sequence);
        }
        self.process.sequence = sequence;
    }
}
