//! Trace files by what people say: a file, a folder of them, a pattern.

use crate::order::Order as _;
use std::path::{Path, PathBuf};

use crate::format::Format;

/// The trace files that a word stands for: those in a folder; those whose names fit a pattern,
/// in which `*` stands for any characters; else the file itself, which need not exist. By name,
/// the shortest numbers first.
///
/// # Errors
///
/// A folder that cannot be read, or in which there is no such trace: a sentence for people.
pub fn traces(word: &str) -> Result<Vec<PathBuf>, String> {
    let path = Path::new(word);
    let (found, none) = if path.is_dir() {
        (in_folder(path, |_| true)?, "no traces in this folder")
    } else if word.contains('*') && !path.exists() {
        let pattern = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let pattern = pattern.unwrap_or_default();
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        let fitting = in_folder(folder.unwrap_or(Path::new(".")), |name| fits(&pattern, name))?;
        (fitting, "no traces of such a name")
    } else {
        return Ok(vec![path.to_owned()]);
    };
    if found.is_empty() { Err(format!("{word}: {none}")) } else { Ok(found) }
}

fn in_folder(folder: &Path, wanted: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>, String> {
    let cannot = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut found = Vec::new();
    for entry in folder.read_dir().map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        if path.is_file() && Format::of_file(&path).is_some() && name.is_some_and(|n| wanted(&n)) {
            found.push(path);
        }
    }
    found.order_by_key(|path| (path.as_os_str().len(), path.clone()));
    Ok(found)
}

/// Whether a name fits a pattern, in which `*` stands for any characters.
pub fn fits(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut left) = name.strip_prefix(pieces.next().unwrap_or_default()) else { return false };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else { return left.is_empty() };
    for piece in pieces {
        match left.split_once(piece) {
            Some((_, behind)) => left = behind,
            None => return false,
        }
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_patterns() {
        assert!(fits("rank*.json.gz", "rank12.json.gz"));
        assert!(fits("*", "x"));
        assert!(!fits("rank*.json", "rank1.json.gz"));
        assert!(!fits("a*b*c", "acb"));
    }

    #[test]
    fn a_word_stands_for_traces_in_the_order_of_their_numbers() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["rank10.json", "rank2.json", "notes.txt", "rank1.pftrace"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let names = |word: &str| -> Vec<String> {
            let found = traces(&format!("{}{word}", folder.path().display())).unwrap();
            let name = |path: PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
            found.into_iter().map(name).collect()
        };
        assert_eq!(names("/rank*.json"), ["rank2.json", "rank10.json"]);
        assert_eq!(names(""), ["rank2.json", "rank10.json", "rank1.pftrace"]);
        assert_eq!(names("/none.json"), ["none.json"], "who reads it says that it is missing");
        let nothing = traces(&format!("{}/x*", folder.path().display())).unwrap_err();
        assert!(nothing.ends_with("no traces of such a name"), "{nothing}");
    }
}
