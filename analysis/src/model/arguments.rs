//! Arguments of events, by name.
//!
//! A name is looked up once per metric, with [`StringTable::find`]: a trace that does not have
//! the string has no argument of that name. Those who ask many events take an [`Argument`].
//!
//! [`StringTable::find`]: kymograph_converters::trace::StringTable::find

use kymograph_converters::trace::{ArgsId, Finder, ListId, StrId, Value};

use super::Model;

/// The argument of one name of any event.
#[derive(Clone, Debug)]
pub struct Argument<'m, 'a> {
    model: &'m Model<'a>,
    /// None if no event has such an argument.
    finder: Option<Finder>,
}

impl Argument<'_, '_> {
    /// Whether any event may have it.
    pub fn is_known(&self) -> bool {
        self.finder.is_some()
    }

    /// Its value.
    #[inline]
    pub fn value(&self, row: u32) -> Option<Value> {
        self.value_in(self.model.events.args(self.model.trace, row))
    }

    /// Its value in a set of arguments of the trace.
    #[inline]
    pub fn value_in(&self, set: Option<ArgsId>) -> Option<Value> {
        self.finder.as_ref()?.find(&self.model.trace.args, set)
    }

    /// Its value, if that is a whole number.
    #[inline]
    pub fn int(&self, row: u32) -> Option<i64> {
        whole(self.value(row)?)
    }

    /// Its value, if that is a number.
    #[inline]
    pub fn float(&self, row: u32) -> Option<f64> {
        number(self.value(row)?)
    }

    /// Its value, if that is a list.
    #[inline]
    pub fn list(&self, row: u32) -> Option<ListId> {
        match self.value(row)? {
            Value::List(list) => Some(list),
            _ => None,
        }
    }
}

impl<'a> Model<'a> {
    /// The argument of a name, for those who ask many events for it.
    pub fn argument(&self, name: &str) -> Argument<'_, 'a> {
        let finder = self.trace.strings.find(name).map(|name| self.trace.args.finder(name));
        Argument { model: self, finder }
    }

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
        self.texts_of(list).collect()
    }

    /// Likewise, one after the other.
    pub fn texts_of(&self, list: ListId) -> impl Iterator<Item = &'a str> + '_ {
        let text = |value| match value {
            Value::Str(text) => self.text(text),
            _ => "",
        };
        self.trace.args.items(list).map(text)
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
