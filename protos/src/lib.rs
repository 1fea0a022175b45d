//! The contract between the halves of Kymograph.
//!
//! * [`record`]: the fixed-size activity records that threads write.
//! * [`Recorder`]: the seam through which backends push them, and [`ColdRecorder`], for
//!   code off the hot path.
//! * [`categories`]: which categories are wanted.
//! * [`device`]: the part of them that is about devices.
//! * [`rows`]: what rows of a trace are called.
//! * [`packet`]: the encoder that turns activities into Perfetto `TracePacket`s.
//! * [`perfetto`]: prost messages of the subset of Perfetto's schema that is used, which cold
//!   packets are encoded from.
//! * [`fields`]: the numbers of the fields of those messages, for packets that are encoded and
//!   decoded by hand.

pub mod categories;
pub mod device;
pub mod packet;
pub mod record;
mod recorder;
pub mod rows;

pub use categories::CategoryFilter;
pub use record::{ArgType, CounterUnit, Extra, Kind, Record, Slot, StrId};
pub use recorder::{ColdRecorder, Recorder};

/// Messages generated from `proto/perfetto.proto` (see `proto/README.md`).
#[allow(missing_docs, clippy::all, clippy::pedantic)]
#[rustfmt::skip]
#[path = "generated/perfetto.protos.rs"]
pub mod perfetto;

/// Numbers of fields, generated from `proto/perfetto.proto`: `fields::track_event::NAME_IID`.
#[allow(missing_docs)]
#[rustfmt::skip]
#[path = "generated/fields.rs"]
pub mod fields;
