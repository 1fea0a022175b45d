//! Asks Perfetto's own trace_processor about a trace, so that tests compare what we wrote
//! with what a reader of it sees.
//!
//! ```no_run
//! let trace = oracle::Trace::open("run.pftrace");
//! trace.assert_clean();
//! assert_eq!(trace.one_i64("SELECT count(*) FROM slice WHERE dur = -1"), 0);
//! assert_eq!(
//!     trace.table("SELECT name, dur FROM slice ORDER BY ts"),
//!     "name    dur\n\
//!      step    900\n\
//!      matmul  120\n"
//! );
//! ```
//!
//! `tests/oracle/setup` fetches trace_processor (WebAssembly, run by Node.js 20 or newer)
//! once per checkout; the first [`Trace::open`] of a process starts it, in about a third of a
//! second. A trace is loaded once, in less than a tenth, and then answers any number of queries.
//! Everything here panics with what went wrong: it is for tests.
//!
//! With `TRACE_PROCESSOR=/path/to/trace_processor_shell` in the environment that program is
//! asked instead, to test against another version of Perfetto. It loads the trace again for
//! every query, and prints reals with six decimals.
//!
//! # What trace_processor makes of files that are not quite plain
//!
//! Pinned by `tests/compressed_and_cut_traces.rs` for the version that `setup` fetches
//! (v55), and the same in the source of v58:
//!
//! | file | outcome |
//! |---|---|
//! | gzip of several members | read, also when a packet lies in two of them |
//! | gzip of more than about 125 members | the WebAssembly, hence the UI, runs out of memory: 32 MiB of address space a member, whatever its size |
//! | zstd of several frames | read by v58; v55 knows no zstd at all, so the oracle unpacks it |
//! | plain file that ends within a packet | that packet is dropped and no statistic tells: look for `dur = -1` |
//! | gzip file that ends within a member | refused as a whole, all complete members included; the same goes for zstd |
//!
//! And of the order of events: an end that closes a slice other than the innermost is
//! counted (`misplaced_end_event`) only if a later event follows on the same track. Without
//! one, again only `dur = -1` tells.
#![allow(
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    reason = "for tests, as said above"
)]

mod engine;
mod native;
mod node;
mod server;
mod table;
mod tools;
mod trace;

pub use server::Server;
pub use tools::{dataset_modules, nvtx_headers, readers_python, s3_python, tools, venv_python};
pub use trace::Trace;
