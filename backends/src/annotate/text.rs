//! Strings of the program as bytes: C strings as they are, wide strings as UTF-8.

use std::ffi::{CStr, c_char};

use kymograph_protos::StrId;

/// Longest name that is interned. Longer ones are rarely repeated, and a few of them
/// would use up the interner.
pub(crate) const MAX_INTERNED: usize = 4 << 10;
/// Longest text that is recorded; the rest is cut off and the full length noted.
pub(crate) const MAX_TEXT: usize = 32 << 10;

/// `wchar_t` on Linux.
pub(crate) type Wide = u32;

/// What an event without a message is called: a slice needs a name.
pub(crate) const UNNAMED: &[u8] = b"unnamed";

/// A text of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Text<'a> {
    /// As the program holds it, for the duration of the call.
    Borrowed(&'a [u8]),
    /// Converted.
    Owned(Vec<u8>),
    /// Known already, as a site of the category it is used with.
    Site(StrId),
}

impl Text<'_> {
    /// The bytes, if this is not a site.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Text::Borrowed(bytes) => bytes,
            Text::Owned(bytes) => bytes,
            Text::Site(_) => &[],
        }
    }
}

/// The bytes of a C string; none for NULL.
///
/// # Safety
/// `text` is NULL or a NUL-terminated string that lives and does not change during `'a`.
#[inline]
pub(crate) unsafe fn ascii<'a>(text: *const c_char) -> &'a [u8] {
    if text.is_null() {
        return &[];
    }
    // SAFETY: not NULL, and the caller vouches for the rest.
    unsafe { CStr::from_ptr(text) }.to_bytes()
}

/// As [`ascii`], but reads `length` bytes at most.
///
/// # Safety
/// `text` is NULL or readable up to its NUL or for `length` bytes, whichever is first.
pub(crate) unsafe fn ascii_n<'a>(text: *const c_char, length: usize) -> &'a [u8] {
    let length = length.min(isize::MAX as usize);
    if text.is_null() {
        return &[];
    }
    // SAFETY: `strnlen` looks at no byte after the NUL nor after `length`.
    let found = unsafe { libc::strnlen(text, length) };
    // SAFETY: the `found` bytes before that were just read.
    unsafe { std::slice::from_raw_parts(text.cast(), found) }
}

/// A wide string as UTF-8; what is no Unicode scalar (a surrogate, a value past
/// U+10FFFF) becomes U+FFFD. Reads [`MAX_TEXT`] units at most.
///
/// # Safety
/// `text` is NULL or points to units up to and including a zero.
pub(crate) unsafe fn wide(text: *const Wide) -> Vec<u8> {
    if text.is_null() {
        return Vec::new();
    }
    // Unaligned reads: the pointer may come out of a packed payload.
    // SAFETY: every unit up to the first zero is readable, and none after it is read.
    let units = (0..MAX_TEXT).map(|i| unsafe { text.add(i).read_unaligned() });
    utf8_from_32(units.take_while(|&unit| unit != 0))
}

/// A C string that the program passed to a callback. We never make one: it comes into
/// being as a parameter, and so is NULL or valid for as long as it exists.
#[repr(transparent)]
pub(crate) struct CText(*const c_char);

impl CText {
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: a parameter of a callback, within that call: see the type.
        unsafe { ascii(self.0) }
    }

    /// The bytes, and where the first comma among them lies: in one pass for the many names that
    /// have none.
    #[inline(always)]
    pub(crate) fn bytes_and_comma(&self) -> (&[u8], Option<usize>) {
        if self.0.is_null() {
            return (&[], None);
        }
        // SAFETY: NUL-terminated, as for `bytes`; `strchrnul` returns a place up to that NUL.
        unsafe {
            let found = libc::strchrnul(self.0, b','.into());
            let before = found.addr() - self.0.addr();
            if *found == 0 {
                return (std::slice::from_raw_parts(self.0.cast(), before), None);
            }
            (CStr::from_ptr(self.0).to_bytes(), Some(before))
        }
    }
}

/// As [`CText`], of a wide string.
#[repr(transparent)]
pub(crate) struct WideText(*const Wide);

impl WideText {
    pub(crate) fn utf8(&self) -> Vec<u8> {
        // SAFETY: a parameter of a callback, within that call: see the type.
        unsafe { wide(self.0) }
    }
}

/// UTF-32 to UTF-8.
pub(crate) fn utf8_from_32(units: impl Iterator<Item = u32>) -> Vec<u8> {
    utf8(units.map(|unit| char::from_u32(unit).unwrap_or('\u{fffd}')))
}

/// UTF-16 to UTF-8.
pub(crate) fn utf8_from_16(units: impl Iterator<Item = u16>) -> Vec<u8> {
    utf8(char::decode_utf16(units).map(|unit| unit.unwrap_or('\u{fffd}')))
}

/// As far as there is memory for it.
fn utf8(text: impl Iterator<Item = char>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for char in text {
        if bytes.try_reserve(4).is_err() {
            break;
        }
        bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
    }
    bytes
}

/// At most `max` bytes of `text`, not cut inside a character.
pub(crate) fn clip(text: &[u8], max: usize) -> &[u8] {
    if text.len() <= max {
        return text;
    }
    let mut end = max;
    // A continuation byte is 0b10xx_xxxx; a character has three of them at most.
    while end > max.saturating_sub(3) && text[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_strings_survive_what_is_no_character() {
        let units = [0x4b, 0xd800, 0x11_0000, 0x1f600, 0];
        // SAFETY: ends in zero.
        let text = unsafe { wide(units.as_ptr()) };
        assert_eq!(String::from_utf8(text).unwrap(), "K\u{fffd}\u{fffd}\u{1f600}");
        // SAFETY: NULL is allowed.
        assert!(unsafe { wide(std::ptr::null()) }.is_empty());
        assert_eq!(
            utf8_from_16([0xd83d, 0xde00, 0xdc00].into_iter()),
            "\u{1f600}\u{fffd}".as_bytes()
        );
    }

    #[test]
    fn clipping_keeps_characters_whole() {
        let text = "ab\u{20ac}".as_bytes();
        assert_eq!(clip(text, 5), text);
        assert_eq!(clip(text, 4), b"ab");
        assert_eq!(clip(text, 3), b"ab");
        assert_eq!(clip(text, 2), b"ab");
        assert_eq!(clip(&[0x80; 9], 8), &[0x80; 5]);
    }
}
