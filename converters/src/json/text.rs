//! Escapes in strings.

/// Decodes escapes. One that is none is kept as it stands, and half of a surrogate pair becomes
/// U+FFFD: the rest of the string is worth more than an error.
pub(super) fn unescape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(byte) = rest.bytes().next() else {
            out.push('\\');
            break;
        };
        let simple = match byte {
            b'"' | b'\\' | b'/' => byte as char,
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let (decoded, used) = unicode(rest);
                out.push(decoded);
                rest = &rest[used..];
                continue;
            }
            _ => {
                out.push('\\');
                continue;
            }
        };
        out.push(simple);
        rest = &rest[1..];
    }
    out.push_str(rest);
    out
}

/// The last place at or before `at` where `text` may be cut.
pub(super) fn boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Whether every escape is one that JSON knows and every surrogate has its other half.
pub(super) fn escapes_are_valid(raw: &str) -> bool {
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        rest = &rest[at + 1..];
        match rest.bytes().next() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => rest = &rest[1..],
            Some(b'u') => match unicode(rest) {
                (_, 0 | 1) => return false,
                ('\u{fffd}', _) if !rest[1..5].eq_ignore_ascii_case("fffd") => return false,
                (_, used) => rest = &rest[used..],
            },
            _ => return false,
        }
    }
    true
}

/// Decodes what begins with `u`: the character and how many bytes it took. Four digits that are
/// none give back the backslash, and nothing is taken.
fn unicode(rest: &str) -> (char, usize) {
    let Some(unit) = hex(rest) else { return ('\\', 0) };
    if !(0xd800..0xe000).contains(&unit) {
        return (char::from_u32(unit).unwrap_or('\u{fffd}'), 5);
    }
    let low = rest.get(5..).and_then(|rest| rest.strip_prefix('\\')).and_then(hex);
    match low {
        Some(low) if unit < 0xdc00 && (0xdc00..0xe000).contains(&low) => {
            let code = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
            (char::from_u32(code).unwrap_or('\u{fffd}'), 11)
        }
        _ => ('\u{fffd}', 5),
    }
}

/// The code unit of `uXXXX`.
fn hex(text: &str) -> Option<u32> {
    let digits = text.strip_prefix('u')?.get(..4)?;
    let all_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    all_hex.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes() {
        for (raw, text, valid) in [
            ("plain", "plain", true),
            (r#"a\"b\\c\/d"#, r#"a"b\c/d"#, true),
            (r"\b\f\n\r\t", "\u{8}\u{c}\n\r\t", true),
            (r"\u00e9\ud83d\ude00!", "\u{e9}\u{1f600}!", true),
            (r"\ufffd", "\u{fffd}", true),
            (r"\ud83d!", "\u{fffd}!", false),
            (r"\ude00", "\u{fffd}", false),
            (r"C:\path\x", r"C:\path\x", false),
            (r"\u12", r"\u12", false),
            (r"\u+123", r"\u+123", false),
            (r"end\", r"end\", false),
            ("\\\u{e9}", "\\\u{e9}", false),
            ("\\u12\u{e9}4", "\\u12\u{e9}4", false),
        ] {
            assert_eq!(unescape(raw), text, "{raw}");
            assert_eq!(escapes_are_valid(raw), valid, "{raw}");
        }
    }
}
