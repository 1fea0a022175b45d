//! Columns of tables as Parquet's schema.

use std::io;

use arrow_schema::{DataType, Field, Schema};

use super::chunk::{Physical, Shape};
use super::thrift::Struct;

const REQUIRED: i32 = 0;
const OPTIONAL: i32 = 1;
const REPEATED: i32 = 2;

/// What a type means beyond how it is stored, as of old (`ConvertedType`).
const UTF8: i32 = 0;
const MAP: i32 = 1;
/// And as of late: members of the union `LogicalType`.
const STRING_TYPE: i16 = 1;
const MAP_TYPE: i16 = 2;

/// A part of the schema that has values.
pub(super) struct Leaf {
    pub(super) path: Vec<String>,
    pub(super) shape: Shape,
}

/// The leaves, in order.
pub(super) fn leaves(schema: &Schema) -> io::Result<Vec<Leaf>> {
    let mut leaves = Vec::new();
    for field in schema.fields() {
        let path = vec![field.name().clone()];
        if let Some((entry, key, value)) = map_of(field) {
            for (name, most_defined) in [(key, 1), (value, 2)] {
                let shape = Shape { physical: Physical::ByteArray, most_repeated: 1, most_defined };
                let path = [&path[..], &[entry.clone(), name.clone()]].concat();
                leaves.push(Leaf { path, shape });
            }
            continue;
        }
        let Some(physical) = physical(field.data_type()) else {
            let why = format!("column {}: tables have no {}", field.name(), field.data_type());
            return Err(io::Error::other(why));
        };
        let most_defined = field.is_nullable().into();
        leaves.push(Leaf { path, shape: Shape { physical, most_repeated: 0, most_defined } });
    }
    Ok(leaves)
}

fn physical(ty: &DataType) -> Option<Physical> {
    match ty {
        DataType::Int64 => Some(Physical::Int64),
        DataType::Float64 => Some(Physical::Double),
        DataType::Utf8 => Some(Physical::ByteArray),
        _ => None,
    }
}

/// The names of a map's parts: a map that is there in each row, from texts to texts or nulls.
fn map_of(field: &Field) -> Option<(&String, &String, &String)> {
    let DataType::Map(entry, _) = field.data_type() else { return None };
    let DataType::Struct(parts) = entry.data_type() else { return None };
    let [key, value] = &parts[..] else { return None };
    let texts = [key, value].iter().all(|part| *part.data_type() == DataType::Utf8);
    let fits = texts && !field.is_nullable() && !key.is_nullable() && value.is_nullable();
    fits.then(|| (entry.name(), key.name(), value.name()))
}

/// The schema: its root, then its parts, each before its own parts.
pub(super) fn elements(schema: &Schema) -> Vec<Vec<u8>> {
    let mut elements = vec![element("schema", |root| root.i32(5, schema.fields().len() as i32))];
    for field in schema.fields() {
        if let Some((entry, key, value)) = map_of(field) {
            elements.push(element_of(REQUIRED, field.name(), |map| {
                map.i32(5, 1);
                map.i32(6, MAP);
                map.nested(10, |ty| ty.nested(MAP_TYPE, |_| {}));
            }));
            elements.push(element_of(REPEATED, entry, |pair| pair.i32(5, 2)));
            elements.push(leaf(Physical::ByteArray, REQUIRED, key));
            elements.push(leaf(Physical::ByteArray, OPTIONAL, value));
        } else if let Some(physical) = physical(field.data_type()) {
            let repetition = if field.is_nullable() { OPTIONAL } else { REQUIRED };
            elements.push(leaf(physical, repetition, field.name()));
        }
    }
    elements
}

fn leaf(physical: Physical, repetition: i32, name: &str) -> Vec<u8> {
    let mut out = Vec::new();
    Struct::write(&mut out, |leaf| {
        leaf.i32(1, physical as i32);
        leaf.i32(3, repetition);
        leaf.binary(4, name.as_bytes());
        if physical == Physical::ByteArray {
            leaf.i32(6, UTF8);
            leaf.nested(10, |ty| ty.nested(STRING_TYPE, |_| {}));
        }
    });
    out
}

fn element(name: &str, rest: impl FnOnce(&mut Struct<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    Struct::write(&mut out, |element| {
        element.binary(4, name.as_bytes());
        rest(element);
    });
    out
}

fn element_of(repetition: i32, name: &str, rest: impl FnOnce(&mut Struct<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    Struct::write(&mut out, |element| {
        element.i32(3, repetition);
        element.binary(4, name.as_bytes());
        rest(element);
    });
    out
}
