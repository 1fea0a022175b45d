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

/// What traces are called, by whatever tool.
const TRACES: [&str; 9] = [
    "bin",
    "out",
    "pb",
    "perfetto",
    "perfetto-trace",
    "perfetto_trace",
    "pftrace",
    "proto",
    "trace",
];

/// Whether this is what tables are called.
pub(super) fn is_of_tables(path: &Path) -> bool {
    let tables =
        ["arrow", "collapsed", "csv", "feather", "folded", "json", "md", "parquet", "tsv", "txt"];
    last(path).is_some_and(|suffix| tables.contains(&&*suffix))
}

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
    let suffix = last(&inner);
    if let Some(suffix) = suffix.as_deref().filter(|suffix| OTHERS.contains(suffix)) {
        return Err(Failure(format!(
            "{shown}: recordings are Perfetto traces, not .{suffix}; name it .pftrace, and make \
             what you want of it with `kymo convert`, `kymo export` or `kymo report`"
        )));
    }
    // With digits it is a number, a version or a host.
    let is_word = |suffix: &&str| suffix.chars().all(|c| c.is_ascii_alphabetic());
    match suffix.as_deref().filter(is_word).filter(|suffix| !TRACES.contains(suffix)) {
        Some(suffix) => Err(Failure(format!(
            "{shown}: .{suffix} is not what kymo writes; name it .pftrace, .pftrace.gz or \
             .pftrace.zst"
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
        for name in [
            "-",
            "t.pftrace.bz2",
            "T.XZ",
            "t.json",
            "t.json.gz",
            "a/t.html",
            "t.tgz",
            "t.py",
            "t.foo.gz",
        ] {
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
