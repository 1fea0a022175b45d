//! Fields: values on their way from `tracing` to an event.

use std::fmt::{self, Debug, Write};

use kymograph_protos::StrId;
use kymograph_protos::record::ArgType;
use tracing_core::field::{Field, Visit};

use super::sites::Site;
use crate::api::draft::Draft;
use crate::intern::INTERNER;
use crate::queue::PRODUCER;

/// Fields kept for one event.
const MAX_FIELDS: usize = 16;
/// Bytes of a formatted value or message; what is beyond is cut off and counted.
const MAX_TEXT: usize = 1024;

/// Values of fields: strings interned, so that they need no room.
#[derive(Debug, Default)]
pub struct Values {
    all: [(u8, Bits); MAX_FIELDS],
    len: usize,
    /// A string that could not be interned.
    long: Option<(u8, Box<[u8]>)>,
}

#[derive(Clone, Copy, Debug)]
struct Bits(ArgType, u64);

impl Default for Bits {
    fn default() -> Bits {
        Bits(ArgType::None, 0)
    }
}

impl Values {
    /// A visitor that takes values in. With `message`, the field of that name goes there.
    pub fn visit<'v>(&'v mut self, message: Option<&'v mut Text>) -> Visitor<'v> {
        Visitor { values: self, message }
    }

    /// Takes over newer values.
    pub fn update(&mut self, newer: Values) {
        for (field, bits) in &newer.all[..newer.len] {
            self.set(*field, *bits);
        }
        if let Some(long) = newer.long {
            let before = self.long.replace(long);
            if before.is_some() {
                cut_short();
            }
        }
    }

    /// Adds them to an event.
    pub fn add_to<'v>(&'v self, site: &Site, draft: &mut Draft<'v>) {
        for (field, Bits(ty, bits)) in &self.all[..self.len] {
            draft.arg(site.field((*field).into()), *ty, *bits);
        }
        if let Some((field, text)) = &self.long {
            draft.text_by_value(site.field((*field).into()), text);
        }
    }

    fn set(&mut self, field: u8, bits: Bits) {
        let known = self.all[..self.len].iter_mut().find(|(known, _)| *known == field);
        if let Some(slot) = known {
            slot.1 = bits;
        } else if let Some(slot) = self.all.get_mut(self.len) {
            *slot = (field, bits);
            self.len += 1;
        } else {
            cut_short();
        }
    }

    fn text(&mut self, field: u8, text: &[u8]) {
        match INTERNER.intern(StrId::NONE, StrId::NONE, text) {
            StrId::NONE if self.long.is_none() => self.long = Some((field, text.into())),
            StrId::NONE => cut_short(),
            id => self.set(field, Bits(ArgType::Str, id.0.into())),
        }
    }
}

fn cut_short() {
    PRODUCER.with(|producer| producer.cut_short());
}

/// Text that is formatted without allocating.
pub struct Text {
    bytes: [u8; MAX_TEXT],
    len: usize,
    said: bool,
}

impl Default for Text {
    fn default() -> Text {
        Text { bytes: [0; MAX_TEXT], len: 0, said: false }
    }
}

impl Text {
    /// The text, if one was formatted.
    pub fn text(&self) -> Option<&[u8]> {
        self.said.then_some(&self.bytes[..self.len])
    }

    fn format(&mut self, value: &dyn Debug) -> &[u8] {
        (self.len, self.said) = (0, true);
        if write!(self, "{value:?}").is_err() {
            cut_short();
        }
        &self.bytes[..self.len]
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut fits = text.len().min(MAX_TEXT - self.len);
        while !text.is_char_boundary(fits) {
            fits -= 1;
        }
        self.bytes[self.len..self.len + fits].copy_from_slice(&text.as_bytes()[..fits]);
        self.len += fits;
        if fits == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

/// Takes in values.
pub struct Visitor<'v> {
    values: &'v mut Values,
    message: Option<&'v mut Text>,
}

impl Visitor<'_> {
    fn set(&mut self, field: &Field, ty: ArgType, bits: u64) {
        self.values.set(index(field), Bits(ty, bits));
    }
}

fn index(field: &Field) -> u8 {
    field.index().min(u8::MAX.into()) as u8
}

impl Visit for Visitor<'_> {
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, ArgType::Bool, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, ArgType::I64, value as u64);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, ArgType::U64, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, ArgType::F64, value.to_bits());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match &mut self.message {
            Some(message) if field.name() == "message" => {
                message.format(&format_args!("{value}"));
            }
            _ => self.values.text(index(field), value.as_bytes()),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match &mut self.message {
            Some(message) if field.name() == "message" => {
                message.format(value);
            }
            _ => {
                let mut text = Text::default();
                self.values.text(index(field), text.format(value));
            }
        }
    }
}
