//! A rank is added whole or not at all, once, and what is wrong has a clear word.

mod jobs;

use jobs::{add, files, healthy, packed, traces, wish};
use kymograph_analysis::{Metric, Model, Options, Reading, run};
use kymograph_converters::merge::{Align, Merger};
use kymograph_converters::{format, perfetto};
use kymograph_scale::add::Done;
use kymograph_scale::dataset::{Dataset, Problems};
use kymograph_scale::{layout, over_ranks};
use std::path::{Path, PathBuf};

fn problems(root: &Path) -> Problems {
    Dataset::open(root).unwrap().problems()
}

#[test]
fn all_events_are_there_and_metrics_are_those_of_the_traces() {
    let folder = tempfile::tempdir().unwrap();
    let paths = traces(&healthy(8, 3), folder.path());
    let root = folder.path().join("set");
    let (done, failed) = add(&wish(&root), &paths);
    assert_eq!((done.len(), failed), (8, vec![]));
    let dataset = Dataset::open(&root).unwrap();
    assert_eq!(dataset.problems(), Problems::default());
    for name in
        ["temporal_breakdown", "comm_comp_overlap", "stragglers", "collectives", "step_variance"]
    {
        let metric = Metric::find(name).unwrap();
        let mut parts = Vec::new();
        for (path, manifest) in paths.iter().zip(&dataset.ranks) {
            let trace = format::read(std::fs::File::open(path).unwrap(), None).unwrap();
            let model = Model::new(&trace, None, manifest.rank, Reading::Exact);
            assert_eq!(manifest.events, model.events.len() as u64);
            parts.push(run::of_rank(metric, &model, &Options::default()).unwrap());
        }
        let expected = run::over_ranks(metric, parts, &Options::default()).unwrap();
        let (table, left_out) = over_ranks::table(&dataset, metric).unwrap();
        assert_eq!((table, left_out), (expected, vec![]), "{name}");
    }
    let (quality, _) = over_ranks::table(&dataset, Metric::find("data_quality").unwrap()).unwrap();
    let cells = kymograph_analysis::table::Cells::of(&quality);
    for row in 0..quality.num_rows() {
        let check = cells.text("check", row);
        assert_ne!(cells.text("verdict", row), Some("problem"), "{check:?}");
    }
    let missing = over_ranks::table(&dataset, Metric::find("call_graph").unwrap()).unwrap_err();
    assert!(missing.0.contains("--metrics call_graph"), "{missing}");
}

#[test]
fn the_same_again_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let paths = traces(&healthy(4, 2), folder.path());
    let root = folder.path().join("set");
    add(&wish(&root), &paths);
    let before = files(&root);
    let (done, failed) = add(&wish(&root), &paths);
    assert_eq!(failed, Vec::<String>::new());
    assert!(done.iter().all(|done| matches!(done, Done::There(_))), "{done:?}");
    assert_eq!(before, files(&root));
    // Another folder gets the same bytes.
    let other = folder.path().join("other");
    add(&wish(&other), &paths);
    let tables = |root: &Path| {
        let mut all = files(root);
        all.retain(|(path, _)| path.extension().is_some_and(|end| end == "parquet"));
        all
    };
    assert!(tables(&root) == tables(&other));
}

#[test]
fn what_a_killed_task_left_is_no_rank_and_is_completed() {
    let folder = tempfile::tempdir().unwrap();
    let paths = traces(&healthy(4, 2), folder.path());
    let root = folder.path().join("set");
    add(&wish(&root), &paths);
    let whole = files(&root);
    // Killed while files got their names, and while they were written.
    std::fs::remove_file(root.join(layout::manifest(2))).unwrap();
    std::fs::remove_file(root.join(layout::table("steps", 2))).unwrap();
    let left = root.join(".partial/rank-000002-99-7");
    std::fs::create_dir_all(&left).unwrap();
    std::fs::write(left.join("0.parquet"), "PAR1").unwrap();
    assert_eq!(problems(&root).half, [2]);
    let told = problems(&root).sentences();
    assert!(told[0].starts_with("rank 2 is half written"), "{told:?}");
    let (done, _) = add(&wish(&root), &paths);
    assert_eq!(done.iter().filter(|done| matches!(done, Done::Added(2, _))).count(), 1);
    assert!(whole == files(&root));
    assert_eq!(problems(&root), Problems::default());
}

#[test]
fn a_trace_of_several_ranks_is_there_when_all_are() {
    let folder = tempfile::tempdir().unwrap();
    let mut merger = Merger::new();
    for path in traces(&healthy(3, 2), folder.path()) {
        let trace = format::read(std::fs::File::open(&path).unwrap(), None).unwrap();
        merger.add(&path.to_string_lossy(), trace);
    }
    let merged = folder.path().join("merged.pftrace");
    let file = std::fs::File::create(&merged).unwrap();
    perfetto::write(&merger.finish(Align::Clocks).0, file).unwrap();
    let root = folder.path().join("set");
    add(&wish(&root), std::slice::from_ref(&merged));
    let whole = files(&root);
    // Killed before the last two.
    for rank in [1, 2] {
        std::fs::remove_file(root.join(layout::manifest(rank))).unwrap();
    }
    let (done, failed) = add(&wish(&root), &[merged]);
    assert_eq!(failed, Vec::<String>::new());
    assert!(matches!(done[..], [Done::There(0), Done::Added(1, _), Done::Added(2, _)]), "{done:?}");
    assert!(whole == files(&root));
}

