//! Perfetto's trace files → the hub.
//!
//! ```text
//! file ─► Unpacked ─► frames ─► packet ─┬─► sequence state (interned data, defaults)
//!         gz, zst     0a len …          ├─► clocks ─► time
//!                        ▲              ├─► event, gpu, tracks, facts ─► Trace
//!                        └── packed packets
//! ```
//! The file is read once, front to back; apart from the hub only one packet and the state
//! of the sequences are in memory, and a few bytes for each end of a slice ([`nesting`]).
//!
//! What a packet means follows trace_processor (google/perfetto
//! `src/trace_processor/importers/proto`), with one difference: what that drops without a
//! word is kept here, and everything that is passed over is counted in
//! [`crate::trace::Facts::warnings`].

mod annotation;
mod clocks;
mod event;
mod facts;
mod frames;
mod gpu;
mod gpu_counters;
mod inputs;
mod launch;
mod nesting;
mod origin;
mod property;
mod rows;
mod sequence;
mod tracks;
mod unpack;

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Read};

use hashbrown::HashMap;
use kymograph_protos::fields::{
    interned_data, process_descriptor, thread_descriptor, trace_packet,
};
use kymograph_protos::packet::source::{COUNTER_OF, POSITION};

use super::kinds;
use super::wire::Fields;
use crate::packed::{Limits, Unpacked};
use crate::trace::{Joint, Position, StrId, Trace, Value};
use clocks::{Clocks, Unrelated};
use frames::{Frame, Frames};
use gpu::Gpu;
use launch::Maker;
use nesting::Nesting;
use origin::{ArrowEnd, Origin};
use sequence::Sequence;
use tracks::Tracks;
use unpack::Unpacker;

pub(super) use facts::{JSON_KEY, ORIGIN, PRODUCER, WARNING};
pub(super) use gpu::GRAPHICS;
pub(super) use gpu_counters::UNITS;
pub(super) use property::is_text;

/// Why there is no trace.
#[derive(Debug)]
pub enum Error {
    /// The file cannot be read.
    Io(io::Error),
    /// It is no Perfetto trace: what is at its beginning instead.
    NotATrace(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io(error) => error.fmt(f),
            Error::NotATrace(what) => write!(f, "not a Perfetto trace: {what}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io(error) => Some(error),
            Error::NotATrace(_) => None,
        }
    }
}

/// Reads a trace, plain or packed. `limits` bound what a packed one unpacks to.
///
/// A file that is cut off or damaged is read up to there; a warning says where that is.
///
/// # Errors
///
/// When the file cannot be read, or nothing in it is a packet.
pub fn read(file: impl Read, limits: Limits) -> Result<Trace, Error> {
    let file = Unpacked::new(file, limits).map_err(Error::Io)?;
    let mut frames = Frames::new(file);
    let mut reader = Reader::new(limits);
    let damage = loop {
        match frames.next() {
            Ok(Some(Frame::Packet(bytes, offset))) => {
                reader.offset = offset;
                reader.packet(bytes, 0);
            }
            Ok(Some(Frame::Other(field))) => reader.odd(&format!("field {field} of the file")),
            Ok(None) if reader.packets > 0 && !reader.genuine => {
                return Err(Error::NotATrace(FOREIGN.to_owned()));
            }
            Ok(None) => return Ok(reader.finish()),
            Err(damage) => break damage,
        }
    };
    reader.offset = damage.offset;
    if !reader.cut_packets(frames.rest()) && reader.packets == 0 {
        return Err(match damage.io {
            Some(error) => Error::Io(error),
            None => Error::NotATrace(damage.to_string()),
        });
    }
    reader.trace.facts.warn(damage.to_string(), Some(damage.offset));
    Ok(reader.finish())
}

/// What a file of messages seems to be whose messages are no packets.
const FOREIGN: &str = "it seems to be protobuf of another kind, such as XPlane (.xplane.pb): none \
                       of its messages has a time or a sequence";

/// Counts of what was passed over, by reason.
#[derive(Debug, Default)]
struct Oddities {
    missing_iids: u64,
    too_deep: u64,
    damaged: u64,
    without_state: u64,
    dropped: u64,
    unrelated_times: u64,
}

