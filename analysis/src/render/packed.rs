//! Parquet, and Arrow's file format.

use std::io::{Error, Write};

use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::file::properties::WriterProperties;
use arrow_array::RecordBatch;
use arrow_ipc::writer::FileWriter;

/// Writes Parquet, packed with zstd. Units and meanings are in the fields' metadata.
///
/// # Errors
///
/// Those of `out`.
pub fn parquet(batch: &RecordBatch, out: impl Write + Send) -> Result<(), Error> {
    let packing = Compression::ZSTD(ZstdLevel::default());
    let properties = WriterProperties::builder().set_compression(packing).build();
    let mut writer = ArrowWriter::try_new(out, batch.schema(), Some(properties))?;
    writer.write(batch)?;
    writer.close()?;
    Ok(())
}

/// Writes Arrow's file format (Feather), not packed.
///
/// # Errors
///
/// Those of `out`.
pub fn arrow(batch: &RecordBatch, out: impl Write) -> Result<(), Error> {
    let mut writer = FileWriter::try_new(out, &batch.schema()).map_err(Error::other)?;
    writer.write(batch).map_err(Error::other)?;
    writer.finish().map_err(Error::other)
}
