//! What lies on the tracks of the host.

use std::io::{self, Write};

use kymograph_protos::device::GpuApi;
use kymograph_protos::packet::source::{self, FlowEvent};
use kymograph_protos::packet::{Correlation, Event, EventType, Name, Sequence};

use super::flows::drawn_time;
use super::rows::TrackRow;
use super::{FULL, Writer};
use crate::trace::{
    EventRef, FlowPoint, Instant, InstantId, Nanos, Phase, Position, Slice, SliceId, StrId, Trace,
    TrackId, TrackKind, mix,
};

/// A track with at least this many events gets a sequence of its own.
const MANY: usize = 64;
/// Sequences of their own at most: larger ids make larger packets.
const MOST: u32 = 100;

impl<W: Write> Writer<'_, W> {
    pub(super) fn host(&mut self, rows: &[TrackRow]) -> io::Result<()> {
        self.tracks(rows)?;
        let mut shared = self.sequence();
        for row in rows {
            self.track(row, &mut shared)?;
        }
        self.memory()
    }

    /// Moments on a row that is no track of the hub.
    pub(super) fn moments(
        &mut self,
        moments: &[InstantId],
        uuid: u64,
        sequence: &mut Sequence,
    ) -> io::Result<()> {
        self.lane(&[], (moments, &[]), uuid, 0, sequence)
    }

    /// The events of one track.
    fn track(&mut self, row: &TrackRow, shared: &mut Sequence) -> io::Result<()> {
        let track = row.track;
        let uuid = uuid(self.trace, track);
        for (number, lane) in row.lanes.iter().enumerate() {
            let (instants, flows) = match number {
                0 => (row.instants.as_slice(), row.flows.as_slice()),
                _ => (&[][..], &[][..]),
            };
            let lane_uuid = if number == 0 { uuid } else { mix(&[uuid, number as u64]) };
            if number > 0 {
                self.describe_lane(track, lane_uuid);
                self.written.moved += lane.len() as u64;
            }
            if lane.len() * 2 + instants.len() >= MANY && self.next_sequence < MOST {
                let mut own = self.sequence();
                self.lane(lane, (instants, flows), lane_uuid, lane_uuid, &mut own)?;
            } else {
                self.lane(lane, (instants, flows), lane_uuid, 0, shared)?;
            }
        }
        Ok(())
    }

    /// The events of one lane; `default` is the track of `sequence`.
    fn lane(
        &mut self,
        lane: &[SliceId],
        (instants, flows): (&[InstantId], &[u32]),
        uuid: u64,
        default: u64,
        sequence: &mut Sequence,
    ) -> io::Result<()> {
        let mut lane = Open { uuid, default, sequence, open: Vec::new(), slices: lane, flows };
        let mut instants = instants.iter().peekable();
        while let Some((first, rest)) = lane.slices.split_first() {
            let slice = self.trace.slices.get(*first);
            // Of what happens at one moment: ends, beginnings, moments.
            while let Some(id) =
                instants.next_if(|id| self.trace.instants.get(**id).time < slice.start)
            {
                self.instant(&mut lane, *id)?;
            }
            self.flows(&mut lane, slice.start.0)?;
            self.close(&mut lane, slice.start.0)?;
            lane.slices = rest;
            if let Some(time) = self.time(slice.start) {
                self.begin(&mut lane, *first, &slice, time)?;
            }
        }
        for id in instants {
            self.instant(&mut lane, *id)?;
        }
        self.flows(&mut lane, i64::MAX)?;
        self.close(&mut lane, i64::MAX)
    }

    fn begin(
        &mut self,
        lane: &mut Open<'_>,
        id: SliceId,
        slice: &Slice,
        time: u64,
    ) -> io::Result<()> {
        self.event(lane, EventRef::Slice(id), &Said::from(slice), EventType::Begin, time)?;
        lane.open.push((id, *slice));
        Ok(())
    }

    fn instant(&mut self, lane: &mut Open<'_>, id: InstantId) -> io::Result<()> {
        let instant = self.trace.instants.get(id);
        self.flows(lane, instant.time.0)?;
        self.close(lane, instant.time.0.saturating_sub(1))?;
        match self.time(instant.time) {
            Some(time) => self.event(
                lane,
                EventRef::Instant(id),
                &Said::from(&instant),
                EventType::Instant,
                time,
            ),
            None => Ok(()),
        }
    }

    /// Writes the ends of arrows up to `time`; at that time those of the innermost open slice.
    fn flows(&mut self, lane: &mut Open<'_>, time: i64) -> io::Result<()> {
        while let Some((row, rest)) = lane.flows.split_first() {
            let point = self.trace.flows.points[*row as usize];
            let innermost = lane.open.last().map(|(id, _)| EventRef::Slice(*id));
            let at = drawn_time(self.trace, &point);
            if at.0 > time || (at.0 == time && innermost != Some(point.event)) {
                break;
            }
            lane.flows = rest;
            self.close(lane, at.0.saturating_sub(1))?;
            if let Some(time) = self.time(at) {
                self.flow(lane, *row, &point, time)?;
            }
        }
        Ok(())
    }

    fn flow(
        &mut self,
        lane: &mut Open<'_>,
        row: u32,
        point: &FlowPoint,
        time: u64,
    ) -> io::Result<()> {
        let id = self.drawn.get(&row).copied().unwrap_or(point.id);
        let name = self.trace.strings.get(point.name);
        let (category, name) = name.split_once('\t').unwrap_or((name, name));
        self.ready(lane.sequence, lane.default, time);
        let start = self.packets.len();
        let event = FlowEvent {
            time,
            track: if lane.default == 0 { lane.uuid } else { 0 },
            phase: match point.phase {
                Phase::Start => b's',
                Phase::Step => b't',
                Phase::End => b'f',
            },
            id,
            category: category.as_bytes(),
            name: name.as_bytes(),
        };
        lane.sequence.flow_event(&mut self.packets, &event);
        self.stood(start, Some(Position::new(point.position)));
        let moved = point.time - drawn_time(self.trace, point);
        if id != point.id || moved.0 != 0 {
            source::amend(&mut self.packets, start, |packet| {
                packet.message(source::FLOW, |flow| {
                    flow.uint(source::FLOW_ID, point.id);
                    flow.uint(source::FLOW_TIME, source::zigzag(moved.0));
                });
            });
        }
        self.flush(FULL)
    }

    /// Ends the slices that have ended by `time`.
    fn close(&mut self, lane: &mut Open<'_>, time: i64) -> io::Result<()> {
        // Readers find an end by its name where what lies above it has none.
        while let Some(at) = lane.open.iter().rposition(|(_, slice)| slice.dur.is_finished()) {
            let (id, slice) = lane.open[at];
            let Some(end) = slice.end().filter(|end| end.0 <= time) else { break };
            lane.open.remove(at);
            let said = Said { args: None, ..Said::from(&slice) };
            let time = end.0.saturating_add(self.shift).max(0) as u64;
            self.event(lane, EventRef::Slice(id), &said, EventType::End, time)?;
        }
        Ok(())
    }

    fn event(
        &mut self,
        lane: &mut Open<'_>,
        of: EventRef,
        said: &Said,
        ty: EventType,
        time: u64,
    ) -> io::Result<()> {
        let mut args = std::mem::take(&mut self.args);
        args.clear();
        self.args(said.args, &mut args);
        let (mut flows, mut flow_ends) = (Vec::new(), Vec::new());
        for point in self.arrows.points(of) {
            // Flows touch a slice when it ends, or else when it begins.
            let at_end = said.start != said.end && point.time.0 == said.end && !point.of_file;
            if at_end == (ty == EventType::End) {
                if point.ends { &mut flow_ends } else { &mut flows }.push(point.id);
            }
        }
        let launched = ty != EventType::End && self.arrows.launches(of, &mut self.launches);
        let track = if lane.default == 0 { lane.uuid } else { 0 };
        self.ready(lane.sequence, lane.default, time);
        self.stands(lane.sequence, of, ty);
        let event = Event {
            ty,
            time,
            track,
            // An end is found by its name; its category would only take room.
            category: if ty == EventType::End { Default::default() } else { said.category },
            name: Name::Id(said.name),
            args: &args,
            flows: &flows,
            flow_ends: &flow_ends,
            gpu: launched.then_some(Correlation {
                launched: &self.launches.submitted,
                waited: &self.launches.waited,
                api: GpuApi::from_u8(self.launches.api),
            }),
            counter: None,
        };
        let start = self.packets.len();
        lane.sequence.event(&mut self.packets, &self.texts, &event);
        self.args = args;
        if ty != EventType::End {
            self.arrow_ends(start, of, Nanos(said.start));
        }
        self.flush(FULL)
    }
}

