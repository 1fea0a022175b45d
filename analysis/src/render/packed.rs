//! Parquet, and Arrow's file format.

use std::io::{Error, Write};

use arrow_array::RecordBatch;
use kymograph_converters::export::{Format, write_table_to};

/// Writes Parquet, packed with zstd. Units and meanings are in the fields' metadata.
///
/// # Errors
///
/// Those of `out`.
pub fn parquet(batch: &RecordBatch, out: impl Write) -> Result<(), Error> {
    write_table_to(batch, Format::Parquet, out)
}

/// Writes Arrow's file format (Feather), not packed.
///
/// # Errors
///
/// Those of `out`.
pub fn arrow(batch: &RecordBatch, out: impl Write) -> Result<(), Error> {
    write_table_to(batch, Format::Arrow, out)
}
