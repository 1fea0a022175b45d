//! The activity record: what a thread writes when something happens.
//!
//! A record is one **slot** of 32 bytes, optionally followed by *tail* slots that
//! belong to it. Four little words keep a push down to four stores, let the queue
//! hold them as atomics, and let a reader skip what it does not know.
//!
//! ```text
//! byte   0               8               16              24          28    30   31
//!        ┌───────────────┬───────────────┬───────────────┬───────────┬─────┬────┬────┐
//! head   │ time          │ other         │ arg           │ site      │tail │kind│ tag│
//!        └───────────────┴───────────────┴───────────────┴───────────┴─────┴────┴────┘
//!        ┌───────────────┬─────────┬──┬──┬───────────────┬─────────┬──┬──┐
//! extras │ value         │ name    │ty│  │ value         │ name    │ty│  │   2 per slot
//!        └───────────────┴─────────┴──┴──┴───────────────┴─────────┴──┴──┘
//!        byte 0          8         12 13 16              24        28 29
//! ```
//!
//! | field | meaning |
//! |---|---|
//! | `time` | ticks of the recording clock ([`crate::Recorder::now`]), converted by the writer; or nanoseconds ([`NANOS`]) |
//! | `other` | depends on [`Kind`]: the end of a `Scope`, the id of a range or track |
//! | `arg` | value of the first argument, its type in `tag`, its name in the site |
//! | `site` | [`StrId`] of the name; the interner knows the category and first argument's name that go with it |
//! | `tail` | how many slots after this one belong to the record |
//!
//! Tail slots hold [`Extra`]s (further arguments, flow ids), two in a slot. A string
//! that could not be interned travels by value: an [`Extra`] of type
//! [`ArgType::Bytes`] whose `value` is the length, placed last in its slot, followed by
//! the bytes in slots of their own. A name that could not be interned is the same with
//! `name == StrId::NONE`.

use bytemuck::{Pod, Zeroable};

/// A string known to the interner, together with what belongs to it (see
/// [`crate::Recorder::intern`]). Dense from 1; 0 means "none".
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Pod, Zeroable)]
#[repr(transparent)]
pub struct StrId(pub u32);

impl StrId {
    /// No string.
    pub const NONE: StrId = StrId(0);

    /// Whether this names no string.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}

/// What a record describes. The numbers are the format: never reuse one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// A slice on the thread's track that began and ended with nothing recorded in
    /// between: `time`..`other`.
    Scope = 1,
    /// A slice begins; it ends with the next `End` on this thread (RAII scopes).
    Begin = 2,
    /// Ends the innermost slice that a `Begin` opened.
    End = 3,
    /// A slice begins that is ended by a `Pop` of its category: NVTX and ITT nest per
    /// (thread, domain), and two domains may overlap on one thread.
    Push = 4,
    /// Ends the innermost `Push` whose site has category `site`.
    Pop = 5,
    /// Something happened at `time` on the thread's track, or on track `other` if not 0.
    Instant = 6,
    /// The counter `site` has the value `arg`, of the type in `tag` (i64, u64 or f64).
    /// `other` holds the [`CounterUnit`].
    Counter = 7,
    /// A range begins that may cross others and end on another thread: `other` is its id,
    /// an extra of type [`ArgType::Track`] its track (none: a track named after the site).
    RangeBegin = 8,
    /// The range `other` ends. May carry extras; they are added to its end.
    RangeEnd = 9,
    /// A track is described: `other` is its id, `site` its name, `arg` the parent track's
    /// id (0: the process; [`THREAD_TRACK`]: a thread), the low 32 bits of an extra of type [`ArgType::I64`] its order.
    Track = 10,
    /// This thread is called `site`. With `arg` ≠ 0, the thread of that id is.
    ThreadName = 11,
    /// This process is called `site`.
    ProcessName = 12,
    /// `arg` events could not be recorded on this thread before `time`.
    Lost = 13,
    /// A device did something from `time` to `other`; `arg` is the correlation id of the
    /// call that asked for it ([`crate::device::Vendor::call`]). The tail begins with a
    /// [`crate::device::DeviceSlot`].
    Device = 14,
    /// A queue of a device (a stream): `other` is its number
    /// ([`crate::device::Vendor::queue`]), `site` its name. Extras named `device`,
    /// `context`, `stream` (u64) and `api` (a [`crate::device::GpuApi`]).
    Queue = 15,
    /// A device: `other` is its number ([`crate::device::Vendor::gpu`]), `site` its name,
    /// extras are facts about it.
    Gpu = 16,
    /// A fact about the job: `site` is its key, `arg` (or bytes) the value.
    Fact = 17,
    /// The counter `site` of device `other` has the value `arg`, of the type in `tag`. An
    /// extra of type [`ArgType::U64`] without a name is its [`crate::device::GpuUnit`].
    GpuCounter = 18,
    /// An instant whose name is a sentence for the user who asked for the recording: something
    /// is not recorded, and why. `kymo record` prints it when it ends.
    Note = 19,
    /// The process has given a name an id: `other` is the id, the lower half of `arg` its
    /// category and the upper half the name of its first argument, `site` (as a number) how
    /// many bytes the name has; these follow, in as many records as it takes.
    Name = 20,
}

