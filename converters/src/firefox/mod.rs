//! The Firefox Profiler's formats: what Firefox itself saves ("Gecko"), and the processed one that
//! `profiler.firefox.com`, samply and others write.
//!
//! Both keep tables of stacks, frames, functions and texts, with numbers of rows between them; in
//! one a table is a list of rows with a schema, in the other a list for each column, and newer
//! files have some tables once for all threads. Samples become slices, markers slices or moments.
//! Written is the processed format, with a marker for each event: those may overlap.

mod read;
mod table;
mod write;

pub(crate) use read::read;
pub(crate) use write::write;
