//! Texts inside other texts.

use std::fmt::Write;
use std::path::Path;

/// A text as JSON has it.
pub(super) fn json(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => drop(write!(out, "\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out + "\""
}

/// A path as a shell takes it for one word.
pub(super) fn word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:@%=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_strings() {
        assert_eq!(json("a\"b\\c\n"), "\"a\\\"b\\\\c\\u000a\"");
        assert_eq!(word(Path::new("/tmp/t-1.pftrace")), "/tmp/t-1.pftrace");
        assert_eq!(word(Path::new("my trace.pftrace")), "'my trace.pftrace'");
        assert_eq!(word(Path::new("it's")), "'it'\\''s'");
    }
}
