//! Rows of a column of Arrow as pages: levels and values.

use std::io;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, MapArray};
use arrow_schema::{DataType, Field};

use super::chunk::{Page, Values};

/// A page for each leaf of the field.
pub(super) fn of<'a>(field: &Field, column: &'a ArrayRef) -> io::Result<Vec<Page<'a>>> {
    Ok(match column.data_type() {
        DataType::Int64 => {
            let array = column.as_primitive::<Int64Type>();
            vec![flat(field, column, Values::Words(array.iter().flatten().collect()))]
        }
        DataType::Float64 => {
            let bits = |value: f64| value.to_bits() as i64;
            let array = column.as_primitive::<Float64Type>();
            vec![flat(field, column, Values::Words(array.iter().flatten().map(bits).collect()))]
        }
        DataType::Utf8 => {
            let array = column.as_string::<i32>();
            vec![flat(field, column, Values::Texts(array.iter().flatten().collect()))]
        }
        DataType::Map(..) => map(column.as_map()).into(),
        other => return Err(io::Error::other(format!("tables have no {other}"))),
    })
}

fn flat<'a>(field: &Field, column: &dyn Array, values: Values<'a>) -> Page<'a> {
    let length = column.len();
    let definition = match field.is_nullable() {
        true => (0..length).map(|row| column.is_valid(row).into()).collect(),
        false => Vec::new(),
    };
    Page { repetition: Vec::new(), definition, length, values }
}

/// A key is repeated within its row (1) or begins one (0); it is there (1), or the row is empty (0).
/// A value may be null as well (1), or be there (2).
fn map(maps: &MapArray) -> [Page<'_>; 2] {
    let (keys, values) = (maps.keys().as_string::<i32>(), maps.values().as_string::<i32>());
    let page = |texts, definition, repetition: &Vec<u32>| {
        let length = repetition.len();
        Page { repetition: repetition.clone(), definition, length, values: Values::Texts(texts) }
    };
    let (mut repetition, mut of_keys, mut of_values) = (Vec::new(), Vec::new(), Vec::new());
    let (mut key_texts, mut value_texts) = (Vec::new(), Vec::new());
    for ends in maps.value_offsets().windows(2) {
        let entries = ends[0] as usize..ends[1] as usize;
        if entries.is_empty() {
            repetition.push(0);
            of_keys.push(0);
            of_values.push(0);
        }
        for entry in entries.clone() {
            repetition.push((entry > entries.start).into());
            of_keys.push(1);
            key_texts.push(keys.value(entry));
            if values.is_null(entry) {
                of_values.push(1);
            } else {
                of_values.push(2);
                value_texts.push(values.value(entry));
            }
        }
    }
    [page(key_texts, of_keys, &repetition), page(value_texts, of_values, &repetition)]
}
