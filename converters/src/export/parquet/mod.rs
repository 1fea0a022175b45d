//! Apache Parquet, as far as tables need it: 64-bit numbers, texts, and maps from text to text, in
//! row groups of pages that are packed with zstd.
//!
//! Not the crate `parquet`: that alone would be a tenth of what the default build compiles and a
//! fifth of the command, for its readers and for types that no table has. Other tools read what is
//! written here (`tests/convert/tables_are_read_by_other_tools.rs`).
//!
//! ```text
//! PAR1 ─ row groups ─► columns ─► dictionary, pages ─ what is where (Thrift) ─ its length ─ PAR1
//! ```

mod base64;
mod chunk;
mod levels;
mod pages;
mod schema;
mod thrift;

use std::io::{self, Write};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use zstd::bulk::Compressor;

use super::arrow;
use chunk::{Chunk, Summary};
use schema::Leaf;
use thrift::{Kind, Struct};

const MAGIC: &[u8; 4] = b"PAR1";
/// Rows of a row group, at most.
const GROUP: usize = 1 << 18;
/// Rows of a page, at most.
const PAGE: usize = 1 << 14;
/// How hard pages are packed.
const LEVEL: i32 = 3;
const ZSTD: i32 = 6;

/// A row group that is in the file.
struct Group {
    columns: Vec<Summary>,
    rows: usize,
    at: i64,
}

/// Writes a file of Parquet.
pub(super) struct Writer<W: Write> {
    out: W,
    at: i64,
    schema: SchemaRef,
    leaves: Vec<Leaf>,
    /// The row group that is being collected.
    chunks: Vec<Chunk>,
    rows: usize,
    groups: Vec<Group>,
    zstd: Compressor<'static>,
}

impl<W: Write> Writer<W> {
    /// Begins a file.
    pub(super) fn new(mut out: W, schema: SchemaRef) -> io::Result<Writer<W>> {
        let leaves = schema::leaves(&schema)?;
        out.write_all(MAGIC)?;
        let zstd = Compressor::new(LEVEL)?;
        let chunks = new_chunks(&leaves);
        let at = MAGIC.len() as i64;
        Ok(Writer { out, at, schema, leaves, chunks, rows: 0, groups: Vec::new(), zstd })
    }

    /// Adds rows.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let mut from = 0;
        while from < batch.num_rows() {
            let length = PAGE.min(batch.num_rows() - from).min(GROUP - self.rows);
            let mut chunks = self.chunks.iter_mut();
            for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
                for page in pages::of(field, &column.slice(from, length))? {
                    let chunk =
                        chunks.next().ok_or_else(|| io::Error::other("too many columns"))?;
                    chunk.push(&page, &mut self.zstd)?;
                }
            }
            from += length;
            self.rows += length;
            if self.rows == GROUP {
                self.end_group()?;
            }
        }
        Ok(())
    }

    fn end_group(&mut self) -> io::Result<()> {
        let chunks = std::mem::replace(&mut self.chunks, new_chunks(&self.leaves));
        let rows = std::mem::take(&mut self.rows);
        if rows == 0 {
            return Ok(());
        }
        let at = self.at;
        let mut columns = Vec::with_capacity(chunks.len());
        for chunk in chunks {
            let mut bytes = Vec::new();
            columns.push(chunk.finish(&mut bytes, self.at, &mut self.zstd)?);
            self.out.write_all(&bytes)?;
            self.at += bytes.len() as i64;
        }
        self.groups.push(Group { columns, rows, at });
        Ok(())
    }

    /// Ends the file; returns what it was written to.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.end_group()?;
        let mut end = Vec::new();
        self.write_metadata(&mut end)?;
        let length = u32::try_from(end.len()).map_err(io::Error::other)?;
        end.extend_from_slice(&length.to_le_bytes());
        end.extend_from_slice(MAGIC);
        self.out.write_all(&end)?;
        Ok(self.out)
    }

    fn write_metadata(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let elements = schema::elements(&self.schema);
        let rows: usize = self.groups.iter().map(|group| group.rows).sum();
        let schema = base64::encode(&arrow::encapsulated_schema(&self.schema)?);
        Struct::write(out, |file| {
            file.i32(1, 1);
            file.list(2, Kind::Struct, &elements, |out, element| out.extend_from_slice(element));
            file.i64(3, rows as i64);
            file.list(4, Kind::Struct, &self.groups, |out, group| self.write_group(out, group));
            // Where tools that use Arrow find the fields' metadata.
            file.list(5, Kind::Struct, &[("ARROW:schema", schema)], |out, (key, value)| {
                Struct::write(out, |pair| {
                    pair.binary(1, key.as_bytes());
                    pair.binary(2, value.as_bytes());
                });
            });
            file.binary(6, concat!("kymograph version ", env!("CARGO_PKG_VERSION")).as_bytes());
            // Extremes are in the order of the columns' types.
            file.list(7, Kind::Struct, &self.leaves, |out, _| {
                Struct::write(out, |order| order.nested(1, |_| {}));
            });
        });
        Ok(())
    }

    fn write_group(&self, out: &mut Vec<u8>, group: &Group) {
        let sum = |of: fn(&Summary) -> i64| group.columns.iter().map(of).sum::<i64>();
        let columns: Vec<_> = self.leaves.iter().zip(&group.columns).collect();
        Struct::write(out, |written| {
            written.list(1, Kind::Struct, &columns, |out, (leaf, column)| {
                Struct::write(out, |chunk| {
                    chunk.i64(2, 0);
                    chunk.nested(3, |about| write_column(about, leaf, column));
                });
            });
            written.i64(2, sum(|column| column.unpacked));
            written.i64(3, group.rows as i64);
            written.i64(5, group.at);
            written.i64(6, sum(|column| column.packed));
        });
    }
}

fn write_column(about: &mut Struct<'_>, leaf: &Leaf, column: &Summary) {
    about.i32(1, leaf.shape.physical as i32);
    about.list(2, Kind::I32, &column.encodings, |out, kind| thrift::i32(out, *kind as i32));
    about.list(3, Kind::Binary, &leaf.path, |out, name| thrift::binary(out, name.as_bytes()));
    about.i32(4, ZSTD);
    about.i64(5, column.values);
    about.i64(6, column.unpacked);
    about.i64(7, column.packed);
    about.i64(9, column.pages_at);
    if let Some(at) = column.dictionary_at {
        about.i64(11, at);
    }
    about.nested(12, |statistics| {
        statistics.i64(3, column.nulls);
        if let Some((least, most)) = &column.extremes {
            statistics.binary(5, most);
            statistics.binary(6, least);
        }
    });
}

fn new_chunks(leaves: &[Leaf]) -> Vec<Chunk> {
    leaves.iter().map(|leaf| Chunk::new(leaf.shape)).collect()
}
