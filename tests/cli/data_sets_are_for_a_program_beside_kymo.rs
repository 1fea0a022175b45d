//! `kymo dataset`, `kymo query`, and `kymo analyze` of a data set, are handed over to `kymo-scale`.

use harness::kymo;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn run(kymo: &Path, args: &[&str]) -> Output {
    Command::new(kymo).args(args).current_dir(kymo.parent().unwrap()).output().unwrap()
}

#[test]
fn words_are_handed_over_as_they_are() {
    let program = kymo::binary();
    // A link of its own, which takes the same file system.
    let folder = tempfile::tempdir_in(program.parent().unwrap()).unwrap();
    let own = folder.path().join("kymo");
    fs::hard_link(&program, &own).unwrap();
    fs::create_dir(folder.path().join("job.set")).unwrap();
    fs::write(folder.path().join("job.set/kymograph-dataset.json"), "{}").unwrap();
    let cases: [&[&str]; 7] = [
        &["dataset", "add", "job.set", "rank 0.json", "--jobs", "2"],
        &["dataset", "--help"],
        &["query", "job.set", "SELECT 1", "--limit", "2"],
        &["query", "--help"],
        &["analyze", "blame", "job.set", "--labels", "hosts.csv"],
        &["analyze", "job.set"],
        &["analyze", "blame", "s3://bucket/job.set"],
    ];
    for args in cases {
        let output = run(&own, args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            said.contains("data sets and queries need kymo-scale beside kymo"),
            "{args:?}: {said}"
        );
    }
    // Written by another process: a child of another test could hold what this one has open, and
    // such a file cannot be run.
    let write = "printf '%s\\n' '#!/bin/sh' 'printf \"[%s]\" \"$@\"' 'exit 7' >kymo-scale && \
                 chmod +x kymo-scale";
    let written = Command::new("sh").args(["-c", write]).current_dir(folder.path()).status();
    assert!(written.unwrap().success());
    for args in cases {
        let output = run(&own, args);
        assert_eq!(output.status.code(), Some(7), "{args:?}");
        let words: String = args.iter().map(|word| format!("[{word}]")).collect();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), words);
    }
    // What is about traces stays here.
    let output = run(&own, &["analyze", "blame", "job.json"]);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("kymo-scale"));
}