#[test]
fn tasks_of_one_rank_take_turns() {
    let folder = tempfile::tempdir().unwrap();
    let paths = traces(&healthy(2, 2), folder.path());
    let root = folder.path().join("set");
    let tasks = std::thread::scope(|scope| {
        let task = || add(&wish(&root), &paths);
        let tasks: Vec<_> = (0..4).map(|_| scope.spawn(task)).collect();
        tasks.into_iter().map(|task| task.join().unwrap()).collect::<Vec<_>>()
    });
    let done: Vec<Done> = tasks.iter().flat_map(|(done, _)| done.clone()).collect();
    assert!(tasks.iter().all(|(_, failed)| failed.is_empty()), "{tasks:?}");
    let added = done.iter().filter(|done| matches!(done, Done::Added(..))).count();
    assert_eq!((added, done.len()), (2, 8));
    assert_eq!(problems(&root), Problems::default());
}

#[test]
fn a_rank_that_is_missing_or_changed_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let paths = traces(&healthy(8, 2), folder.path());
    let root = folder.path().join("set");
    add(&wish(&root), &[&paths[..3], &paths[5..]].concat());
    assert_eq!(problems(&root).missing, [3, 4]);
    assert_eq!(problems(&root).sentences(), ["ranks 3, 4 (2 in all) are missing"]);
    std::fs::write(root.join(layout::table("kernels", 6)), "PAR1").unwrap();
    assert_eq!(problems(&root).changed[0].0, 6);
    add(&wish(&root), &paths);
    assert_eq!(problems(&root), Problems::default());
}

#[test]
fn a_trace_without_its_end_is_taken_only_if_that_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let paths = traces(&healthy(4, 2), folder.path());
    let root = folder.path().join("set");
    let text = std::fs::read(&paths[1]).unwrap();
    let (cut, cut_packed) = (folder.path().join("cut.json"), folder.path().join("cut.json.gz"));
    std::fs::write(&cut, &text[..text.len() / 2]).unwrap();
    let whole = packed(&paths[1]);
    std::fs::write(&cut_packed, &whole[..whole.len() / 2]).unwrap();
    for cut in [&cut, &cut_packed] {
        let (done, failed) = add(&wish(&root), std::slice::from_ref(cut));
        assert_eq!(done, []);
        assert!(
            failed[0].contains("its end is missing") && failed[0].contains("--damaged"),
            "{failed:?}"
        );
    }
    let taking = kymograph_scale::add::Wish { damaged: true, ..wish(&root) };
    add(&taking, &[cut]);
    assert_eq!(problems(&root).damaged, [1]);
}

#[test]
fn a_rank_twice_or_of_another_job_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let paths = traces(&healthy(4, 2), folder.path());
    let root = folder.path().join("set");
    let write = |name: &str, of: usize, from: &str, to: &str| -> PathBuf {
        let text = std::fs::read_to_string(&paths[of]).unwrap();
        assert!(text.contains(from));
        let path = folder.path().join(name);
        std::fs::write(&path, text.replace(from, to)).unwrap();
        path
    };
    add(&wish(&root), &paths[..3]);
    let before = files(&root);
    let refused = |path: PathBuf, why: &str| {
        let (done, failed) = add(&wish(&root), &[path]);
        assert_eq!(done, []);
        assert!(failed[0].contains(why), "{failed:?}");
        assert!(before == files(&root), "{why}");
    };
    let twice = write("twice.json", 1, "aten::mm", "aten::bmm");
    refused(
        twice.clone(),
        "rank 1 is there from rank1.json, which differs; --replace takes this one",
    );
    let size = write("size.json", 3, "\"world_size\":4", "\"world_size\":8");
    refused(size, "rank 3 is of a job of 8 ranks, and others are of one of 4");
    let beyond = write("beyond.json", 3, "\"rank\":3", "\"rank\":9");
    refused(beyond, "it says that it is rank 9 of 4");
    let clock = write(
        "clock.json",
        3,
        "\"baseTimeNanoseconds\":1790857026000000000",
        "\"baseTimeNanoseconds\":1790943426000000000",
    );
    refused(clock, "rank 3 begins 1440 minutes after rank");
    let none = write("none.json", 3, "\"distributedInfo\"", "\"other\"");
    refused(none, "it does not say its rank: say --rank N");
    refused(folder.path().join("nothing.json"), "nothing.json");
    std::fs::write(folder.path().join("notes.json"), "dear diary").unwrap();
    refused(folder.path().join("notes.json"), "not a trace");
    // What is wanted is replaced, and nothing of the old one stays.
    let replacing = kymograph_scale::add::Wish { replace: true, ..wish(&root) };
    let (done, failed) = add(&replacing, &[twice]);
    assert_eq!((done.len(), failed), (1, vec![]));
    assert!(problems(&root).half.is_empty() && problems(&root).changed.is_empty());
    // Of two that are the same rank, one is refused.
    let third = write("third.json", 1, "aten::mm", "aten::mv");
    let (done, failed) = add(&replacing, &[third, paths[1].clone()]);
    assert_eq!((done.len(), failed.len()), (1, 1));
    assert!(failed[0].contains("it is rank 1, and"), "{failed:?}");
}
