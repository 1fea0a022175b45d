//! Arguments that are not a number, a name and a common type: strings by value, `null`,
//! lists and dictionaries. Cold for the engine, common in converted traces.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

use super::cursor::Cursor;
use super::event::{Arg, Name, Value};
use super::keys;
use super::message::{Message, varint, varint_len};
use super::sequence::{ARG_NAMES, STRINGS, Sequence, introduce};
use super::text::Strings;
use crate::StrId;
use crate::fields::debug_annotation;

/// What `proto_type_name` says of a text that is JSON.
pub const JSON_TYPE: &str = "json";

/// `NestedValue`s that have only a type.
const EMPTY_DICT: &[u8] = &[0x08, 1];
const EMPTY_LIST: &[u8] = &[0x08, 2];

/// [`Value::Tree`]s that a sequence has said, encoded: shapes of tensors repeat all the
/// time. What they refer to by number holds as long as they do.
#[derive(Debug, Default)]
pub(super) struct Trees {
    places: HashMap<u64, Range<usize>, BuildHasherDefault<Scatter>>,
    bytes: Vec<u8>,
}

/// Hashes numbers of trees. Numbers that are made to collide slow down only the process that made them.
#[derive(Debug, Default)]
struct Scatter(u64);

impl Hasher for Scatter {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number) * 0x9e37_79b9_7f4a_7c15;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Trees {
    pub(super) fn clear(&mut self) {
        self.places.clear();
        self.bytes.clear();
    }
}

impl Sequence {
    /// A `DebugAnnotation` (field 4) whose value is a tree.
    pub(super) fn tree_arg(
        &mut self,
        to: &mut Cursor<'_>,
        strings: &impl Strings,
        name: StrId,
        tree: u64,
    ) {
        let name = u64::from(self.arg_name(strings, name));
        let place = self.tree(strings, tree);
        let value = &self.trees.bytes[place];
        to.nested(|out| {
            out.push(keys::DEBUG_ANNOTATIONS);
            varint(out, (1 + varint_len(name) + value.len()) as u64);
            out.push(keys::ARG_NAME_IID);
            varint(out, name);
            out.extend_from_slice(value);
        });
    }

    /// The fields of a tree's `DebugAnnotation`, but for its name.
    fn tree(&mut self, strings: &impl Strings, tree: u64) -> Range<usize> {
        if let Some(place) = self.trees.places.get(&tree) {
            return place.clone();
        }
        let (mut args, mut fields) = (Vec::new(), Vec::new());
        strings.tree(tree, &mut args);
        self.annotation(&mut Message::new(&mut fields), strings, &args, false);
        let start = self.trees.bytes.len();
        self.trees.bytes.extend_from_slice(&fields);
        let place = start..self.trees.bytes.len();
        self.trees.places.insert(tree, place.clone());
        place
    }

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
                to.uint(debug_annotation::NAME_IID, self.arg_name(strings, id).into());
            }
            Name::Bytes(bytes) => {
                to.text(debug_annotation::NAME, bytes);
            }
        }
        match arg.value {
            Value::Bool(b) => to.uint(debug_annotation::BOOL_VALUE, b.into()),
            Value::U64(n) => to.uint(debug_annotation::UINT_VALUE, n),
            Value::I64(n) => to.int(debug_annotation::INT_VALUE, n),
            Value::F64(x) => to.double(debug_annotation::DOUBLE_VALUE, x),
            Value::Pointer(p) => to.uint(debug_annotation::POINTER_VALUE, p),
            Value::Str(id) => {
                let iid = match self.strings.get(id) {
                    0 => introduce(&mut self.strings, &mut self.fresh, STRINGS, strings, id),
                    iid => iid,
                };
                to.uint(debug_annotation::STRING_VALUE_IID, iid.into())
            }
            Value::Bytes(bytes) => to.text(debug_annotation::STRING_VALUE, bytes),
            // Not the field for JSON: trace_processor aborts on a null in it. A text, and a
            // type that says what it is.
            Value::Json(id) => to
                .text(debug_annotation::STRING_VALUE, strings.text(id).bytes)
                .text(debug_annotation::PROTO_TYPE_NAME, JSON_TYPE.as_bytes()),
            // Readers leave out what has no value.
            Value::Null => to,
            // An empty list or dictionary has only the old form.
            Value::List(0) => to.bytes(debug_annotation::NESTED_VALUE, EMPTY_LIST),
            Value::Dict(0) => to.bytes(debug_annotation::NESTED_VALUE, EMPTY_DICT),
            Value::List(items) => {
                return 1 + self.branch(to, strings, debug_annotation::ARRAY_VALUES, items, rest);
            }
            Value::Dict(entries) => {
                return 1 + self.branch(to, strings, debug_annotation::DICT_ENTRIES, entries, rest);
            }
            Value::Tree(tree) => {
                let place = self.tree(strings, tree);
                to.raw(&self.trees.bytes[place])
            }
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