/// See the module.
#[derive(Debug)]
struct Reader {
    trace: Trace,
    clocks: Clocks,
    tracks: Tracks,
    nesting: Nesting,
    gpu: Gpu,
    maker: Maker,
    sequences: Vec<Sequence>,
    rows: HashMap<u32, usize>,
    limits: Limits,
    unpacker: Unpacker,
    /// Bytes that packed packets unpacked to.
    unpacked: u64,
    /// The last time of any packet, for packets that have none.
    latest: i64,
    packets: u64,
    /// One of them has a time or a sequence, as packets of Perfetto's have.
    genuine: bool,
    /// Packets by the field that makes them; the last is for all higher ones.
    kinds: [u64; KINDS],
    oddities: Oddities,
    /// Where the packet at hand begins in the unpacked file.
    offset: u64,
    /// Arguments of the event at hand; kept for their memory.
    entries: Vec<(StrId, Value)>,
    args_in_progress: Vec<(StrId, Value)>,
    /// Where the event at hand stood in the file that the trace was made from, and the last one.
    position: Option<Position>,
    last_position: i64,
    /// Ends of arrows that are events of their own, and events with a `bind_id`.
    ends: Vec<ArrowEnd>,
    joints: Vec<Joint>,
}

const KINDS: usize = 1024;
/// The fields of a `TracePacket`.
#[derive(Default)]
struct Packet<'a> {
    timestamp: Option<u64>,
    clock: Option<u32>,
    sequence: u32,
    flags: u64,
    cleared: bool,
    dropped: bool,
    first: bool,
    machine: u32,
    interned: Option<&'a [u8]>,
    defaults: Option<&'a [u8]>,
    data: (u32, &'a [u8]),
    damaged: bool,
    /// What it says of the file that the trace was made from.
    origin: Origin<'a>,
}

impl Reader {
    fn new(limits: Limits) -> Reader {
        Reader {
            trace: Trace::default(),
            clocks: Clocks::new(),
            tracks: Tracks::default(),
            nesting: Nesting::default(),
            gpu: Gpu::default(),
            maker: Maker::default(),
            sequences: Vec::new(),
            rows: HashMap::new(),
            limits,
            unpacker: Unpacker::default(),
            unpacked: 0,
            latest: 0,
            packets: 0,
            genuine: false,
            kinds: [0; KINDS],
            oddities: Oddities::default(),
            offset: 0,
            entries: Vec::new(),
            args_in_progress: Vec::new(),
            position: None,
            last_position: 0,
            ends: Vec::new(),
            joints: Vec::new(),
        }
    }

    fn packet(&mut self, bytes: &[u8], depth: usize) {
        self.packets += 1;
        let packet = parse(bytes);
        // Fields with small numbers are those of any protobuf.
        let known = packet.data.0 > 7 && kinds::name(packet.data.0).is_some();
        self.genuine |= known || packet.timestamp.is_some() || packet.sequence != 0;
        if packet.damaged {
            self.damaged("a damaged packet");
        }
        let row = self.row(packet.sequence);
        self.sequence_state(row, &packet);
        let (kind, data) = packet.data;
        self.kinds[(kind as usize).min(KINDS - 1)] += u64::from(kind != 0);
        if kind == trace_packet::CLOCK_SNAPSHOT {
            if let Some(reading) = self.clocks.snapshot(packet.sequence, data) {
                self.trace.facts.readings.push(reading);
            }
            return;
        }
        if packet.flags & NEEDS_STATE != 0 && !self.sequences[row].valid {
            self.oddities.without_state += 1;
            return;
        }
        let time = self.time(row, &packet);
        let machine = packet.machine;
        self.stood(&packet.origin);
        match kind {
            0 => {}
            trace_packet::TRACK_EVENT => {
                self.track_event((row, machine), time, data, &packet.origin)
            }
            trace_packet::GPU_RENDER_STAGE_EVENT => {
                self.render_stage((row, machine), time, data, &packet.origin)
            }
            trace_packet::TRACK_DESCRIPTOR
                if self.tracks.describe(&mut self.trace, machine, data, &packet.origin) => {}
            trace_packet::TRACK_DESCRIPTOR => {}
            trace_packet::GPU_COUNTER_EVENT => self.gpu_counters(row, machine, time, data),
            trace_packet::GPU_MEM_TOTAL_EVENT => self.gpu_memory(machine, time, data),
            trace_packet::GENERIC_GPU_FREQUENCY_EVENT => self.gpu_frequency(machine, time, data),
            trace_packet::GPU_INFO => self.gpu_info(machine, data),
            trace_packet::TRACE_ATTRIBUTES => self.attributes(data),
            trace_packet::TRACE_STATS => self.stats(data),
            trace_packet::TRACE_UUID => self.uuid(data),
            trace_packet::SYSTEM_INFO => self.system(data),
            trace_packet::PROCESS_TREE => self.tracks.process_tree(&mut self.trace, machine, data),
            trace_packet::PROCESS_DESCRIPTOR | trace_packet::THREAD_DESCRIPTOR => {
                self.legacy_descriptor(row, kind, machine, data)
            }
            trace_packet::COMPRESSED_PACKETS | trace_packet::ZSTD_COMPRESSED_PACKETS => {
                self.packed_packets(kind, data, depth)
            }
            kind if kinds::says_nothing(kind) => {}
            kind => match kinds::name(kind) {
                Some(name) => self.odd(&format!("a packet of type {name}")),
                None => self.odd(&format!("a packet of the unknown type {kind}")),
            },
        }
    }

