//! What the file was like that a trace was read from: for a conversion back.

use std::io::{self, Write};

use hashbrown::{HashMap, HashSet};
use kymograph_protos::packet::source::{self, amend, zigzag};
use kymograph_protos::packet::{EventType, Sequence};

use super::{FULL, Writer, counters};
use crate::trace::{EventRef, Nanos, Phase, Position, Thread, Trace, TrackId, TrackKind};

/// What has to be added to times so that none is before zero, which the format cannot say.
pub fn shift(trace: &Trace) -> i64 {
    let first = trace.time_span().map_or(0, |(first, _)| first.0);
    let readings = trace.facts.readings.iter().map(|reading| reading.trace.0);
    let first = if first < 0 { readings.fold(first, i64::min) } else { first };
    first.min(0).checked_neg().unwrap_or(i64::MAX)
}

/// The numbers of processes and threads as written.
#[derive(Debug, Default)]
pub struct Ids {
    /// Those of processes that have no room, and what stands for them.
    pids: HashMap<i64, i64>,
    /// Process and thread 0, whose name viewers would ignore, and what stands for the latter.
    zero: Option<i64>,
}

impl Ids {
    pub fn new(trace: &Trace) -> Ids {
        let taken: HashSet<i64> = trace.processes.iter().map(|(_, process)| process.pid).collect();
        let taken: HashSet<i64> =
            taken.into_iter().chain(trace.threads.iter().map(|(_, thread)| thread.tid)).collect();
        let mut free = (1..=i64::from(i32::MAX)).rev().filter(|number| !taken.contains(number));
        let mut ids = Ids::default();
        for (_, process) in trace.processes.iter() {
            if i32::try_from(process.pid).is_err() && !ids.pids.contains_key(&process.pid) {
                ids.pids.extend(free.next().map(|number| (process.pid, number)));
            }
        }
        let is_zero = |thread: &Thread| thread.tid == 0 && trace.processes[thread.process].pid == 0;
        if trace.threads.iter().any(|(_, thread)| is_zero(thread)) {
            ids.zero = free.next();
        }
        ids
    }

    pub fn pid(&self, pid: i64) -> i64 {
        self.pids.get(&pid).copied().unwrap_or(pid)
    }

    pub fn tid(&self, pid: i64, tid: i64) -> i64 {
        self.zero.filter(|_| (pid, tid) == (0, 0)).unwrap_or(tid)
    }
}

impl<W: Write> Writer<'_, W> {
    /// Notes on the description at `start` what it cannot say of a track.
    pub(super) fn named(&mut self, start: usize, id: TrackId, group: Option<TrackId>) {
        let trace = self.trace;
        let (mut pid, mut tid) = (None, None);
        match trace.tracks[id].kind {
            TrackKind::Process(process) => pid = Some(trace.processes[process].pid),
            TrackKind::Thread(thread) => {
                let thread = &trace.threads[thread];
                let of = trace.processes[thread.process].pid;
                tid = Some(thread.tid).filter(|tid| self.ids.tid(of, *tid) != *tid);
            }
            TrackKind::Counter(_) | TrackKind::Other => {}
        }
        let pid = pid.filter(|pid| self.ids.pid(*pid) != *pid);
        amend(&mut self.packets, start, |packet| {
            for (field, number) in [(source::PID, pid), (source::TID, tid)] {
                if let Some(number) = number {
                    packet.uint(field, zigzag(number));
                }
            }
            if let Some(group) = group {
                let name = trace.strings.get(trace.tracks[group].name).as_bytes();
                packet.text(source::COUNTER, name);
                packet.uint(source::COUNTER_OF, counters::owner(trace, group));
            }
        });
    }

    /// Notes on the packet at `start`, the last one, where its event stood.
    pub(super) fn stood(&mut self, start: usize, position: Option<Position>) {
        if let Some(place) = self.place(position) {
            amend(&mut self.packets, start, |packet| {
                packet.uint(source::POSITION, place);
            });
        }
    }

    /// What is said of where an event stood.
    fn place(&mut self, position: Option<Position>) -> Option<u64> {
        let position = position?;
        let number = i64::from(position.number);
        let place = zigzag(number - self.position) << 2 | u64::from(position.marks);
        self.position = number;
        Some(place)
    }

    /// Has the next packet of a sequence say where its event stood.
    #[inline]
    pub(super) fn stands(&mut self, sequence: &mut Sequence, of: EventRef, ty: EventType) {
        let trace = self.trace;
        let position = match (of, ty) {
            (EventRef::Slice(id), EventType::End) => trace.slices.end_position(id),
            (EventRef::Slice(id), _) => trace.slices.position(id),
            (EventRef::Instant(id), _) => trace.instants.position(id),
            (EventRef::Activity(id), _) => trace.activities.position(id),
        };
        if let Some(place) = self.place(position) {
            sequence.beside(source::POSITION, place);
        }
    }

    /// Notes on the packet at `start`, the last one, the ends of arrows at its event that it does
    /// not say itself.
    #[inline]
    pub(super) fn arrow_ends(&mut self, start: usize, of: EventRef, time: Nanos) {
        let trace = self.trace;
        for point in self.arrows.besides(trace, of) {
            let near = self.position;
            amend(&mut self.packets, start, |packet| {
                packet.message(source::FLOW, |flow| {
                    let phase = match point.phase {
                        Phase::Start => 1,
                        Phase::Step => 2,
                        Phase::End => 3,
                    };
                    flow.uint(source::FLOW_PHASE, phase).uint(source::FLOW_ID, point.id);
                    flow.text(source::FLOW_NAME, trace.strings.get(point.name).as_bytes());
                    if point.time != time {
                        flow.uint(source::FLOW_TIME, zigzag((point.time - time).0));
                    }
                    let position = i64::from(point.position) - near;
                    flow.uint(source::FLOW_POSITION, zigzag(position));
                });
            });
        }
    }

    /// Events that no other packet holds.
    pub(super) fn leftovers(&mut self) -> io::Result<()> {
        for leftover in &self.trace.leftovers {
            let text = self.trace.strings.get(leftover.text);
            source::leftover(&mut self.packets, leftover.position, text.as_bytes());
            self.flush(FULL)?;
        }
        Ok(())
    }
}
