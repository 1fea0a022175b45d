//! The end of reading: what can only be said when everything has been read.

use std::collections::HashMap;

use super::Reader;
use crate::chrome::metadata::main_process;
use crate::chrome::{BARE_MOMENTS, WHOLE_TIMES};
use crate::trace::{ClockReading, ContextId, EventRef, Nanos, Trace, Value, Warning};

impl Reader {
    pub(super) fn finish(mut self) -> Trace {
        let (api, phases, quotes, scopes) = (self.api, self.phases, self.quotes, self.scopes);
        let Reader { trace, rows, flows, metadata, pairs, times, durations, .. } = &mut self;
        let whole = i64::from(times.are_whole()) | i64::from(durations.are_whole()) << 1;
        if whole != 0 {
            let key = trace.strings.intern(WHOLE_TIMES);
            trace.facts.metadata.push((key, Value::I64(whole)));
        }
        quotes.finish(trace);
        if scopes.bare && !scopes.stated {
            let key = trace.strings.intern(BARE_MOMENTS);
            trace.facts.metadata.push((key, Value::I64(1)));
        }
        let unmatched = std::mem::take(pairs).finish(trace, rows);
        if unmatched > 0 {
            let what = "end without a beginning".to_owned();
            trace.facts.warnings.push(Warning { what, count: unmatched, offset: None });
        }
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
        let users = users(trace);
        for (id, context) in trace.contexts.iter_mut() {
            (context.pid, context.api) = (users.get(&id).copied().unwrap_or(pid), api);
        }
        if trace.facts.readings.is_empty()
            && let Some(first) = since_1970(trace)
        {
            let reading = ClockReading { trace: first, realtime: Some(first), monotonic: None };
            trace.facts.readings.push(reading);
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

/// The processes whose calls launched what ran in each context.
fn users(trace: &Trace) -> HashMap<ContextId, i64> {
    let mut users = HashMap::new();
    if trace.processes.len() < 2 {
        return users;
    }
    let caller = |event| {
        let EventRef::Slice(slice) = event else { return None };
        let process = trace.process_of(trace.slices.get(slice).track)?;
        Some(trace.processes[process].pid)
    };
    let links = trace.flows.links.iter();
    let pids: HashMap<u64, i64> =
        links.filter_map(|link| Some((link.correlation, caller(link.event)?))).collect();
    for activity in trace.activities.iter() {
        if let (Some(context), Some(pid)) = (activity.context, pids.get(&activity.correlation)) {
            users.entry(context).or_insert(*pid);
        }
    }
    users
}

/// When a trace without a base begins, if its times are times of day: later than 2001, as those
/// of old PyTorch.
fn since_1970(trace: &Trace) -> Option<Nanos> {
    let starts = trace.slices.starts().iter().chain(trace.activities.starts());
    starts
        .min()
        .map(|first| Nanos(*first))
        .filter(|first| *first > Nanos(1_000_000_000_000_000_000))
}
