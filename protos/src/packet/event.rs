//! What a track event says, before it is encoded.

use crate::StrId;
use crate::device::GpuApi;

/// `TrackEvent.Type`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum EventType {
    /// A slice begins.
    Begin = 1,
    /// The innermost slice of the track ends.
    End = 2,
    /// A moment.
    Instant = 3,
    /// A counter has a new value.
    Counter = 4,
}

/// A name by number or by value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Name<'a> {
    /// Known to the [`super::Strings`] given to the encoder. `StrId::NONE`: no name.
    Id(StrId),
    /// Any bytes.
    Bytes(&'a [u8]),
}

impl Default for Name<'_> {
    /// No name.
    fn default() -> Self {
        Name::Id(StrId::NONE)
    }
}

/// A typed argument value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value<'a> {
    /// True or false.
    Bool(bool),
    /// Signed.
    I64(i64),
    /// Unsigned.
    U64(u64),
    /// Floating point.
    F64(f64),
    /// A known string.
    Str(StrId),
    /// A string by value; any bytes.
    Bytes(&'a [u8]),
    /// An address.
    Pointer(u64),
    /// Nothing: JSON's `null`.
    Null,
    /// JSON text of a value that has no other form.
    Json(StrId),
    /// A list: its items are the arguments that follow, this many, each with what belongs
    /// to it. Their names do not count. No deeper than a stack can go.
    List(u32),
    /// A dictionary: its entries are the arguments that follow, as for a list.
    Dict(u32),
    /// A list or dictionary that the [`super::Strings`] know by this number. It is asked
    /// for, and encoded, once until the sequence is restarted.
    Tree(u64),
}

/// A named argument: `debug.NAME` in trace_processor's `args`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Arg<'a> {
    /// Its name.
    pub name: Name<'a>,
    /// Its value.
    pub value: Value<'a>,
}

/// The value of a counter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum CounterValue {
    /// An integer.
    I64(i64),
    /// A fraction.
    F64(f64),
}

/// Arrows between a host event and device work: fields of the event itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Correlation<'a> {
    /// `event_id`s of work that the event asked for.
    pub launched: &'a [u64],
    /// `event_id`s of work that it waited for.
    pub waited: &'a [u64],
    /// By which interface.
    pub api: GpuApi,
}

/// A track event.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Event<'a> {
    /// What happened.
    pub ty: EventType,
    /// Nanoseconds of `CLOCK_BOOTTIME`.
    pub time: u64,
    /// Uuid of its track; 0 for the default of the sequence.
    pub track: u64,
    /// A known string, or none.
    pub category: StrId,
    /// Name of the slice or instant.
    pub name: Name<'a>,
    /// Further facts.
    pub args: &'a [Arg<'a>],
    /// Arrows that pass through.
    pub flows: &'a [u64],
    /// Arrows that end here.
    pub flow_ends: &'a [u64],
    /// Arrows to and from device work.
    pub gpu: Option<Correlation<'a>>,
    /// For counters.
    pub counter: Option<CounterValue>,
}

impl Event<'_> {
    /// An event with nothing but a type and a time, on the default track.
    pub const fn new(ty: EventType, time: u64) -> Event<'static> {
        Event {
            ty,
            time,
            track: 0,
            category: StrId::NONE,
            name: Name::Id(StrId::NONE),
            args: &[],
            flows: &[],
            flow_ends: &[],
            gpu: None,
            counter: None,
        }
    }
}
