//! A packet sequence and its incremental state: the hot half of the encoder.

use super::clocks::{Snapshot, reading};
use super::cold::append;
use super::cursor::Cursor;
use super::event::{Arg, Correlation, CounterValue, Event, Name, Value};
use super::gpu::GpuTables;
use super::keys;
use super::message::{Message, VARINT, close, put_varint};
use super::text::Strings;
use super::tree::Trees;
use crate::StrId;
use crate::device::GpuApi;
use crate::fields::gpu_correlation::{
    RENDER_STAGE_SUBMISSION_EVENT_IDS as SUBMITTED, RENDER_STAGE_WAIT_EVENT_IDS as WAITED_FOR,
};
use crate::fields::{interned_data, interned_string, trace_packet, track_event};
use crate::perfetto::trace_packet::Data;
use crate::perfetto::{TracePacket, TracePacketDefaults, TrackEventDefaults};

/// `SequenceFlags`: what was said before no longer holds; this packet needs what was said.
const CLEARED: u64 = 1;
const NEEDS_STATE: u8 = 2;
/// `DataLossReason`: PRESENT | SMB_FULL.
const DROPPED: u64 = 1 | 256;
/// The sequence-scoped clock of timestamps.
const CLOCK: u64 = 64;

/// Numbers given to strings within one table of one sequence, dense from 1.
#[derive(Debug, Default)]
pub(super) struct Iids {
    by_string: Vec<u32>,
    last: u32,
}

impl Iids {
    #[inline(always)]
    pub(super) fn get(&self, id: StrId) -> u32 {
        self.by_string.get(id.0 as usize).copied().unwrap_or(0)
    }

    fn give(&mut self, id: StrId) -> u32 {
        let index = id.0 as usize;
        if self.by_string.len() <= index {
            self.by_string.resize(index + 1, 0);
        }
        self.last += 1;
        self.by_string[index] = self.last;
        self.last
    }

    /// A number for a text that has no id.
    pub(super) fn give_unnamed(&mut self) -> u32 {
        self.last += 1;
        self.last
    }

    pub(super) fn clear(&mut self) {
        self.by_string.clear();
        self.last = 0;
    }
}

/// One packet sequence. Its packets must be written in the order in which they are made.
#[derive(Debug)]
pub struct Sequence {
    id: u32,
    /// `68 02 50 <id>`: flags and sequence id of every event packet.
    prefix: Prefix,
    /// Fields that the next event packet has besides.
    besides: Prefix,
    started: bool,
    last_time: u64,
    cleared_at: u64,
    bytes: usize,
    pub(super) names: Iids,
    categories: Iids,
    pub(super) arg_names: Iids,
    pub(super) strings: Iids,
    /// `InternedData` fields for the packet being made.
    pub(super) fresh: Vec<u8>,
    pub(super) gpu: GpuTables,
    pub(super) trees: Trees,
}

/// Up to 16 bytes of an event packet, such as what stands in each of a sequence after its timestamp.
#[derive(Debug, Clone, Copy)]
struct Prefix {
    bytes: [u8; 16],
    len: usize,
}

pub(super) use interned_data::{
    DEBUG_ANNOTATION_NAMES as ARG_NAMES, DEBUG_ANNOTATION_STRING_VALUES as STRINGS,
    EVENT_CATEGORIES as CATEGORIES, EVENT_NAMES as NAMES,
};

/// Bytes that an event may take apart from its arguments, flows and strings by value:
/// packet and event headers 2 × 11, timestamp 11, prefix and fields besides 2 × 16, type 2, track
/// 11, category and name 2 × 6, counter 12.
const FIXED_PART: usize = 112;
/// Bytes of an argument at most, without strings by value.
const ARG_PART: usize = 24;
const FLOW_PART: usize = 10;
/// Bytes after which everything is said anew.
const MAX_BYTES: usize = 4 << 20;

impl Sequence {
    /// A sequence with this id, which no other sequence of the file may use at the same
    /// time. Ids below 128 make the smallest packets.
    pub fn new(id: u32) -> Sequence {
        let mut start = vec![keys::SEQUENCE_FLAGS, NEEDS_STATE, keys::SEQUENCE_ID];
        super::message::varint(&mut start, id.into());
        let mut bytes = [0; 16];
        bytes[..start.len()].copy_from_slice(&start);
        Sequence {
            id,
            prefix: Prefix { bytes, len: start.len() },
            besides: Prefix { bytes: [0; 16], len: 0 },
            started: false,
            last_time: 0,
            cleared_at: 0,
            bytes: 0,
            names: Iids::default(),
            categories: Iids::default(),
            arg_names: Iids::default(),
            strings: Iids::default(),
            fresh: Vec::new(),
            gpu: GpuTables::default(),
            trees: Trees::default(),
        }
    }

    /// Its id.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Whether anything was written on it.
    pub fn is_started(&self) -> bool {
        self.started
    }

    /// Makes it stale: what follows must be readable without what came before.
    pub fn expire(&mut self) {
        self.bytes = MAX_BYTES + 1;
    }

