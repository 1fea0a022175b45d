//! Arguments that are not a number, a name and a common type: strings by value, `null`,
//! lists and dictionaries. Cold for the engine, common in converted traces.

use super::event::{Arg, Name, Value};
use super::message::Message;
use super::sequence::{ARG_NAMES, STRINGS, Sequence, introduce};
use super::text::Strings;
use crate::StrId;

/// `NestedValue`s that have only a type.
const EMPTY_DICT: &[u8] = &[0x08, 1];
const EMPTY_LIST: &[u8] = &[0x08, 2];

impl Sequence {
    /// Writes the fields of the `DebugAnnotation` that `args` begins with, without a name
    /// if it is the item of a list. Returns how many of `args` it took.
    pub(super) fn annotation(
        &mut self,
        to: &mut Message<'_>,
        strings: &impl Strings,
        args: &[Arg<'_>],
        named: bool,
    ) -> usize {
        let [arg, rest @ ..] = args else { return 1 };
        match arg.name {
            _ if !named => {}
            Name::Id(id) => {
                to.uint(1, self.arg_name(strings, id).into());
            }
            Name::Bytes(bytes) => {
                to.text(10, bytes);
            }
        }
        match arg.value {
            Value::Bool(b) => to.uint(2, b.into()),
            Value::U64(n) => to.uint(3, n),
            Value::I64(n) => to.int(4, n),
            Value::F64(x) => to.double(5, x),
            Value::Pointer(p) => to.uint(7, p),
            Value::Str(id) => {
                let iid = match self.strings.get(id) {
                    0 => introduce(&mut self.strings, &mut self.fresh, STRINGS, strings, id),
                    iid => iid,
                };
                to.uint(17, iid.into())
            }
            Value::Bytes(bytes) => to.text(6, bytes),
            Value::Json(id) => to.text(9, strings.text(id).bytes),
            // Without a value, readers would leave the argument out.
            Value::Null => to.text(9, b"null"),
            // An empty list or dictionary has only the old form.
            Value::List(0) => to.bytes(8, EMPTY_LIST),
            Value::Dict(0) => to.bytes(8, EMPTY_DICT),
            Value::List(items) => return 1 + self.branch(to, strings, 12, items, rest),
            Value::Dict(entries) => return 1 + self.branch(to, strings, 11, entries, rest),
        };
        1
    }

    fn branch(
        &mut self,
        to: &mut Message<'_>,
        strings: &impl Strings,
        field: u32,
        count: u32,
        args: &[Arg<'_>],
    ) -> usize {
        let mut used = 0;
        for _ in 0..count {
            let rest = args.get(used..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            to.message(field, |item| {
                used += self.annotation(item, strings, rest, field == 11);
            });
        }
        used
    }

    fn arg_name(&mut self, strings: &impl Strings, id: StrId) -> u32 {
        match self.arg_names.get(id) {
            0 => introduce(&mut self.arg_names, &mut self.fresh, ARG_NAMES, strings, id),
            iid => iid,
        }
    }
}
