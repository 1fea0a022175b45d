//! The end of reading: what can only be said when everything has been read.

use super::Reader;
use crate::chrome::metadata::main_process;
use crate::trace::{ClockReading, Nanos, Trace};

impl Reader {
    pub(super) fn finish(mut self) -> Trace {
        let (api, phases) = (self.api, self.phases);
        let Reader { trace, rows, flows, metadata, .. } = &mut self;
        flows.finish(trace, rows);
        std::mem::take(metadata).finish(trace, rows);
        let main = main_process(trace);
        let (parent, pid) = match main.map(|id| &trace.processes[id]) {
            Some(process) => (Some(process.track), process.pid),
            None => (None, 0),
        };
        for track in &rows.orphans {
            trace.tracks[*track].parent = parent;
        }
        for (_, context) in trace.contexts.iter_mut() {
            (context.pid, context.api) = (pid, api);
        }
        if trace.facts.readings.is_empty() && since_1970(trace) {
            let realtime = Some(Nanos(0));
            trace.facts.readings.push(ClockReading { realtime, ..ClockReading::default() });
        }
        let is = |key| trace.strings.find(key).is_some_and(|key| trace.facts.get(key).is_some());
        let kineto = is("schemaVersion") || is("baseTimeNanoseconds") || !trace.devices.is_empty();
        let producer = if kineto { "Kineto" } else { "Chrome JSON" };
        trace.facts.producer = trace.strings.intern(producer);
        const PHASES: [(u8, &str); 18] = [
            (b'X', "X"),
            (b'B', "B"),
            (b'E', "E"),
            (b'b', "b"),
            (b'e', "e"),
            (b'n', "n"),
            (b'S', "S"),
            (b'F', "F"),
            (b'i', "i"),
            (b'I', "I"),
            (b'R', "R"),
            (b'C', "C"),
            (b's', "s"),
            (b't', "t"),
            (b'f', "f"),
            (b'M', "M"),
            (b'P', "P"),
            (0, "no phase"),
        ];
        let mut other: u64 = phases.iter().sum();
        for (phase, name) in PHASES {
            let count = phases[usize::from(phase)];
            other -= count;
            if count > 0 {
                trace.facts.kinds.insert(name.into(), count);
            }
        }
        if other > 0 {
            trace.facts.kinds.insert("other phases".into(), other);
        }
        self.trace
    }
}

/// Whether times without a base are times of day: later than 2001, as those of old PyTorch.
fn since_1970(trace: &Trace) -> bool {
    let first = trace.slices.iter().map(|slice| slice.start).min();
    let first = first.into_iter().chain(trace.activities.iter().map(|a| a.start)).min();
    first.is_some_and(|first| first > Nanos(1_000_000_000_000_000_000))
}
