//! Parsers of option values. Each error is the end of a sentence that begins with the
//! option: "expected …".

use super::{MAX_FLUSH, Policy};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

pub(super) fn text(value: &OsStr) -> Result<&str, String> {
    value.to_str().ok_or_else(|| "expected UTF-8 text".to_owned())
}

pub(super) fn path(value: &OsStr) -> Result<PathBuf, String> {
    Ok(value.into())
}

pub(super) fn signal(value: &OsStr) -> Result<i32, String> {
    let number = crate::process::signals::free(text(value)?);
    number.ok_or_else(|| "expected USR1, USR2, PROF, URG or IO".to_owned())
}

/// `None` for an empty value.
pub(super) fn optional<'v, T>(
    value: &'v OsStr,
    parse: impl FnOnce(&'v OsStr) -> Result<T, String>,
) -> Result<Option<T>, String> {
    if value.is_empty() {
        return Ok(None);
    }
    parse(value).map(Some)
}

/// One of a few words.
pub(super) fn choice<T: Copy>(value: &OsStr, choices: &[(&str, T)]) -> Result<T, String> {
    let word = text(value)?;
    let found = choices.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
    found.map(|(_, choice)| *choice).ok_or_else(|| {
        let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
        format!("expected {}", names.join(" or "))
    })
}

pub(super) fn boolean(value: &OsStr) -> Result<bool, String> {
    match text(value)?.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err("expected 1 or 0".to_owned()),
    }
}

/// Bytes: `4096`, `512K`, `64M`, `1.5G` (powers of 1024; `B` and `iB` may follow).
pub(super) fn size(value: &OsStr) -> Result<u64, String> {
    const EXPECTED: &str = "expected a size such as 64M (at least 64K)";
    let value = text(value)?.trim().to_ascii_uppercase();
    let value = value.strip_suffix('B').unwrap_or(&value);
    let value = value.strip_suffix('I').unwrap_or(value);
    let (number, unit) = split(value);
    let factor = match unit {
        "" => 1.0,
        "K" => 1024.0,
        "M" => 1024.0 * 1024.0,
        "G" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err(EXPECTED.to_owned()),
    };
    let bytes = positive(number).ok_or(EXPECTED)? * factor;
    // Far beyond any machine's memory; keeps the conversion exact.
    if !(65536.0..=1e15).contains(&bytes) {
        return Err(EXPECTED.to_owned());
    }
    Ok(bytes as u64)
}

/// As [`size`], but no less than `least`.
pub(super) fn at_least(value: &OsStr, least: u64) -> Result<u64, String> {
    let bytes = size(value)?;
    if bytes < least {
        return Err(format!("expected a size of at least {}M", least >> 20));
    }
    Ok(bytes)
}

pub(super) fn keep(value: &OsStr) -> Result<u32, String> {
    match text(value)?.parse() {
        // The one before the newest may still be written.
        Ok(number) if number >= 2 => Ok(number),
        _ => Err("expected a number of files, at least 2".to_owned()),
    }
}

/// `500us`, `200ms`, `1.5s`, `10m`. A number must say its unit: 200 could be anything.
pub(super) fn duration(value: &OsStr) -> Result<Duration, String> {
    const EXPECTED: &str = "expected a duration such as 500us, 200ms, 1.5s or 10m";
    let (number, unit) = split(text(value)?.trim());
    let seconds = match unit {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(EXPECTED.to_owned()),
    };
    let seconds = positive(number).ok_or(EXPECTED)? * seconds;
    // A year: `Duration` cannot overflow, and nor can a deadline made from it.
    if seconds > 366.0 * 86400.0 {
        return Err(EXPECTED.to_owned());
    }
    Ok(Duration::from_nanos((seconds * 1e9).round() as u64))
}

pub(super) fn flush(value: &OsStr) -> Result<Duration, String> {
    let flush = duration(value)?;
    if flush < Duration::from_millis(1) || flush > MAX_FLUSH {
        return Err("expected a duration from 1ms to 1s".to_owned());
    }
    Ok(flush)
}

pub(super) fn sampling(value: &OsStr) -> Result<Duration, String> {
    let interval = duration(value)?;
    if interval < Duration::from_millis(10) {
        return Err("expected a duration of 10ms or more".to_owned());
    }
    Ok(interval)
}

pub(super) fn policy(value: &OsStr) -> Result<Policy, String> {
    let word = text(value)?;
    if word.eq_ignore_ascii_case("drop") {
        return Ok(Policy::Drop);
    }
    match word.split_once(':') {
        Some((stall, limit)) if stall.eq_ignore_ascii_case("stall") => {
            duration(limit.as_ref()).map(Policy::Stall)
        }
        _ => Err("expected drop, or stall:DURATION such as stall:5ms".to_owned()),
    }
}

pub(super) fn mode(value: &OsStr) -> Result<u32, String> {
    let digits = text(value)?;
    let digits = digits.strip_prefix("0o").unwrap_or(digits);
    match u32::from_str_radix(digits, 8) {
        // The owner must be able to write: children open the file again.
        Ok(mode) if mode <= 0o777 && mode & 0o200 != 0 => Ok(mode),
        _ => Err("expected permissions in octal such as 0600, writable by the owner".to_owned()),
    }
}

/// Splits `200ms` into its number and its unit.
fn split(value: &str) -> (&str, &str) {
    let at = value.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(value.len());
    (&value[..at], value[at..].trim_start())
}

fn positive(number: &str) -> Option<f64> {
    number.parse::<f64>().ok().filter(|n| n.is_finite())
}

/// Levenshtein distance, for "did you mean".
pub(super) fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_of_1024() {
        assert_eq!(size("65536".as_ref()), Ok(65536));
        assert_eq!(size("64M".as_ref()), Ok(64 << 20));
        assert_eq!(size("1.5g".as_ref()), Ok(3 << 29));
        assert_eq!(size("512KiB".as_ref()), Ok(512 << 10));
        for bad in ["", "M", "-1M", "1T", "64 Mx", "1", "nan", "inf", "1e9", "99999999G"] {
            assert!(size(bad.as_ref()).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations_say_their_unit() {
        assert_eq!(duration("500us".as_ref()), Ok(Duration::from_micros(500)));
        assert_eq!(duration("200ms".as_ref()), Ok(Duration::from_millis(200)));
        assert_eq!(duration("1.5s".as_ref()), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("2m".as_ref()), Ok(Duration::from_secs(120)));
        for bad in ["", "200", "ms", "-1s", "1d", "9999999h", "1s2"] {
            assert!(duration(bad.as_ref()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_slip_of_the_finger_is_near() {
        assert_eq!(distance("BUFER", "BUFFER"), 1);
        assert_eq!(distance("", "SAFE"), 4);
        assert_eq!(distance("FLUSH", "FLUSH"), 0);
    }
}
