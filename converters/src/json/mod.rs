//! A streaming JSON reader made for traces, and the pieces a writer needs.
//!
//! A trace in JSON is one array of many small objects, with a few members around it. So the
//! unit of reading is the *element*: one event, or one member's value. [`Document`] keeps a
//! window of the input, finds the next element in it, and lays the element out on a [`Tape`]:
//! a flat list of nodes that point into the window. Nothing is copied and nothing is allocated
//! per event; the window and the tape are used again for the next element.
//!
//! ```text
//! Read ──► Source (window of UTF-8) ──► Tape (nodes of one element) ──► Item::{Event, Member}
//!                                          │ fails
//!                                          └► repair ──► text that parses, and what was done
//! ```
//!
//! **Memory** is bounded by [`Limits`], whatever the length of the input: the window holds one
//! element and a chunk. An element that is not complete at the end of the window is read again
//! once more input is there; the window doubles each time, so that this stays linear.
//!
//! **Damage.** Writers of traces have produced invalid JSON in known ways. Where only one
//! reading makes sense the reader takes it, and says so: every repair has a kind and an offset
//! ([`Repairs`]). What cannot be read is skipped up to the next element, and counted too. Only
//! input that is not a trace at all, a limit, or a failing device end the reading.

mod batch;
mod document;
mod keys;
mod lists;
mod number;
mod problem;
mod repair;
mod scan;
mod source;
mod tape;
mod text;
mod valid;
mod value;
mod whole;
mod write;

pub use batch::Batch;
pub use document::{Document, Item};
pub use number::{Number, nanoseconds, number};
pub(crate) use number::{nanoseconds_of, short_integer};
pub use problem::{Error, Limits, Repair, RepairKind, Repairs};
pub use tape::Tape;
pub use valid::is_valid;
pub use value::{Element, Kind, Str, Value};
pub use whole::{Texts, whole};
pub use write::{write_float, write_int, write_micros, write_string, write_uint, write_value};
