//! Payloads to arguments.
//!
//! The layout comes from the program, and so may be nonsense: every read is checked
//! against the payload's size, nesting and the number of values are bounded, and a
//! pointer is only followed into a payload of the same event, or if the schema asks for a
//! deep copy of a string. What cannot be read is left out.
//!
//! A member of a nested structure is called `outer.inner`, an element of an array
//! `name[3]`. Arrays show their first elements, and their length if there are more.

use kymograph_protos::{ArgType, StrId};

use super::super::super::args::Args;
use super::super::super::guard::arg_left_out;
use super::super::super::memory;
use super::super::super::session::Session;
use super::super::super::text::{MAX_INTERNED, Text, ascii_n, clip};
use super::super::names;
use super::super::sys;
use super::blob::{Blob, decode, integer, is_zero_terminated, length, length_said};
use super::fields::{Primitive, Read, unsigned};
use super::schema::{Enumeration, Field, Schema, Type};

/// Elements of an array that are shown.
const SHOWN: usize = 16;
/// Structures in structures, at most.
const DEPTH: usize = 8;
/// Values looked at in one event, at most: arrays of arrays multiply.
const VALUES: u32 = 512;

/// Reads the payloads of one event.
pub(crate) struct Decoder<'a> {
    pub(crate) session: &'a Session,
    pub(crate) category: StrId,
    pub(crate) args: &'a mut Args,
    /// All payloads of the event, which pointers may lead into.
    pub(crate) blobs: &'a [Blob],
    /// The event's name, if an entry is its message.
    pub(crate) message: Option<Text<'static>>,
    pub(crate) path: Vec<u8>,
    pub(crate) left: u32,
    pub(crate) depth: usize,
}

