//! Each fault that is planted in a job is found, and none is found that is not.

mod jobs;

use jobs::{add, healthy, traces, wish};
use kymograph_analysis::table::{Cells, RecordBatch};
use kymograph_scale::dataset::Dataset;
use kymograph_scale::labels::Labels;
use kymograph_scale::over_ranks;
use kymograph_scale::questions::{blame, clocks, outliers};
use scale_generator::job::{FIRST_STEP, Fault, Job};
use std::collections::BTreeSet;

/// A data set of a job, which lives as long as its folder.
fn dataset(job: &Job) -> (tempfile::TempDir, Dataset) {
    let folder = tempfile::tempdir().unwrap();
    let paths = traces(job, folder.path());
    let root = folder.path().join("set");
    let (_, failed) = add(&wish(&root), &paths);
    assert_eq!(failed, Vec::<String>::new());
    let dataset = Dataset::open(&root).unwrap();
    (folder, dataset)
}

fn texts(batch: &RecordBatch, columns: [&str; 3]) -> BTreeSet<[String; 3]> {
    let cells = Cells::of(batch);
    let row = |row| columns.map(|column| cells.text(column, row).unwrap_or_default().to_owned());
    (0..batch.num_rows()).map(row).collect()
}

/// What a table of blame has to say of a job.
fn truth(job: &Job) -> BTreeSet<[String; 3]> {
    let of = |fault: &Fault| match fault {
        Fault::Gpu { rank, .. } => ["rank".to_owned(), rank.to_string(), "compute".to_owned()],
        Fault::Host { host, .. } => ["host".to_owned(), Job::host_name(*host), "host".to_owned()],
        Fault::Link { rail, .. } => ["group".to_owned(), format!("rail{rail}"), "link".to_owned()],
        Fault::DataLoader { rank, .. } => {
            ["rank".to_owned(), rank.to_string(), "data_loader".to_owned()]
        }
    };
    job.faults.iter().map(of).collect()
}

/// `benches/scale/measure` has twenty, of a real trace.
#[test]
fn in_each_job_all_faults_are_found_and_none_is_invented() {
    let mut planted = 0;
    for seed in 0..6 {
        let job = Job::new(16, 4, seed, 4, 1);
        planted += job.faults.len();
        let (_folder, dataset) = dataset(&job);
        let labels = Labels::of(&dataset, None).unwrap();
        let table = (blame::BLAME.table)(&dataset, &labels).unwrap();
        let found: BTreeSet<[String; 3]> = texts(&table, ["scope", "name", "cause"])
            .into_iter()
            .map(|[scope, name, cause]| {
                // A process group is named with its ranks.
                let name = name.split(' ').next().unwrap_or_default().to_owned();
                [scope, name, cause]
            })
            .collect();
        assert_eq!(found, truth(&job), "seed {seed}");
        let steps = (blame::STEPS.table)(&dataset, &labels).unwrap();
        let cells = Cells::of(&steps);
        for fault in &job.faults {
            if let Fault::DataLoader { rank, step, .. } = fault {
                let stalls: Vec<_> = (0..steps.num_rows())
                    .filter(|row| cells.text("cause", *row) == Some("data_loader"))
                    .map(|row| (cells.int("rank", row), cells.int("step", row)))
                    .collect();
                let expected = (Some(*rank as i64), Some((FIRST_STEP + step) as i64));
                assert_eq!(stalls, [expected], "seed {seed}");
            }
        }
        let offsets = (clocks::CLOCKS.table)(&dataset, &labels).unwrap();
        let cells = Cells::of(&offsets);
        for rank in 0..job.ranks {
            let found = cells.int("offset", rank).unwrap();
            let planted = job.clocks[job.host(rank)];
            assert!(
                found.abs_diff(planted) < 5_000,
                "seed {seed}, rank {rank}: {found}, {planted}"
            );
            let verdict = match planted {
                ahead if ahead > 50_000 => "ahead",
                behind if behind < -50_000 => "behind",
                _ => "same",
            };
            assert_eq!(cells.text("verdict", rank), Some(verdict), "seed {seed}, rank {rank}");
        }
    }
    assert!(planted > 8, "{planted} faults were planted");
}

#[test]
fn outliers_of_a_metric_have_names() {
    let mut job = healthy(16, 3);
    job.faults.push(Fault::Gpu { rank: 5, factor: 1.5 });
    let (folder, dataset) = dataset(&job);
    let metric = kymograph_analysis::Metric::find("temporal_breakdown").unwrap();
    let (table, _) = over_ranks::table(&dataset, metric).unwrap();
    let file = folder.path().join("labels.csv");
    std::fs::write(&file, job.labels()).unwrap();
    let labels = Labels::of(&dataset, Some(&file)).unwrap();
    let found = outliers::table(&table, "compute_time", "rank", &labels).unwrap();
    let expected = BTreeSet::from([["5", "outlier", ""].map(str::to_owned)]);
    let mut all = texts(&found, ["name", "verdict", ""]);
    all.retain(|[_, verdict, _]| verdict == "outlier");
    assert_eq!(all, expected);
    let by_switch = outliers::table(&table, "compute_time", "switch", &labels).unwrap();
    assert_eq!(Cells::of(&by_switch).text("name", 0), Some("rail1"));
    for (column, by, why) in [
        ("compute", "rank", "no column `compute`"),
        ("compute_time", "rack", "no rank has a label `rack`"),
    ] {
        let refused = outliers::table(&table, column, by, &labels).unwrap_err();
        assert!(refused.0.contains(why), "{refused}");
    }
}

#[test]
fn two_ranks_cannot_be_compared() {
    let (_folder, dataset) = dataset(&healthy(2, 2));
    let labels = Labels::of(&dataset, None).unwrap();
    let why = (blame::BLAME.table)(&dataset, &labels).unwrap_err();
    assert!(why.0.contains("three ranks or more"), "{why}");
}
