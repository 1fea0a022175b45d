//! Where names come from, and what becomes of bytes that are no text.

use std::borrow::Cow;

use super::event::Arg;
use crate::StrId;

/// What an id stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Text<'a> {
    /// The text; any bytes.
    pub bytes: &'a [u8],
    /// The category that it belongs to, if any.
    pub category: StrId,
    /// The name of the first argument of events so named, if any.
    pub arg: StrId,
}

/// Resolves ids.
pub trait Strings {
    /// What `id` stands for; empty when unknown.
    fn text(&self, id: StrId) -> Text<'_>;

    /// Appends what a [`super::Value::Tree`] stands for: a list or dictionary and what
    /// belongs to it.
    fn tree<'a>(&'a self, _tree: u64, _out: &mut Vec<Arg<'a>>) {}
}

/// The closest text that Perfetto can carry: invalid UTF-8 becomes U+FFFD, and NUL, at
/// which trace_processor would cut the string off, becomes its picture U+2400.
pub fn clean(bytes: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(bytes);
    if text.contains('\0') { text.replace('\0', "\u{2400}").into() } else { text }
}
