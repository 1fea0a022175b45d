//! Arrow's file format (Feather version 2), as far as tables need it: 64-bit numbers, texts, and
//! maps from text to text. Not the crate `arrow-ipc`, whose part in what the default build compiles
//! would be six times its use, for `arrow-select` beneath it.
//!
//! ```text
//! ARROW1 ─ schema ─ batches: metadata, buffers ─ end of the stream ─ footer ─ its length ─ ARROW1
//! ```

use crate::order::Order as _;
use std::borrow::Cow;
use std::io::{self, Write};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::flatbuffer::{Builder, Place, Value};

const MAGIC: &[u8] = b"ARROW1";
/// Buffers begin at multiples of this, for readers that map the file.
const ALIGNMENT: usize = 64;
const CONTINUES: [u8; 4] = [0xff; 4];
const VERSION_5: i16 = 4;
const IS_SCHEMA: u8 = 1;
const IS_BATCH: u8 = 3;
const DOUBLE: i16 = 2;

/// Writes a file.
pub(super) struct Writer<W: Write> {
    out: W,
    at: usize,
    schema: SchemaRef,
    /// Offset, length of the metadata, length of the buffers.
    blocks: Vec<[i64; 3]>,
}

impl<W: Write> Writer<W> {
    /// Begins a file.
    pub(super) fn new(out: W, schema: SchemaRef) -> io::Result<Writer<W>> {
        let mut writer = Writer { out, at: 0, schema, blocks: Vec::new() };
        writer.put(MAGIC)?;
        writer.put(&[0; 2])?;
        let message = schema_message(&writer.schema)?;
        writer.put_message(&message)?;
        Ok(writer)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.at += bytes.len();
        self.out.write_all(bytes)
    }

    /// Writes metadata, padded up to where a buffer can begin; returns its length with its head.
    fn put_message(&mut self, message: &[u8]) -> io::Result<usize> {
        let start = self.at;
        let end = (start + 8 + message.len()).next_multiple_of(ALIGNMENT);
        self.put(&CONTINUES)?;
        self.put(&((end - start - 8) as u32).to_le_bytes())?;
        self.put(message)?;
        self.put(&[0; ALIGNMENT][..end - self.at])?;
        Ok(end - start)
    }

    /// Adds rows.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let mut body = Body::default();
        for column in batch.columns() {
            body.add(column.as_ref())?;
        }
        let mut builder = Builder::default();
        let nodes = builder.words(&body.nodes);
        let buffers = builder.words(&body.places);
        let rows = Value::Long(batch.num_rows() as i64);
        let header = [(0, rows), (1, Value::At(nodes)), (2, Value::At(buffers))];
        let header = builder.table(&header);
        let message = message(builder, IS_BATCH, header, body.length);
        let start = self.at as i64;
        let metadata = self.put_message(&message)? as i64;
        for buffer in &body.buffers {
            self.put(buffer)?;
            self.put(&[0; ALIGNMENT][..padding(buffer.len())])?;
        }
        self.blocks.push([start, metadata, body.length as i64]);
        Ok(())
    }

    /// Ends the file; returns what it was written to.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.put(&CONTINUES)?;
        self.put(&[0; 4])?;
        let mut builder = Builder::default();
        let schema = schema_table(&mut builder, &self.schema)?;
        let dictionaries = builder.words::<3>(&[]);
        let batches = builder.words(&self.blocks);
        let footer = builder.table(&[
            (0, Value::Short(VERSION_5)),
            (1, Value::At(schema)),
            (2, Value::At(dictionaries)),
            (3, Value::At(batches)),
        ]);
        let footer = builder.finish(footer);
        self.put(&footer)?;
        self.put(&(footer.len() as u32).to_le_bytes())?;
        self.put(MAGIC)?;
        Ok(self.out)
    }
}

fn padding(length: usize) -> usize {
    length.next_multiple_of(ALIGNMENT) - length
}

/// The schema as a message with its head: what a file of another format keeps as `ARROW:schema`.
pub(super) fn encapsulated_schema(schema: &Schema) -> io::Result<Vec<u8>> {
    let message = schema_message(schema)?;
    Ok([&CONTINUES, &(message.len() as u32).to_le_bytes()[..], &message].concat())
}

fn schema_message(schema: &Schema) -> io::Result<Vec<u8>> {
    let mut builder = Builder::default();
    let table = schema_table(&mut builder, schema)?;
    Ok(message(builder, IS_SCHEMA, table, 0))
}

fn message(mut builder: Builder, kind: u8, header: Place, body: usize) -> Vec<u8> {
    let message = builder.table(&[
        (0, Value::Short(VERSION_5)),
        (1, Value::Byte(kind)),
        (2, Value::At(header)),
        (3, Value::Long(body as i64)),
    ]);
    builder.finish(message)
}

fn schema_table(builder: &mut Builder, schema: &Schema) -> io::Result<Place> {
    let fields = field_tables(builder, schema.fields().iter().map(AsRef::as_ref))?;
    Ok(builder.table(&[(1, Value::At(fields))]))
}

