//! What a finished trace says: metrics.
//!
//! A [`Metric`] is a function from a trace and [`Options`] to a table, an Arrow
//! [`RecordBatch`](arrow_array::RecordBatch) whose columns are described by [`Column`]s. The
//! [`registry`] has all of them; [`run`] runs one over the ranks of a job.
//!
//! * [`model`]: what many metrics need of a trace, computed once, as columns.
//! * [`metric`]: a file per metric.
//! * [`compat`]: the rules and the rounding of other tools.
//! * [`findings`]: sentences from the tables of several metrics.
//! * [`bundle`]: several tables in one.
//! * [`job`]: whether traces are the ranks of one job.
//! * [`interval`], [`stats`]: arithmetic that metrics have in common.
//! * [`overlay`]: what metrics say, written back into a trace.
//! * [`peaks`]: what devices can do at most.
//! * [`render`]: tables as text, JSON, CSV and, with the feature `export`, Parquet and Arrow.
//!
//! ```no_run
//! use kymograph_analysis::{Metric, Model, Options, Reading, run};
//! use kymograph_converters::format;
//!
//! let options = Options::default();
//! let metric = Metric::find("collectives").expect("one of `registry::ALL`");
//! let mut parts = Vec::new();
//! for path in ["rank0.json.gz", "rank1.json.gz"] {
//!     // Each trace is dropped when it has given its part.
//!     let trace = format::read(std::fs::File::open(path)?, None)?;
//!     for (process, rank) in run::ranks(&trace, parts.len() as i64) {
//!         let model = Model::new(&trace, process, rank, Reading::Exact);
//!         parts.push(run::of_rank(metric, &model, &options)?);
//!     }
//! }
//! let table = run::over_ranks(metric, parts, &options)?;
//! assert_eq!(table.column(0).len(), table.num_rows());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Times are nanoseconds in 64 bits with a sign. Nothing here reads files, prints or keeps
//! state between calls, and all of it may be called from any thread.
#![forbid(unsafe_code)]

pub mod bundle;
pub mod compat;
mod error;
pub mod findings;
pub mod interval;
pub mod job;
pub mod metric;
pub mod model;
pub mod names;
mod options;
pub mod overlay;
pub mod peaks;
mod reading;
pub mod registry;
pub mod render;
pub mod run;
pub mod stats;
pub mod table;

pub use error::Error;
pub use metric::{Metric, Part};
pub use model::Model;
pub use options::Options;
pub use reading::Reading;
pub use table::{Column, Type, Unit};
