//! Values as JSON text.

use std::fmt::Write;

use super::{Args, Entries, StringTable, Trace, Value};

impl Trace {
    /// A value as JSON text, on one line. What is not finite becomes a string, as Kineto
    /// writes it; an address becomes a number.
    pub fn json(&self, value: Value) -> String {
        let mut out = String::new();
        put(&mut out, &self.args, &self.strings, value, 0);
        out
    }
}

fn put(out: &mut String, args: &Args, strings: &StringTable, value: Value, depth: usize) {
    let written = match value {
        _ if depth > Args::MAX_DEPTH => write!(out, "null"),
        Value::Null => write!(out, "null"),
        Value::Bool(b) => write!(out, "{b}"),
        Value::I64(n) => write!(out, "{n}"),
        Value::U64(n) | Value::Pointer(n) => write!(out, "{n}"),
        Value::F64(x) if x.is_finite() => write!(out, "{x:?}"),
        Value::F64(x) => write!(out, "\"{}\"", x.to_string().to_lowercase()),
        Value::Json(id) => write!(out, "{}", strings.get(id)),
        Value::Str(id) => {
            put_text(out, strings.get(id));
            Ok(())
        }
        Value::List(list) => {
            out.push('[');
            for (n, item) in args.items(list).enumerate() {
                out.push_str(if n == 0 { "" } else { ", " });
                put(out, args, strings, item, depth + 1);
            }
            out.push(']');
            Ok(())
        }
        Value::Dict(dict) => {
            put_entries(out, args, strings, args.entries_of(dict), depth);
            Ok(())
        }
    };
    debug_assert!(written.is_ok(), "writing to a string does not fail");
}

fn put_entries(
    out: &mut String,
    args: &Args,
    strings: &StringTable,
    entries: Entries<'_>,
    depth: usize,
) {
    out.push('{');
    for (n, (name, value)) in entries.enumerate() {
        out.push_str(if n == 0 { "" } else { ", " });
        put_text(out, strings.get(name));
        out.push_str(": ");
        put(out, args, strings, value, depth + 1);
    }
    out.push('}');
}

/// Appends `text` as a JSON string.
pub fn put_text(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x20 => {
                out.push_str("\\u00");
                for shift in [4, 0] {
                    out.push(char::from_digit(c as u32 >> shift & 15, 16).unwrap_or('0'));
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_json() {
        let mut trace = Trace::default();
        let text = trace.strings.intern("a\"\\\u{1}\n\u{e9}");
        let list = trace.args.list(&[Value::F64(7.0), Value::Null, Value::F64(f64::NEG_INFINITY)]);
        let dict = trace.args.dict(&[(text, list), (text, Value::U64(u64::MAX))]);
        assert_eq!(
            trace.json(dict),
            r#"{"a\"\\\u0001\né": [7.0, null, "-inf"], "a\"\\\u0001\né": 18446744073709551615}"#
        );
    }
}
