//! Each part of the README has a row in README_STATEMENTS.md, which names what checks it.

const README: &str = include_str!("../../README.md");
const ROWS: &str = include_str!("README_STATEMENTS.md");

/// Words, and the paths of what checks them.
fn rows() -> Vec<(&'static str, Vec<&'static str>)> {
    let rows = ROWS.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let row = |line: &'static str| {
        let (words, checks) = line.rsplit_once(" | ").unwrap();
        (words, checks.split('`').skip(1).step_by(2).collect())
    };
    rows.map(row).skip(1).collect()
}

fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Paragraphs, items, rows of tables and blocks of commands, each in one line.
fn parts(text: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let (mut goes_on, mut in_code) = (false, false);
    for line in text.lines() {
        if line.starts_with("```") {
            in_code = !in_code;
            goes_on = false;
            continue;
        }
        let is_row = line.starts_with('|');
        // A table begins with names, which may be empty, and a line. Pictures state nothing, nor
        // does what folds them away.
        let words = line.trim_matches(['|', '-', ' ']);
        let states = !line.starts_with(['#', '<']) && !line.contains("![") && !words.is_empty();
        if line.trim().is_empty() || !states && !in_code {
            goes_on &= in_code;
            continue;
        }
        match parts.last_mut().filter(|_| goes_on && !is_row && !line.starts_with("* ")) {
            Some(part) => *part += &format!(" {}", line.trim()),
            None => parts.push(line.trim().to_owned()),
        }
        goes_on = !is_row;
    }
    parts.iter().map(|part| in_one_line(part)).collect()
}

#[test]
fn all_parts_have_a_row() {
    let rows = rows();
    let parts = parts(README);
    assert!(parts.len() > 50, "{}", parts.len());
    for part in &parts {
        // The first row of a table has the names of its columns.
        let is_head = part.starts_with("| recorded:") || part.starts_with("| | Kymograph");
        let is_checked = rows.iter().any(|(words, _)| part.contains(words));
        assert!(is_head || is_checked, "nothing is said to check: {part}");
    }
    for (words, _) in &rows {
        assert!(parts.iter().any(|part| part.contains(words)), "the README has no {words:?}");
    }
}

#[test]
fn all_checks_are_there() {
    for (words, checks) in rows() {
        assert!(!checks.is_empty(), "{words}");
        for check in checks {
            assert!(harness::root().join(check).exists(), "{words}: there is no {check}");
        }
    }
}

/// The front page of docs.rs has the same, and is compiled and run as a test.
#[test]
fn its_program_is_that_of_the_crates_page() {
    let page = include_str!("../../docs/CRATE.md");
    let program = README.split("```rust\n").nth(1).unwrap().split("```").next().unwrap();
    let lines: Vec<_> = program.lines().filter(|line| !line.is_empty()).collect();
    assert!(lines.len() >= 6, "{program}");
    for line in lines {
        let line = line.replace("\"/tmp/hello.pftrace\"", "&path");
        assert!(page.lines().any(|other| other.starts_with(&line)), "{line}");
    }
}
