//! What became of a dump, as metadata.

use std::io;
use std::time::Duration;

use super::message::Metadata;
use crate::error::Error;
use crate::flight::Dump;

/// The answer to the process that has requested a dump.
pub(crate) fn write(result: Result<Dump, Error>) -> Metadata {
    let fact = |key: &str, value: String| (key.to_owned(), value);
    match result {
        Err(error) => vec![fact("error", error.to_string())],
        Ok(dump) => vec![
            fact("path", dump.path.to_string_lossy().into_owned()),
            fact("why", dump.why),
            fact("events", dump.events.to_string()),
            fact("lost", dump.lost.to_string()),
            fact("covers", dump.covers.as_nanos().to_string()),
            fact("missing", dump.missing.as_nanos().to_string()),
            fact("bytes", dump.bytes.to_string()),
            fact("held", dump.held.to_string()),
        ],
    }
}

/// The same, read again.
pub(crate) fn read(metadata: &Metadata) -> io::Result<Dump> {
    let text = |key: &str| metadata.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str());
    let number = |key: &str| text(key).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
    if let Some(error) = text("error") {
        return Err(io::Error::other(error.to_owned()));
    }
    Ok(Dump {
        path: text("path").unwrap_or_default().into(),
        why: text("why").unwrap_or_default().to_owned(),
        events: number("events"),
        lost: number("lost"),
        covers: Duration::from_nanos(number("covers")),
        missing: Duration::from_nanos(number("missing")),
        bytes: number("bytes"),
        held: number("held"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_what_the_dump_is() {
        let dump = Dump {
            path: "/tmp/t.1.pftrace".into(),
            why: "asked".to_owned(),
            events: 7,
            lost: 1,
            covers: Duration::from_millis(1500),
            missing: Duration::ZERO,
            bytes: 900,
            held: 400,
        };
        assert_eq!(read(&write(Ok(dump.clone()))).unwrap(), dump);
        let error = read(&write(Err(Error::NoFlight))).unwrap_err();
        assert_eq!(error.to_string(), Error::NoFlight.to_string());
    }
}