    /// Whether it is time to restart: never started, ten seconds or four megabytes ago.
    pub fn is_stale(&self, now: u64) -> bool {
        const MAX_NANOS: u64 = 10_000_000_000;
        !self.started || now.saturating_sub(self.cleared_at) > MAX_NANOS || self.bytes > MAX_BYTES
    }

    /// Starts the sequence, or clears its state and starts over: default track, clocks,
    /// empty tables. `now` is what [`Sequence::is_stale`] counts from; `dropped` says that
    /// records were lost since its last packet.
    ///
    /// trace_processor refuses `clocks` that are earlier than those stated before in the
    /// file, on whatever sequence.
    pub fn restart(
        &mut self,
        out: &mut Vec<u8>,
        track: u64,
        clocks: &Snapshot,
        now: u64,
        dropped: bool,
    ) {
        let first = !self.started;
        self.started = true;
        self.last_time = clocks.boottime;
        self.cleared_at = now;
        self.bytes = 0;
        for table in [&mut self.names, &mut self.categories, &mut self.arg_names, &mut self.strings]
        {
            table.clear();
        }
        self.gpu.clear();
        self.trees.clear();
        let defaults = TracePacketDefaults {
            timestamp_clock_id: Some(CLOCK as u32),
            track_event_defaults: Some(TrackEventDefaults {
                track_uuid: Some(track),
                ..TrackEventDefaults::default()
            }),
        };
        let packet = TracePacket {
            sequence_flags: Some(CLEARED as u32),
            first_packet_on_sequence: first.then_some(true),
            previous_packet_dropped: dropped.then_some(DROPPED as u32),
            trace_packet_defaults: Some(defaults),
            data: Some(Data::ClockSnapshot(reading(clocks, Some(CLOCK)))),
            ..TracePacket::default()
        };
        append(out, self.id, packet);
    }

    /// Makes `time` the time of the packet before; returns how far that is.
    pub(super) fn advance(&mut self, time: u64) -> u64 {
        let delta = time.wrapping_sub(self.last_time);
        self.last_time = time;
        delta
    }

