//! Who may have the trace, and which part of it: requests in, answers out.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;

/// The page that shows traces.
#[derive(Clone, Debug)]
pub(super) struct Ui {
    /// What browsers send as `Origin`: scheme, host and port.
    pub(super) origin: String,
    /// Its address without a trace.
    pub(super) page: String,
}

impl Ui {
    pub(super) fn is_default(&self) -> bool {
        self.origin == "https://ui.perfetto.dev"
    }
}

/// Reads `--ui`.
pub(super) fn parse_ui(text: &str) -> Result<Ui, String> {
    let page = text.trim_end_matches('/').to_owned();
    let origin = page.split_once("://").and_then(|(scheme, rest)| {
        let host = rest.split('/').next().filter(|host| !host.is_empty())?.to_ascii_lowercase();
        let known = scheme == "https" || scheme == "http";
        let plain = page.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
        (known && plain).then(|| format!("{scheme}://{host}"))
    });
    let origin = origin.ok_or("expected an address such as https://ui.perfetto.dev")?;
    Ok(Ui { origin, page })
}

/// What is served, and to whom.
#[derive(Debug)]
pub(super) struct Site {
    port: u16,
    origin: String,
    path: String,
}

/// The part of a request that decides.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Request<'r> {
    pub(super) method: &'r str,
    pub(super) path: &'r str,
    /// Header fields. Those that matter must not come twice.
    pub(super) fields: &'r [(&'r str, &'r [u8])],
}

/// What to answer.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Answer {
    /// Not to this one: what is wrong, for the terminal.
    Refuse(String),
    /// The UI's question whether it may ask.
    Preflight,
    /// The UI's, but no such thing here: it looks for a trace_processor, too.
    NotFound,
    /// The UI's, but nothing that can be done with a trace.
    Method,
    /// The trace, or what would come with it.
    Trace {
        /// Not the trace itself, only what is said of it.
        head: bool,
        /// The first byte, and the one after the last, if not all.
        range: Option<(u64, u64)>,
    },
    /// A part that the trace does not have.
    Range,
}

impl Site {
    /// Serves a file with the name `name` to pages of `origin` that know `secret`. They
    /// reach it at `port` of 127.0.0.1, perhaps through a tunnel.
    pub(super) fn new(port: u16, origin: &str, secret: &str, name: &OsStr) -> Site {
        // What is sent is unpacked.
        let name = name.as_bytes();
        let name = name.strip_suffix(b".zst").filter(|rest| !rest.is_empty()).unwrap_or(name);
        Site { port, origin: origin.to_owned(), path: format!("/{secret}/{}", escape(name, b"")) }
    }

    /// Where the trace is.
    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}{}", self.port, self.path)
    }

    /// What a request for it names.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Whose pages may read it.
    pub(super) fn origin(&self) -> &str {
        &self.origin
    }

    /// Decides. `length` is what a range must be in; `None` if parts cannot be had.
    pub(super) fn answer(&self, request: Request<'_>, length: Option<u64>) -> Answer {
        let host = field(request.fields, "host");
        if !matches!(host, One(host) if is_this_machine(host)) {
            return Answer::Refuse(format!("for the host {host}"));
        }
        let origin = field(request.fields, "origin");
        if origin != One(self.origin.as_bytes()) {
            return Answer::Refuse(format!("from the origin {origin}"));
        }
        if request.method == "OPTIONS" {
            return Answer::Preflight;
        }
        if request.path != self.path {
            return Answer::NotFound;
        }
        let head = match request.method {
            "GET" => false,
            "HEAD" => true,
            _ => return Answer::Method,
        };
        match (field(request.fields, "range"), length) {
            (One(range), Some(length)) => match parse_range(range, length) {
                Some(Ok(range)) => Answer::Trace { head, range: Some(range) },
                Some(Err(())) => Answer::Range,
                // Not understood: to be ignored (RFC 9110, 14.2).
                None => Answer::Trace { head, range: None },
            },
            _ => Answer::Trace { head, range: None },
        }
    }
}

/// Whether a host is how this machine calls itself: never a name that another host can
/// point here. The port is the tunnel's business.
pub(super) fn is_this_machine(host: &[u8]) -> bool {
    let (name, port) = match host.iter().position(|byte| *byte == b':') {
        Some(colon) => (&host[..colon], &host[colon + 1..]),
        None => (host, &[][..]),
    };
    (name == b"127.0.0.1" || name == b"localhost") && port.iter().all(u8::is_ascii_digit)
}

/// A header field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Field<'r> {
    None,
    One(&'r [u8]),
    Several,
}
use Field::One;

impl std::fmt::Display for Field<'_> {
    /// For the terminal: whatever was sent, escaped and short.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Field::None => f.write_str("(none)"),
            Field::Several => f.write_str("(several)"),
            One(value) => {
                let value = &value[..value.len().min(100)];
                f.write_str(&value.escape_ascii().to_string())
            }
        }
    }
}

pub(super) fn field<'r>(fields: &[(&str, &'r [u8])], name: &str) -> Field<'r> {
    let mut found = fields.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name));
    match (found.next(), found.next()) {
        (None, _) => Field::None,
        (Some((_, value)), None) => One(value),
        _ => Field::Several,
    }
}

