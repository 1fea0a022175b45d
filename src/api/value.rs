//! Values of arguments.

use kymograph_protos::{ArgType, StrId};

use crate::intern::INTERNER;

/// A value on its way into a record.
#[derive(Clone, Copy, Debug)]
pub enum Encoded<'a> {
    /// A type and eight bytes.
    Bits(ArgType, u64),
    /// A string that is interned when it is recorded.
    Text(&'a str),
}

impl Encoded<'_> {
    /// Type and bits; a string that cannot be interned comes back.
    #[inline(always)]
    pub(crate) fn bits(&self) -> (ArgType, u64, &[u8]) {
        match *self {
            Encoded::Bits(ty, bits) => (ty, bits, &[]),
            Encoded::Text(text) => match INTERNER.intern(StrId::NONE, StrId::NONE, text.as_bytes())
            {
                StrId::NONE => (ArgType::Bytes, text.len() as u64, text.as_bytes()),
                id => (ArgType::Str, id.0.into(), &[]),
            },
        }
    }
}

/// What can be an argument of an event: booleans, integers up to 64 bits, floats,
/// strings, pointers, and [`crate::Flow`]s, which become arrows.
pub trait Value {
    /// The value, encoded.
    fn encode(&self) -> Encoded<'_>;
}

macro_rules! value {
    ($($ty:ty => $arg:ident, $bits:expr;)*) => {
        $(impl Value for $ty {
            #[inline(always)]
            fn encode(&self) -> Encoded<'_> {
                let bits: fn(&$ty) -> u64 = $bits;
                Encoded::Bits(ArgType::$arg, bits(self))
            }
        })*
    };
}

value! {
    bool => Bool, |v| (*v).into();
    u8 => U64, |v| (*v).into();
    u16 => U64, |v| (*v).into();
    u32 => U64, |v| (*v).into();
    u64 => U64, |v| *v;
    usize => U64, |v| *v as u64;
    i8 => I64, |v| i64::from(*v) as u64;
    i16 => I64, |v| i64::from(*v) as u64;
    i32 => I64, |v| i64::from(*v) as u64;
    i64 => I64, |v| *v as u64;
    isize => I64, |v| *v as u64;
    f32 => F64, |v| f64::from(*v).to_bits();
    f64 => F64, |v| v.to_bits();
}

impl<T> Value for *const T {
    #[inline(always)]
    fn encode(&self) -> Encoded<'_> {
        Encoded::Bits(ArgType::Pointer, self.addr() as u64)
    }
}

impl<T> Value for *mut T {
    #[inline(always)]
    fn encode(&self) -> Encoded<'_> {
        Encoded::Bits(ArgType::Pointer, self.addr() as u64)
    }
}

impl Value for str {
    #[inline(always)]
    fn encode(&self) -> Encoded<'_> {
        Encoded::Text(self)
    }
}

impl Value for String {
    #[inline(always)]
    fn encode(&self) -> Encoded<'_> {
        Encoded::Text(self)
    }
}

impl<T: Value + ?Sized> Value for &T {
    #[inline(always)]
    fn encode(&self) -> Encoded<'_> {
        (**self).encode()
    }
}