impl Kind {
    /// The kind with this number, if it is one.
    pub const fn from_u8(n: u8) -> Option<Kind> {
        Some(match n {
            1 => Kind::Scope,
            2 => Kind::Begin,
            3 => Kind::End,
            4 => Kind::Push,
            5 => Kind::Pop,
            6 => Kind::Instant,
            7 => Kind::Counter,
            8 => Kind::RangeBegin,
            9 => Kind::RangeEnd,
            10 => Kind::Track,
            11 => Kind::ThreadName,
            12 => Kind::ProcessName,
            13 => Kind::Lost,
            14 => Kind::Device,
            15 => Kind::Queue,
            16 => Kind::Gpu,
            17 => Kind::Fact,
            18 => Kind::GpuCounter,
            19 => Kind::Note,
            20 => Kind::Name,
            _ => return None,
        })
    }
}

/// Type of an argument: `tag` of a record, `ty` of an [`Extra`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum ArgType {
    /// No argument.
    None = 0,
    /// 0 or 1.
    Bool = 1,
    /// Signed, two's complement.
    I64 = 2,
    /// Unsigned.
    U64 = 3,
    /// The bits of an `f64`.
    F64 = 4,
    /// The [`StrId`] of an interned string.
    Str = 5,
    /// An address, shown in hexadecimal.
    Pointer = 6,
    /// A flow passes through this event: an arrow in, one out, or both.
    Flow = 7,
    /// A flow ends in this event.
    FlowEnd = 8,
    /// Length of a string whose bytes follow in slots of their own.
    Bytes = 9,
    /// The id of the track that the event belongs to.
    Track = 10,
    /// The correlation id of device work that this event asked for: an arrow to it.
    Launch = 11,
    /// The correlation id of device work that this event waited for: an arrow from it.
    Wait = 12,
    /// A list of that many of the arguments that follow, whose names do not count.
    List = 13,
}

impl ArgType {
    /// The type with this number, if it is one.
    pub const fn from_u8(n: u8) -> Option<ArgType> {
        Some(match n {
            0 => ArgType::None,
            1 => ArgType::Bool,
            2 => ArgType::I64,
            3 => ArgType::U64,
            4 => ArgType::F64,
            5 => ArgType::Str,
            6 => ArgType::Pointer,
            7 => ArgType::Flow,
            8 => ArgType::FlowEnd,
            9 => ArgType::Bytes,
            10 => ArgType::Track,
            11 => ArgType::Launch,
            12 => ArgType::Wait,
            13 => ArgType::List,
            _ => return None,
        })
    }
}

/// Unit of a counter, as Perfetto's `CounterDescriptor.Unit`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u64)]
pub enum CounterUnit {
    /// Not said.
    #[default]
    None = 0,
    /// Nanoseconds.
    Nanoseconds = 1,
    /// A number of things.
    Count = 2,
    /// Bytes.
    Bytes = 3,
}

/// The head slot of every record: see the module's drawing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Record {
    /// Ticks.
    pub time: u64,
    /// Second time or an id, by kind.
    pub other: u64,
    /// Value of the first argument.
    pub arg: u64,
    /// Name.
    pub site: StrId,
    /// Number of tail slots.
    pub tail: u16,
    /// A [`Kind`].
    pub kind: u8,
    /// The [`ArgType`] of `arg`, and perhaps [`NAME_BY_VALUE`], [`NANOS`] and [`OPERATOR`].
    pub tag: u8,
}

/// A further argument or a flow id; two fit in a tail slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Extra {
    /// The value, by type.
    pub value: u64,
    /// The argument's name.
    pub name: StrId,
    /// An [`ArgType`].
    pub ty: u8,
    /// Always zero.
    pub zero: [u8; 3],
}

impl Extra {
    /// An argument of type `ty` with the bits `value`.
    pub const fn new(name: StrId, ty: ArgType, value: u64) -> Extra {
        Extra { value, name, ty: ty as u8, zero: [0; 3] }
    }
}

/// A slot as the queue sees it: four words.
pub type Slot = [u64; 4];

/// Bit of [`Record::tag`]: the name follows by value, and `site` is the category.
pub const NAME_BY_VALUE: u8 = 0x80;

/// Bit of [`Record::tag`]: the times are nanoseconds of `CLOCK_BOOTTIME`, not ticks.
pub const NANOS: u8 = 0x40;
/// Bit of [`Record::tag`] of a slice: an operator of a framework or a call of an interface,
/// not a range that the program's author put into it; devices do not show it.
pub const OPERATOR: u8 = 0x20;

/// Bit of a track's parent ([`Kind::Track`]): the other bits are the id of a thread of this
/// process, under whose track it lies.
pub const THREAD_TRACK: u64 = 1 << 63;

/// Name of the track under a thread's on which calls lie that were timed by another clock
/// than what the thread recorded itself. In formats without such tracks they are the
/// thread's.
pub const CALLS_TRACK: &str = "SYCL and Level Zero";
/// The bits of [`Record::tag`] that are an [`ArgType`].
pub const TYPE_BITS: u8 = 0x1f;

/// Bytes in a slot.
pub const SLOT_BYTES: usize = 32;

const _: () = assert!(size_of::<Record>() == SLOT_BYTES && align_of::<Record>() == 8);
const _: () = assert!(size_of::<Slot>() == SLOT_BYTES);
const _: () = assert!(size_of::<Extra>() * 2 == SLOT_BYTES);
const _: () = assert!(std::mem::offset_of!(Record, site) == 24);
const _: () = assert!(std::mem::offset_of!(Record, tail) == 28);
const _: () = assert!(std::mem::offset_of!(Record, kind) == 30);
const _: () = assert!(std::mem::offset_of!(Record, tag) == 31);
const _: () = assert!(std::mem::offset_of!(Extra, name) == 8);
const _: () = assert!(std::mem::offset_of!(Extra, ty) == 12);
