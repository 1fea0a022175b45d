//! Whether a text is one JSON value: RFC 8259, to the letter.
//!
//! Texts that a trace calls JSON go into other JSON as they are, so they must be. Nothing is
//! allocated, and nesting is bounded.

/// How deep values may lie in each other: the stack of open brackets is one integer.
const DEEPEST: u32 = 128;

/// Whether `text` is one JSON value, with white space around it or not.
pub fn is_valid(text: &str) -> bool {
    let mut scan = Scan { rest: text.as_bytes() };
    scan.value().is_some() && {
        scan.space();
        scan.rest.is_empty()
    }
}

struct Scan<'a> {
    rest: &'a [u8],
}

impl Scan<'_> {
    /// A value and all that lies in it. `open` has a bit for each bracket that is open: 1 for
    /// an object's.
    fn value(&mut self) -> Option<()> {
        let (mut open, mut depth) = (0u128, 0);
        loop {
            self.space();
            let bracket = *self.rest.first()?;
            let closed_at_once = if bracket == b'{' || bracket == b'[' {
                self.rest = &self.rest[1..];
                depth += 1;
                if depth > DEEPEST {
                    return None;
                }
                open = open << 1 | u128::from(bracket == b'{');
                self.space();
                let close = if bracket == b'{' { b'}' } else { b']' };
                self.rest.first() == Some(&close)
            } else {
                self.scalar()?;
                false
            };
            if !closed_at_once && (bracket == b'{' || bracket == b'[') {
                self.key(open)?;
                continue;
            }
            // After a value: what is complete with it is closed, until something follows.
            loop {
                if depth == 0 {
                    return Some(());
                }
                self.space();
                let (next, rest) = self.rest.split_first()?;
                self.rest = rest;
                match next {
                    b',' => break,
                    b'}' if open & 1 == 1 => {}
                    b']' if open & 1 == 0 => {}
                    _ => return None,
                }
                open >>= 1;
                depth -= 1;
            }
            self.key(open)?;
        }
    }

    /// In an object, a key and its colon.
    fn key(&mut self, open: u128) -> Option<()> {
        if open & 1 == 1 {
            self.space();
            self.string()?;
            self.space();
            self.take(b':')?;
        }
        Some(())
    }

    fn scalar(&mut self) -> Option<()> {
        match self.rest.first()? {
            b'"' => self.string(),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => self.number(),
        }
    }

    fn string(&mut self) -> Option<()> {
        self.take(b'"')?;
        loop {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            match byte {
                b'"' => return Some(()),
                0..0x20 => return None,
                b'\\' => {
                    let (escape, rest) = self.rest.split_first()?;
                    self.rest = rest;
                    match escape {
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                        b'u' => {
                            let (digits, rest) = self.rest.split_first_chunk::<4>()?;
                            self.rest = rest;
                            if !digits.iter().all(u8::is_ascii_hexdigit) {
                                return None;
                            }
                        }
                        _ => return None,
                    }
                }
                _ => {}
            }
        }
    }

    fn number(&mut self) -> Option<()> {
        let _ = self.take(b'-');
        if self.take(b'0').is_none() {
            self.digits()?;
        }
        if self.take(b'.').is_some() {
            self.digits()?;
        }
        if self.take(b'e').or_else(|| self.take(b'E')).is_some() {
            let _ = self.take(b'+').or_else(|| self.take(b'-'));
            self.digits()?;
        }
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        let count = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.rest = &self.rest[count..];
        (count > 0).then_some(())
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(word)?;
        Some(())
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        self.rest = self.rest.strip_prefix(&[byte])?;
        Some(())
    }

    fn space(&mut self) {
        let is_space = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.rest = &self.rest[self.rest.iter().take_while(is_space).count()..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_agrees_with_serde_json() {
        let texts = [
            "null",
            " true ",
            "false",
            "0",
            "-0",
            "01",
            "1.",
            "1.5e+3",
            "1e",
            ".5",
            "+1",
            "-",
            "",
            "\"\"",
            "\"a\\u12aF\\n\"",
            "\"\\u12g4\"",
            "\"\\x\"",
            "\"\u{1}\"",
            "\"",
            "nul",
            "[]",
            "[ ]",
            "{}",
            "{ }",
            "[1,]",
            "[,1]",
            "[1 2]",
            "{\"a\":1}",
            "{\"a\"}",
            "{\"a\":1,}",
            "{1:2}",
            "[[],{\"a\":[{}]},\"\"]",
            "[}",
            "{]",
            "[1]]",
            "1 2",
            "{\"a\":[1,{\"b\":2}]}",
            "[1",
            "{\"a\":",
            "\u{c}1",
            "[\u{c}]",
            "NaN",
            "{\"a\" : 1 , \"b\" : [ 2 ] }",
        ];
        for text in texts {
            let wanted = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
            assert_eq!(is_valid(text), wanted, "{text:?}");
        }
        let deep = |n| "[".repeat(n) + &"]".repeat(n);
        assert!(is_valid(&deep(128)) && !is_valid(&deep(129)));
    }
}
