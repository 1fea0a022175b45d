//! Formats by name, and files of any of them.

use std::fmt;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};

use crate::foreign::{foreign, has_lines, looks_like_json};
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
    /// As a trace of any format: what it seems to be instead.
    NotATrace(String),
    /// At all.
    Io(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Perfetto(error) => error.fmt(f),
            Error::Json(error) => error.fmt(f),
            Error::NotATrace(what) => write!(f, "not a trace: {what}"),
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
    let begun = file.by_ref().take(FIRST).read_to_end(&mut first);
    if let Err(error) = begun
        && first.is_empty()
    {
        return Err(Error::Io(error));
    }
    if let Some(what) = foreign(&first) {
        return Err(Error::NotATrace(what));
    }
    let looks = if looks_like_json(&first) { Format::Kineto } else { Format::Perfetto };
    let lines = has_lines(&first);
    let mut rest = first.as_slice().chain(&mut file);
    let limits = json::Limits::default();
    let mut trace = match format.unwrap_or(looks) {
        Format::Perfetto => perfetto::read(rest, Limits::default()).map_err(Error::Perfetto)?,
        Format::Kineto | Format::Chrome if lines => {
            chrome::read_lines(&mut rest, &limits).map_err(Error::Json)?
        }
        Format::Kineto | Format::Chrome => chrome::read(&mut rest, &limits).map_err(Error::Json)?,
    };
    if file.has_garbage() {
        trace.facts.warn("bytes behind the packed data, ignored", None);
    }
    Ok(trace)
}

/// Whether a file seems to be a trace, plain or packed, by its beginning.
pub fn is_trace(file: impl Read) -> bool {
    let Ok(file) = Unpacked::new(file, Limits::default()) else { return false };
    let mut first = Vec::new();
    // A packed file may be cut off; so much of it is enough.
    let _ = file.take(FIRST).read_to_end(&mut first);
    if looks_like_json(&first) {
        let says = |word: &[u8]| first.windows(word.len()).any(|text| text == word);
        return says(b"\"traceEvents\"") || says(b"\"ph\"") || first.trim_ascii() == b"[]";
    }
    foreign(&first).is_none() && matches!(first[..], [0x0a, ..])
}

/// How much of a file is looked at to tell what it is.
const FIRST: u64 = 4096;

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
            let warnings = write_while_packing(trace, &mut out, format)?;
            out.finish()?.flush()?;
            Ok(warnings)
        }
        Packing::Zstd => {
            let mut out = zstd::stream::write::Encoder::new(out, 3)?;
            let warnings = write_while_packing(trace, &mut out, format)?;
            out.finish()?.flush()?;
            Ok(warnings)
        }
    }
}

/// Writes to what packs: on a thread of its own where there are two processors.
fn write_while_packing(
    trace: &Trace,
    out: &mut impl Write,
    format: Format,
) -> io::Result<Vec<Warning>> {
    let plain = perfetto::Packets::Plain;
    if crate::processors() < 2 {
        return write_unpacked(trace, out, format, plain);
    }
    let (to, pieces) = sync_channel::<Vec<u8>>(4);
    std::thread::scope(|scope| {
        let write = move || write_unpacked(trace, Pieces(to), format, plain);
        let Ok(writer) = std::thread::Builder::new().spawn_scoped(scope, write) else {
            return write_unpacked(trace, out, format, plain);
        };
        // The writer ends by itself when its pieces are no longer taken.
        let packed = pieces.into_iter().try_for_each(|piece| out.write_all(&piece));
        let written = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        packed.and(written)
    })
}

/// What is written goes to another thread.
struct Pieces(SyncSender<Vec<u8>>);

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let gone = |_| io::Error::other("the thread that packs has ended");
        self.0.send(bytes.to_vec()).map_err(gone)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
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
