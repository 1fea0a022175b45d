//! Debug annotations: arguments of track events.

use hashbrown::HashMap;
use kymograph_protos::fields::debug_annotation::{self, nested_value};
use kymograph_protos::fields::track_event::inline_callstack::{self, frame};
use kymograph_protos::packet::JSON_TYPE;

use super::sequence::{Frame, Sequence, Source, Tables, intern_text};
use crate::json::is_valid;
use crate::perfetto::wire::{self, Field, Fields};
use crate::trace::{Args, StrId, StringTable, Value};

/// Where values are put.
pub struct Into<'a> {
    pub args: &'a mut Args,
    pub strings: &'a mut StringTable,
    pub tables: &'a Tables,
    /// Lists and dictionaries that came before.
    pub seen: &'a mut Seen,
    /// Iids that were not in their table.
    pub missing: &'a mut u64,
    /// Values that lay too deep.
    pub too_deep: &'a mut u64,
}

/// Values of lists and dictionaries by their bytes: what those refer to by number stays the
/// same until the sequence is cleared. Shapes of tensors repeat all the time.
pub type Seen = HashMap<Box<[u8]>, Value>;

/// Values that are remembered, and how long they may be.
const SEEN: usize = 1 << 14;
const SEEN_BYTES: usize = 512;

