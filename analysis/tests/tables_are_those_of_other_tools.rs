//! Compares tables with those that other tools made of the same traces: a small part that is
//! checked in, or the folder that `KYMOGRAPH_GOLDENS` names, whose traces are in
//! `KYMOGRAPH_DATA`. `analysis/tests/goldens` sets both.

mod compared;

use compared::{Tally, hta, tensorboard, torch};
use std::path::PathBuf;

#[test]
fn tables_of_hta() {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let folder = |name, otherwise: &str| {
        std::env::var_os(name).map_or_else(|| own.join(otherwise), PathBuf::from)
    };
    let (goldens, data) =
        (folder("KYMOGRAPH_GOLDENS", "goldens"), folder("KYMOGRAPH_DATA", "traces"));
    let mut tally = Tally::default();
    let mut sets: Vec<_> =
        goldens.join("hta").read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    sets.sort();
    for set in sets {
        let name = set.file_name().unwrap().to_string_lossy().into_owned();
        if std::env::var("KYMOGRAPH_SET").is_ok_and(|wanted| !name.contains(&wanted)) {
            continue;
        }
        if name == "trace_diff" {
            hta::diff(&set, &data, &mut tally);
            continue;
        }
        match hta::traces(&name, &data) {
            Some(files) => hta::set(&set, &files, &mut tally),
            None => tally.except(&format!("HTA {name}: no traces"), 1),
        }
    }
    tally.print();
    assert_eq!(tally.different(), 0);
}

#[test]
fn tables_of_torch() {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/goldens");
    let goldens = std::env::var_os("KYMOGRAPH_GOLDENS").map_or(own, PathBuf::from);
    let mut tally = Tally::default();
    for kind in ["cpu", "gpu"] {
        let folder = goldens.join("key_averages").join(kind);
        if folder.is_dir() {
            torch::folder(&folder, &mut tally);
        }
    }
    tally.print();
    assert_eq!(tally.different(), 0);
}

#[test]
fn views_of_tensorboard() {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let folder = |name, otherwise: &str| {
        std::env::var_os(name).map_or_else(|| own.join(otherwise), PathBuf::from)
    };
    let (goldens, data) =
        (folder("KYMOGRAPH_GOLDENS", "goldens"), folder("KYMOGRAPH_DATA", "traces"));
    let mut tally = Tally::default();
    let mut sets: Vec<_> =
        goldens.join("tb").read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    sets.sort();
    sets.iter().for_each(|set| tensorboard::set(set, &data, &mut tally));
    tally.print();
    assert_eq!(tally.different(), 0);
}
