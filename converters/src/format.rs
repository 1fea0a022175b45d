//! Formats by name, and files of any of them.

use std::fmt;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use crate::packed::{Limits, Packing, Unpacked};
use crate::perfetto::Written;
use crate::trace::{Trace, Warning};
use crate::{chrome, json, kineto, perfetto};

/// A format of traces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Perfetto's.
    Perfetto,
    /// Kineto's JSON.
    Kineto,
    /// Chrome's JSON.
    Chrome,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 3] = [Format::Perfetto, Format::Kineto, Format::Chrome];

    /// The name, as in `--to`.
    pub fn name(self) -> &'static str {
        match self {
            Format::Perfetto => "perfetto",
            Format::Kineto => "kineto",
            Format::Chrome => "chrome",
        }
    }

    /// The format of this name.
    pub fn from_name(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The format of files with such names: JSON is taken for Kineto's.
    pub fn of_file(path: &Path) -> Option<Format> {
        let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
        let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
        let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
        if ends(&[".pftrace", ".perfetto-trace", ".perfetto", ".pb", ".proto"]) {
            Some(Format::Perfetto)
        } else if ends(&[".chrome.json"]) {
            Some(Format::Chrome)
        } else if ends(&[".json"]) {
            Some(Format::Kineto)
        } else {
            None
        }
    }
}

/// How files with such names are packed.
pub fn packing_of_file(path: &Path) -> Packing {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("gz") => Packing::Gzip,
        Some("zst") => Packing::Zstd,
        _ => Packing::Packets,
    }
}

/// Why a trace cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// As a Perfetto trace.
    Perfetto(perfetto::Error),
    /// As JSON.
    Json(json::Error),
    /// At all.
    Io(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Perfetto(error) => error.fmt(f),
            Error::Json(error) => error.fmt(f),
            Error::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

/// Reads a trace of any format, plain or packed: its first bytes tell.
///
/// # Errors
///
/// When the file cannot be read, or is a trace of no known format.
pub fn read(file: impl Read, format: Option<Format>) -> Result<Trace, Error> {
    let mut file = Unpacked::new(file, Limits::default()).map_err(Error::Io)?;
    let mut first = Vec::new();
    file.by_ref().take(64).read_to_end(&mut first).map_err(Error::Io)?;
    let looks = if looks_like_json(&first) { Format::Kineto } else { Format::Perfetto };
    let rest = first.as_slice().chain(file);
    match format.unwrap_or(looks) {
        Format::Perfetto => perfetto::read(rest, Limits::default()).map_err(Error::Perfetto),
        Format::Kineto | Format::Chrome => {
            chrome::read(rest, &json::Limits::default()).map_err(Error::Json)
        }
    }
}

/// Whether a file begins with a bracket and what may follow it, perhaps after white space.
/// A Perfetto trace begins with the tag of a packet, which is a line feed, and a length,
/// which may look like a bracket; but no packet begins like the inside of brackets.
fn looks_like_json(first: &[u8]) -> bool {
    let first = first.strip_prefix(b"\xef\xbb\xbf").unwrap_or(first);
    let mut rest = first.iter().filter(|byte| !byte.is_ascii_whitespace());
    let bracket = rest.next();
    match bracket {
        Some(b'{' | b'[') => rest.next().is_none_or(|next| b"\"{}[]".contains(next)),
        _ => false,
    }
}

/// Writes a trace. Gives back what the format cannot hold, or holds in another form.
///
/// # Errors
///
/// Those of `out`.
pub fn write(
    trace: &Trace,
    out: impl Write,
    format: Format,
    packing: Packing,
) -> io::Result<Vec<Warning>> {
    match packing {
        Packing::Plain => write_unpacked(trace, out, format, perfetto::Packets::Plain),
        Packing::Packets => write_unpacked(trace, out, format, perfetto::Packets::Deflated),
        Packing::Gzip => {
            let mut out = flate2::write::GzEncoder::new(out, flate2::Compression::new(4));
            let warnings = write_unpacked(trace, &mut out, format, perfetto::Packets::Plain)?;
            out.finish()?.flush()?;
            Ok(warnings)
        }
        Packing::Zstd => {
            let mut out = zstd::stream::write::Encoder::new(out, 3)?;
            let warnings = write_unpacked(trace, &mut out, format, perfetto::Packets::Plain)?;
            out.finish()?.flush()?;
            Ok(warnings)
        }
    }
}

fn write_unpacked(
    trace: &Trace,
    out: impl Write,
    format: Format,
    packets: perfetto::Packets,
) -> io::Result<Vec<Warning>> {
    let mut out = BufWriter::with_capacity(1 << 18, out);
    let written = match format {
        Format::Perfetto => perfetto::write_packets(trace, &mut out, packets)?,
        Format::Kineto => kineto::write(trace, &mut out).map(|()| Written::default())?,
        Format::Chrome => chrome::write(trace, &mut out).map(|()| Written::default())?,
    };
    out.flush()?;
    Ok(written.warnings())
}
