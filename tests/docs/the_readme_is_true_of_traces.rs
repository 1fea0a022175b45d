//! The commands of the README that read traces, each run as it stands there, in a folder with
//! the files that they name.

use harness::kymo;
use kymo::kymo;
use std::path::Path;

/// The commands of the block after this heading.
fn commands(heading: &str) -> Vec<String> {
    let readme = include_str!("../../README.md");
    let (_, section) = readme.split_once(heading).unwrap();
    let lines =
        section.trim_start_matches('\n').lines().take_while(|line| line.starts_with("    "));
    let command = |line: &str| line.split('#').next().unwrap().trim().to_owned();
    lines.map(command).collect()
}

fn convert(folder: &Path, to: &str) {
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/converters/tests/data/kineto_cuda.json");
    let output = kymo().args(["convert", fixture, to]).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn what_the_readme_says_about_traces_works() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["trace.json.gz", "rank0.json.gz", "rank1.json.gz", "trace.pftrace"] {
        convert(folder.path(), name);
    }
    let commands = commands("## Look into traces, and convert them\n");
    assert!(commands.len() >= 7, "{commands:?}");
    let mut made = 0;
    for command in commands {
        let mut words = command.split_whitespace();
        assert_eq!(words.next(), Some("kymo"), "{command}");
        let words: Vec<&str> = words.collect();
        // It waits for a browser.
        if words[0] == "open" {
            continue;
        }
        let output = kymo().args(&words).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{command}: {output:?}");
        let wrote = words.iter().skip(1).any(|word| folder.path().join(word).exists());
        assert!(wrote, "{command}");
        made += 1;
    }
    assert!(made >= 5, "{made}");
}
