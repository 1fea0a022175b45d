//! When to record: requests, and what becomes of them.
//!
//! ```text
//!                   ┌──────────── refused, cancelled ────────────┐
//!                   ▼                                            │
//!  submit ─► WaitForRequest ─► Warmup ─► CollectTrace ─► ProcessTrace ─► answered
//!             (one pending)    sources    the window      packets to
//!                              are on      is open        the sink
//! ```
//! [`Machine`] decides and does nothing: calls bring what happened and when, and return
//! what is to be done ([`Action`]). So every way through it can be tested without a thread,
//! a clock or a file.
//!
//! A [`Request`] comes from another terminal, a fleet's daemon or a signal. The
//! program itself does not ask: what it records synchronously always wins, and ends what
//! others had asked for.

mod keys;
mod machine;
mod request;
mod schedule;
mod text;

pub use crate::sources::{Membership, take_part};
pub use keys::{KEYS, Key};
pub use machine::{Action, Machine, Now, Phase, Ticket};
pub use request::{Done, Origin, Outcome, Refusal, Request, Start, Window};
pub use schedule::{Schedule, ScheduleAction};
pub use text::{Dialect, Parsed, apply, check_output, parse};