    fn row(&mut self, sequence: u32) -> usize {
        *self.rows.entry(sequence).or_insert_with(|| {
            // What is on no sequence needs no state.
            self.sequences.push(Sequence { id: sequence, ..Sequence::default() });
            self.sequences.len() - 1
        })
    }

    /// What a packet says about its sequence.
    fn sequence_state(&mut self, row: usize, packet: &Packet<'_>) {
        // Before the first packet of a sequence, which some writers mark so, nothing is lost.
        let gap = packet.dropped && !packet.first && self.sequences[row].was_valid;
        self.oddities.dropped += u64::from(gap);
        if packet.cleared || packet.flags & CLEARED != 0 {
            self.sequences[row].clear();
        } else if packet.dropped {
            self.sequences[row].valid = false;
        }
        if let Some(bytes) = packet.defaults {
            self.sequences[row].defaults(bytes);
        }
        let Some(bytes) = packet.interned else { return };
        let mut refers = false;
        for (number, field) in Fields::new(bytes) {
            refers |= number == interned_data::COMPUTE_KERNELS;
            if number == interned_data::COMPUTE_KERNELS
                || self.sequences[row].intern(number, field, &mut self.trace.strings)
                || self.intern_gpu(row, number, field)
            {
                continue;
            }
            match number {
                0 => self.damaged("damaged interned data"),
                // Mappings and what belongs to samples of other kinds.
                interned_data::BUILD_IDS
                | interned_data::MAPPING_PATHS
                | interned_data::MAPPINGS
                | interned_data::DEBUG_ANNOTATION_VALUE_TYPE_NAMES => {}
                _ => self.odd(&format!("interned data of type {number}")),
            }
        }
        if refers {
            for (_, field) in
                Fields::new(bytes).filter(|(number, _)| *number == interned_data::COMPUTE_KERNELS)
            {
                self.intern_gpu(row, interned_data::COMPUTE_KERNELS, field);
            }
        }
    }

    fn time(&mut self, row: usize, packet: &Packet<'_>) -> i64 {
        let Some(timestamp) = packet.timestamp else {
            return self.latest;
        };
        let clock = packet.clock.unwrap_or(self.sequences[row].clock);
        let time = self.clocks.convert(packet.sequence, clock, timestamp);
        let time = time.unwrap_or_else(|Unrelated(time)| {
            self.oddities.unrelated_times += 1;
            time
        });
        self.latest = self.latest.max(time);
        time
    }