/// Where the values of a member are, and how many.
struct Place {
    blob: Blob,
    offset: usize,
    count: usize,
    is_array: bool,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(
        session: &'a Session,
        category: StrId,
        args: &'a mut Args,
        blobs: &'a [Blob],
    ) -> Decoder<'a> {
        Decoder {
            session,
            category,
            args,
            blobs,
            message: None,
            path: Vec::new(),
            left: VALUES,
            depth: 0,
        }
    }

    /// Reads a structure at `base`; returns its size, if it could be told.
    pub(crate) fn schema(&mut self, schema: &Schema, blob: Blob, base: usize) -> Option<usize> {
        // Of a union it is not known here which member is meant.
        if !schema.is_struct || self.depth == DEPTH {
            return schema.size;
        }
        self.depth += 1;
        let mut cursor = Some(base);
        // Values of members, as lengths of later ones.
        let mut lengths = [None; 64];
        for (i, field) in schema.fields.iter().enumerate() {
            let align =
                if schema.pack == 0 { field.align() } else { field.align().min(schema.pack) };
            let at = match field.offset {
                Some(offset) => {
                    usize::try_from(offset).ok().and_then(|offset| base.checked_add(offset))
                }
                // Alignment counts from the structure's beginning.
                None => cursor.map(|at| base + (at - base).next_multiple_of(align.max(1))),
            };
            let (Some(at), Some(left)) = (at, self.left.checked_sub(1)) else {
                break;
            };
            self.left = left;
            if let Some(place) = lengths.get_mut(i) {
                *place = integer(field, blob, at);
            }
            cursor = self.field(field, blob, at, &lengths, schema.fields.len() == 1);
        }
        self.depth -= 1;
        let end = cursor.map(|end| (end - base).next_multiple_of(schema.align.max(1)));
        schema.size.or(end)
    }

    /// Reads a member; returns where the next one is looked for.
    fn field(
        &mut self,
        field: &Field,
        blob: Blob,
        at: usize,
        lengths: &[Option<u64>],
        alone: bool,
    ) -> Option<usize> {
        let mark = self.path.len();
        // A structure around one value (as Python's NVTX registers every scalar) has
        // nothing to tell apart.
        if mark == 0 || !alone {
            if mark > 0 {
                memory::append(&mut self.path, b".");
            }
            memory::append(&mut self.path, field.key.text());
        }
        let end = if field.is_reference() {
            self.reference(field, blob, at, lengths);
            at.checked_add(8)
        } else {
            self.values(field, blob, at, lengths)
        };
        self.path.truncate(mark);
        end
    }

    /// The values of a member that are in place. Returns where they end.
    fn values(
        &mut self,
        field: &Field,
        blob: Blob,
        at: usize,
        lengths: &[Option<u64>],
    ) -> Option<usize> {
        if let Type::Primitive(p @ Primitive { read: Read::Text, .. }) = field.ty {
            let length = length(field, p.size, blob, at, lengths)?;
            self.text(field, p.size, blob, at, length);
            let units = length.checked_add(usize::from(is_zero_terminated(field)))?;
            return at.checked_add(units.checked_mul(p.size)?);
        }
        let is_array = field.flags & sys::FLAG_ARRAY != 0;
        let stride = match field.ty {
            Type::Primitive(p) => Some(p.size),
            Type::Enumeration(names) => Some(names.size),
            Type::Schema(schema) => schema.size,
            Type::Unknown => return None,
        };
        let count = match stride {
            Some(stride) if is_array => length(field, stride, blob, at, lengths)?,
            _ if is_array => usize::try_from(length_said(field, lengths)?).ok()?,
            _ => 1,
        };
        let end = self.elements(field, &Place { blob, offset: at, count, is_array });
        let zero = usize::from(is_array && is_zero_terminated(field));
        match stride {
            Some(stride) => at.checked_add(count.checked_add(zero)?.checked_mul(stride)?),
            None => end,
        }
    }

    /// Elements of an array, or the one value. Returns where they end, if all were read.
    fn elements(&mut self, field: &Field, place: &Place) -> Option<usize> {
        if field.flags & sys::FLAG_HIDE != 0
            && !matches!(field.ty, Type::Schema(Schema { size: None, .. }))
        {
            return None;
        }
        if place.is_array
            && let Type::Primitive(p @ Primitive { read: Read::Character, .. }) = field.ty
        {
            self.text(field, p.size, place.blob, place.offset, place.count);
            return None;
        }
        let mut at = place.offset;
        let mark = self.path.len();
        for i in 0..place.count.min(SHOWN) {
            self.left = self.left.checked_sub(1)?;
            if place.is_array {
                let index = memory::format(format_args!("[{i}]"));
                memory::append(&mut self.path, &index.unwrap_or_default());
            }
            let size = match self.message_handle(field, place.blob, at) {
                Some(size) => Some(size),
                None => self.element(field.ty, place.blob, at),
            };
            self.path.truncate(mark);
            at = at.checked_add(size?)?;
        }
        if place.count > SHOWN {
            memory::append(&mut self.path, b".length");
            let key = self.key();
            self.args.unsigned(key, place.count as u64);
            self.path.truncate(mark);
            return None;
        }
        Some(at)
    }

    /// A registered string that is the event's message. Returns its size.
    fn message_handle(&mut self, field: &Field, blob: Blob, at: usize) -> Option<usize> {
        let Type::Primitive(Primitive { read: Read::Handle, size }) = field.ty else {
            return None;
        };
        if field.flags & sys::FLAG_ROLE != sys::ROLE_MESSAGE {
            return None;
        }
        let handle = std::ptr::without_provenance_mut(blob.unsigned(at, size)? as usize);
        self.message = Some(Text::Borrowed(names::registered_text(handle)?));
        Some(size)
    }

    /// Values of one type that fill a payload.
    pub(crate) fn plain(&mut self, p: Primitive, blob: Blob) {
        memory::append(&mut self.path, b"payload");
        let count = blob.size() / p.size;
        let field = Field::unnamed(Type::Primitive(p));
        if p.read == Read::Text {
            self.text(&field, p.size, blob, 0, count);
        } else {
            self.elements(&field, &Place { blob, offset: 0, count, is_array: count > 1 });
        }
        self.path.clear();
    }

    /// One value. Returns its size.
    fn element(&mut self, ty: Type, blob: Blob, at: usize) -> Option<usize> {
        match ty {
            Type::Primitive(p) => {
                self.number(p, blob.bytes(at, p.size)?);
                Some(p.size)
            }
            Type::Enumeration(names) => {
                let value = blob.unsigned(at, names.size)?;
                self.enumerated(names, value);
                Some(names.size)
            }
            Type::Schema(schema) => {
                if let Some(size) = schema.size {
                    blob.bytes(at, size)?;
                }
                self.schema(schema, blob, at)
            }
            Type::Unknown => None,
        }
    }

    fn number(&mut self, p: Primitive, bytes: &[u8]) {
        let key = self.key();
        match p.read {
            Read::Category => {
                let number = unsigned(bytes) as u32;
                names::category_arg(self.session, self.args, key, self.category, number);
            }
            Read::Handle => {
                let handle = std::ptr::without_provenance_mut(unsigned(bytes) as usize);
                match names::registered_text(handle) {
                    Some(text) => self.args.string(self.session, key, text),
                    None => self.args.add(key, ArgType::Pointer, unsigned(bytes)),
                }
            }
            Read::Wide => {
                let value = bytes.try_into().map_or(0, u128::from_le_bytes);
                self.args.string(self.session, key, format!("{value:#x}").as_bytes());
            }
            _ => {
                if let Some((ty, bits)) = p.number(bytes) {
                    self.args.add(key, ty, bits);
                }
            }
        }
    }

    fn enumerated(&mut self, names: &Enumeration, value: u64) {
        let key = self.key();
        match names.name(value) {
            Some(name) => self.args.string(self.session, key, &name),
            None => self.args.unsigned(key, value),
        }
    }

    /// A text of `count` code units, or up to a zero before that.
    fn text(&mut self, field: &Field, unit: usize, blob: Blob, at: usize, count: usize) {
        let size = count.min(MAX_INTERNED).saturating_mul(unit);
        let Some(bytes) = blob.bytes(at, size) else {
            return arg_left_out();
        };
        let text = decode(unit, bytes);
        self.string(field, text);
    }

    fn string(&mut self, field: &Field, text: Vec<u8>) {
        if field.flags & sys::FLAG_ROLE == sys::ROLE_MESSAGE {
            self.message = Some(Text::Owned(text));
        } else if field.flags & sys::FLAG_HIDE == 0 {
            let key = self.key();
            self.args.string(self.session, key, &text);
        }
    }

    /// A member that is elsewhere: its address or offset is in the payload.
    fn reference(&mut self, field: &Field, blob: Blob, at: usize, lengths: &[Option<u64>]) {
        let Some(value) = blob.unsigned(at, 8) else {
            return;
        };
        let place = if field.flags & sys::FLAG_POINTER != 0 {
            let found = |blob: &Blob| blob.offset_of(value).map(|offset| (*blob, offset));
            self.blobs.iter().find_map(found)
        } else if field.flags & sys::FLAG_OFFSETS == 1 << 2 {
            usize::try_from(value).ok().map(|offset| (blob, offset))
        } else {
            usize::try_from(value).ok().and_then(|v| (at + 8).checked_add(v)).map(|o| (blob, o))
        };
        if let Some((blob, offset)) = place {
            self.values(field, blob, offset, lengths);
            return;
        }
        let deep = field.flags & sys::FLAG_DEEP_COPY != 0 && value != 0;
        if deep && let Type::Primitive(Primitive { read: Read::Text, size: 1 }) = field.ty {
            let said = length_said(field, lengths).filter(|&n| n > 0).unwrap_or(u64::MAX);
            let most = usize::try_from(said).unwrap_or(usize::MAX).min(MAX_INTERNED);
            let text = std::ptr::with_exposed_provenance(value as usize);
            // SAFETY: the schema says that this is a string to be copied during the call.
            let text = unsafe { ascii_n(text, most) };
            return self.string(field, memory::concat(&[text]).unwrap_or_default());
        }
        if field.flags & sys::FLAG_HIDE == 0 {
            let key = self.key();
            self.args.add(key, ArgType::Pointer, value);
        }
    }

    /// The id of the argument name that the path spells.
    fn key(&self) -> StrId {
        self.session.intern_or_wait(StrId::NONE, clip(&self.path, 512))
    }
}
