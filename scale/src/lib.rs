//! Data sets: the traces of all ranks of a job as Parquet, and questions over all of them.
//!
//! Almost all of the work is per rank: reading a trace, and reducing it to kilobytes. [`add`] does
//! that, for any rank, in any order, on any machine, as often as wanted. What joins ranks is
//! small: [`over_ranks`] reads what metrics have left, and [`questions`] compares ranks with each
//! other. docs/DATASET.md describes the files.
//!
//! * [`layout`]: which files there are, and the version of their schema.
//! * [`manifest`]: what is known about a rank that is there.
//! * [`tables`]: the tables of events; [`steps`]: what becomes of each step's time.
//! * [`store`]: where a data set lies: a folder, or a place in object storage.
//! * `storage`: object storage, with the feature of this name.
//! * [`input`]: traces as people say them; [`fingerprint`]: what tells them from each other.
//! * [`turn`]: how tasks of one rank stay out of each other's way.
//! * [`add`]: from a trace to files, a rank at a time, whole or not at all.
//! * [`dataset`]: what is there, what is missing and what is damaged.
//! * [`over_ranks`]: metrics of the analysis over all ranks.
//! * `query`: SQL, with the feature `query`.
//! * [`questions`]: what only all ranks together can answer.
#![forbid(unsafe_code)]

pub mod add;
pub mod dataset;
pub mod fingerprint;
pub mod input;
pub mod labels;
pub mod layout;
pub mod manifest;
pub mod over_ranks;
mod packed;
#[cfg(feature = "query")]
pub mod query;
pub mod questions;
pub mod steps;
#[cfg(feature = "storage")]
pub mod storage;
pub mod store;
pub mod tables;
mod turn;

/// What went wrong, on what, and what to do: a sentence for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure(pub String);

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

impl From<kymograph_analysis::Error> for Failure {
    fn from(error: kymograph_analysis::Error) -> Failure {
        Failure(error.to_string())
    }
}

/// A failure of a file.
fn named(path: &std::path::Path, error: &dyn std::fmt::Display) -> Failure {
    Failure(format!("{}: {error}", path.display()))
}
