//! Trace files by name, as the commands that convert them read and write them.

use super::progress::{Progress, Watched};
use super::{Failure, say, status, suffix};
use kymograph_converters::format::{self, Format};
use kymograph_converters::packed::Packing;
use kymograph_converters::trace::{Trace, Warning};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Whether this stands for standard input or output.
pub(super) fn is_pipe(path: &Path) -> bool {
    path == Path::new("-")
}

/// Reads a trace; `-` is standard input.
pub(super) fn read(path: &Path, from: Option<Format>) -> Result<Trace, Failure> {
    let named = |error: &dyn std::fmt::Display| Failure(format!("{}: {error}", path.display()));
    if is_pipe(path) {
        return format::read(io::stdin().lock(), from).map_err(|error| named(&error));
    }
    let file = File::open(path).map_err(|error| named(&error))?;
    let size = file.metadata().ok().filter(|about| about.is_file()).map(|about| about.len());
    let progress = Progress::new("reading", &short(path), size);
    let watched = Watched { file, progress };
    let read = match size {
        Some(_) => format::read_ahead(watched, from),
        // A pipe with a name, or a device.
        None => format::read(watched, from),
    };
    read.map_err(|error| named(&error))
}

/// The format of a file to be written: what was said, or what its name says.
pub(super) fn format_of(path: &Path, said: Option<Format>) -> Result<Format, Failure> {
    suffix::refuse_packed(path)?;
    said.or_else(|| Format::of_file(path)).ok_or_else(|| {
        Failure(format!("which format {} should have is not clear: say --to", path.display()))
    })
}

/// Refuses to replace a file that is not a trace, unless the user asked for that.
pub(super) fn may_replace(path: &Path, force: bool) -> Result<(), Failure> {
    let is_file = path.metadata().is_ok_and(|about| about.is_file() && about.len() > 0);
    if force || is_pipe(path) || !is_file {
        return Ok(());
    }
    // One that cannot be read cannot be asked either, and is left as it is.
    let is_trace = File::open(path).is_ok_and(format::is_trace);
    if is_trace {
        return Ok(());
    }
    let name = path.display();
    Err(Failure(format!("{name} is there and no trace: it is not replaced without --force")))
}

/// Writes a trace; `-` is standard output. Under a name of its own until it is whole: what
/// was there before is replaced only then. `plain` leaves packets of Perfetto's as they are.
/// Gives back what the format cannot hold.
pub(super) fn write(
    trace: &Trace,
    path: &Path,
    to: Format,
    plain: bool,
) -> Result<Vec<Warning>, Failure> {
    if is_pipe(path) {
        let written = format::write(trace, io::stdout().lock(), to, Packing::Plain);
        return match written {
            // The reader has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Vec::new()),
            result => result.map_err(|error| cannot(path, &error)),
        };
    }
    let packing = match format::packing_of_file(path) {
        Packing::Packets if plain => Packing::Plain,
        packing => packing,
    };
    whole(path, |file| {
        let progress = Progress::new("writing", &short(path), None);
        format::write(trace, Watched { file, progress }, to, packing)
    })
}

/// Has a file written under another name, which becomes `path` when it is whole. What is no
/// regular file, such as `/dev/null`, is written to as it is; of a link, what it leads to.
pub(super) fn whole<T>(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<T>,
) -> Result<T, Failure> {
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if path.metadata().is_ok_and(|about| !about.is_file()) {
        let file = File::options().write(true).open(path);
        let written = file.and_then(|mut file| write(&mut file));
        return written.map_err(|error| cannot(path, &error));
    }
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let written = File::create(&partial).and_then(|mut file| {
        let result = write(&mut file)?;
        file.flush()?;
        std::fs::rename(&partial, path)?;
        Ok(result)
    });
    written.map_err(|error| {
        // What is half written is of no use.
        let _ = std::fs::remove_file(&partial);
        cannot(path, &error)
    })
}

/// Says what readers and writers had to pass over, a line each.
pub(super) fn say_warnings<'a>(warnings: impl IntoIterator<Item = &'a Warning>) {
    for warning in warnings {
        say(&describe(warning));
    }
}

/// A warning in one line.
pub(super) fn describe(warning: &Warning) -> String {
    let times = match warning.count {
        1 => String::new(),
        count => format!(" ({} times)", status::grouped(count)),
    };
    match warning.offset {
        Some(offset) => format!("{}{times}, first at byte {offset}", warning.what),
        None => format!("{}{times}", warning.what),
    }
}

/// For `--from`.
pub(super) fn parse_format(text: &str) -> Result<Format, String> {
    Format::from_name(text).ok_or_else(|| {
        let names: Vec<_> = Format::ALL.iter().map(|format| format.name()).collect();
        format!("one of {}", names.join(", "))
    })
}

/// For `--to`: formats that are only read are left out.
pub(super) fn parse_written(text: &str) -> Result<Format, String> {
    Format::from_name(text).filter(|format| format.is_written()).ok_or_else(|| {
        let written = Format::ALL.iter().filter(|format| format.is_written());
        let names: Vec<_> = written.map(|format| format.name()).collect();
        format!("one of {}", names.join(", "))
    })
}

fn cannot(path: &Path, error: &io::Error) -> Failure {
    Failure(format!("cannot write {}: {error}", path.display()))
}

fn short(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