/// One range of bytes (RFC 9110, 14.1.2): `None` if it is something else, `Err` if it is
/// outside.
#[allow(clippy::type_complexity, reason = "three outcomes, one use")]
fn parse_range(text: &[u8], length: u64) -> Option<Result<(u64, u64), ()>> {
    let text = std::str::from_utf8(text).ok()?.strip_prefix("bytes=")?;
    let (from, to) = text.split_once('-')?;
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // More than there can be is as good as any number that is too large.
        digits.then(|| text.parse::<u64>().unwrap_or(u64::MAX))
    };
    let range = match (from, to) {
        ("", last) => (length.saturating_sub(number(last)?), length),
        (from, "") => (number(from)?, length),
        (from, to) => {
            let (from, to) = (number(from)?, number(to)?);
            if from > to {
                return None;
            }
            (from, to.saturating_add(1).min(length))
        }
    };
    Some(if range.0 < range.1 { Ok(range) } else { Err(()) })
}

/// Percent-encodes all but letters, digits, `-._~` and `also`.
pub(super) fn escape(bytes: &[u8], also: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || also.contains(&byte) {
            text.push(byte.into());
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGIN: (&str, &[u8]) = ("Origin", b"https://ui.perfetto.dev");
    const HOST: (&str, &[u8]) = ("Host", b"127.0.0.1:9001");

    fn site() -> Site {
        Site::new(9001, "https://ui.perfetto.dev", "s", OsStr::new("t.pftrace"))
    }

    fn ask(method: &str, path: &str, fields: &[(&str, &[u8])]) -> Answer {
        site().answer(Request { method, path, fields }, Some(100))
    }

    fn refused(fields: &[(&str, &[u8])]) -> bool {
        ["GET", "HEAD", "OPTIONS", "POST"].iter().all(|method| {
            ["/s/t.pftrace", "/status"]
                .iter()
                .all(|path| matches!(ask(method, path, fields), Answer::Refuse(_)))
        })
    }

    #[test]
    fn only_the_ui_gets_anything() {
        let whole = Answer::Trace { head: false, range: None };
        assert_eq!(ask("GET", "/s/t.pftrace", &[HOST, ORIGIN]), whole);
        let local: (&str, &[u8]) = ("host", b"localhost:9001");
        assert_eq!(ask("GET", "/s/t.pftrace", &[ORIGIN, local]), whole);
        assert_eq!(ask("OPTIONS", "/s/t.pftrace", &[HOST, ORIGIN]), Answer::Preflight);
        assert_eq!(ask("POST", "/status", &[HOST, ORIGIN]), Answer::NotFound);
        assert_eq!(ask("GET", "/t.pftrace", &[HOST, ORIGIN]), Answer::NotFound);
        assert_eq!(ask("DELETE", "/s/t.pftrace", &[HOST, ORIGIN]), Answer::Method);

        for origin in [
            "null",
            "http://ui.perfetto.dev",
            "https://ui.perfetto.dev.evil.example",
            "https://evil.example",
            "https://ui.perfetto.dev:443",
            "https://ui.perfetto.dev https://evil.example",
            "",
        ] {
            assert!(refused(&[HOST, ("Origin", origin.as_bytes())]), "{origin}");
        }
        assert!(refused(&[HOST]), "a page that is read by its own address has no origin");
        assert!(refused(&[HOST, ORIGIN, ORIGIN]));
        for host in ["evil.example:9001", "127.0.0.1.evil.example", "127.0.0.1:9001.evil", ""] {
            assert!(refused(&[("Host", host.as_bytes()), ORIGIN]), "{host}");
        }
        assert!(refused(&[ORIGIN]));
        let tunnel: (&str, &[u8]) = ("Host", b"localhost:7777");
        assert_eq!(ask("GET", "/s/t.pftrace", &[tunnel, ORIGIN]), whole);
        assert!(refused(&[HOST, HOST, ORIGIN]));
    }

    #[test]
    fn ranges_are_those_of_the_rfc() {
        let range = |text: &str| parse_range(text.as_bytes(), 100);
        assert_eq!(range("bytes=0-0"), Some(Ok((0, 1))));
        assert_eq!(range("bytes=10-"), Some(Ok((10, 100))));
        assert_eq!(range("bytes=-10"), Some(Ok((90, 100))));
        assert_eq!(range("bytes=-1000"), Some(Ok((0, 100))));
        assert_eq!(range("bytes=90-99999999999999999999999"), Some(Ok((90, 100))));
        assert_eq!(range("bytes=100-"), Some(Err(())));
        assert_eq!(range("bytes=-0"), Some(Err(())));
        for other in ["", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=5-1", "items=0-1"] {
            assert_eq!(range(other), None, "{other}");
        }
        // Several ranges: all of it is a right answer, too.
        assert_eq!(range("bytes=0-1,5-6"), None);
    }

    #[test]
    fn a_ui_of_ones_own_has_an_origin() {
        let ui = parse_ui("http://LocalHost:10000/v55/").unwrap();
        assert_eq!(
            (ui.origin.as_str(), ui.page.as_str()),
            ("http://localhost:10000", "http://LocalHost:10000/v55")
        );
        for wrong in ["", "ui.perfetto.dev", "file:///x", "https://", "https://a/#b", "https://a b"]
        {
            assert!(parse_ui(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_survive() {
        let site = Site::new(1, "o", "s", OsStr::from_bytes(b"a b\xff/\r\n.json.zst"));
        assert_eq!(site.url(), "http://127.0.0.1:1/s/a%20b%FF%2F%0D%0A.json");
    }
}
