//! Allocations as PyTorch's profiler tells of them: moments called `[memory]` on the threads
//! that asked for memory, with totals in their arguments.
//!
//! Among the operators of a thread they are in the way, and what people look for is how much
//! memory was taken when. So they lie on a row of their own under their thread, and their
//! totals are counters of the process as well: allocated and reserved, for each device.
//! Whoever reads the file puts them back, and forgets the counters.

use std::collections::BTreeMap;
use std::io::{self, Write};

use kymograph_protos::CounterUnit;
use kymograph_protos::packet::{CounterValue, Event, EventType, Sequence, Track as Described};

use super::host::uuid;
use super::{FACTS, FULL, Writer};
use crate::order::Order as _;
use crate::perfetto::rows::{ALLOCATED, MEMORY, RESERVED, memory_row};
use crate::trace::{Instant, InstantId, Nanos, Trace, TrackId, TrackKind, Value, mix};

/// The moments of a trace that tell of memory.
pub(super) fn is_of_memory(trace: &Trace, instant: &Instant) -> bool {
    trace.strings.get(instant.name) == MEMORY
        && matches!(trace.tracks[instant.track].kind, TrackKind::Thread(_))
}

/// The totals that a moment tells: which device, which total.
fn totals(trace: &Trace, instant: &Instant) -> Vec<(i64, &'static str, i64)> {
    let number = |name: &str| {
        let value = trace.args.find(instant.args, trace.strings.find(name)?)?;
        match value {
            Value::I64(n) => Some(n),
            Value::U64(n) => i64::try_from(n).ok(),
            _ => None,
        }
    };
    // `c10::DeviceType`: 0 is the host.
    let device = match number("Device Type") {
        None | Some(0) => -1,
        Some(_) => number("Device Id").unwrap_or(0),
    };
    let total = |name| Some((device, name, number(name)?));
    [ALLOCATED, RESERVED].into_iter().filter_map(total).collect()
}

impl<W: Write> Writer<'_, W> {
    /// The moments, thread by thread, and the counters.
    pub(super) fn memory(&mut self) -> io::Result<()> {
        let trace = self.trace;
        let mut moments: Vec<InstantId> = trace.instants.ids().collect();
        moments.retain(|id| is_of_memory(trace, &trace.instants.get(*id)));
        moments.sort_by_key(|id| (track(trace, *id), trace.instants.get(*id).time));
        let mut counters: BTreeMap<_, Vec<(Nanos, i64)>> = BTreeMap::new();
        let mut shared = self.sequence();
        for of_thread in moments.chunk_by(|a, b| track(trace, *a) == track(trace, *b)) {
            let thread = track(trace, of_thread[0]);
            let (parent, row) = (uuid(trace, thread), mix(&[5, uuid(trace, thread)]));
            Described { uuid: row, parent, name: MEMORY.as_bytes(), ..Described::default() }
                .write(&mut self.packets, FACTS);
            self.moments(of_thread, row, &mut shared)?;
            let process = trace.process_of(thread).map(|id| trace.processes[id].track);
            for id in of_thread {
                let instant = trace.instants.get(*id);
                for (device, name, total) in totals(trace, &instant) {
                    let values = counters.entry((process, device, name)).or_default();
                    values.push((instant.time, total));
                }
            }
        }
        for ((process, device, total), mut values) in counters {
            values.order_by_numbers(|(time, _)| [time.0]);
            let parent = process.map_or(0, |process| uuid(trace, process));
            let name = memory_row(device, total);
            let own = mix(&[6, parent, device as u64, name.len() as u64]);
            self.counter((own, parent, &name), &values, &mut shared)?;
        }
        Ok(())
    }

    fn counter(
        &mut self,
        (own, parent, name): (u64, u64, &str),
        values: &[(Nanos, i64)],
        sequence: &mut Sequence,
    ) -> io::Result<()> {
        let counter = Some(CounterUnit::Bytes);
        Described { uuid: own, parent, name: name.as_bytes(), counter, ..Described::default() }
            .write(&mut self.packets, FACTS);
        for (time, value) in values {
            let Ok(time) = u64::try_from(time.0.saturating_add(self.shift)) else { continue };
            self.ready(sequence, 0, time);
            let counter = Some(CounterValue::I64(*value));
            let event = Event { track: own, counter, ..Event::new(EventType::Counter, time) };
            sequence.event(&mut self.packets, &self.texts, &event);
            self.flush(FULL)?;
        }
        Ok(())
    }
}

fn track(trace: &Trace, id: InstantId) -> TrackId {
    trace.instants.get(id).track
}