    /// Counts what was written since the last restart.
    pub(super) fn count_bytes(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// Has the packet of the next event or activity say so in this field, which must be below 2048.
    #[inline]
    pub fn beside(&mut self, field: u32, value: u64) {
        debug_assert!(field < 2048);
        let mut bytes = [0; 16];
        let len = put_varint(&mut bytes, 0, u64::from(field << 3 | VARINT));
        self.besides = Prefix { len: put_varint(&mut bytes, len, value), bytes };
    }

    /// Fields for the packet being made.
    pub(super) fn take_besides(&mut self) -> ([u8; 16], usize) {
        (self.besides.bytes, std::mem::take(&mut self.besides.len))
    }

    /// Appends a track event. The sequence must have been started.
    #[inline]
    pub fn event(&mut self, out: &mut Vec<u8>, strings: &impl Strings, event: &Event<'_>) {
        let flows = event.flows.len() + event.flow_ends.len();
        let room = FIXED_PART + ARG_PART * event.args.len() + FLOW_PART * flows;
        out.reserve(room);
        let start = out.len();
        // SAFETY: the space for all that `Cursor` writes before `finish` was reserved just
        // now, and strings by value reserve their own.
        let mut to = unsafe { Cursor::new(out, room) };
        let delta = self.advance(event.time);
        to.pair(keys::PACKET, 0);
        to.byte(keys::TIMESTAMP);
        to.varint(delta);
        to.copy16(self.prefix.bytes, self.prefix.len);
        to.copy16(self.besides.bytes, self.besides.len);
        self.besides.len = 0;
        to.pair(keys::TRACK_EVENT, 0);
        let body = to.position();
        to.pair(keys::TYPE, event.ty as u8);
        if event.track != 0 {
            to.byte(keys::TRACK_UUID);
            to.varint(event.track);
        }
        if !event.category.is_none() {
            let mut iid = self.categories.get(event.category);
            if iid == 0 {
                iid = introduce(
                    &mut self.categories,
                    &mut self.fresh,
                    CATEGORIES,
                    strings,
                    event.category,
                );
            }
            to.byte(keys::CATEGORY_IIDS);
            to.varint(iid.into());
        }
        match event.name {
            Name::Id(StrId::NONE) => {}
            Name::Id(id) => {
                let mut iid = self.names.get(id);
                if iid == 0 {
                    iid = introduce(&mut self.names, &mut self.fresh, NAMES, strings, id);
                }
                to.byte(keys::NAME_IID);
                to.varint(iid.into());
            }
            Name::Bytes(bytes) => to.nested(|out| {
                Message::new(out).text(track_event::NAME, bytes);
            }),
        }
        let mut args = event.args;
        while !args.is_empty() {
            let used = self.arg(&mut to, strings, args);
            args = &args[used..];
        }
        for id in event.flows {
            to.key(keys::FLOW_IDS);
            to.fixed64(*id);
        }
        for id in event.flow_ends {
            to.key(keys::TERMINATING_FLOW_IDS);
            to.fixed64(*id);
        }
        if let Some(gpu) = &event.gpu {
            to.nested(|out| correlation(out, gpu));
        }
        match event.counter {
            None => {}
            Some(CounterValue::I64(value)) => {
                to.key(keys::COUNTER_VALUE);
                to.varint(value as u64);
            }
            Some(CounterValue::F64(value)) => {
                to.key(keys::DOUBLE_COUNTER_VALUE);
                to.fixed64(value.to_bits());
            }
        }
        to.finish();
        if out.len() - body < 0x80 {
            out[body - 1] = (out.len() - body) as u8;
        } else {
            close(out, body - 1);
        }
        if !self.fresh.is_empty() {
            Message::new(out).bytes(trace_packet::INTERNED_DATA, &self.fresh);
            self.fresh.clear();
        }
        if out.len() - start - 2 < 0x80 {
            out[start + 1] = (out.len() - start - 2) as u8;
        } else {
            close(out, start + 1);
        }
        self.bytes += out.len() - start;
    }

    /// A `DebugAnnotation` (field 4): shorter than 128 bytes unless it holds a string.
    #[inline(always)]
    fn arg(&mut self, to: &mut Cursor<'_>, strings: &impl Strings, args: &[Arg<'_>]) -> usize {
        let arg = &args[0];
        let name = match (arg.name, arg.value) {
            (Name::Bytes(_), _)
            | (
                _,
                Value::Bytes(_) | Value::Null | Value::Json(_) | Value::List(_) | Value::Dict(_),
            ) => return self.uncommon_arg(to, strings, args),
            (Name::Id(name), Value::Tree(tree)) => {
                self.tree_arg(to, strings, name, tree);
                return 1;
            }
            (Name::Id(id), _) => id,
        };
        let mut iid = self.arg_names.get(name);
        if iid == 0 {
            iid = introduce(&mut self.arg_names, &mut self.fresh, ARG_NAMES, strings, name);
        }
        to.pair(keys::DEBUG_ANNOTATIONS, 0);
        let start = to.position();
        to.byte(keys::ARG_NAME_IID);
        to.varint(iid.into());
        match arg.value {
            Value::Bool(b) => to.pair(keys::BOOL_VALUE, b.into()),
            Value::U64(n) => {
                to.byte(keys::UINT_VALUE);
                to.varint(n);
            }
            Value::I64(n) => {
                to.byte(keys::INT_VALUE);
                to.varint(n as u64);
            }
            Value::F64(x) => {
                to.byte(keys::DOUBLE_VALUE);
                to.fixed64(x.to_bits());
            }
            Value::Pointer(p) => {
                to.byte(keys::POINTER_VALUE);
                to.varint(p);
            }
            Value::Str(id) => {
                let mut iid = self.strings.get(id);
                if iid == 0 {
                    iid = introduce(&mut self.strings, &mut self.fresh, STRINGS, strings, id);
                }
                to.key(keys::STRING_VALUE_IID);
                to.varint(iid.into());
            }
            Value::Bytes(_) | Value::Null | Value::Json(_) => {}
            Value::List(_) | Value::Dict(_) | Value::Tree(_) => {}
        }
        to.patch(start - 1, (to.position() - start) as u8);
        1
    }

    /// Returns how many of `args` were used up: more than one for a list or dictionary.
    #[cold]
    fn uncommon_arg(
        &mut self,
        to: &mut Cursor<'_>,
        strings: &impl Strings,
        args: &[Arg<'_>],
    ) -> usize {
        let mut used = 0;
        to.nested(|out| {
            Message::new(out).message(track_event::DEBUG_ANNOTATIONS, |a| {
                used = self.annotation(a, strings, args, true)
            });
        });
        used
    }
}

/// Extensions 3000 (`gpu_correlation`) and 3001 (`gpu_api`) of `TrackEvent`.
fn correlation(out: &mut Vec<u8>, gpu: &Correlation<'_>) {
    let mut event = Message::new(out);
    event.message(track_event::GPU_CORRELATION, |c| {
        for (field, ids) in [(SUBMITTED, gpu.launched), (WAITED_FOR, gpu.waited)] {
            for id in ids {
                c.uint(field, *id);
            }
        }
    });
    if gpu.api != GpuApi::Unsaid {
        event.uint(track_event::GPU_API, gpu.api as u64);
    }
}

/// Gives a string its number and notes it for the packet being made.
#[cold]
pub(super) fn introduce(
    table: &mut Iids,
    fresh: &mut Vec<u8>,
    field: u32,
    strings: &impl Strings,
    id: StrId,
) -> u32 {
    let iid = table.give(id);
    Message::new(fresh).message(field, |entry| {
        entry
            .uint(interned_string::IID, iid.into())
            .text(interned_string::STR, strings.text(id).bytes);
    });
    iid
}
