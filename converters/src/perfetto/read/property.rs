//! Names with texts, which stand for values of other types where they look like them.

use kymograph_protos::fields::gpu_render_stage_event::extra_data;

use super::sequence::intern_text;
use crate::json::is_valid;
use crate::perfetto::wire::Field;
use crate::trace::{StrId, StringTable, Value};

/// A name and a text, as `ExtraData` and `KeyValue` have them.
fn extra_data(field: Field<'_>, strings: &mut StringTable) -> (StrId, Value) {
    let (mut name, mut value) = (StrId::NONE, Value::Null);
    for (number, field) in field.fields() {
        match number {
            extra_data::NAME => name = intern_text(strings, field.bytes()),
            extra_data::VALUE => value = Value::Str(intern_text(strings, field.bytes())),
            _ => {}
        }
    }
    (name, value)
}

/// An activity's `ExtraData`: a text, which is JSON where a value has no other form there.
pub fn extra_fact(field: Field<'_>, strings: &mut StringTable) -> (StrId, Value) {
    let (name, value) = extra_data(field, strings);
    let Value::Str(text) = value else { return (name, value) };
    let value = match strings.get(text) {
        "null" => Value::Null,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        json if json.starts_with(['[', '{']) && is_valid(json) => Value::Json(text),
        _ => value,
    };
    (name, value)
}

/// A property of a device: a text, which stands for a number where it is one.
pub fn property(field: Field<'_>, strings: &mut StringTable) -> (StrId, Value) {
    let (name, value) = extra_fact(field, strings);
    let Value::Str(text) = value else { return (name, value) };
    let text = strings.get(text);
    let value = match number(text) {
        Some(number) => number,
        None => match text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
            Some(quoted) => {
                let quoted = quoted.to_owned();
                Value::Str(strings.intern(&quoted))
            }
            None => value,
        },
    };
    (name, value)
}

/// The number that a text is, if it is what the number is written as.
fn number(text: &str) -> Option<Value> {
    if let Ok(n) = text.parse::<i64>() {
        return (n.to_string() == text).then_some(Value::I64(n));
    }
    if let Ok(n) = text.parse::<u64>() {
        return (n.to_string() == text).then_some(Value::U64(n));
    }
    let x = text.parse::<f64>().ok()?;
    (format!("{x:?}") == text && x.is_finite()).then_some(Value::F64(x))
}

/// Whether the text of a property stands for itself. Others are put in quotes.
pub fn is_text(text: &str) -> bool {
    let word = matches!(text, "null" | "true" | "false");
    !word && !text.starts_with(['[', '{', '"']) && number(text).is_none()
}
