//! Protobuf fields read from bytes, without a schema and without copying.
//!
//! Nothing here allocates, recurses or panics: whatever a length claims, only bytes that
//! are there are read.

/// The value of a field.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Field<'a> {
    /// An integer, enum or bool.
    Varint(u64),
    /// A `fixed64` or `double`.
    Fixed64(u64),
    /// A `fixed32` or `float`.
    Fixed32(u32),
    /// A string, `bytes`, message or packed list.
    Bytes(&'a [u8]),
    /// The message is damaged from here on: always the last, and field 0.
    Damaged,
}

impl<'a> Field<'a> {
    /// As an unsigned integer; 0 if it is none.
    #[inline]
    pub fn uint(self) -> u64 {
        match self {
            Field::Varint(n) | Field::Fixed64(n) => n,
            Field::Fixed32(n) => n.into(),
            Field::Bytes(_) | Field::Damaged => 0,
        }
    }

    /// As a signed integer; 0 if it is none.
    #[inline]
    pub fn int(self) -> i64 {
        self.uint() as i64
    }

    /// As floating point; 0 if it is not.
    #[inline]
    pub fn double(self) -> f64 {
        match self {
            Field::Fixed64(bits) => f64::from_bits(bits),
            Field::Fixed32(bits) => f32::from_bits(bits).into(),
            _ => 0.0,
        }
    }

    /// As bytes; empty if it has none.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Field::Bytes(bytes) => bytes,
            _ => &[],
        }
    }

    /// The fields of the message that this is.
    #[inline]
    pub fn fields(self) -> Fields<'a> {
        Fields::new(self.bytes())
    }

    /// The numbers of a repeated field: one, or many that are packed.
    pub fn numbers(self) -> impl Iterator<Item = u64> + use<'a> {
        let (one, mut packed) = match self {
            Field::Bytes(bytes) => (None, bytes),
            other => (Some(other.uint()), &[] as &[u8]),
        };
        one.into_iter().chain(std::iter::from_fn(move || varint(&mut packed)))
    }

    /// The numbers of a repeated `fixed64` or `double` field, as bits.
    pub fn fixed64s(self) -> impl Iterator<Item = u64> + use<'a> {
        let (one, mut packed) = match self {
            Field::Bytes(bytes) => (None, bytes),
            other => (Some(other.uint()), &[] as &[u8]),
        };
        one.into_iter().chain(std::iter::from_fn(move || fixed64(&mut packed)))
    }
}

/// The fields of a message, in the order in which they stand.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    bytes: &'a [u8],
}

impl<'a> Fields<'a> {
    /// The fields of the message `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Fields<'a> {
        Fields { bytes }
    }

    #[inline]
    fn field(&mut self) -> Option<(u32, Field<'a>)> {
        let key = varint(&mut self.bytes)?;
        let number = u32::try_from(key >> 3).ok().filter(|n| *n != 0)?;
        let value = match key & 7 {
            0 => Field::Varint(varint(&mut self.bytes)?),
            1 => Field::Fixed64(fixed64(&mut self.bytes)?),
            2 => {
                let len = usize::try_from(varint(&mut self.bytes)?).ok()?;
                let (value, rest) = self.bytes.split_at_checked(len)?;
                self.bytes = rest;
                Field::Bytes(value)
            }
            5 => {
                let (bits, rest) = self.bytes.split_first_chunk::<4>()?;
                self.bytes = rest;
                Field::Fixed32(u32::from_le_bytes(*bits))
            }
            _ => return None,
        };
        Some((number, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u32, Field<'a>);

    #[inline]
    fn next(&mut self) -> Option<(u32, Field<'a>)> {
        if self.bytes.is_empty() {
            return None;
        }
        self.field().or_else(|| {
            self.bytes = &[];
            Some((0, Field::Damaged))
        })
    }
}

/// Takes a varint off the front of `bytes`; `None` if it does not end there, or is longer
/// than ten bytes.
#[inline]
pub fn varint(bytes: &mut &[u8]) -> Option<u64> {
    if let [byte @ 0..0x80, rest @ ..] = *bytes {
        *bytes = rest;
        return Some(u64::from(*byte));
    }
    long_varint(bytes)
}

fn long_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        // Of the tenth byte one bit counts; the others are cut off, as Perfetto does.
        value |= u64::from(byte & 0x7f) << (7 * at);
        if *byte < 0x80 {
            *bytes = &bytes[at + 1..];
            return Some(value);
        }
    }
    None
}

#[inline]
fn fixed64(bytes: &mut &[u8]) -> Option<u64> {
    let (bits, rest) = bytes.split_first_chunk::<8>()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_all_types() {
        let bytes = [
            0x08, 0x96, 0x01, // 1: 150
            0x12, 0x02, b'h', b'i', // 2: "hi"
            0x19, 1, 0, 0, 0, 0, 0, 0, 0, // 3: fixed64
            0x25, 2, 0, 0, 0, // 4: fixed32
            0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, // 1: -1
        ];
        let fields: Vec<_> = Fields::new(&bytes).collect();
        let expected = [
            (1, Field::Varint(150)),
            (2, Field::Bytes(b"hi")),
            (3, Field::Fixed64(1)),
            (4, Field::Fixed32(2)),
            (1, Field::Varint(u64::MAX)),
        ];
        assert_eq!(fields, expected);
    }

    #[test]
    fn damage_is_the_last_field() {
        let whole = [0x08, 0x01];
        for broken in [
            &[0x12, 0x05, b'x'][..],
            &[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
            &[0x80],
            &[0x0b],
            &[0x00, 0x01],
            &[0x19, 0x00],
            &[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
        ] {
            let bytes = [&whole[..], broken].concat();
            let fields: Vec<_> = Fields::new(&bytes).collect();
            assert_eq!(fields, [(1, Field::Varint(1)), (0, Field::Damaged)], "{broken:x?}");
        }
    }

    #[test]
    fn packed_numbers_are_read_like_repeated_ones() {
        let numbers = |field: Field<'_>| field.numbers().collect::<Vec<_>>();
        assert_eq!(numbers(Field::Varint(7)), [7]);
        assert_eq!(numbers(Field::Bytes(&[1, 0x80, 1, 3, 0x80])), [1, 128, 3]);
        assert_eq!(Field::Bytes(&[1, 0, 0, 0, 0, 0, 0, 0, 9]).fixed64s().collect::<Vec<_>>(), [1]);
    }
}
