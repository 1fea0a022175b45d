//! Base64, as RFC 4648 describes it in section 4.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes as text, with padding.
pub(super) fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let word =
            (0..3).fold(0_u32, |word, at| word << 8 | u32::from(*group.get(at).unwrap_or(&0)));
        let digits = (0..4).map(|at| DIGITS[(word >> (18 - 6 * at) & 63) as usize]);
        out.extend(digits.take(group.len() + 1).map(char::from));
        out.extend(std::iter::repeat_n('=', 3 - group.len()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::encode;

    #[test]
    fn it_is_that_of_the_standard() {
        let cases =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (plain, coded) in cases {
            assert_eq!(encode(plain.as_bytes()), coded);
        }
        assert_eq!(encode(&[0xfb, 0xff, 0xfe]), "+//+");
    }
}
