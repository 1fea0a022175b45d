//! Names that promise what is not written.

use super::Failure;
use std::path::Path;

/// Compressions and archives that others write.
const PACKED: [&str; 15] = [
    "7z", "br", "bz2", "lz", "lz4", "lzma", "lzo", "rar", "sz", "tar", "tbz2", "tgz", "txz", "xz",
    "zip",
];
/// Formats of text, tables and pages.
const OTHERS: [&str; 14] = [
    "arrow", "csv", "feather", "htm", "html", "json", "jsonl", "md", "parquet", "pdf", "svg",
    "txt", "xml", "yaml",
];

/// Refuses to write a compression that there is not.
pub(super) fn refuse_packed(path: &Path) -> Result<(), Failure> {
    let Some(suffix) = last(path).filter(|suffix| PACKED.contains(&&**suffix)) else {
        return Ok(());
    };
    Err(Failure(format!(
        "{}: .{suffix} is not a compression that kymo writes; use .gz or .zst",
        path.display()
    )))
}

/// Refuses a compressed name for what is written as it is: tables and pages.
pub(super) fn refuse_any_packed(path: &Path) -> Result<(), Failure> {
    let is_packed = |suffix: &str| PACKED.contains(&suffix) || ["gz", "zst"].contains(&suffix);
    match last(path).filter(|suffix| is_packed(suffix)) {
        Some(suffix) => Err(Failure(format!(
            "{}: this is written as it is, not packed; leave .{suffix} out",
            path.display()
        ))),
        None => Ok(()),
    }
}

/// Refuses an output of a recording that its name does not fit: `-`, which is the command's, and
/// names of other formats.
pub(super) fn refuse_for_recordings(path: &Path) -> Result<(), Failure> {
    let shown = path.display();
    if path == Path::new("-") {
        return Err(Failure(
            "-o -: standard output belongs to the program; name a file, and send the trace to a \
             pipe with --also PIPE"
                .to_owned(),
        ));
    }
    refuse_packed(path)?;
    let inner = match last(path).as_deref() {
        Some("gz" | "zst") => path.with_extension(""),
        _ => path.to_owned(),
    };
    match last(&inner).filter(|suffix| OTHERS.contains(&&**suffix)) {
        Some(suffix) => Err(Failure(format!(
            "{shown}: recordings are Perfetto traces, not .{suffix}; name it .pftrace, and make \
             what you want of it with `kymo convert`, `kymo export` or `kymo report`"
        ))),
        None => Ok(()),
    }
}

fn last(path: &Path) -> Option<String> {
    path.extension().map(|suffix| suffix.to_string_lossy().to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_written_is_promised() {
        let refused = |name: &str| refuse_for_recordings(Path::new(name)).is_err();
        for name in ["-", "t.pftrace.bz2", "T.XZ", "t.json", "t.json.gz", "a/t.html", "t.tgz"] {
            assert!(refused(name), "{name}");
        }
        for name in [
            "t.pftrace",
            "t.pftrace.gz",
            "t.pftrace.zst",
            "t",
            "t.1",
            "t.perfetto-trace",
            "run.v2",
            "json",
            "t.json.pftrace",
        ] {
            assert!(!refused(name), "{name}");
        }
    }
}