    /// `ProcessDescriptor` and `ThreadDescriptor` as packets: how traces said where events
    /// lie before there were track descriptors.
    fn legacy_descriptor(&mut self, row: usize, kind: u32, machine: u32, bytes: &[u8]) {
        let (mut pid, mut second, mut name) = (0, 0, StrId::NONE);
        let name_field = if kind == trace_packet::PROCESS_DESCRIPTOR {
            process_descriptor::PROCESS_NAME
        } else {
            thread_descriptor::THREAD_NAME
        };
        for (number, field) in Fields::new(bytes) {
            match number {
                process_descriptor::PID => pid = i64::from(field.int() as i32),
                thread_descriptor::TID if kind == trace_packet::THREAD_DESCRIPTOR => {
                    second = field.int()
                }
                n if n == name_field => {
                    name = sequence::intern_text(&mut self.trace.strings, field.bytes());
                }
                _ => {}
            }
        }
        if kind == trace_packet::PROCESS_DESCRIPTOR {
            let process = self.tracks.process(&mut self.trace, machine, pid);
            if !name.is_none() {
                self.trace.processes[process].name = name;
            }
        } else {
            let thread = self.tracks.thread(&mut self.trace, machine, pid, second);
            self.sequences[row].thread = Some((pid, second));
            if !name.is_none() {
                self.trace.threads[thread].name = name;
            }
        }
    }

    /// Notes something that was passed over.
    #[cold]
    fn odd(&mut self, what: &str) {
        self.trace.facts.warn(what, Some(self.offset));
    }

    #[cold]
    fn damaged(&mut self, what: &str) {
        self.oddities.damaged += 1;
        self.odd(what);
    }

    fn finish(mut self) -> Trace {
        let nesting = std::mem::take(&mut self.nesting).finish(&mut self.trace);
        self.bind();
        let undescribed = self.tracks.finish(&mut self.trace);
        rows::take_back(&mut self.trace);
        if self.maker == Maker::Converter {
            rows::take_back_memory(&mut self.trace);
        }
        origin::shift_back(&mut self.trace);
        inputs::unfold(&mut self.trace);
        let facts = &mut self.trace.facts;
        for (what, count) in [
            ("ends of slices that had not begun", nesting.unmatched),
            ("slices that were still open when one around them ended", nesting.misplaced),
            ("tracks that nothing describes", undescribed),
            ("references to interned data that is missing", self.oddities.missing_iids),
            ("values nested too deep", self.oddities.too_deep),
            ("packets whose sequence had lost its state", self.oddities.without_state),
            ("gaps in sequences, where packets were dropped", self.oddities.dropped),
            ("times of clocks that no snapshot relates", self.oddities.unrelated_times),
            ("sets of arguments without room", self.trace.args.unstored()),
        ] {
            if count > 0 {
                let what = what.to_owned();
                facts.warnings.push(crate::trace::Warning { what, count, offset: None });
            }
        }
        for (kind, count) in self.kinds.iter().enumerate().filter(|(_, count)| **count > 0) {
            let name = match kinds::name(kind as u32) {
                Some(name) => Cow::Borrowed(name),
                None => Cow::Owned(format!("type {kind}")),
            };
            facts.kinds.insert(name, *count);
        }
        self.trace
    }
}

/// `SequenceFlags`.
const CLEARED: u64 = 1;
const NEEDS_STATE: u64 = 2;
fn parse(bytes: &[u8]) -> Packet<'_> {
    let mut packet = Packet::default();
    for (number, field) in Fields::new(bytes) {
        match number {
            trace_packet::TIMESTAMP => packet.timestamp = Some(field.uint()),
            trace_packet::TIMESTAMP_CLOCK_ID => packet.clock = Some(field.uint() as u32),
            trace_packet::TRUSTED_PACKET_SEQUENCE_ID => packet.sequence = field.uint() as u32,
            trace_packet::SEQUENCE_FLAGS => packet.flags = field.uint(),
            trace_packet::INTERNED_DATA => packet.interned = Some(field.bytes()),
            trace_packet::TRACE_PACKET_DEFAULTS => packet.defaults = Some(field.bytes()),
            trace_packet::INCREMENTAL_STATE_CLEARED => packet.cleared = field.uint() != 0,
            trace_packet::PREVIOUS_PACKET_DROPPED => packet.dropped = field.uint() != 0,
            trace_packet::MACHINE_ID => packet.machine = field.uint() as u32,
            // Who wrote it.
            trace_packet::TRUSTED_UID | trace_packet::TRUSTED_PID => {}
            trace_packet::FIRST_PACKET_ON_SEQUENCE => packet.first = field.uint() != 0,
            0 => packet.damaged = true,
            POSITION..=COUNTER_OF => packet.origin.add(number, field),
            _ => packet.data = (number, field.bytes()),
        }
    }
    packet
}
