//! Where numbers and strings end, eight bytes at a time.

use super::value::Kind;

/// [`plain_number`], without a call for integers of less than eight digits, which most are.
#[inline(always)]
pub(super) fn short_or_plain(bytes: &[u8], start: usize) -> Option<(Kind, usize)> {
    if let Some(chunk) = bytes.get(start..).and_then(|rest| rest.first_chunk::<8>()) {
        let digits = not_digits(u64::from_le_bytes(*chunk)).trailing_zeros() as usize / 8;
        let next = chunk.get(digits).copied().unwrap_or(b'.');
        if !matches!(next, b'.' | b'e' | b'E' | b'+' | b'-') {
            return Some((Kind::Int, start + digits));
        }
    }
    plain_number(bytes, start)
}

/// The kind of the number at `start`, and where it ends; `None` if it has an exponent or no
/// digits, or the text ends with it.
pub(super) fn plain_number(bytes: &[u8], start: usize) -> Option<(Kind, usize)> {
    let first = start + usize::from(bytes[start] == b'-');
    let whole = digits(&bytes[first..]);
    let mut at = first + whole;
    let mut kind = Kind::Int;
    if whole > 0 && bytes.get(at) == Some(&b'.') {
        kind = Kind::Float;
        at += 1 + digits(&bytes[at + 1..]);
    }
    match bytes.get(at) {
        Some(b'.' | b'e' | b'E' | b'+' | b'-') | None => None,
        Some(_) => (whole > 0).then_some((kind, at)),
    }
}

/// Whether these are the digits of a number with a fraction or an exponent; digits on both
/// sides of the point are not insisted on. What it amounts to, most readers never ask.
pub(super) fn is_float(text: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let whole = digits(text);
    let (fraction, rest) = match &text[whole..] {
        [b'.', rest @ ..] => (digits(rest), &rest[digits(rest)..]),
        rest => (0, rest),
    };
    let exponent = match rest {
        [] => true,
        [b'e' | b'E', b'+' | b'-', rest @ ..] | [b'e' | b'E', rest @ ..] => {
            !rest.is_empty() && digits(rest) == rest.len()
        }
        _ => false,
    };
    whole + fraction > 0 && exponent
}

/// How many digits `bytes` begin with, eight at a time.
#[inline]
pub(super) fn digits(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let others = not_digits(u64::from_le_bytes(*chunk));
        if others != 0 {
            return at + others.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    at + bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// Marks in a word of eight bytes those that are no digits; the lowest mark is exact.
#[inline]
pub(super) fn not_digits(word: u64) -> u64 {
    // A digit has 3 in its upper half, and still has when 6 is added.
    (word & word.wrapping_add(LOW * 6) & (LOW * 0xf0)) ^ (LOW * 0x30)
}

const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// How many bytes at the start of `bytes` are neither a quote, a backslash nor a control
/// character. Eight at a time: most strings of a trace are short. The long ones, names of kernels
/// and stacks, go in steps that compilers make of vectors.
#[inline]
pub(super) fn ordinary(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let found = special(u64::from_le_bytes(*chunk));
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
        if at == 16 {
            at += ordinary_vectors(&bytes[at..]);
        }
    }
    while let Some(&byte) = bytes.get(at) {
        if byte == b'"' || byte == b'\\' || byte < 0x20 {
            break;
        }
        at += 1;
    }
    at
}

/// Marks in a word of eight bytes those that are not ordinary; the lowest mark is exact.
#[inline]
fn special(word: u64) -> u64 {
    let quote = word ^ (LOW * b'"' as u64);
    let slash = word ^ (LOW * b'\\' as u64);
    // A byte is zero, or below 0x20, where subtracting borrows.
    let found = (quote.wrapping_sub(LOW) & !quote)
        | (slash.wrapping_sub(LOW) & !slash)
        | (word.wrapping_sub(LOW * 0x20) & !word);
    found & HIGH
}

/// How many whole steps of 32 bytes at the start of `bytes` are ordinary.
fn ordinary_vectors(bytes: &[u8]) -> usize {
    let (chunks, _) = bytes.as_chunks::<32>();
    let is_ordinary = |chunk: &&[u8; 32]| {
        let special =
            |byte: u8| u8::from(byte == b'"') | u8::from(byte == b'\\') | u8::from(byte < 0x20);
        chunk.iter().fold(0, |any, byte| any | special(*byte)) == 0
    };
    chunks.iter().take_while(is_ordinary).count() * 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_what_the_standard_library_takes_for_floats() {
        for text in [
            "1.5", "-1.5", "1.", ".5", "-.5", "1e5", "1E-5", "1.5e+5", "1.e5", ".", "-", "e5",
            "1e", "1e+", "1.2.3", "1-2", "1e5.0", "--1.0", "-e", ".e1", "1e5e5", "00.5",
        ] {
            assert_eq!(is_float(text.as_bytes()), text.parse::<f64>().is_ok(), "{text}");
        }
    }

    #[test]
    fn the_search_finds_what_a_plain_loop_finds() {
        for special in [b'"', b'\\', 0, 0x1f, b'\n'] {
            for at in 0..40 {
                let mut bytes = [0xc3, b' ', 0x7f, 0x80, 0xff, b'!', b'#', b'['].repeat(5);
                bytes[at] = special;
                assert_eq!(ordinary(&bytes), at);
            }
        }
        assert_eq!(ordinary(&[b'a'; 19]), 19);
    }
}
