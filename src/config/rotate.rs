//! When a trace is cut.

use std::time::Duration;

use super::value;

/// How large a part of a trace may become, and how long it may last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rotate {
    /// Bytes; a part may exceed it by what is written at once.
    pub bytes: Option<u64>,
    /// Time.
    pub time: Option<Duration>,
}

impl Rotate {
    /// Reads `100M`, `10m` or `100M,10m`: small letters are minutes, as everywhere.
    ///
    /// # Errors
    /// It is neither, or less than a second: what is expected, as the end of a sentence.
    pub fn parse(text: &str) -> Result<Rotate, String> {
        let mut rotate = Rotate::default();
        for part in text.split(',').map(str::trim) {
            // `10m` would be a size to `size`, which takes small letters.
            match value::duration(part.as_ref()) {
                Ok(time) if time >= Duration::from_secs(1) => rotate.time = Some(time),
                Ok(_) => return Err("expected at least 1s".to_owned()),
                Err(_) => {
                    let bytes = value::size(part.as_ref());
                    rotate.bytes = Some(bytes.map_err(|_| {
                        "expected a size such as 100M (at least 64K), a duration such as 10m \
                         (at least 1s), or both: 100M,10m"
                    })?);
                }
            }
        }
        Ok(rotate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_durations() {
        let both = Rotate { bytes: Some(100 << 20), time: Some(Duration::from_secs(600)) };
        assert_eq!(Rotate::parse("100M, 10m"), Ok(both));
        assert_eq!(Rotate::parse("10m"), Ok(Rotate { bytes: None, ..both }));
        assert_eq!(Rotate::parse("100M"), Ok(Rotate { time: None, ..both }));
        for bad in ["", "often", "1K", "10ms", "100M,"] {
            assert!(Rotate::parse(bad).is_err(), "{bad}");
        }
    }
}
