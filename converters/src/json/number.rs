//! Numbers, read from their digits: never through a float where nanoseconds are at stake.

use super::scan::not_digits;
use super::value::{Kind, Value};

/// A number of the input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// Fits in 64 bits with a sign.
    Int(i64),
    /// Fits in 64 bits without a sign only.
    Uint(u64),
    /// Has a fraction or an exponent, or is not finite.
    Float(f64),
    /// An integer that 64 bits do not hold; its digits are in [`Value::raw`].
    Huge,
}

/// The number that `value` is; `None` when it is none.
#[inline]
pub fn number(value: Value<'_>) -> Option<Number> {
    match value.kind() {
        Kind::Int => Some(integer(value)),
        // "-nan" is what C writes and Rust does not read.
        Kind::Float => Some(Number::Float(value.raw().parse().unwrap_or(f64::NAN))),
        _ => None,
    }
}

#[inline]
fn integer(value: Value<'_>) -> Number {
    match short_integer(value) {
        Some(short) => Number::Int(short),
        None => long_integer(value),
    }
}

/// An integer of up to eight digits and no sign, as nearly all are, read in one step: with what
/// stands behind them.
#[inline]
pub(crate) fn short_integer(value: Value<'_>) -> Option<i64> {
    let (ahead, len) = value.ahead()?;
    let is_short = value.kind() == Kind::Int && (1..=8).contains(&len) && ahead[0] != b'-';
    is_short.then(|| eight(u64::from_le_bytes(*ahead) << (64 - 8 * len)) as i64)
}

fn long_integer(value: Value<'_>) -> Number {
    match value.bytes() {
        // Eighteen digits cannot overflow, and nearly every number has fewer.
        digits @ [b'0'..=b'9', ..] if digits.len() <= 18 => match decimal(digits) {
            Some(value) => Number::Int(value as i64),
            None => other_integer(value.raw()),
        },
        _ => other_integer(value.raw()),
    }
}

fn other_integer(raw: &str) -> Number {
    let (negative, digits) = match raw.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, raw),
    };
    // Eighteen digits cannot overflow, and nearly every number has fewer.
    if digits.len() <= 18
        && let Some(value) = decimal(digits.as_bytes())
    {
        return Number::Int(if negative { -(value as i64) } else { value as i64 });
    }
    match (raw.parse(), raw.parse()) {
        (Ok(value), _) => Number::Int(value),
        (_, Ok(value)) => Number::Uint(value),
        _ => Number::Huge,
    }
}

