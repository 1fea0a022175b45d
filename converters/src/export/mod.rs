//! Tables for data tools: DuckDB, Polars, pandas, Spark. docs/EXPORT.md describes the columns,
//! which stay: new ones may come, at the end.
//!
//! ```text
//! Trace ─► tables: which there are ─► columns of 64 Ki rows at a time ─► Parquet, Arrow, CSV
//! ```
//! Memory is bounded by the hub and the rows that are being written.

mod arrow;
mod columns;
mod csv;
mod flatbuffer;
mod parquet;
mod tables;

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::trace::Trace;

/// A format of tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Parquet, packed with zstd.
    Parquet,
    /// Arrow's file format, also called Feather version 2.
    Arrow,
    /// Text: RFC 4180, with a line of names.
    Csv,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 3] = [Format::Parquet, Format::Arrow, Format::Csv];

    /// The name, which is the ending of files as well.
    pub fn name(self) -> &'static str {
        match self {
            Format::Parquet => "parquet",
            Format::Arrow => "arrow",
            Format::Csv => "csv",
        }
    }

    /// The format of this name.
    pub fn from_name(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }
}

/// Rows that are put together, and written, at a time.
const ROWS: usize = 1 << 16;

/// Writes all tables of a trace into a folder, which is made if it is not there; says how
/// many rows each has. Files of these names are replaced when all of them are whole, and not
/// before.
///
/// # Errors
///
/// When a file cannot be written; says which.
pub fn write(trace: &Trace, folder: &Path, format: Format) -> io::Result<Vec<(String, u64)>> {
    std::fs::create_dir_all(folder).map_err(|error| named(folder, &error))?;
    let mut files: Vec<(PathBuf, PathBuf)> = Vec::new();
    let mut counts = Vec::new();
    let mut result = Ok(());
    for table in tables::all(trace) {
        let path = folder.join(format!("{}.{}", table.name, format.name()));
        let partial = folder.join(format!("{}.{}.partial", table.name, format.name()));
        let written = write_table(&table, &partial, format);
        counts.push((table.name.to_owned(), table.rows as u64));
        files.push((partial, path));
        if let Err(error) = written {
            result = Err(named(&files[files.len() - 1].1, &error));
            break;
        }
    }
    for (partial, path) in &files {
        result = match result {
            Ok(()) => std::fs::rename(partial, path).map_err(|error| named(path, &error)),
            Err(error) => {
                // What is half written is of no use.
                let _ = std::fs::remove_file(partial);
                Err(error)
            }
        };
    }
    result.map(|()| counts)
}

fn named(path: &Path, error: &dyn fmt::Display) -> io::Error {
    io::Error::other(format!("{}: {error}", path.display()))
}

fn write_table(table: &tables::Table<'_>, path: &Path, format: Format) -> io::Result<()> {
    let batch = |from: usize| (table.batch)(from..(from + ROWS).min(table.rows));
    let mut out = Output::new(BufWriter::new(File::create(path)?), format, batch(0)?.schema())?;
    for from in (0..table.rows).step_by(ROWS) {
        out.write(&batch(from)?)?;
    }
    out.finish()
}

/// Writes one table. It may have columns of 64-bit numbers and of texts; what their schema says
/// of them is kept in Parquet and Arrow.
///
/// # Errors
///
/// Those of `out`, and when the table has columns of other types.
pub fn write_table_to(batch: &RecordBatch, format: Format, out: impl Write) -> io::Result<()> {
    let mut out = Output::new(out, format, batch.schema())?;
    out.write(batch)?;
    out.finish()
}

enum Output<W: Write> {
    Parquet(Box<parquet::Writer<W>>),
    Arrow(arrow::Writer<W>),
    Csv(W),
}

impl<W: Write> Output<W> {
    fn new(mut out: W, format: Format, schema: SchemaRef) -> io::Result<Output<W>> {
        Ok(match format {
            Format::Parquet => Output::Parquet(Box::new(parquet::Writer::new(out, schema)?)),
            Format::Arrow => Output::Arrow(arrow::Writer::new(out, schema)?),
            Format::Csv => {
                csv::header(&mut out, &schema)?;
                Output::Csv(out)
            }
        })
    }

    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        match self {
            Output::Parquet(writer) => writer.write(batch),
            Output::Arrow(writer) => writer.write(batch),
            Output::Csv(out) => csv::rows(out, batch),
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Output::Parquet(writer) => writer.finish()?.flush(),
            Output::Arrow(writer) => writer.finish()?.flush(),
            Output::Csv(mut out) => out.flush(),
        }
    }
}
