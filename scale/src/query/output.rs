//! What becomes of the answer to a query: written batch by batch, so that it need not fit into
//! memory.

use super::of_query;
use crate::Failure;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::compute::{CastOptions, cast_with_options, concat_batches};
use datafusion::arrow::ipc::writer::FileWriter;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use kymograph_analysis::render;
use parquet::arrow::ArrowWriter;
use std::io::Write;
use std::sync::Arc;

/// How a table is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// For people: the first rows, and how many there are.
    Table,
    /// Like the tables of metrics.
    Json,
    /// With a line of names.
    Csv,
    /// Parquet.
    Parquet,
    /// Arrow's file format.
    Arrow,
}

/// Writes all rows, or as many as are wanted; gives the number of rows.
///
/// # Errors
///
/// Those of the query, and of `out`.
pub async fn write<W: Write + Send>(
    mut rows: SendableRecordBatchStream,
    format: Format,
    limit: Option<usize>,
    out: W,
) -> Result<usize, Failure> {
    let schema = plain_schema(&rows.schema());
    let mut sink = Sink::new(format, &schema, out)?;
    let (mut count, mut left) = (0, limit.unwrap_or(usize::MAX));
    while let Some(batch) = rows.next().await {
        let batch = plain(&batch.map_err(|error| of_query(&error))?, &schema)?;
        // A table says how many rows there are besides those that it shows.
        if format != Format::Table && left == 0 {
            break;
        }
        let shown = batch.slice(0, left.min(batch.num_rows()));
        left -= shown.num_rows();
        count += if format == Format::Table { batch.num_rows() } else { shown.num_rows() };
        if shown.num_rows() > 0 {
            sink.put(&shown)?;
        }
    }
    sink.end(count)?;
    Ok(count)
}

/// Where batches go.
enum Sink<W: Write + Send> {
    Table {
        shown: Vec<RecordBatch>,
        schema: SchemaRef,
        out: W,
    },
    /// The text in front of the rows and behind them, and what is between two batches.
    Text {
        render: fn(&RecordBatch) -> String,
        frame: Frame,
        begun: bool,
        out: W,
    },
    Parquet(Box<ArrowWriter<W>>),
    Arrow(Box<FileWriter<W>>),
}

/// What stands around the rows of a text.
struct Frame {
    head: String,
    between: &'static str,
    tail: &'static str,
}

fn json(batch: &RecordBatch) -> String {
    render::json("query", batch)
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure(format!("the answer cannot be written: {error}"))
}

impl<W: Write + Send> Sink<W> {
    fn new(format: Format, schema: &SchemaRef, mut out: W) -> Result<Sink<W>, Failure> {
        let nothing = RecordBatch::new_empty(schema.clone());
        let (render, between, tail): (fn(&RecordBatch) -> String, _, _) = match format {
            Format::Table => {
                return Ok(Sink::Table { shown: Vec::new(), schema: schema.clone(), out });
            }
            Format::Parquet => {
                let writer = ArrowWriter::try_new(out, schema.clone(), None).map_err(failed)?;
                return Ok(Sink::Parquet(Box::new(writer)));
            }
            Format::Arrow => {
                let writer = FileWriter::try_new(out, schema).map_err(failed)?;
                return Ok(Sink::Arrow(Box::new(writer)));
            }
            Format::Json => (json, ",", "\n]}\n"),
            Format::Csv => (render::csv, "", ""),
        };
        let mut head = render(&nothing);
        head.truncate(head.len() - tail.len());
        out.write_all(head.as_bytes()).map_err(failed)?;
        Ok(Sink::Text { render, frame: Frame { head, between, tail }, begun: false, out })
    }

    fn put(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        match self {
            Sink::Table { shown, .. } => shown.push(batch.clone()),
            Sink::Text { render, frame, begun, out } => {
                let text = render(batch);
                let rows = &text[frame.head.len()..text.len() - frame.tail.len()];
                let between = if *begun { frame.between } else { "" };
                *begun = true;
                out.write_all(between.as_bytes()).map_err(failed)?;
                out.write_all(rows.as_bytes()).map_err(failed)?;
            }
            Sink::Parquet(writer) => writer.write(batch).map_err(failed)?,
            Sink::Arrow(writer) => writer.write(batch).map_err(failed)?,
        }
        Ok(())
    }

    fn end(self, count: usize) -> Result<(), Failure> {
        match self {
            Sink::Table { shown, schema, mut out } => {
                let shown = concat_batches(&schema, &shown).map_err(failed)?;
                let mut text = render::text(&shown, None);
                if count > shown.num_rows() {
                    text += &format!("{} of {count} rows\n", shown.num_rows());
                }
                out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(failed)
            }
            Sink::Text { frame, mut out, .. } => {
                let tail = out.write_all(frame.tail.as_bytes());
                tail.and_then(|()| out.flush()).map_err(failed)
            }
            Sink::Parquet(writer) => writer.into_inner().map_err(failed)?.flush().map_err(failed),
            Sink::Arrow(mut writer) => {
                writer.finish().map_err(failed)?;
                writer.into_inner().map_err(failed)?.flush().map_err(failed)
            }
        }
    }
}

/// The types that all formats have: whole numbers, floating point, and text for everything else.
fn plain_schema(schema: &Schema) -> SchemaRef {
    let field = |field: &Arc<Field>| {
        let ty = field.data_type();
        let ty = match ty {
            DataType::Dictionary(_, ty) => ty,
            ty => ty,
        };
        let plain = match ty {
            _ if ty.is_integer() => DataType::Int64,
            _ if ty.is_floating() || ty.is_decimal() => DataType::Float64,
            _ => DataType::Utf8,
        };
        Field::new(field.name(), plain, true).with_metadata(field.metadata().clone())
    };
    Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()))
}

fn plain(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, Failure> {
    let exact = CastOptions { safe: false, ..CastOptions::default() };
    let column = |(array, field): (&ArrayRef, &Arc<Field>)| {
        if array.data_type() == field.data_type() {
            return Ok(array.clone());
        }
        let cast = cast_with_options(array, field.data_type(), &exact);
        cast.map_err(|error| failed(format!("column {}: {error}", field.name())))
    };
    let columns = batch.columns().iter().zip(schema.fields()).map(column);
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    RecordBatch::try_new(schema.clone(), columns).map_err(failed)
}