/// [`nanoseconds`] of a value. Most durations have less than eight digits before the point, which are
/// read in one step, with what stands behind them.
#[inline]
pub(crate) fn nanoseconds_of(value: Value<'_>) -> Option<i64> {
    let bytes = value.bytes();
    if let Some((ahead, _)) = value.ahead() {
        let ahead = u64::from_le_bytes(*ahead);
        let whole = not_digits(ahead).trailing_zeros() as usize / 8;
        if (1..8).contains(&whole)
            && let Some([b'.', a @ b'0'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9']) =
                bytes.get(whole..)
        {
            let whole = eight(ahead << (64 - 8 * whole)) as i64;
            return Some(whole * 1000 + thousandths(*a, *b, *c));
        }
    }
    nanoseconds(bytes)
}

/// The number that three digits are.
#[inline]
fn thousandths(a: u8, b: u8, c: u8) -> i64 {
    i64::from(a & 15) * 100 + i64::from(b & 15) * 10 + i64::from(c & 15)
}

/// Reads decimal microseconds, such as `4311694680926.841`, as nanoseconds. What is finer than
/// a nanosecond is rounded to the nearest. `None` when they are no decimal number or the result
/// does not fit.
#[inline]
pub fn nanoseconds(bytes: &[u8]) -> Option<i64> {
    let (negative, digits) = match bytes {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    // Kineto writes three digits behind the point, Python as many as it takes.
    let (whole, fraction) = match digits {
        [whole @ .., b'.', a @ b'0'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
            (whole, thousandths(*a, *b, *c))
        }
        [whole @ .., b'.', a @ b'0'..=b'9', b @ b'0'..=b'9'] => (whole, thousandths(*a, *b, 0)),
        [whole @ .., b'.', a @ b'0'..=b'9'] => (whole, thousandths(*a, 0, 0)),
        whole => (whole, 0),
    };
    // Sixteen digits are microseconds since 1970; more take the careful way.
    const MOST: i64 = i64::MAX / 1000 - 1;
    match (1..=16).contains(&whole.len()).then(|| decimal(whole)).flatten() {
        Some(whole) if whole as i64 <= MOST => {
            let nanos = whole as i64 * 1000 + fraction;
            Some(if negative { -nanos } else { nanos })
        }
        _ => carefully(bytes),
    }
}

/// The number that at most nineteen digits are: eight at a time. `None` if they are not digits.
#[inline(always)]
fn decimal(digits: &[u8]) -> Option<u64> {
    const TENS: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];
    let (words, rest) = digits.as_chunks::<8>();
    let (mut value, mut others) = (0u64, 0);
    for word in words {
        let word = u64::from_le_bytes(*word);
        others |= not_digits(word);
        value = value.wrapping_mul(100_000_000).wrapping_add(eight(word));
    }
    match digits.last_chunk::<8>() {
        None => {
            for digit in rest {
                others |= u64::from(!digit.is_ascii_digit());
                value = value * 10 + u64::from(digit & 15);
            }
        }
        // What was read before counts as zeros.
        Some(last) if !rest.is_empty() => {
            let before = 64 - 8 * rest.len();
            let last = u64::from_le_bytes(*last) >> before << before;
            others |= not_digits(last) >> before;
            value = value.wrapping_mul(TENS[rest.len()]).wrapping_add(eight(last));
        }
        Some(_) => {}
    }
    (others == 0).then_some(value)
}

/// The number that eight digits are, by halves. Bytes that are 0 count as the digit.
#[inline]
fn eight(digits: u64) -> u64 {
    let digits = digits & 0x0f0f_0f0f_0f0f_0f0f;
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xffff_ffff
}

/// The general case: any number of digits, an exponent.
#[cold]
fn carefully(bytes: &[u8]) -> Option<i64> {
    let raw = std::str::from_utf8(bytes).ok()?.trim();
    let (negative, rest) = match raw.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, raw.strip_prefix('+').unwrap_or(raw)),
    };
    let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (rest, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    // Where the unit digit of the nanoseconds is, counted from the first digit.
    let point = i64::try_from(whole.len()).ok()? + i64::from(exponent) + 3;
    let mut nanos = 0i64;
    let mut digits = whole.bytes().chain(fraction.bytes());
    if !digits.clone().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    if point < 0 {
        return Some(0);
    }
    let mut left = point;
    while left > 0 {
        let Some(digit) = digits.next() else { break };
        nanos = nanos.checked_mul(10)?.checked_add(i64::from(digit & 15))?;
        left -= 1;
    }
    while left > 0 && nanos != 0 {
        nanos = nanos.checked_mul(10)?;
        left -= 1;
    }
    if left == 0 && digits.next().is_some_and(|digit| digit >= b'5') {
        nanos = nanos.checked_add(1)?;
    }
    Some(if negative { -nanos } else { nanos })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_keep_their_nanoseconds() {
        for (raw, nanos) in [
            ("4311694680926.841", Some(4_311_694_680_926_841)),
            ("1682725898236567", Some(1_682_725_898_236_567_000)),
            ("1682725898236567.001", Some(1_682_725_898_236_567_001)),
            ("68.0", Some(68_000)),
            ("0.5", Some(500)),
            (".5", Some(500)),
            ("5.", Some(5_000)),
            ("-1.001", Some(-1_001)),
            ("-0.0005", Some(-1)),
            ("1.0004", Some(1_000)),
            ("1.9995", Some(2_000)),
            ("12.300000000000001", Some(12_300)),
            ("1.5e3", Some(1_500_000)),
            ("1.6827258982365672e15", Some(1_682_725_898_236_567_200)),
            ("15E-3", Some(15)),
            ("1e-9", Some(0)),
            ("0e99999", Some(0)),
            ("9223372036854775.807", Some(i64::MAX)),
            ("9223372036854775.808", None),
            ("1e400", None),
            ("1e2147483647", None),
            ("1e-2147483648", Some(0)),
            ("", None),
            ("-", None),
            (".", None),
            ("1e", None),
            ("1.2.3", None),
            ("nan", None),
            ("12x", None),
        ] {
            assert_eq!(nanoseconds(raw.as_bytes()), nanos, "{raw}");
        }
    }

    /// What `read` gives for the value that `raw` is, with other text behind it or with none.
    fn of_value<T>(raw: &str, behind: &str, read: impl FnOnce(Value<'_>) -> T) -> Option<T> {
        let item = |list: Value<'_>| list.items().next().map(read);
        crate::json::Texts::default().read(&format!("[{raw}{behind}]"), item).flatten()
    }

    #[test]
    fn values_are_read_as_their_digits_are() {
        for raw in [
            "0",
            "7",
            "-7",
            "12345678",
            "123456789",
            "-1234567",
            "123456789012345678",
            "007",
            "1.5",
            "45.123",
            "-45.123",
            "45.12",
            "45.1234",
            "1234567.123",
            "12345678.123",
            "12345678901234.123",
            "4.5e3",
            "0.001",
            "100.000",
        ] {
            for behind in ["", ", 45.678, 9"] {
                let nanos = of_value(raw, behind, nanoseconds_of);
                assert_eq!(nanos, Some(nanoseconds(raw.as_bytes())), "{raw}");
                let whole = raw.parse().ok().filter(|_| !raw.contains(['.', 'e']));
                let read = of_value(raw, behind, number).flatten();
                let int = whole.map(Number::Int);
                let wanted = int.or_else(|| raw.parse().ok().map(Number::Float));
                assert_eq!(read, wanted, "{raw}");
            }
        }
    }

    #[test]
    fn integers_of_any_length() {
        for (raw, value) in [
            ("0", Number::Int(0)),
            ("-0", Number::Int(0)),
            ("-12", Number::Int(-12)),
            ("999999999999999999", Number::Int(999_999_999_999_999_999)),
            ("9223372036854775807", Number::Int(i64::MAX)),
            ("-9223372036854775808", Number::Int(i64::MIN)),
            ("18446744073709551615", Number::Uint(u64::MAX)),
            ("18446744073709551616", Number::Huge),
            ("-9223372036854775809", Number::Huge),
        ] {
            assert_eq!(other_integer(raw), value, "{raw}");
        }
    }
}
