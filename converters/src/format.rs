//! Formats by name, and files of any of them.

use std::fmt;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};

use crate::ahead::Ahead;
use crate::detect::{Detected, FIRST, detect};
use crate::foreign::{foreign, has_lines, looks_like_json};
use crate::packed::{Limits, Packing, Unpacked};
use crate::perfetto::Written;
use crate::sqlite::Database;
use crate::trace::{Trace, Warning};
use crate::{
    chrome, firefox, json, kineto, nsys, perf_script, perfetto, rocpd, rocprof, speedscope, xplane,
};

/// A format of traces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Perfetto's.
    Perfetto,
    /// Kineto's JSON.
    Kineto,
    /// Chrome's JSON.
    Chrome,
    /// speedscope's JSON.
    Speedscope,
    /// The Firefox Profiler's JSON.
    Firefox,
    /// XPlane, of JAX and TensorFlow: read only, as are those below.
    Xplane,
    /// The text of `perf script`.
    Perf,
    /// The JSON of rocprofv3.
    Rocprofv3,
    /// The SQLite database of rocprofv3.
    Rocpd,
    /// The SQLite export of Nsight Systems.
    Nsys,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 10] = [
        Format::Perfetto,
        Format::Kineto,
        Format::Chrome,
        Format::Speedscope,
        Format::Firefox,
        Format::Xplane,
        Format::Perf,
        Format::Rocprofv3,
        Format::Rocpd,
        Format::Nsys,
    ];

    /// The name, as in `--to`.
    pub fn name(self) -> &'static str {
        match self {
            Format::Perfetto => "perfetto",
            Format::Kineto => "kineto",
            Format::Chrome => "chrome",
            Format::Speedscope => "speedscope",
            Format::Firefox => "firefox",
            Format::Xplane => "xplane",
            Format::Perf => "perf",
            Format::Rocprofv3 => "rocprofv3",
            Format::Rocpd => "rocpd",
            Format::Nsys => "nsys",
        }
    }

    /// Whether traces can be written in it; all can be read.
    pub fn is_written(self) -> bool {
        use Format::{Chrome, Firefox, Kineto, Perfetto, Speedscope};
        matches!(self, Perfetto | Kineto | Chrome | Speedscope | Firefox)
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
        } else if ends(&[".speedscope.json"]) {
            Some(Format::Speedscope)
        } else if ends(&[".firefox.json"]) {
            Some(Format::Firefox)
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
pub fn read(mut file: impl Read, format: Option<Format>) -> Result<Trace, Error> {
    let file: &mut dyn Read = &mut file;
    read_by(file, format, |first, file, format, lines| {
        read_as(&mut first.chain(file), format, lines)
    })
}

/// As [`read`], of a file that lies there: where there are several processors, a thread of its own
/// reads and unpacks it. Of a pipe it would wait for bytes that are not needed any more.
///
/// # Errors
///
/// As [`read`].
pub fn read_ahead(mut file: impl Read + Send, format: Option<Format>) -> Result<Trace, Error> {
    if crate::processors() < 2 {
        return read(file, format);
    }
    let file: &mut (dyn Read + Send) = &mut file;
    read_by(file, format, |first, file, format, lines| {
        std::thread::scope(|scope| {
            let ahead = Ahead::start(scope, file).map_err(Error::Io)?;
            read_as(&mut first.chain(ahead), format, lines)
        })
    })
}

/// Reads a trace, what is none of a database by `read`: from its beginning and the rest of the file.
fn read_by<R: Read>(
    file: R,
    format: Option<Format>,
    read: impl FnOnce(&[u8], &mut Unpacked<R>, Format, bool) -> Result<Trace, Error>,
) -> Result<Trace, Error> {
    let mut file = Unpacked::new(file, Limits::default()).map_err(Error::Io)?;
    let mut first = Vec::new();
    let begun = file.by_ref().take(FIRST).read_to_end(&mut first);
    if let Err(error) = begun
        && first.is_empty()
    {
        return Err(Error::Io(error));
    }
    let lines = has_lines(&first);
    let detected = match format {
        Some(Format::Nsys | Format::Rocpd) => Detected::Database,
        Some(format) => Detected::Known(format),
        None => detect(&first).map_err(Error::NotATrace)?,
    };
    let mut trace = match detected {
        Detected::Known(format) => read(&first, &mut file, format, lines)?,
        Detected::Database => database(&mut first.chain(&mut file), format)?,
    };
    if file.has_garbage() {
        trace.facts.warn("bytes behind the packed data, ignored", None);
    }
    Ok(trace)
}

/// The rest of a file in blocks, so that readers exist once and not for each kind of file.
fn read_as(mut rest: &mut dyn Read, format: Format, lines: bool) -> Result<Trace, Error> {
    let limits = json::Limits::default();
    let json = match format {
        Format::Perfetto => {
            return perfetto::read(rest, Limits::default()).map_err(Error::Perfetto);
        }
        Format::Kineto | Format::Chrome if lines => chrome::read_lines(&mut rest, &limits),
        Format::Kineto | Format::Chrome => chrome::read(&mut rest, &limits),
        Format::Speedscope => speedscope::read(&mut rest),
        Format::Firefox => firefox::read(&mut rest),
        Format::Rocprofv3 => rocprof::read(&mut rest),
        Format::Perf => {
            let read = perf_script::read(rest).map_err(Error::Io)?;
            return some(read.ok_or("text without an event of `perf script`")?);
        }
        Format::Xplane => {
            let mut bytes = Vec::new();
            rest.read_to_end(&mut bytes).map_err(Error::Io)?;
            return some(xplane::read(&bytes).ok_or("protobuf that is no XSpace")?);
        }
        Format::Nsys | Format::Rocpd => return database(rest, Some(format)),
    };
    some(json.map_err(Error::Json)?)
}

/// A database, of which all is read into memory.
fn database(rest: &mut dyn Read, format: Option<Format>) -> Result<Trace, Error> {
    let mut bytes = Vec::new();
    rest.read_to_end(&mut bytes).map_err(Error::Io)?;
    let database = Database::open(&bytes)?;
    if format != Some(Format::Rocpd) && nsys::is_nsys(&database) {
        some(nsys::read(&database))
    } else if format != Some(Format::Nsys) && rocpd::is_rocpd(&database) {
        some(rocpd::read(&database))
    } else {
        Err("an SQLite database without the tables of Nsight Systems or rocpd".into())
    }
}

/// A trace with nothing in it is said to be one.
fn some(mut trace: Trace) -> Result<Trace, Error> {
    let samples = trace.counters.len();
    if trace.slices.is_empty() && trace.activities.is_empty() && trace.instants.is_empty() {
        let known = trace.facts.warnings.iter().any(|warning| warning.what.contains("no events"));
        if !known && samples == 0 {
            trace.facts.warn("the trace has no events", None);
        }
    }
    Ok(trace)
}

impl From<&str> for Error {
    fn from(what: &str) -> Error {
        Error::NotATrace(what.to_owned())
    }
}

/// Whether a file seems to be a trace, plain or packed, by its beginning.
pub fn is_trace(file: impl Read) -> bool {
    let Ok(file) = Unpacked::new(file, Limits::default()) else { return false };
    let mut first = Vec::new();
    // A packed file may be cut off; so much of it is enough.
    let _ = file.take(FIRST).read_to_end(&mut first);
    if looks_like_json(&first) {
        let says = |word: &[u8]| first.windows(word.len()).any(|text| text == word);
        return says(b"\"traceEvents\"")
            || says(b"www.speedscope.app")
            || says(b"\"preprocessedProfileVersion\"")
            || says(b"\"ph\"")
            || first.trim_ascii() == b"[]";
    }
    foreign(&first).is_none() && matches!(first[..], [0x0a, ..])
}

/// Writes a trace. Gives back what the format cannot hold, or holds in another form.
///
/// # Errors
///
/// Those of `out`; and when the format is one that is only read ([`Format::is_written`]).
pub fn write(
    trace: &Trace,
    mut out: impl Write,
    format: Format,
    packing: Packing,
) -> io::Result<Vec<Warning>> {
    match packing {
        Packing::Plain => write_unpacked(trace, &mut out, format, perfetto::Packets::Plain),
        Packing::Packets => write_unpacked(trace, &mut out, format, perfetto::Packets::Deflated),
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
        let write = move || write_unpacked(trace, &mut Pieces(to), format, plain);
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

/// Writers give away what they have gathered, 128 KiB or more: it costs nothing that they do not know
/// to what, and each of them is compiled once.
fn write_unpacked(
    trace: &Trace,
    out: &mut dyn Write,
    format: Format,
    packets: perfetto::Packets,
) -> io::Result<Vec<Warning>> {
    let mut out = BufWriter::with_capacity(1 << 18, out);
    let written = match format {
        Format::Speedscope => {
            return speedscope::write(trace, &mut out).and_then(|lost| {
                out.flush()?;
                Ok(lost)
            });
        }
        Format::Firefox => {
            return firefox::write(trace, &mut out).and_then(|lost| {
                out.flush()?;
                Ok(lost)
            });
        }
        Format::Perfetto => perfetto::write_packets(trace, &mut out, packets)?,
        Format::Kineto => kineto::write(trace, &mut out).map(|()| Written::default())?,
        Format::Chrome => chrome::write(trace, &mut out).map(|()| Written::default())?,
        other => {
            let what = format!("traces are read from {}, but not written in it", other.name());
            return Err(io::Error::new(io::ErrorKind::Unsupported, what));
        }
    };
    out.flush()?;
    Ok(written.warnings())
}