impl Into<'_> {
    /// The `DebugAnnotation` of an event.
    pub fn argument(&mut self, field: Field<'_>) -> (StrId, Value) {
        let mut rest = field.bytes();
        // A name by number, then a list or dictionary, as most writers put it.
        let name = wire::varint(&mut rest).filter(|tag| *tag == 0x08);
        let name = name.and_then(|_| wire::varint(&mut rest));
        let Some(name) = name.filter(|_| matches!(rest.first(), Some(0x5a | 0x62))) else {
            return self.annotation(field, 0);
        };
        if let Some(value) = self.seen.get(rest).copied() {
            return (self.known(self.tables.arg_names.get(name)), value);
        }
        let odd = (*self.missing, *self.too_deep);
        let (name, value) = self.annotation(field, 0);
        let whole = odd == (*self.missing, *self.too_deep);
        if whole && rest.len() <= SEEN_BYTES && self.seen.len() < SEEN {
            self.seen.insert(rest.into(), value);
        }
        (name, value)
    }

    /// A `DebugAnnotation`.
    fn annotation(&mut self, field: Field<'_>, depth: usize) -> (StrId, Value) {
        let mut name = StrId::NONE;
        let mut value = Value::Null;
        let mut items = Vec::new();
        let mut entries = Vec::new();
        let mut message = None;
        let mut is_json = false;
        for (number, field) in field.fields() {
            match number {
                debug_annotation::NAME_IID => {
                    name = self.known(self.tables.arg_names.get(field.uint()))
                }
                debug_annotation::NAME => name = intern_text(self.strings, field.bytes()),
                debug_annotation::BOOL_VALUE => value = Value::Bool(field.uint() != 0),
                debug_annotation::UINT_VALUE => value = Value::U64(field.uint()),
                debug_annotation::INT_VALUE => value = Value::I64(field.int()),
                debug_annotation::DOUBLE_VALUE => value = Value::F64(field.double()),
                debug_annotation::STRING_VALUE => {
                    value = Value::Str(intern_text(self.strings, field.bytes()))
                }
                debug_annotation::POINTER_VALUE => value = Value::Pointer(field.uint()),
                debug_annotation::NESTED_VALUE => value = self.nested(field.fields(), depth),
                debug_annotation::LEGACY_JSON_VALUE => value = self.json(field.bytes()),
                debug_annotation::STRING_VALUE_IID => {
                    value = Value::Str(self.known(self.tables.strings.get(field.uint())))
                }
                debug_annotation::DICT_ENTRIES | debug_annotation::ARRAY_VALUES
                    if depth >= Args::MAX_DEPTH =>
                {
                    *self.too_deep += 1
                }
                debug_annotation::DICT_ENTRIES => entries.push(self.annotation(field, depth + 1)),
                debug_annotation::ARRAY_VALUES => items.push(self.annotation(field, depth + 1).1),
                debug_annotation::PROTO_VALUE => message = Some(field.bytes()),
                debug_annotation::PROTO_TYPE_NAME => {
                    is_json = field.bytes() == JSON_TYPE.as_bytes()
                }
                _ => {}
            }
        }
        if !entries.is_empty() {
            value = self.args.dict(&entries);
        } else if !items.is_empty() {
            value = self.args.list(&items);
        } else if let (Value::Null, Some(message)) = (value, message) {
            // Its type is described elsewhere; its bytes are kept.
            let hex: String = message.iter().map(|byte| format!("{byte:02x}")).collect();
            value = Value::Str(self.strings.intern(&hex));
        }
        if let (Value::Str(text), true) = (value, is_json && self.is_json(value)) {
            value = Value::Json(text);
        }
        (name, value)
    }

    /// `DebugAnnotation.NestedValue`, how lists and dictionaries used to be written; and
    /// still are when they are empty.
    fn nested(&mut self, fields: Fields<'_>, depth: usize) -> Value {
        let mut kind = 0;
        let (mut keys, mut values, mut items) = (Vec::new(), Vec::new(), Vec::new());
        let mut value = Value::Null;
        for (number, field) in fields {
            match number {
                nested_value::NESTED_TYPE => kind = field.uint(),
                nested_value::DICT_KEYS => keys.push(intern_text(self.strings, field.bytes())),
                nested_value::DICT_VALUES | nested_value::ARRAY_VALUES
                    if depth >= Args::MAX_DEPTH =>
                {
                    *self.too_deep += 1
                }
                nested_value::DICT_VALUES => values.push(self.nested(field.fields(), depth + 1)),
                nested_value::ARRAY_VALUES => items.push(self.nested(field.fields(), depth + 1)),
                nested_value::INT_VALUE => value = Value::I64(field.int()),
                nested_value::DOUBLE_VALUE => value = Value::F64(field.double()),
                nested_value::BOOL_VALUE => value = Value::Bool(field.uint() != 0),
                nested_value::STRING_VALUE => {
                    value = Value::Str(intern_text(self.strings, field.bytes()))
                }
                _ => {}
            }
        }
        match kind {
            1 => {
                let entries: Vec<_> = keys.into_iter().zip(values).collect();
                self.args.dict(&entries)
            }
            2 => self.args.list(&items),
            _ => value,
        }
    }

    fn json(&mut self, bytes: &[u8]) -> Value {
        match bytes {
            b"null" => Value::Null,
            _ => {
                let text = intern_text(self.strings, bytes);
                let is_json = self.is_json(Value::Str(text));
                if is_json { Value::Json(text) } else { Value::Str(text) }
            }
        }
    }

    /// Whether a text is JSON, as it says. If not, it stays a text.
    fn is_json(&self, value: Value) -> bool {
        matches!(value, Value::Str(text) if is_valid(self.strings.get(text)))
    }

    fn known(&mut self, id: Option<&StrId>) -> StrId {
        id.copied().unwrap_or_else(|| {
            *self.missing += 1;
            StrId::NONE
        })
    }

    /// A line of source text, as a dictionary.
    pub fn source(&mut self, source: Source) -> (StrId, Value) {
        let mut entries = Vec::new();
        if !source.file.is_none() {
            entries.push((self.strings.intern("file_name"), Value::Str(source.file)));
        }
        if !source.function.is_none() {
            entries.push((self.strings.intern("function_name"), Value::Str(source.function)));
        }
        if source.line != 0 {
            entries.push((self.strings.intern("line_number"), Value::U64(source.line)));
        }
        (self.strings.intern("source"), self.args.dict(&entries))
    }

    /// The functions of an interned callstack, outermost first.
    pub fn callstack(&mut self, iid: u64) -> (StrId, Value) {
        let tables = self.tables;
        let ids = tables.callstacks.get(iid);
        *self.missing += u64::from(ids.is_none());
        let frames: Vec<Value> = ids
            .into_iter()
            .flatten()
            .map(|id| {
                let frame = tables.frames.get(*id).copied().unwrap_or_default();
                Value::Str(self.frame(frame))
            })
            .collect();
        (self.strings.intern("callstack"), self.args.list(&frames))
    }

    fn frame(&mut self, frame: Frame) -> StrId {
        let function = self.tables.functions.get(frame.function).copied();
        let path = self.tables.source_paths.get(frame.source).copied();
        self.framed(function, path, frame.line)
    }

    fn framed(&mut self, function: Option<StrId>, path: Option<StrId>, line: u64) -> StrId {
        let function = function.unwrap_or_default();
        let Some(path) = path else { return function };
        let (function, path) = (self.strings.get(function), self.strings.get(path));
        let text = match line {
            0 => format!("{function} ({path})"),
            line => format!("{function} ({path}:{line})"),
        };
        self.strings.intern(&text)
    }

    /// The functions of an `InlineCallstack`.
    pub fn inline_callstack(&mut self, field: Field<'_>) -> (StrId, Value) {
        let mut frames = Vec::new();
        for (_, frame) in field.fields().filter(|(number, _)| *number == inline_callstack::FRAMES) {
            let (mut function, mut path, mut line) = (None, None, 0);
            for (number, field) in frame.fields() {
                match number {
                    frame::FUNCTION_NAME => {
                        function = Some(intern_text(self.strings, field.bytes()))
                    }
                    frame::SOURCE_FILE => path = Some(intern_text(self.strings, field.bytes())),
                    frame::LINE_NUMBER => line = field.uint(),
                    _ => {}
                }
            }
            frames.push(Value::Str(self.framed(function, path, line)));
        }
        (self.strings.intern("callstack"), self.args.list(&frames))
    }
}

impl Sequence {
    /// Where values of this sequence's events are put.
    pub fn into<'a>(
        &'a mut self,
        args: &'a mut Args,
        strings: &'a mut StringTable,
        missing: &'a mut u64,
        too_deep: &'a mut u64,
    ) -> Into<'a> {
        Into { args, strings, tables: &self.tables, seen: &mut self.seen, missing, too_deep }
    }
}
