//! The predefined entry types, and how a value of each is read.

use kymograph_protos::ArgType;

/// How the bytes of a value are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    Signed,
    Unsigned,
    /// IEEE 754 of the size's width, or the x87 format in 16 bytes.
    Float,
    Bfloat16,
    X87,
    Address,
    /// A character: a number when alone, text in an array.
    Character,
    /// A text of code units of this type's size.
    Text,
    /// The handle of a registered string.
    Handle,
    /// A category of NVTX.
    Category,
    /// 128-bit integers have no argument type; they are shown as text.
    Wide,
}

/// Size and meaning of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Primitive {
    pub(crate) read: Read,
    /// Of a value, or of a code unit of a text.
    pub(crate) size: usize,
}

/// The predefined type with this number: `NVTX_PAYLOAD_ENTRY_TYPE_*` in
/// `nvToolsExtPayload.h`. Sizes of C types are those of 64-bit Linux.
pub(crate) fn predefined(ty: u64) -> Option<Primitive> {
    let of = |read, size| Some(Primitive { read, size });
    match ty {
        1 | 25 => of(Read::Character, 1),
        26 => of(Read::Character, 2),
        24 | 27 => of(Read::Character, 4),
        2 | 12 | 32 => of(Read::Unsigned, 1),
        11 => of(Read::Signed, 1),
        3 | 13 => of(Read::Signed, 2),
        4 | 14 => of(Read::Unsigned, 2),
        5 | 15 => of(Read::Signed, 4),
        6 | 16 | 69 | 71 | 73 => of(Read::Unsigned, 4),
        7 | 9 | 17 => of(Read::Signed, 8),
        8 | 10 | 18 | 22 | 67 | 70 | 72 | 74 => of(Read::Unsigned, 8),
        19 | 43 | 52 => of(Read::Float, 4),
        20 | 44 => of(Read::Float, 8),
        42 => of(Read::Float, 2),
        50 => of(Read::Bfloat16, 2),
        21 if cfg!(target_arch = "x86_64") => of(Read::X87, 16),
        21 | 45 => of(Read::Float, 16),
        23 => of(Read::Address, 8),
        33 | 34 => of(Read::Wide, 16),
        68 => of(Read::Category, 4),
        75 | 76 => of(Read::Text, 1),
        77 => of(Read::Text, 2),
        78 => of(Read::Text, 4),
        80 => of(Read::Handle, 8),
        _ => None,
    }
}

impl Primitive {
    /// Alignment in a C structure.
    pub(crate) fn align(self) -> usize {
        self.size
    }

    /// A number as an argument: type and bits. `bytes` has this type's size.
    pub(crate) fn number(self, bytes: &[u8]) -> Option<(ArgType, u64)> {
        let raw = unsigned(bytes);
        Some(match self.read {
            Read::Signed => {
                let shift = 64 - 8 * self.size as u32;
                (ArgType::I64, ((raw << shift).cast_signed() >> shift).cast_unsigned())
            }
            Read::Unsigned | Read::Character | Read::Category => (ArgType::U64, raw),
            Read::Address | Read::Handle => (ArgType::Pointer, raw),
            Read::Float => (ArgType::F64, float(bytes)?.to_bits()),
            Read::Bfloat16 => {
                (ArgType::F64, f64::from(f32::from_bits((raw as u32) << 16)).to_bits())
            }
            Read::X87 => (ArgType::F64, x87(bytes)?.to_bits()),
            Read::Text | Read::Wide => return None,
        })
    }
}

/// Up to eight bytes, little-endian.
pub(crate) fn unsigned(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).rev().fold(0, |n, &b| n << 8 | u64::from(b))
}

fn float(bytes: &[u8]) -> Option<f64> {
    Some(match bytes.len() {
        2 => half(unsigned(bytes) as u16),
        4 => f64::from(f32::from_bits(unsigned(bytes) as u32)),
        8 => f64::from_bits(unsigned(bytes)),
        16 => quad(u128::from_le_bytes(bytes.try_into().ok()?)),
        _ => return None,
    })
}

/// IEEE 754 binary16.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from(bits >> 10 & 31);
    let fraction = f64::from(bits & 0x3ff);
    sign * match exponent {
        0 => fraction * 2_f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2_f64.powi(exponent - 25),
    }
}

/// IEEE 754 binary128, to the precision of an `f64`.
fn quad(bits: u128) -> f64 {
    let sign = (bits >> 127) as u64;
    let exponent = (bits >> 112 & 0x7fff) as i64 - 16383;
    let fraction = (bits >> 60) as u64 & ((1 << 52) - 1);
    let exponent = match exponent {
        16384 => 0x7ff,
        e if e > 1023 => {
            return if sign == 0 { f64::INFINITY } else { f64::NEG_INFINITY };
        }
        e if e < -1022 => return 0.0,
        e => (e + 1023) as u64,
    };
    f64::from_bits(sign << 63 | exponent << 52 | fraction)
}

/// The 80-bit format of the x87, which C's `long double` is on x86-64.
fn x87(bytes: &[u8]) -> Option<f64> {
    let mantissa = unsigned(bytes.get(..8)?);
    let top = unsigned(bytes.get(8..10)?) as u16;
    let exponent = i32::from(top & 0x7fff);
    let value = match exponent {
        0x7fff if mantissa << 1 == 0 => f64::INFINITY,
        0x7fff => f64::NAN,
        // The mantissa holds its leading one; two steps, lest the power alone be out of range.
        _ => mantissa as f64 * 2_f64.powi(-63) * 2_f64.powi((exponent - 16383).clamp(-1100, 1100)),
    };
    Some(if top >> 15 == 0 { value } else { -value })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(ty: u64, bytes: &[u8]) -> (ArgType, u64) {
        predefined(ty).unwrap().number(bytes).unwrap()
    }

    fn f(ty: u64, bytes: &[u8]) -> f64 {
        f64::from_bits(value(ty, bytes).1)
    }

    #[test]
    fn integers_keep_their_sign() {
        assert_eq!(value(11, &[0xff]), (ArgType::I64, u64::MAX));
        assert_eq!(value(12, &[0xff]), (ArgType::U64, 255));
        assert_eq!(value(15, &(-7_i32).to_le_bytes()).1.cast_signed(), -7);
        assert_eq!(value(17, &i64::MIN.to_le_bytes()).1.cast_signed(), i64::MIN);
        assert_eq!(value(23, &8_u64.to_le_bytes()), (ArgType::Pointer, 8));
    }

    #[test]
    fn floats_of_all_widths() {
        assert_eq!(f(42, &0x3e00_u16.to_le_bytes()), 1.5);
        assert_eq!(f(42, &0x0001_u16.to_le_bytes()), 2_f64.powi(-24));
        assert_eq!(f(42, &0xfc00_u16.to_le_bytes()), f64::NEG_INFINITY);
        assert_eq!(f(50, &0xbfc0_u16.to_le_bytes()), -1.5);
        assert_eq!(f(43, &0.25_f32.to_le_bytes()), 0.25);
        assert_eq!(f(44, &0.1_f64.to_le_bytes()), 0.1);
        assert_eq!(f(45, &(0x4000_8000_u128 << 96).to_le_bytes()), 3.0);
        let mut long_double = [0; 16];
        long_double[..10].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0xc0, 0x00, 0xc0]);
        assert_eq!(x87(&long_double), Some(-3.0));
    }
}
