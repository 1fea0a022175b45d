//! What a file is that is no trace, or of which kind of JSON it is: by how it begins.

/// Beginnings of files that are no traces, or traces that are not read.
const BEGINNINGS: [(&[u8], &str); 15] = [
    (b"PK\x03\x04", "a zip archive: unpack it first"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"PERFILE2", "a recording of perf: `perf script` makes text of it"),
    (b"BZh", "packed with bzip2: unpack it first"),
    (b"\xfd7zXZ\0", "packed with xz: unpack it first"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it first"),
    (b"\x04\x22\x4d\x18", "packed with lz4: unpack it first"),
    (b"PAR1", "a Parquet table"),
    (b"ARROW1", "an Arrow table"),
    (b"%PDF", "a PDF document"),
    (b"\x89PNG", "a picture"),
    (b"\x10\x00\x04\x46\x78\x54\x16\x00", "a Fuchsia trace"),
    (b"# tracer:", "a text of ftrace"),
    (b"\xd0\xcf\x11\xe0", "a document of an office program"),
];

/// What a file seems to be that no reader takes.
pub(crate) fn foreign(first: &[u8]) -> Option<String> {
    if first.is_empty() {
        return Some("the file is empty".to_owned());
    }
    if let Some((_, what)) = BEGINNINGS.iter().find(|(begin, _)| first.starts_with(begin)) {
        return Some(format!("it seems to be {what}"));
    }
    if first.starts_with(&[0xff, 0xfe]) || first.starts_with(&[0xfe, 0xff]) || is_wide(first) {
        return Some("it seems to be text in UTF-16: save it as UTF-8".to_owned());
    }
    let text = first.strip_prefix(b"\xef\xbb\xbf").unwrap_or(first).trim_ascii_start();
    let html =
        |begin: &[u8]| text.get(..begin.len()).is_some_and(|t| t.eq_ignore_ascii_case(begin));
    if html(b"<!doctype html") || html(b"<html") {
        return Some("it seems to be a page in HTML".to_owned());
    }
    if text.starts_with(b"<") {
        return Some("it seems to be XML".to_owned());
    }
    // A Perfetto trace begins with a line feed and a length.
    let plain = |byte: &u8| byte.is_ascii_graphic() || matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
    if !looks_like_json(first) && !first.starts_with(b"\n") && first.iter().take(64).all(plain) {
        let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(&line[..line.len().min(40)]).trim_end().to_owned();
        return Some(format!("it seems to be text: `{line}`"));
    }
    None
}

/// JSON with a NUL beside each character.
fn is_wide(first: &[u8]) -> bool {
    matches!(first, [b'{' | b'[', 0, ..] | [0, b'{' | b'[', ..])
}

/// Whether a file begins with a bracket and what may follow it, perhaps after white space.
/// A Perfetto trace begins with the tag of a packet, which is a line feed, and a length,
/// which may look like a bracket; but no packet begins like the inside of brackets.
pub(crate) fn looks_like_json(first: &[u8]) -> bool {
    let first = first.strip_prefix(b"\xef\xbb\xbf").unwrap_or(first);
    let mut rest = first.iter().filter(|byte| !byte.is_ascii_whitespace());
    match rest.next() {
        Some(b'{') => rest.next().is_none_or(|next| b"\"}".contains(next)),
        // Anything may be in a list; what is no event is refused with better words.
        Some(b'[') if !first.starts_with(b"\n") => true,
        Some(b'[') => rest.next().is_none_or(|next| b"\"{}[]".contains(next)),
        _ => false,
    }
}

/// Whether each line is an event: an object of its own, and not the first of a list.
pub(crate) fn has_lines(first: &[u8]) -> bool {
    let text = first.strip_prefix(b"\xef\xbb\xbf").unwrap_or(first).trim_ascii_start();
    let mut lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let line = lines.next().unwrap_or_default();
    let says_phase = line.windows(4).any(|four| four == b"\"ph\"");
    let whole = line.starts_with(b"{") && line.strip_suffix(b",").unwrap_or(line).ends_with(b"}");
    whole && says_phase && !line.windows(13).any(|name| name == b"\"traceEvents\"")
}
