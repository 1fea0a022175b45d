//! One HTML file that shows what traces say.
//!
//! [`Rank::read`] takes what the page needs of one rank of a trace; [`Report::new`] puts ranks
//! together into runs, and [`Report::write`] writes the page. Numbers come from the metrics of
//! `kymograph-analysis`; this crate computes none.
//!
//! * [`metrics`]: which tables there are, and what is left out of very long ones.
//! * [`timeline`]: the events of a rank, as columns.
//! * [`Details`]: the arguments of events, when they are asked for.
//! * [`samples`]: the counters of a trace.
//! * [`columns`]: a table as columns of JSON.
//! * [`block`]: data as text of the page: deflate, then base64.
//! * [`page`]: the page around them.
//! * [`parallel`]: work that is divided among threads.
//!
//! The page opens without a network: script, style and data are in it, and its content security
//! policy allows nothing else. The front end is in `web/src`; `web/dist` has it in one piece, made
//! by `web/bundle.mjs` and checked in, so that a build needs no Node.
//!
//! Nothing here reads files or prints, and all of it may be called from any thread. [`Rank::read`] and
//! [`Report::new`] start threads of their own, which have ended when they return.
#![forbid(unsafe_code)]

pub mod block;
pub mod columns;
mod details;
pub mod metrics;
pub mod page;
pub mod parallel;
mod rank;
mod report;
pub mod samples;
pub mod timeline;

pub use details::Details;
pub use rank::{Rank, Settings};
pub use report::Report;