fn field_tables<'a>(
    builder: &mut Builder,
    fields: impl Iterator<Item = &'a Field>,
) -> io::Result<Place> {
    let places: io::Result<Vec<Place>> = fields.map(|field| field_table(builder, field)).collect();
    Ok(builder.vector(&places?))
}

fn field_table(builder: &mut Builder, field: &Field) -> io::Result<Place> {
    const BIT_WIDTH: (usize, Value) = (0, Value::Int(64));
    const SIGNED: (usize, Value) = (1, Value::Byte(1));
    let none: &[&Field] = &[];
    let (number, ty, children) = match field.data_type() {
        DataType::Int64 => (2, builder.table(&[BIT_WIDTH, SIGNED]), none.to_vec()),
        DataType::Float64 => (3, builder.table(&[(0, Value::Short(DOUBLE))]), none.to_vec()),
        DataType::Utf8 => (5, builder.table(&[]), none.to_vec()),
        DataType::Struct(parts) => {
            (13, builder.table(&[]), parts.iter().map(AsRef::as_ref).collect())
        }
        DataType::Map(entry, _) => (17, builder.table(&[]), vec![entry.as_ref()]),
        other => return Err(unknown(other)),
    };
    let children = field_tables(builder, children.into_iter())?;
    let name = builder.string(field.name());
    let mut slots = vec![
        (0, Value::At(name)),
        (1, Value::Byte(field.is_nullable().into())),
        (2, Value::Byte(number)),
        (3, Value::At(ty)),
        (5, Value::At(children)),
    ];
    let mut about: Vec<(&String, &String)> = field.metadata().iter().collect();
    about.order_by(Ord::cmp);
    if !about.is_empty() {
        let pair = |(key, value): (&String, &String)| {
            let slots = [builder.string(key), builder.string(value)].map(Value::At);
            builder.table(&[(0, slots[0]), (1, slots[1])])
        };
        let pairs: Vec<Place> = about.into_iter().map(pair).collect();
        slots.push((6, Value::At(builder.vector(&pairs))));
    }
    Ok(builder.table(&slots))
}

fn unknown(ty: &DataType) -> io::Error {
    io::Error::other(format!("tables have no {ty}"))
}

/// The buffers of a batch: those of each column, and behind them those of its parts.
#[derive(Default)]
struct Body<'a> {
    /// Length and nulls of each column and part.
    nodes: Vec<[i64; 2]>,
    /// Offset and length of each buffer.
    places: Vec<[i64; 2]>,
    buffers: Vec<Cow<'a, [u8]>>,
    length: usize,
}

impl<'a> Body<'a> {
    fn put(&mut self, bytes: impl Into<Cow<'a, [u8]>>) {
        let bytes = bytes.into();
        self.places.push([self.length as i64, bytes.len() as i64]);
        self.length += bytes.len().next_multiple_of(ALIGNMENT);
        self.buffers.push(bytes);
    }

    /// How many there are, and which of them are there.
    fn put_node(&mut self, array: &dyn Array) {
        self.nodes.push([array.len() as i64, array.null_count() as i64]);
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
        self.put(nulls.map_or(Vec::new(), |nulls| nulls.inner().sliced().as_slice().to_vec()));
    }

    /// Where elements begin and end, from the first on, which is where the parts begin.
    fn put_offsets(&mut self, offsets: &[i32]) {
        let first = offsets.first().copied().unwrap_or(0);
        let bytes = offsets.iter().flat_map(|offset| (offset - first).to_le_bytes());
        self.put(bytes.collect::<Vec<u8>>());
    }

    fn add(&mut self, array: &'a dyn Array) -> io::Result<()> {
        match array.data_type() {
            DataType::Int64 => {
                self.put_node(array);
                self.put(array.as_primitive::<Int64Type>().values().inner().as_slice());
            }
            DataType::Float64 => {
                self.put_node(array);
                self.put(array.as_primitive::<Float64Type>().values().inner().as_slice());
            }
            DataType::Utf8 => {
                let texts = array.as_string::<i32>();
                self.put_node(array);
                self.put_offsets(texts.value_offsets());
                let ends = texts.value_offsets();
                let used = ends.first().map_or(0, |end| *end as usize)
                    ..ends.last().map_or(0, |end| *end as usize);
                self.put(&texts.value_data()[used]);
            }
            DataType::Map(..) => {
                let maps = array.as_map();
                self.put_node(array);
                self.put_offsets(maps.value_offsets());
                if maps.value_offsets().first() != Some(&0)
                    || maps.value_offsets().last().map(|end| *end as usize)
                        != Some(maps.entries().len())
                {
                    return Err(io::Error::other("a part of a map's rows cannot be written"));
                }
                self.put_node(maps.entries());
                self.add(maps.keys().as_ref())?;
                self.add(maps.values().as_ref())?;
            }
            other => return Err(unknown(other)),
        }
        Ok(())
    }
}
