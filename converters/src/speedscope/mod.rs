//! speedscope's format: <https://www.speedscope.app/file-format-schema.json>.
//!
//! Profiles of a file become threads of one process, numbered in the order of the file, since it
//! has no numbers of its own. Functions of samples that follow each other are one slice. Written
//! are a profile for each thread and each other track that has slices, and one for each queue of a
//! device; what overlaps without lying inside each other is in further profiles of the same name.

mod read;
mod write;

pub(crate) use read::read;
pub(crate) use write::write;

/// What a file says it is.
const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";
