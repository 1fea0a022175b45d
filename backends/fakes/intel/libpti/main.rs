//! A `libpti_view.so` without a GPU: what a tracer sees of the fake Level Zero's scripts, as
//! records of the PTI version that `FAKE_PTI_VERSION` names, "0.10" to "1.2".
//!
//! It keeps to what PTI is documented to do, and what was seen of the real ones:
//! - when it is loaded, it names itself in `XPTI_SUBSCRIBERS`, unless another is there;
//! - without a working driver of Level Zero, everything but the version, the names and the
//!   walk through a buffer ends the process;
//! - a buffer is asked for when callbacks are set; then each thread that calls something has
//!   one of its own;
//! - records of calls are written when the call ends: inner ones before outer ones;
//! - buffers are completed by a thread of PTI's own, and a flush waits for it;
//! - there is no count of what was dropped;
//! - who sets callbacks gets what is in the buffers of who had set some before.
//!
//! # Faults
//!
//! `FAKE_PTI_FAULT` lists some, separated by commas; numbers may be left out:
//!
//! | fault | makes |
//! |---|---|
//! | `not-implemented` | every call say 2: `libpti.so` could not be loaded |
//! | `errors` | every call say 200 |
//! | `error:FUNCTION=N` | that function say N |
//! | `drop:10` | every 10th device record be dropped |
//! | `zero-times:10` | every 10th device record have no times |
//! | `zero-correlation:10` | every 10th device record have no correlation id |
//! | `no-name` | kernels have no name |
//! | `no-sycl` | work belong to no queue of SYCL: PTI was loaded too late |
//! | `unknown-kind:10` | every 10th record be followed by one of a kind that PTI steps over and nobody knows |
//! | `invalid-kind:10` | the same, but PTI itself stops there |
//! | `truncated` | every completed buffer end within its last record |
//! | `out-of-order` | buffers be completed last first |
//! | `clock-jump` | the clock be an hour ahead after the 100th record of a device |
//! | `hoard` | buffers be completed by flushes only, after everything was disabled |
//! | `flush-hangs` | flushes never end |
//! | `replay:FILE` | the records of a self-test's report be handed over, besides |
//! | `race` | a flush lose what is written while it is at it |
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

mod buffers;
mod level_zero;
mod observe;
mod record;
mod replay;
mod sizes;
mod view;

/// Where the settings are, for `settings`.
const VARIABLES: settings::Variables = settings::Variables::PTI;
