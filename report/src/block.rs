//! Data as text of the page: packed with deflate, then written as base64.
//!
//! A browser unpacks it with `DecompressionStream("deflate-raw")`. Base64 has none of the
//! characters that end a `<script>`.

use libdeflater::{CompressionLvl, Compressor};

/// How hard to pack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// For what packs little better otherwise: tables, times that are exact.
    Fast,
    /// Beyond this, time grows faster than pages shrink.
    Small,
}

/// Packs bytes.
pub fn pack(bytes: &[u8], level: Level) -> String {
    let level = match level {
        Level::Fast => 1,
        Level::Small => 3,
    };
    let mut compressor = Compressor::new(CompressionLvl::new(level).unwrap_or_default());
    let mut packed = vec![0; compressor.deflate_compress_bound(bytes.len())];
    // The room is the bound, so that it cannot be too little.
    let length = compressor.deflate_compress(bytes, &mut packed).unwrap_or(0);
    base64(&packed[..length])
}

/// Base64 (RFC 4648, section 4), with padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |word: u32, at: u32| DIGITS[(word >> (18 - 6 * at) & 63) as usize];
    let (groups, rest) = bytes.as_chunks::<3>();
    let mut out = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    out.resize(groups.len() * 4, 0);
    for ([one, two, three], out) in groups.iter().zip(out.as_chunks_mut::<4>().0) {
        let word = u32::from_be_bytes([0, *one, *two, *three]);
        *out = [digit(word, 0), digit(word, 1), digit(word, 2), digit(word, 3)];
    }
    if let [one, rest @ ..] = rest {
        let two = rest.first();
        let word = u32::from_be_bytes([0, *one, *two.unwrap_or(&0), 0]);
        let third = if two.is_some() { digit(word, 2) } else { b'=' };
        out.extend([digit(word, 0), digit(word, 1), third, b'=']);
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
