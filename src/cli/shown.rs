//! Text of others on a terminal: names, command lines, paths and messages of other processes,
//! and whatever a trace has in it.

use std::borrow::Cow;

/// A line of text without what a terminal obeys instead of showing it: control characters,
/// and those that change the order in which text is shown. Each becomes `?`.
pub(super) fn printable(text: &str) -> Cow<'_, str> {
    if text.contains(is_obeyed) { text.replace(is_obeyed, "?").into() } else { text.into() }
}

/// As [`printable`], for text of several lines.
pub(super) fn printable_lines(text: &str) -> Cow<'_, str> {
    let obeyed = |c: char| c != '\n' && is_obeyed(c);
    if text.contains(obeyed) { text.replace(obeyed, "?").into() } else { text.into() }
}

fn is_obeyed(c: char) -> bool {
    let reorders = matches!(c, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}');
    let breaks = matches!(c, '\u{2028}' | '\u{2029}');
    c.is_control() || reorders || breaks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_for_the_terminal_to_obey() {
        assert_eq!(printable("a\x1b[2Jb\r\n\u{9b}31m\0\u{202e}c\u{2028}"), "a?[2Jb???31m??c?");
        assert_eq!(printable_lines("a\tb\nc\x7f\n"), "a?b\nc?\n");
        let fine = "→ 漢字 é 👩\u{200d}🔬 'x'";
        assert!(matches!(printable(fine), Cow::Borrowed(text) if text == fine));
    }
}
