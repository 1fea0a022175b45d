//! Data as text of the page: packed with deflate, then written as base64.
//!
//! A browser unpacks it with `DecompressionStream("deflate-raw")`. Base64 has none of the
//! characters that end a `<script>`.

use libdeflater::{CompressionLvl, Compressor};

/// How hard to pack: beyond this, time grows faster than pages shrink.
const LEVEL: i32 = 7;

/// Packs bytes.
pub fn pack(bytes: &[u8]) -> String {
    let level = CompressionLvl::new(LEVEL).unwrap_or_default();
    let mut compressor = Compressor::new(level);
    let mut packed = vec![0; compressor.deflate_compress_bound(bytes.len())];
    // The room is the bound, so that it cannot be too little.
    let length = compressor.deflate_compress(bytes, &mut packed).unwrap_or(0);
    base64(&packed[..length])
}

/// Base64 (RFC 4648, section 4), with padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let word =
            (0..3).fold(0_u32, |word, at| word << 8 | u32::from(*group.get(at).unwrap_or(&0)));
        let digits = (0..4).map(|at| DIGITS[(word >> (18 - 6 * at) & 63) as usize]);
        out.extend(digits.take(group.len() + 1));
        out.extend(std::iter::repeat_n(b'=', 3 - group.len()));
    }
    // Digits are ASCII.
    String::from_utf8(out).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        let cases =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (plain, coded) in cases {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xfe]), "+//+");
    }
}
