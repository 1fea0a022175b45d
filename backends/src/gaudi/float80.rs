//! `long double` of x86-64: the 80 bits of the x87 in 16 bytes, which Rust has no type for.
//!
//! ```text
//! byte 0                               8          10              16
//!      ┌───────────────────────────────┬──────────┬───────────────┐
//!      │ significand, with its 1 bit   │ sign, exp│ padding       │
//!      └───────────────────────────────┴──────────┴───────────────┘
//! ```
//! Its value is significand × 2^(exp − 16383 − 63) (Intel SDM, volume 1, 4.2.2).

const BIAS: i32 = 16_383 + 63;

/// A number times `scale`, rounded to the nearest integer. `None` if it is negative, not a
/// number, or larger than an `u64`.
pub(crate) fn scaled(bytes: [u8; 16], scale: u64) -> Option<u64> {
    let [s0, s1, s2, s3, s4, s5, s6, s7, e0, e1, ..] = bytes;
    let significand = u64::from_le_bytes([s0, s1, s2, s3, s4, s5, s6, s7]);
    let exponent = u16::from_le_bytes([e0, e1]);
    if significand == 0 && exponent & 0x7fff != 0x7fff {
        return Some(0);
    }
    if exponent >= 0x7fff {
        return None;
    }
    let product = u128::from(significand) * u128::from(scale);
    let shift = BIAS - i32::from(exponent);
    let value = match shift {
        -63..=0 => product.checked_mul(1 << -shift)?,
        1..=127 => (product >> (shift - 1)).div_ceil(2),
        128.. => 0,
        _ => return None,
    };
    u64::try_from(value).ok()
}

/// The `long double` of an integer.
#[cfg(any(test, feature = "replay"))]
pub(crate) fn of(value: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    if value > 0 {
        let zeros = value.leading_zeros();
        bytes[..8].copy_from_slice(&(value << zeros).to_le_bytes());
        bytes[8..10].copy_from_slice(&((BIAS - zeros as i32) as u16).to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(significand: u64, exponent: u16) -> [u8; 16] {
        let mut bytes = [0xAA; 16];
        bytes[..8].copy_from_slice(&significand.to_le_bytes());
        bytes[8..10].copy_from_slice(&exponent.to_le_bytes());
        bytes
    }

    #[test]
    fn numbers_that_gcc_wrote() {
        // 1.0L, 0.5L, 1000.125L and 1732118399123456.789L, as gcc 12 lays them out.
        assert_eq!(scaled(bytes(0x8000_0000_0000_0000, 0x3fff), 1000), Some(1000));
        assert_eq!(scaled(bytes(0x8000_0000_0000_0000, 0x3ffe), 1000), Some(500));
        assert_eq!(scaled(bytes(0xfa08_0000_0000_0000, 0x4008), 1000), Some(1_000_125));
        assert_eq!(
            scaled(bytes(0xc4eb_47bc_7000_193f, 0x4031), 1000),
            Some(1_732_118_399_123_456_789)
        );
    }

    #[test]
    fn what_is_no_time() {
        assert_eq!(scaled(bytes(0, 0), 1000), Some(0));
        assert_eq!(scaled(bytes(1 << 63, 0), 1000), Some(0));
        for exponent in [0xbfff, 0x7fff, 0x7ffe, 0xffff, 0x4040] {
            assert_eq!(scaled(bytes(1 << 63, exponent), 1000), None, "{exponent:#x}");
        }
        assert_eq!(scaled(bytes(u64::MAX, 0x403e), 1), Some(u64::MAX));
        assert_eq!(scaled(bytes(u64::MAX, 0x403e), 1000), None);
    }

    #[test]
    fn integers_come_back() {
        for value in [0, 1, 7, 1_795_191_777_089_097, u64::MAX] {
            assert_eq!(scaled(of(value), 1), Some(value));
        }
    }
}
