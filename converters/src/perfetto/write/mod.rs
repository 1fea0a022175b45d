//! The hub → Perfetto's trace files, through the encoder that live recordings use.
//!
//! Tracks are written one after the other, each in the order of time: readers sort. A track
//! with many events gets a packet sequence of its own, on which its uuid need not be
//! repeated; the others share one. Slices that cross go to sibling tracks ([`lanes`]).
//!
//! Packets are by far smaller when they are packed ([`Packets::Deflated`]): what a packet
//! repeats of the one before it nearly vanishes.

mod annotations;
mod counters;
mod deflate;
mod device;
mod facts;
mod flows;
mod host;
mod lanes;
mod launch;
mod memory;
mod origin;
mod packer;
mod rows;
mod tracks;

pub(crate) use lanes::deal;

use std::io::{self, Write};

use kymograph_protos::packet::{self, Arg, Name, Sequence, Snapshot, Strings, Text, Value as Wire};

use crate::trace::{Args, ArgsId, ListId, Nanos, StrId, Trace, Value, Warning};
use flows::{Arrows, Drawn, Launches};
use origin::Ids;
use packer::Packer;

/// What became of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Written {
    /// Slices, moments, activities and samples that were written.
    pub events: u64,
    /// Those of a time before the clock's zero, which the format cannot hold.
    pub before_zero: u64,
    /// Slices on sibling tracks, because they cross others of their track.
    pub moved: u64,
    /// Ends of flows that had not begun, which were left out.
    pub flow_ends: u64,
    /// Points of flows at activities, which were left out.
    pub flow_points: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Written {
    /// What was left out, in words.
    pub fn warnings(&self) -> Vec<Warning> {
        let left_out = [
            (self.before_zero, "events before the clock's zero were left out"),
            (self.flow_ends, "arrows that end before they begin were left out"),
            (self.flow_points, "arrows to or from devices that viewers do not show, kept for JSON"),
        ];
        let left_out = left_out.into_iter().filter(|(count, _)| *count > 0);
        left_out
            .map(|(count, what)| Warning { what: what.to_owned(), count, offset: None })
            .collect()
    }
}

/// How packets stand in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Packets {
    /// As they are: for files that are packed as a whole, and for readers that know no
    /// packed packets.
    #[default]
    Plain,
    /// Many at a time in one `compressed_packets`, as Perfetto's own service writes them
    /// when it is asked to. trace_processor and the viewer have always read it.
    Deflated,
}

/// Writes a trace, its packets as they are.
///
/// # Errors
///
/// Those of `out`.
pub fn write(trace: &Trace, out: impl Write) -> io::Result<Written> {
    write_packets(trace, out, Packets::Plain)
}

/// Writes a trace.
///
/// # Errors
///
/// Those of `out`.
pub fn write_packets(trace: &Trace, out: impl Write, packets: Packets) -> io::Result<Written> {
    std::thread::scope(|scope| {
        let packer = Packer::new(packets == Packets::Deflated, scope);
        write_with(trace, out, packer)
    })
}

fn write_with(trace: &Trace, out: impl Write, packer: Packer) -> io::Result<Written> {
    let mut rows = rows::rows(trace);
    let (arrows, drawn) = rows::arrows(trace, &mut rows);
    let mut writer = Writer {
        trace,
        texts: Texts(trace),
        arrows,
        drawn,
        shift: origin::shift(trace),
        ids: origin::Ids::new(trace),
        position: 0,
        packer,
        args: Vec::new(),
        launches: Launches::default(),
        out,
        packets: Vec::with_capacity(FULL + (1 << 16)),
        next_sequence: SHARED,
        written: Written::default(),
        snapshots: Vec::new(),
    };
    writer.snapshots = facts::snapshots(trace, writer.shift);
    writer.written.flow_ends = writer.arrows.unbegun;
    writer.written.flow_points = writer.arrows.of_activities;
    writer.facts()?;
    writer.devices()?;
    writer.host(&rows)?;
    writer.activities()?;
    writer.counters()?;
    writer.leftovers()?;
    writer.losses()?;
    writer.flush(0)?;
    writer.written.bytes += writer.packer.finish(&mut writer.out)?;
    writer.out.flush()?;
    Ok(writer.written)
}

/// Packets are handed on when there are this many bytes of them. Perfetto asks for packed
/// ones to stay below 512 KiB; and what was just written is still in the cache.
const FULL: usize = 256 << 10;
/// The sequence of facts and descriptions.
const FACTS: u32 = 1;
/// The first of those of events.
const SHARED: u32 = 2;

