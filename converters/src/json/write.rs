//! Pieces of JSON, appended to a buffer. Always valid, whatever the values.

use std::io::Write as _;

use super::scan::ordinary;
use super::value::{Kind, Value};

/// Writes a value of the input again, on one line and valid: what was repaired in reading stays
/// repaired.
pub fn write_value(out: &mut Vec<u8>, value: Value<'_>) {
    match value.kind() {
        Kind::Object => {
            out.push(b'{');
            for (index, (key, value)) in value.fields().enumerate() {
                if index > 0 {
                    out.extend_from_slice(b", ");
                }
                write_string(out, &key.text());
                out.extend_from_slice(b": ");
                write_value(out, value);
            }
            out.push(b'}');
        }
        Kind::Array => {
            out.push(b'[');
            for (index, value) in value.items().enumerate() {
                if index > 0 {
                    out.extend_from_slice(b", ");
                }
                write_value(out, value);
            }
            out.push(b']');
        }
        Kind::String => {
            if let Some(text) = value.as_str() {
                write_string(out, &text.text());
            }
        }
        Kind::Float if !is_json(value.raw()) => {
            write_float(out, value.raw().parse().unwrap_or(f64::NAN));
        }
        Kind::Int => write_digits(out, value.raw()),
        _ => out.extend_from_slice(value.raw().as_bytes()),
    }
}

/// Whether a float is written as JSON wants it: no `nan`, no `1.`, no zeros in front.
fn is_json(raw: &str) -> bool {
    let digits = raw.strip_prefix('-').unwrap_or(raw).as_bytes();
    let whole = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let fraction = match digits.get(whole) {
        Some(b'.') => digits.get(whole + 1).is_some_and(u8::is_ascii_digit),
        Some(b'e' | b'E') => true,
        _ => false,
    };
    fraction && whole > 0 && (whole == 1 || digits[0] != b'0')
}

/// Writes digits without the zeros in front that JSON does not allow.
fn write_digits(out: &mut Vec<u8>, raw: &str) {
    let digits = raw.trim_start_matches('-');
    if digits.len() < raw.len() {
        out.push(b'-');
    }
    let trimmed = digits.trim_start_matches('0');
    let digits = if trimmed.is_empty() { "0" } else { trimmed };
    out.extend_from_slice(digits.as_bytes());
}

/// Writes `text` as a JSON string: quotes, backslashes and control characters escaped,
/// everything else as UTF-8.
#[inline]
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let plain = ordinary(rest);
        out.extend_from_slice(&rest[..plain]);
        let Some(&byte) = rest.get(plain) else { break };
        escape(out, byte);
        rest = &rest[plain + 1..];
    }
    out.push(b'"');
}

#[cold]
fn escape(out: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    match byte {
        b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        _ => {
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
}

/// Pairs of digits, so that a division yields two of them.
const PAIRS: &[u8; 200] = b"0001020304050607080910111213141516171819\
2021222324252627282930313233343536373839\
4041424344454647484950515253545556575859\
6061626364656667686970717273747576777879\
8081828384858687888990919293949596979899";

/// Writes an integer in decimal.
#[inline]
pub fn write_uint(out: &mut Vec<u8>, mut value: u64) {
    let mut buffer = [0; 20];
    let mut at = buffer.len();
    while value >= 100 {
        let pair = (value % 100) as usize * 2;
        value /= 100;
        at -= 2;
        buffer[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    if value >= 10 {
        let pair = value as usize * 2;
        at -= 2;
        buffer[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    } else {
        at -= 1;
        buffer[at] = b'0' + value as u8;
    }
    out.extend_from_slice(&buffer[at..]);
}

/// Writes an integer in decimal.
#[inline]
pub fn write_int(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    write_uint(out, value.unsigned_abs());
}

/// Writes nanoseconds as microseconds with exactly three decimals, as Kineto does.
#[inline]
pub fn write_micros(out: &mut Vec<u8>, nanos: i64) {
    if nanos < 0 {
        out.push(b'-');
    }
    let nanos = nanos.unsigned_abs();
    write_uint(out, nanos / 1000);
    let rest = (nanos % 1000) as usize;
    let pair = rest % 100 * 2;
    out.extend_from_slice(&[b'.', b'0' + (rest / 100) as u8, PAIRS[pair], PAIRS[pair + 1]]);
}

/// Writes a float so that it reads back as the same float, and as a float: `2` becomes `2.0`.
/// One that is not finite becomes a string (`"nan"`, `"inf"`, `"-inf"`), as in Kineto's output.
pub fn write_float(out: &mut Vec<u8>, value: f64) {
    if value.is_nan() {
        out.extend_from_slice(b"\"nan\"");
        return;
    }
    if value.is_infinite() {
        out.extend_from_slice(if value > 0.0 { b"\"inf\"" } else { b"\"-inf\"" });
        return;
    }
    let size = value.abs();
    // Writing to a vector does not fail.
    let _ = if size != 0.0 && !(1e-5..1e17).contains(&size) {
        write!(out, "{value:e}")
    } else {
        write!(out, "{value:?}")
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn integers() {
        for value in [0, 7, 10, 99, 100, 12_345, 1_000_000, u64::MAX, u64::MAX / 10] {
            assert_eq!(written(|out| write_uint(out, value)), value.to_string());
        }
        for value in [0, -1, i64::MIN, i64::MAX] {
            assert_eq!(written(|out| write_int(out, value)), value.to_string());
        }
    }

    #[test]
    fn microseconds_have_three_decimals() {
        for (nanos, text) in [
            (0, "0.000"),
            (1, "0.001"),
            (-1, "-0.001"),
            (117_748, "117.748"),
            (4_311_694_680_926_041, "4311694680926.041"),
            (i64::MIN, "-9223372036854775.808"),
        ] {
            assert_eq!(written(|out| write_micros(out, nanos)), text);
        }
    }

    #[test]
    fn floats_read_back_as_they_were() {
        for value in [0.0, -0.0, 1.0, 23.272728, 1e16, 1e17, 1e300, 5e-324, 0.1, f64::MAX, 1e-5] {
            let text = written(|out| write_float(out, value));
            assert_eq!(text.parse::<f64>().unwrap().to_bits(), value.to_bits(), "{text}");
            assert!(text.contains(['.', 'e']), "{text}");
            assert!(serde_json::from_str::<f64>(&text).is_ok(), "{text}");
        }
        assert_eq!(written(|out| write_float(out, f64::NAN)), "\"nan\"");
        assert_eq!(written(|out| write_float(out, f64::NEG_INFINITY)), "\"-inf\"");
    }

    #[test]
    fn strings_are_what_serde_reads() {
        let all: String = (0..300).filter_map(char::from_u32).chain(['\u{1f600}']).collect();
        for text in ["", "plain", "q\"uo\\te", "caf\u{e9}\n\t\u{0}\u{1f}", &all] {
            let json = written(|out| write_string(out, text));
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
    }
}
