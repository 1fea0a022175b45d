//! Traces in Chrome's JSON, which Kineto's is too.
//!
//! [`read()`] takes any of them: an array of events or an object that has one, of PyTorch,
//! JAX, Chrome and all others that write the format. What only Kineto's events mean is in
//! [`crate::kineto`]. [`write()`] writes the plain form, for viewers; what reads Kineto's files
//! wants [`crate::kineto::write()`].
//!
//! How the format maps to the hub:
//!
//! | events | hub |
//! |---|---|
//! | `X`, `B` and `E` | a slice on the track of its `pid` and `tid` |
//! | `b`, `e`, `n`, `S`, `F` | slices and moments on tracks per process, category and name: as many as overlap |
//! | `i`, `I`, `R` | moments |
//! | `C` | a sample for each argument |
//! | `s`, `t`, `f`, `bind_id` | points of flows, at the slices they bind to |
//! | `M` | names, labels and order of processes and threads |
//! | others, and what the hub cannot hold all of | [`crate::trace::Leftover`]s |
//!
//! | identity | hub |
//! |---|---|
//! | `pid` a number, also in quotes | a process |
//! | `pid` another string, as `"Spans"` | a root track of that name |
//! | `tid` a number under a process | a thread |
//! | `tid` otherwise | a track of that name; [`ROW`] in its description where that is not clear |
//!
//! What the hub has no place for goes into arguments with the prefix [`FOREIGN`], and comes back
//! from there when JSON is written: the id of an async event, the scope of a moment when it is
//! not its thread, unknown members. Times are nanoseconds; the hub's clock is that of the file,
//! and its relation to the time of day is in [`crate::trace::Facts::readings`].
//!
//! Events have positions ([`crate::trace::Slices::position`]), and are written in that order.
//! Some things come back in another form. They are: the arguments of an end with those of its
//! beginning; ids in quotes as numbers, where not all events of a kind have them; times finer than
//! a nanosecond rounded; what [`crate::json`] repaired.

pub(crate) mod args;
mod arrows;
mod counters;
mod event;
mod flows;
mod line;
mod members;
mod metadata;
mod operators;
mod own;
mod pairs;
mod places;
mod quotes;
mod read;
mod rows;
mod samples;
mod steps;
mod write;

pub use read::{read, read_lines};
pub use write::write;

pub(crate) use line::write_text;
pub(crate) use own::property;
pub(crate) use places::{overhead, overhead_name, with_device};
pub(crate) use write::{Frame, first_time, write_in};

/// Begins the name of an argument that holds what has no other place in the hub.
pub const FOREIGN: &str = "chrome.";
/// The description of a track whose `tid` cannot be told from its place.
pub const ROW: &str = "tid";
/// The description of a track of async events, where its place suggests something else.
pub const ASYNC: &str = "async";
/// The fact that holds metadata events, verbatim, that the hub cannot express.
pub const METADATA_EVENTS: &str = "chrome.metadataEvents";
/// The fact that says how many devices Kineto named, whether or not they exist.
pub const GPU_ROWS: &str = "chrome.gpuRows";
/// The fact that holds what arrows from calls to devices are called, when it is not Kineto's
/// `ac2g`: category and name with a tab between them, or one for both.
pub const LAUNCH_ARROWS: &str = "chrome.launchArrows";
/// The name of flows that a `bind_id` tells of, which is among the arguments of their events.
pub const JOINTS: &str = "chrome.bind_id";
/// The name of flows from calls to waits for devices, which correlation numbers tell of.
pub const WAITS: &str = "chrome.waits";
/// The fact that holds where metadata events stood in the file: first the verbatim ones, then the
/// others in the order of what they are about.
pub const METADATA_POSITIONS: &str = "chrome.metadataPositions";
/// The fact that says that whole microseconds have no fraction in the file: 1 in times, 2 in
/// durations, 3 in both. Some readers tell integers from floats.
pub const WHOLE_TIMES: &str = "chrome.wholeTimes";
/// The fact that says that moments have no `s` in the file, unless it is another than their row
/// suggests.
pub const BARE_MOMENTS: &str = "chrome.bareMoments";
/// The fact that says in which events numbers of threads are in quotes: 1 in slices, 2 in
/// beginnings of arrows, 4 in ends of arrows, 8 in moments, or the sum of some.
pub const QUOTED_TIDS: &str = "chrome.quotedTids";
/// The fact that holds the time, in nanoseconds of the hub's clock, that metadata events bear.
pub const METADATA_TIME: &str = "chrome.metadataTime";