/// See the module.
struct Writer<'a, W> {
    trace: &'a Trace,
    texts: Texts<'a>,
    arrows: Arrows,
    /// Ends of arrows that are events of their own.
    drawn: Drawn,
    /// What is added to times, so that none is before the clock's zero.
    shift: i64,
    ids: Ids,
    /// The last position that was written.
    position: i64,
    packer: Packer,
    /// The arguments of the event at hand, and what it launched; kept for their memory.
    args: Vec<Arg<'static>>,
    launches: Launches,
    out: W,
    packets: Vec<u8>,
    next_sequence: u32,
    written: Written,
    /// What the clocks showed, in the order of time.
    snapshots: Vec<Snapshot>,
}

impl<W: Write> Writer<'_, W> {
    fn sequence(&mut self) -> Sequence {
        self.next_sequence += 1;
        Sequence::new(self.next_sequence - 1)
    }

    /// Makes a sequence ready for an event at `time`; says whether it started over.
    fn ready(&mut self, sequence: &mut Sequence, track: u64, time: u64) -> bool {
        let stale = sequence.is_stale(time);
        if stale {
            let clocks = self.clocks(time);
            sequence.restart(&mut self.packets, track, &clocks, clocks.boottime, false);
        }
        stale
    }

    /// What the clocks showed at `time`.
    fn clocks(&self, time: u64) -> Snapshot {
        let after = self.snapshots.partition_point(|snapshot| snapshot.boottime <= time);
        let Some(near) = self.snapshots.get(after.saturating_sub(1)) else {
            return Snapshot { boottime: time, ..Snapshot::default() };
        };
        let moved = |clock: u64| match clock {
            0 => 0,
            clock => clock.wrapping_add(time).wrapping_sub(near.boottime),
        };
        Snapshot {
            boottime: time,
            realtime: moved(near.realtime),
            monotonic: moved(near.monotonic),
        }
    }

    /// Hands packets on, if there are more than `most` bytes.
    fn flush(&mut self, most: usize) -> io::Result<()> {
        if self.packets.len() > most {
            let alone = self.written.bytes == 0 && most == 0 && !self.packer.is_busy();
            self.written.bytes += self.packer.pack(&mut self.packets, alone, &mut self.out)?;
        }
        Ok(())
    }

    /// A time as it is written; `None`, and counted, if it cannot be.
    fn time(&mut self, time: Nanos) -> Option<u64> {
        let time = time.0.checked_add(self.shift).and_then(|time| u64::try_from(time).ok());
        match time {
            Some(_) => self.written.events += 1,
            None => self.written.before_zero += 1,
        }
        time
    }

    fn losses(&mut self) -> io::Result<()> {
        let lost = self.trace.facts.losses.iter().map(|loss| loss.count).sum();
        if lost > 0 {
            packet::trace_stats(&mut self.packets, FACTS, 0, lost, &[]);
        }
        self.flush(FULL)
    }

    /// Appends the arguments of an event in the encoder's form.
    #[inline]
    fn args(&self, set: Option<ArgsId>, out: &mut Vec<Arg<'static>>) {
        self.trace.args.each(set, |name, value| {
            out.push(Arg { name: Name::Id(name), value: wire(value) });
        });
    }
}

/// A value in the encoder's form. Lists and dictionaries go by their numbers.
#[inline]
fn wire(value: Value) -> Wire<'static> {
    match value {
        Value::Null => Wire::Null,
        Value::Bool(b) => Wire::Bool(b),
        Value::I64(n) => Wire::I64(n),
        Value::U64(n) => Wire::U64(n),
        Value::F64(x) => Wire::F64(x),
        Value::Str(id) => Wire::Str(id),
        Value::Pointer(p) => Wire::Pointer(p),
        Value::Json(id) => Wire::Json(id),
        Value::List(list) => Wire::Tree((list.index() as u64) << 1),
        Value::Dict(dict) => Wire::Tree((dict.index() as u64) << 1 | 1),
    }
}

/// Strings and trees of the hub, for the encoder.
struct Texts<'a>(&'a Trace);

impl Strings for Texts<'_> {
    #[inline]
    fn text(&self, id: StrId) -> Text<'_> {
        self.0.strings.text(id)
    }

    fn tree<'b>(&'b self, tree: u64, out: &mut Vec<Arg<'b>>) {
        let id = ListId::at((tree >> 1) as usize);
        let value = if tree & 1 == 0 { Value::List(id) } else { Value::Dict(id) };
        flatten(&self.0.args, Name::Bytes(&[]), value, out);
    }
}

fn flatten<'b>(args: &Args, name: Name<'b>, value: Value, out: &mut Vec<Arg<'b>>) {
    let at = out.len();
    out.push(Arg { name, value: Wire::Null });
    let mut items = 0;
    let value = match value {
        Value::List(list) => {
            for item in args.items(list) {
                items += 1;
                flatten(args, Name::Bytes(&[]), item, out);
            }
            Wire::List(items)
        }
        Value::Dict(dict) => {
            for (name, value) in args.entries_of(dict) {
                items += 1;
                flatten(args, Name::Id(name), value, out);
            }
            Wire::Dict(items)
        }
        value => wire(value),
    };
    out[at].value = value;
}