/// A lane being written.
struct Open<'a> {
    uuid: u64,
    /// The track of the sequence; 0 if it has none of its own.
    default: u64,
    sequence: &'a mut Sequence,
    /// What has begun and not ended.
    open: Vec<(SliceId, Slice)>,
    /// What has not begun.
    slices: &'a [SliceId],
    /// Ends of arrows that are events of their own: rows of points, in the order of time.
    flows: &'a [u32],
}

/// What a slice and a moment have in common.
struct Said {
    name: StrId,
    category: StrId,
    args: Option<crate::trace::ArgsId>,
    start: i64,
    end: i64,
}

impl From<&Slice> for Said {
    fn from(slice: &Slice) -> Said {
        Said {
            name: slice.name,
            category: slice.category,
            args: slice.args,
            start: slice.start.0,
            end: slice.end().unwrap_or(slice.start).0,
        }
    }
}

impl From<&Instant> for Said {
    fn from(instant: &Instant) -> Said {
        let Instant { name, category, args, time, .. } = *instant;
        Said { name, category, args, start: time.0, end: time.0 }
    }
}

/// The uuid of a track: its own, or one made of what it is.
pub(super) fn uuid(trace: &Trace, id: TrackId) -> u64 {
    let track = &trace.tracks[id];
    if track.uuid != 0 {
        return track.uuid;
    }
    match track.kind {
        TrackKind::Process(process) => {
            let process = &trace.processes[process];
            mix(&[1, process.pid as u64, process.machine.into(), id.index() as u64])
        }
        TrackKind::Thread(thread) => {
            let thread = &trace.threads[thread];
            let pid = trace.processes[thread.process].pid;
            mix(&[2, pid as u64, thread.tid as u64, id.index() as u64])
        }
        _ => mix(&[3, id.index() as u64, trace.tracks.len() as u64]),
    }
}
