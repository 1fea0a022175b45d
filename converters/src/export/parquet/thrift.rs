//! Thrift's compact protocol, of which Parquet's metadata consists: as much of it as is written.

/// The types of fields and of the elements of lists.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    I32 = 5,
    I64 = 6,
    Binary = 8,
    List = 9,
    Struct = 12,
}

/// A struct that is being written: fields in ascending order of their ids, then its end.
pub(super) struct Struct<'a> {
    out: &'a mut Vec<u8>,
    last: i16,
}

impl<'a> Struct<'a> {
    /// Writes a struct by what `fields` puts into it.
    pub(super) fn write(out: &'a mut Vec<u8>, fields: impl FnOnce(&mut Struct<'_>)) {
        let mut this = Struct { out, last: 0 };
        fields(&mut this);
        this.out.push(0);
    }

    fn field(&mut self, id: i16, kind: Kind) {
        debug_assert!((1..16).contains(&(id - self.last)), "ids ascend, by less than sixteen");
        self.out.push(((id - self.last) as u8) << 4 | kind as u8);
        self.last = id;
    }

    pub(super) fn i32(&mut self, id: i16, value: i32) {
        self.field(id, Kind::I32);
        varint(self.out, zigzag(value.into()));
    }

    pub(super) fn i64(&mut self, id: i16, value: i64) {
        self.field(id, Kind::I64);
        varint(self.out, zigzag(value));
    }

    pub(super) fn binary(&mut self, id: i16, value: &[u8]) {
        self.field(id, Kind::Binary);
        binary(self.out, value);
    }

    pub(super) fn nested(&mut self, id: i16, fields: impl FnOnce(&mut Struct<'_>)) {
        self.field(id, Kind::Struct);
        Struct::write(self.out, fields);
    }

    /// A list, whose elements `each` writes.
    pub(super) fn list<T>(
        &mut self,
        id: i16,
        kind: Kind,
        elements: &[T],
        mut each: impl FnMut(&mut Vec<u8>, &T),
    ) {
        self.field(id, Kind::List);
        let length = elements.len();
        if length < 15 {
            self.out.push((length as u8) << 4 | kind as u8);
        } else {
            self.out.push(0xF0 | kind as u8);
            varint(self.out, length as u64);
        }
        for element in elements {
            each(self.out, element);
        }
    }
}

/// A number as an element of a list.
pub(super) fn i32(out: &mut Vec<u8>, value: i32) {
    varint(out, zigzag(value.into()));
}

/// Bytes as an element of a list.
pub(super) fn binary(out: &mut Vec<u8>, value: &[u8]) {
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// Seven bits per byte, the lowest first; the highest bit says that more follow.
pub(super) fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_as_the_protocol_describes() {
        let mut out = Vec::new();
        Struct::write(&mut out, |fields| {
            fields.i32(1, -1);
            fields.i64(3, 300);
            fields.binary(4, b"ab");
            fields.list(5, Kind::I32, &[1, 2], |out, value| i32(out, *value));
            fields.nested(6, |fields| fields.i32(2, 0));
        });
        let wanted = [
            0x15, 1, // one further, i32: zigzag of -1
            0x26, 0xd8, 0x04, // two further, i64: 600 as a varint
            0x18, 2, b'a', b'b', // binary
            0x19, 0x25, 2, 4, // a list of two i32
            0x1c, 0x25, 0, 0, // a struct with an i32
            0,
        ];
        assert_eq!(out, wanted);
    }

    #[test]
    fn long_lists_have_a_length_of_their_own() {
        let mut out = Vec::new();
        Struct::write(&mut out, |fields| {
            fields.list(1, Kind::Binary, &[b"x"; 200], |out, value| binary(out, *value));
        });
        assert_eq!(out[..4], [0x19, 0xf8, 0xc8, 0x01]);
        assert_eq!(out.len(), 4 + 400 + 1);
    }
}
