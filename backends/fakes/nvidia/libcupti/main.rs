//! A `libcupti.so` without a GPU: what a tracer sees of the fake driver's scripts, as
//! records of the CUPTI version that `FAKE_CUPTI_VERSION` names, "11.8" to "13.4".
//!
//! It keeps to what CUPTI is documented to do, and what was seen of the real ones:
//! - every call needs an initialised driver; without one the status is 15, from 13.0 on
//!   999, and 13.2 crashes;
//! - API records are written on the calling thread into that thread's buffer (from 12.3
//!   on if asked, from 13.0 on unless asked not to) or the one for all;
//! - device records are written when the work is over, by a thread of CUPTI's own;
//! - full buffers are completed by a thread of CUPTI's own, the others by a flush; a forced
//!   flush gives away work in flight, with no times, and its end is never told;
//! - the last who registers buffer callbacks gets all buffers, also those that others gave;
//! - a buffer that is refused crashes CUPTI before 12.9; later its record is dropped and
//!   the state domain told;
//! - it complains to standard error, and ends the process if it must, about clients that do
//!   not keep to the rules.
//!
//! # Faults
//!
//! `FAKE_CUPTI_FAULT` lists some, separated by commas; numbers may be left out:
//!
//! | fault | makes |
//! |---|---|
//! | `no-driver` | `cuInit` find no device |
//! | `other-subscriber` | `cuptiSubscribe` say 39: there is another |
//! | `errors` | every call say 999 |
//! | `error:FUNCTION=N` | that function say N |
//! | `drop:10` | every 10th device record be dropped, and counted |
//! | `zero-times:10` | every 10th device record have lost its times |
//! | `future:10` | every 10th device record end in an hour |
//! | `zero-correlation:10` | every 10th device record have lost its correlation id |
//! | `no-name` | kernels have no name |
//! | `unknown-kind:10` | every 10th record be followed by one of a kind that CUPTI steps over and nobody knows |
//! | `invalid-kind:10` | the same, but CUPTI itself stops there |
//! | `truncated` | every completed buffer end within its last record |
//! | `empty-buffers` | every buffer be preceded by an empty one |
//! | `out-of-order` | buffers be completed last first |
//! | `several-threads` | four threads complete buffers at once |
//! | `hoard` | buffers be completed by forced flushes only |
//! | `slow-enable:307` | the enabling of that callback take 100 ms |
//! | `flush-hangs` | flushes never end |
//! | `replay:FILE` | the records of a self-test's report be handed over, besides |
//!
//! Missing symbols are the harness's: it renames them in its copy of the library.

#![allow(clippy::disallowed_methods, reason = "fakes run where they are built")]

#[path = "../../bytes.rs"]
mod bytes;
#[path = "../../in_flight.rs"]
mod in_flight;
#[path = "../../report.rs"]
mod report;
#[path = "../../seam.rs"]
mod seam;
#[path = "../../settings.rs"]
mod settings;

mod activity;
mod attributes;
mod buffers;
mod callbacks;
mod delivery;
mod driver;
mod external;
mod library;
mod observe;
mod record;
mod replay;
mod sizes;
mod status;

/// Where the settings are, for `settings`.
const VARIABLES: settings::Variables = settings::Variables::CUPTI;
