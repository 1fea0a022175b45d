//! Which parts of a text are statements, and which words of a command line are a query.

use kymograph_converters::folder;
use std::path::Path;

/// The statements of a text, without their semicolons, and what stands behind the last semicolon:
/// nothing if that is blank or a comment. Semicolons in quotes and comments end nothing.
pub fn split(text: &str) -> (Vec<&str>, &str) {
    let (mut statements, mut start, mut says) = (Vec::new(), 0, false);
    let mut left = text;
    while let Some(first) = left.chars().next() {
        let at = text.len() - left.len();
        let length = match first {
            ';' => {
                if says {
                    statements.push(text[start..at].trim());
                }
                (start, says) = (at + 1, false);
                1
            }
            '-' if left.starts_with("--") => left.find('\n').unwrap_or(left.len()),
            '/' if left.starts_with("/*") => comment(left),
            // A quote that is doubled begins the next part at once, which does no harm.
            '\'' | '"' => {
                says = true;
                left[1..].find(first).map_or(left.len(), |end| end + 2)
            }
            _ => {
                says |= !first.is_whitespace();
                first.len_utf8()
            }
        };
        left = &left[length..];
    }
    (statements, if says { text[start..].trim_start() } else { "" })
}

/// How long the comment is that begins a text; comments may be in comments.
fn comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let left = &text.as_bytes()[at..];
        if left.starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if left.starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// Whether a word is a query and no target. What is there is a target: a file, a folder, a pattern
/// that files fit; so is an address such as `s3://…`. A query has a space.
pub fn is_query(word: &str) -> bool {
    let is_address = word.split_once("://").is_some_and(|(scheme, _)| {
        let of_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        !scheme.is_empty() && scheme.chars().all(of_scheme)
    });
    let fits = || word.contains('*') && folder::traces(word).is_ok();
    word.contains(char::is_whitespace) && !is_address && !Path::new(word).exists() && !fits()
}

#[cfg(test)]
mod tests {
    use super::{is_query, split};

    #[test]
    fn semicolons_end_statements() {
        assert_eq!(split("SELECT 1;"), (vec!["SELECT 1"], ""));
        assert_eq!(split(" SELECT 1;\nSELECT 2; "), (vec!["SELECT 1", "SELECT 2"], ""));
        assert_eq!(split("SELECT\n 1"), (vec![], "SELECT\n 1"));
        assert_eq!(split("SELECT 1; SELECT"), (vec!["SELECT 1"], "SELECT"));
        assert_eq!(split(";;  ; "), (vec![], ""));
        assert_eq!(split(""), (vec![], ""));
        assert_eq!(split("SELECT 'größer; ü';"), (vec!["SELECT 'größer; ü'"], ""));
    }

    #[test]
    fn semicolons_in_quotes_and_comments_end_nothing() {
        for open in
            ["SELECT ';", "SELECT \"a;b", "SELECT 1 -- ;", "SELECT /* ; /* */ ;", "SELECT 'it''s; "]
        {
            assert_eq!(split(open), (vec![], open));
        }
        assert_eq!(split("SELECT 'it''s;';"), (vec!["SELECT 'it''s;'"], ""));
        assert_eq!(split("SELECT /* ; /* */ ; */ 1;").0.len(), 1);
        assert_eq!(split("SELECT 1; -- that is all"), (vec!["SELECT 1"], ""));
        assert_eq!(split("-- nothing\n;"), (vec![], ""));
        assert_eq!(split("SELECT 4 - 3 / 2;").0.len(), 1);
    }

    #[test]
    fn queries_have_a_space_and_are_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        for name in ["run 1.json", "SELECT 1"] {
            std::fs::write(path(name), "{}").unwrap();
            assert!(!is_query(&path(name)), "{name}");
        }
        assert!(!is_query(&path("run *.json")));
        assert!(is_query(&path("walk *.json")));
        assert!(!is_query("s3://bucket/my traces/"));
        assert!(!is_query("job.set") && !is_query("rank*.json.gz") && !is_query("VALUES(1)"));
        for sql in [
            "SELECT * FROM kernels",
            "SELECT */2 FROM a/b",
            "SELECT 's3://bucket'",
            "VALUES\n(1)",
            "SHOW TABLES",
        ] {
            assert!(is_query(sql), "{sql}");
        }
    }
}
