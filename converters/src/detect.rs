//! The format of a file, by its beginning.

use crate::foreign::{foreign, looks_like_json};
use crate::format::Format;
use crate::{perf_script, rocprof, sqlite, xplane};

/// What a file is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Detected {
    Known(Format),
    /// Of one of two formats, as its tables say.
    Database,
}

/// How much of a file is looked at to tell what it is.
pub(crate) const FIRST: u64 = 16 << 10;

/// The format of a file that begins so.
///
/// # Errors
/// What the file seems to be instead.
pub(crate) fn detect(first: &[u8]) -> Result<Detected, String> {
    if first.starts_with(sqlite::MAGIC) {
        return Ok(Detected::Database);
    }
    if xplane::is_xplane(first) {
        return Ok(Detected::Known(Format::Xplane));
    }
    let json = looks_like_json(first);
    if !json && perf_script::is_perf_script(first) {
        return Ok(Detected::Known(Format::Perf));
    }
    if let Some(what) = foreign(first) {
        return Err(what);
    }
    Ok(Detected::Known(if json { json_format(first) } else { Format::Perfetto }))
}

/// Which kind of JSON: by the members of the outermost object.
fn json_format(first: &[u8]) -> Format {
    let text = String::from_utf8_lossy(first);
    let members = members(&text);
    let has = |name| members.contains(&name);
    if has("traceEvents") {
        Format::Kineto
    } else if has(rocprof::ROOT) {
        Format::Rocprofv3
    } else if text.contains("www.speedscope.app/file-format-schema")
        || has("activeProfileIndex")
        || has("shared") && has("profiles")
    {
        Format::Speedscope
    } else if has("meta")
        && ["\"preprocessedProfileVersion\"", "\"stackwalk\"", "\"processType\""]
            .iter()
            .any(|key| text.contains(key))
    {
        Format::Firefox
    } else {
        Format::Kineto
    }
}

/// Names of the members of the outermost object, as far as the text goes.
fn members(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut depth, mut start, mut escaped) = (0u32, None, false);
    let mut last: Option<&str> = None;
    for (at, byte) in text.bytes().enumerate() {
        match (start, byte) {
            _ if escaped => escaped = false,
            (Some(_), b'\\') => escaped = true,
            (Some(from), b'"') => {
                last = text.get(from..at).filter(|_| depth == 1);
                start = None;
            }
            (Some(_), _) => {}
            (None, b'"') => start = Some(at + 1),
            (None, b'{' | b'[') => depth += 1,
            (None, b'}' | b']') => depth = depth.saturating_sub(1),
            (None, b':') => found.extend(last.take()),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_json_are_told_apart() {
        for (text, format) in [
            (r#"{"traceEvents": [], "meta": {"stackwalk": 1}}"#, Format::Kineto),
            (r#"[{"ph": "X"}]"#, Format::Kineto),
            (r#"{"hello": "world"}"#, Format::Kineto),
            (r#"{"rocprofiler-sdk-tool": [{}]}"#, Format::Rocprofv3),
            (r#"{"shared":{"frames":[]},"profiles":["#, Format::Speedscope),
            (
                r#"{"$schema":"https://www.speedscope.app/file-format-schema.json","#,
                Format::Speedscope,
            ),
            (r#"{"meta":{"interval":1,"processType":0,"#, Format::Firefox),
            (r#"{"x":{"traceEvents":"\"rocprofiler-sdk-tool\":"}}"#, Format::Kineto),
        ] {
            assert_eq!(detect(text.as_bytes()), Ok(Detected::Known(format)), "{text}");
        }
    }
}
