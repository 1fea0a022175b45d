//! Arguments: values of JSON into the hub.

use hashbrown::HashMap;

use crate::json::{self, Kind, Str, number};
use crate::trace::{Args, StrId, Trace, Value};

/// Puts values into the hub. Remembers what came before, since traces repeat themselves.
#[derive(Debug, Default)]
pub(crate) struct Values {
    keys: Keys,
    /// Lists and dictionaries by their text, when it is short: shapes of tensors.
    seen: HashMap<Box<str>, Value>,
    /// Lists by the numbers that the document has for them.
    lists: Vec<Option<Value>>,
    /// Items of the lists that are being read.
    items: Vec<Value>,
    entries: Vec<(StrId, Value)>,
}

/// Texts of lists that are remembered, and how long they may be.
const SEEN: usize = 1 << 14;
const SEEN_BYTES: usize = 200;

impl Values {
    /// The number of the name of an argument.
    #[inline]
    pub(super) fn key(&mut self, trace: &mut Trace, key: Str<'_>) -> StrId {
        self.keys.number(trace, key.key_number().unwrap_or(0), || Some(key))
    }

    /// The number of the name of this argument, by that of its key.
    #[inline]
    pub(super) fn numbered(
        &mut self,
        trace: &mut Trace,
        number: usize,
        value: json::Value<'_>,
    ) -> StrId {
        self.keys.number(trace, number, || value.key())
    }

    /// Adds an argument. What most are is put where it belongs at once: a value that passes through
    /// memory is written in parts, and slow to read as a whole.
    #[inline]
    pub(super) fn add(
        &mut self,
        trace: &mut Trace,
        name: StrId,
        value: json::Value<'_>,
        to: &mut Vec<(StrId, Value)>,
    ) {
        if let Some(short) = json::short_integer(value) {
            to.push((name, Value::I64(short)));
        } else if value.kind() == Kind::String {
            to.push((name, Value::Str(intern(trace, value.as_str()))));
        } else if let Some(known) = self.known_list(value) {
            to.push((name, *known));
        } else {
            to.push((name, self.value(trace, value)));
        }
    }

    /// The value; text of JSON where the hub has no type for it.
    pub(crate) fn value(&mut self, trace: &mut Trace, value: json::Value<'_>) -> Value {
        match value.kind() {
            Kind::Int | Kind::Float => match number(value) {
                Some(json::Number::Int(n)) => Value::I64(n),
                Some(json::Number::Uint(n)) => Value::U64(n),
                Some(json::Number::Float(x)) => Value::F64(x),
                _ => text_of(trace, value),
            },
            Kind::String => Value::Str(intern(trace, value.as_str())),
            Kind::True => Value::Bool(true),
            Kind::False => Value::Bool(false),
            Kind::Null => Value::Null,
            Kind::Array | Kind::Object => self.known(trace, value),
        }
    }

    /// The value of a list that came before.
    #[inline]
    fn known_list(&self, value: json::Value<'_>) -> Option<&Value> {
        self.lists.get(value.list_number()?)?.as_ref()
    }

    fn known(&mut self, trace: &mut Trace, value: json::Value<'_>) -> Value {
        if let Some(known) = self.known_list(value) {
            return *known;
        }
        let number = value.list_number();
        let result = self.remembered(trace, value);
        if let Some(number) = number {
            self.lists.resize(self.lists.len().max(number + 1), None);
            self.lists[number] = Some(result);
        }
        result
    }

    fn remembered(&mut self, trace: &mut Trace, value: json::Value<'_>) -> Value {
        let raw = value.raw();
        if let Some(&seen) = self.seen.get(raw) {
            return seen;
        }
        let result = self.nested(trace, value, Args::MAX_DEPTH - 1);
        if raw.len() <= SEEN_BYTES && self.seen.len() < SEEN {
            self.seen.insert(raw.into(), result);
        }
        result
    }

    fn nested(&mut self, trace: &mut Trace, value: json::Value<'_>, depth: usize) -> Value {
        if depth == 0 {
            return text_of(trace, value);
        }
        match value.kind() {
            Kind::Array => {
                let first = self.items.len();
                for item in value.items() {
                    let item = self.nested(trace, item, depth - 1);
                    self.items.push(item);
                }
                let list = trace.args.list(&self.items[first..]);
                self.items.truncate(first);
                list
            }
            Kind::Object => {
                let first = self.entries.len();
                for (key, value) in value.fields() {
                    let key = intern(trace, Some(key));
                    let value = self.nested(trace, value, depth - 1);
                    self.entries.push((key, value));
                }
                let dict = trace.args.dict(&self.entries[first..]);
                self.entries.truncate(first);
                dict
            }
            _ => self.value(trace, value),
        }
    }
}

/// The value as JSON text.
pub(super) fn text_of(trace: &mut Trace, value: json::Value<'_>) -> Value {
    let mut text = Vec::new();
    json::write_value(&mut text, value);
    Value::Json(trace.strings.intern(&String::from_utf8_lossy(&text)))
}

/// The number of a string; none for none.
#[inline]
pub(super) fn intern(trace: &mut Trace, text: Option<Str<'_>>) -> StrId {
    match text {
        None => StrId::NONE,
        Some(text) if text.escaped() => trace.strings.intern(&text.text()),
        Some(text) => trace.strings.intern(text.raw()),
    }
}

/// The hub's numbers of names, by those that the document has for them.
#[derive(Debug, Default)]
struct Keys(Vec<Option<StrId>>);

impl Keys {
    /// That of the key with this number, 0 if it has none, which `key` gives.
    #[inline]
    fn number<'a>(
        &mut self,
        trace: &mut Trace,
        number: usize,
        key: impl FnOnce() -> Option<Str<'a>>,
    ) -> StrId {
        match self.0.get(number) {
            Some(Some(id)) => *id,
            _ => self.look_up(trace, number, key()),
        }
    }

    #[cold]
    fn look_up(&mut self, trace: &mut Trace, number: usize, key: Option<Str<'_>>) -> StrId {
        let id = intern(trace, key);
        if number != 0 {
            self.0.resize(self.0.len().max(number + 1), None);
            self.0[number] = Some(id);
        }
        id
    }
}
