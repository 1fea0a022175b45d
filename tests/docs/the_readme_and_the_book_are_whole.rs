//! Links lead somewhere, numbers come from the benchmarks, messages are those of the program.

use std::path::{Path, PathBuf};

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn markdown(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    let mut paths: Vec<_> =
        entries.filter(|path| path.extension() == Some("md".as_ref())).collect();
    paths.sort();
    paths
}

/// The pages of the book.
fn pages() -> Vec<PathBuf> {
    let docs = harness::root().join("docs");
    [markdown(&docs), markdown(&docs.join("tutorials"))].concat()
}

/// Targets of links and pictures, without those to other sites.
fn links(text: &str) -> Vec<&str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#', ' ']).next());
    targets.filter(|target| !target.is_empty() && !target.contains("://")).collect()
}

#[test]
fn every_link_leads_to_a_file() {
    let mut seen = 0;
    let others =
        ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "packaging/README.md"];
    for page in pages().into_iter().chain(others.map(|name| harness::root().join(name))) {
        for link in links(&text(&page)) {
            let target = page.parent().unwrap().join(link);
            assert!(target.exists(), "{}: {link}", page.display());
            seen += 1;
        }
    }
    assert!(seen > 60, "{seen}");
}

#[test]
fn the_book_has_every_page() {
    let summary = harness::root().join("docs/SUMMARY.md");
    let text = text(&summary);
    let listed = links(&text);
    for page in pages().iter().filter(|page| **page != summary) {
        let name = page.strip_prefix(harness::root().join("docs")).unwrap();
        assert!(listed.contains(&name.to_str().unwrap()), "{}", name.display());
    }
}

#[test]
fn numbers_of_the_readme_are_measured() {
    let root = harness::root();
    let (readme, measured) =
        (text(&root.join("README.md")), text(&root.join("docs/BENCHMARKS.md")));
    let (_, section) = readme.split_once("## Beside other tools").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let is_number = |word: &&str| word.contains('.') && word.parse::<f64>().is_ok();
    let words = section.split(|c: char| !(c.is_ascii_digit() || c == '.'));
    let numbers: Vec<_> = words.map(|word| word.trim_end_matches('.')).filter(is_number).collect();
    assert!(numbers.len() >= 8, "{numbers:?}");
    for number in numbers {
        assert!(measured.contains(number), "{number} is not in docs/BENCHMARKS.md");
    }
}

#[test]
fn messages_that_are_explained_are_said() {
    let mut sources = String::new();
    let mut folders = vec![harness::root().join("src")];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()) {
            match path.is_dir() {
                true => folders.push(path),
                false => sources += &text(&path),
            }
        }
    }
    // Strings of the source are broken into lines.
    let joined = |text: &str| {
        text.split_whitespace().filter(|word| *word != "\\").collect::<Vec<_>>().join(" ")
    };
    let sources = joined(&sources).replace("{NAME}", "libkymograph.so");
    let page = text(&harness::root().join("docs/TROUBLESHOOTING.md"));
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let rows: Vec<_> = rows.collect();
    assert!(rows.len() >= 10, "{rows:?}");
    for message in rows {
        assert!(sources.contains(&joined(message)), "nothing says {message:?}");
    }
}
