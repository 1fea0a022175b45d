//! Arguments of events, by name.
//!
//! A name is looked up once per metric, with [`StringTable::find`]: a trace that does not have
//! the string has no argument of that name.
//!
//! [`StringTable::find`]: kymograph_converters::trace::StringTable::find

use kymograph_converters::trace::{ListId, StrId, Value};

use super::Model;

impl<'a> Model<'a> {
    /// An argument of an event.
    pub fn arg(&self, row: u32, name: Option<StrId>) -> Option<Value> {
        self.trace.args.find(self.events.args(self.trace, row), name?)
    }

    /// An argument that is a whole number.
    pub fn int(&self, row: u32, name: Option<StrId>) -> Option<i64> {
        whole(self.arg(row, name)?)
    }

    /// An argument that is a number.
    pub fn float(&self, row: u32, name: Option<StrId>) -> Option<f64> {
        number(self.arg(row, name)?)
    }

    /// An argument that is a list.
    pub fn list(&self, row: u32, name: Option<StrId>) -> Option<ListId> {
        match self.arg(row, name)? {
            Value::List(list) => Some(list),
            _ => None,
        }
    }

    /// A value as text: strings as they are, anything else as JSON.
    pub fn plain(&self, value: Value) -> String {
        match value {
            Value::Str(text) => self.text(text).to_owned(),
            value => self.trace.json(value),
        }
    }

    /// The texts of a list; what is no text is empty.
    pub fn texts(&self, list: ListId) -> Vec<&'a str> {
        let text = |value| match value {
            Value::Str(text) => self.text(text),
            _ => "",
        };
        self.trace.args.items(list).map(text).collect()
    }

    /// The numbers of a list; `None` if anything else is in it.
    pub fn numbers(&self, list: ListId) -> Option<Vec<f64>> {
        self.trace.args.items(list).map(number).collect()
    }
}

/// A whole number.
pub fn whole(value: Value) -> Option<i64> {
    match value {
        Value::I64(n) => Some(n),
        Value::U64(n) => i64::try_from(n).ok(),
        _ => None,
    }
}

/// A number of any type.
pub fn number(value: Value) -> Option<f64> {
    match value {
        Value::I64(n) => Some(n as f64),
        Value::U64(n) => Some(n as f64),
        Value::F64(x) => Some(x),
        _ => None,
    }
}
