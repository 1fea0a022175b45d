//! What SQL says of a data set and of the traces that it was made of.
#![cfg(feature = "query")]

mod conditions;
mod jobs;

use arrow_array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use futures::TryStreamExt;
use kymograph_analysis::table::Cells;
use kymograph_analysis::{Metric, interval};
use kymograph_scale::dataset::Dataset;
use kymograph_scale::query::output::{Format, write};
use kymograph_scale::query::{Database, Limits, carry_out, of_query};
use kymograph_scale::{Failure, layout, over_ranks, tables};
use std::path::{Path, PathBuf};

struct Made {
    folder: tempfile::TempDir,
    set: PathBuf,
}

impl Made {
    fn new(ranks: usize) -> Made {
        Made::of(ranks, 2)
    }

    fn of(ranks: usize, steps: usize) -> Made {
        let folder = tempfile::tempdir().unwrap();
        // A name that means something in patterns and in addresses.
        let traces = folder.path().join("traces [1] %20?");
        std::fs::create_dir(&traces).unwrap();
        let paths = jobs::traces(&jobs::healthy(ranks, steps), &traces);
        let set = folder.path().join("set [1] %20?");
        let (_, failed) = jobs::add(&jobs::wish(&set), &paths);
        assert_eq!(failed, Vec::<String>::new());
        Made { set, folder }
    }

    fn traces(&self) -> PathBuf {
        self.folder.path().join("traces [1] %20?")
    }

    fn both(&self) -> [PathBuf; 2] {
        [self.set.clone(), self.traces()]
    }
}

fn carried_out<T: Send>(work: impl Future<Output = T> + Send) -> T {
    carry_out(work).unwrap()
}

fn open(target: &Path) -> Result<Database, Failure> {
    carried_out(Database::open(&[target.to_str().unwrap().to_owned()], Limits::default()))
}

fn ask(target: &Path, sql: &str) -> RecordBatch {
    ask_within(target, sql, Limits::default()).unwrap()
}

fn ask_within(target: &Path, sql: &str, limits: Limits) -> Result<RecordBatch, Failure> {
    carried_out(async {
        let database = Database::open(&[target.to_str().unwrap().to_owned()], limits).await?;
        let rows = database.ask(sql).await?;
        let schema = rows.schema();
        let batches: Vec<RecordBatch> =
            rows.try_collect().await.map_err(|error| of_query(&error))?;
        Ok(concat_batches(&schema, &batches).unwrap())
    })
}

/// What is written.
fn written(target: &Path, sql: &str, format: Format, limit: Option<usize>) -> Vec<u8> {
    carried_out(async {
        let rows = open_async(target).await.ask(sql).await.unwrap();
        let mut out = Vec::new();
        write(rows, format, limit, &mut out).await.unwrap();
        out
    })
}

fn csv(target: &Path, sql: &str) -> String {
    String::from_utf8(written(target, sql, Format::Csv, None)).unwrap()
}

#[test]
fn traces_and_data_sets_have_the_same_tables() {
    let made = Made::new(4);
    let dataset = Dataset::open(&made.set).unwrap();
    for name in tables::NAMES {
        let sql = format!("SELECT * FROM {name}");
        let [set, traces] = made.both().map(|target| {
            let text = csv(&target, &sql);
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines[1..].sort();
            lines
        });
        assert!(set == traces, "{name} differs");
        let rows: u64 = dataset.ranks.iter().map(|manifest| rows(manifest, name)).sum();
        assert_eq!(set.len() as u64, rows + 1, "{name}");
    }
}

fn rows(manifest: &kymograph_scale::manifest::Manifest, table: &str) -> u64 {
    let path = layout::table(table, manifest.rank);
    let file = manifest.files.iter().find(|file| Path::new(&file.path) == path);
    file.map_or(0, |file| file.rows)
}

#[test]
fn intervals_are_those_of_metrics() {
    let made = Made::new(4);
    let dataset = Dataset::open(&made.set).unwrap();
    let metric = Metric::find("comm_comp_overlap").unwrap();
    let (overlap, _) = over_ranks::table(&dataset, metric).unwrap();
    let overlap = Cells::of(&overlap);
    for target in made.both() {
        let answer = ask(
            &target,
            "SELECT rank, \
             interval_intersection(ts, dur, class = 'communication') AS both, \
             interval_union(ts, dur) FILTER (WHERE class = 'communication') AS busy \
             FROM device_work WHERE class IN ('computation', 'communication') \
             GROUP BY rank ORDER BY rank",
        );
        let answer = Cells::of(&answer);
        let events = ask(
            &target,
            "SELECT rank, ts, dur FROM kernels WHERE class = 'communication' ORDER BY ts",
        );
        let cells = Cells::of(&events);
        for rank in 0..4 {
            let row = rank as usize;
            let of_rank =
                (0..events.num_rows()).filter(|row| cells.int("rank", *row) == Some(rank));
            let all = of_rank.map(|row| {
                let start = cells.int("ts", row).unwrap();
                (start, start + cells.int("dur", row).unwrap())
            });
            let busy = interval::length(&interval::merge(all));
            assert!(busy > 0);
            assert_eq!(answer.int("busy", row), Some(busy));
            let both = answer.int("both", row).unwrap();
            let percent = overlap.float("comp_comm_overlap_pctg", row).unwrap();
            assert!((100.0 * both as f64 / busy as f64 - percent).abs() < 0.01, "{percent}");
        }
        // In parts, as when states are merged, it is the same; of nothing it is 0.
        let nothing =
            ask(&target, "SELECT interval_union(ts, dur) AS n FROM kernels WHERE rank > 9");
        assert_eq!(Cells::of(&nothing).int("n", 0), Some(0));
    }
}

#[test]
fn collectives_are_those_of_the_metric() {
    let made = Made::new(4);
    let dataset = Dataset::open(&made.set).unwrap();
    let (metric, _) = over_ranks::table(&dataset, Metric::find("collectives").unwrap()).unwrap();
    let metric = Cells::of(&metric);
    for target in made.both() {
        let view = ask(&target, "SELECT * FROM collectives_across_ranks ORDER BY 1, 2, 3");
        let cells = Cells::of(&view);
        assert!(view.num_rows() > 0);
        let speeds: Vec<f64> =
            (0..view.num_rows()).map(|row| cells.float("bus_bandwidth", row).unwrap()).collect();
        let mut expected: Vec<f64> = (0..)
            .map_while(|row| {
                metric.int("sequence", row)?;
                metric.float("bus_bandwidth", row)
            })
            .take(view.num_rows())
            .collect();
        let mut speeds = speeds;
        speeds.sort_by(f64::total_cmp);
        expected.sort_by(f64::total_cmp);
        assert_eq!(speeds.len(), expected.len());
        for (one, other) in speeds.iter().zip(&expected) {
            assert!((one - other).abs() < 1e-6, "{one} {other}");
        }
    }
}

#[test]
fn kernels_find_their_operators_and_classes() {
    let made = Made::new(2);
    for target in made.both() {
        let wrong = "SELECT count(*) FROM kernels WHERE kind IN ('kernel', 'communication') \
                     AND kernel_class(name) <> class";
        assert_eq!(csv(&target, wrong), "count(*)\n0\n");
        let by_view =
            "SELECT name, count(*) AS n FROM operators_with_kernels GROUP BY 1 ORDER BY 1";
        let by_column = "SELECT operator AS name, count(*) AS n FROM kernels \
                         WHERE operator IS NOT NULL GROUP BY 1 ORDER BY 1";
        let view = csv(&target, by_view);
        assert_eq!(view, csv(&target, by_column));
        assert!(view.lines().count() > 1, "{view}");
    }
}

#[test]
fn only_what_a_query_is_about_is_read() {
    let made = Made::new(2);
    let sql = "SELECT name FROM kernels WHERE rank = 1 AND ts > 5";
    let plan = |target: &Path| carried_out(async { open_async(target).await.explain(sql).await });
    let set = plan(&made.set).unwrap();
    assert!(set.contains("pruning_predicate=rank_null_count"), "{set}");
    assert!(set.contains("projection=[name]"), "{set}");
    let traces = plan(&made.traces()).unwrap();
    let scan = "TraceScan: table: kernels, ranks: 1 of 2, columns: [name], ts: 6 and later\n";
    assert!(traces.contains(scan), "{traces}");
    let sql = "SELECT name FROM kernels WHERE class = 'memory' AND ts < 9 AND random() > 0.5";
    let traces = carried_out(async { open_async(&made.traces()).await.explain(sql).await });
    let traces = traces.unwrap();
    let scan = "columns: [name], ts: up to 8, conditions: class@0 = memory\n";
    assert!(traces.contains(scan) && traces.contains("FilterExec: random()"), "{traces}");
    for (condition, ranks) in [
        ("rank IN (0, 7)", 1),
        ("rank BETWEEN 0 AND 5", 2),
        ("rank % 2 = 1", 1),
        ("rank > 1", 0),
        ("rank IS NOT NULL", 2),
        ("rank = 0 OR ts < 0", 1),
    ] {
        let sql = format!("SELECT count(DISTINCT rank) AS n FROM kernels WHERE {condition}");
        for target in made.both() {
            assert_eq!(Cells::of(&ask(&target, &sql)).int("n", 0), Some(ranks), "{condition}");
        }
    }
}

async fn open_async(target: &Path) -> Database {
    Database::open(&[target.to_str().unwrap().to_owned()], Limits::default()).await.unwrap()
}

#[test]
fn little_memory_changes_no_answer() {
    let made = Made::of(4, 5);
    let sql = "SELECT a.name, b.ts, a.id FROM operators a JOIN operators b ON a.name = b.name \
               ORDER BY b.ts, a.id, a.rank, b.rank, b.id";
    let within = |sql: &str, memory| {
        let limits = Limits { memory, partial: false };
        ask_within(&made.set, sql, limits)
    };
    let whole = within(sql, None).unwrap();
    let little = 8 << 20;
    assert!(whole.num_rows() > 100_000, "{}", whole.num_rows());
    assert!(whole == within(sql, Some(little)).unwrap());
    let how = within(&format!("EXPLAIN ANALYZE {sql}"), Some(little)).unwrap();
    let how = Cells::of(&how).text("plan", 0).unwrap().to_owned();
    let spilled = |line: &str| line.contains("spill_count=") && !line.contains("spill_count=0");
    assert!(how.lines().any(spilled), "{how}");
    let why = within(sql, Some(1 << 10)).unwrap_err();
    assert!(why.0.starts_with("there is not enough memory"), "{why}");
}

#[test]
fn answers_are_written_in_every_format() {
    let made = Made::new(2);
    let sql = "SELECT rank, name, dur, 0.5 AS half, ts > 0 AS late, NULL AS nothing \
               FROM operators ORDER BY rank, id";
    let all = csv(&made.set, sql);
    let rows = all.lines().count() - 1;
    assert!(all.starts_with("rank,name,dur,half,late,nothing\n") && rows > 0);
    assert!(all.lines().nth(1).unwrap().ends_with(",0.5,true,"), "{all}");
    let json: serde_json::Value =
        serde_json::from_slice(&written(&made.set, sql, Format::Json, None)).unwrap();
    assert_eq!(json["rows"].as_array().unwrap().len(), rows);
    assert_eq!(json["columns"][2]["unit"], "ns");
    let three = written(&made.set, sql, Format::Json, Some(3));
    let three: serde_json::Value = serde_json::from_slice(&three).unwrap();
    assert_eq!(three["rows"].as_array().unwrap()[..], json["rows"].as_array().unwrap()[..3]);
    let none = written(&made.set, "SELECT rank FROM kernels WHERE rank > 9", Format::Json, None);
    let none: serde_json::Value = serde_json::from_slice(&none).unwrap();
    assert_eq!(none["rows"].as_array().unwrap().len(), 0);
    let text = String::from_utf8(written(&made.set, sql, Format::Table, Some(4))).unwrap();
    assert!(text.ends_with(&format!("4 of {rows} rows\n")), "{text}");
    let path = made.folder.path().join("answer.parquet");
    std::fs::write(&path, written(&made.set, sql, Format::Parquet, None)).unwrap();
    let read = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(
        std::fs::File::open(&path).unwrap(),
    );
    assert_eq!(read.unwrap().metadata().file_metadata().num_rows(), rows as i64);
    let arrow = written(&made.set, sql, Format::Arrow, None);
    let arrow =
        datafusion::arrow::ipc::reader::FileReader::try_new(std::io::Cursor::new(arrow), None);
    assert_eq!(arrow.unwrap().map(|batch| batch.unwrap().num_rows()).sum::<usize>(), rows);
}

#[test]
fn metrics_are_tables_and_a_query_changes_nothing() {
    let made = Made::new(2);
    let answer = ask(&made.set, "SELECT * FROM metrics.temporal_breakdown ORDER BY rank");
    assert_eq!(answer.num_rows(), 2);
    let before = jobs::files(&made.set);
    let target = made.folder.path().join("out.csv");
    for sql in [
        format!("COPY (SELECT 1) TO '{}'", target.display()),
        "CREATE VIEW v AS SELECT 1".to_owned(),
        "DROP TABLE kernels".to_owned(),
        "INSERT INTO steps SELECT * FROM steps".to_owned(),
        "SET datafusion.execution.batch_size = 1".to_owned(),
    ] {
        let why = ask_within(&made.set, &sql, Limits::default()).unwrap_err();
        assert!(why.0.starts_with("the query failed"), "{sql}: {why}");
    }
    assert!(!target.exists() && before == jobs::files(&made.set));
    // Deep, but no reason to fall over.
    let deep = format!("SELECT {}1{}", "(".repeat(5000), ")".repeat(5000));
    assert!(ask_within(&made.set, &deep, Limits::default()).is_err());
    let long = vec!["rank = 0"; 300].join(" OR ");
    let long = format!("SELECT count(*) AS n FROM steps WHERE {long}");
    assert_eq!(Cells::of(&ask(&made.set, &long)).int("n", 0), Some(2));
    let longer = ask_within(&made.set, &"x".repeat(1 << 20), Limits::default()).unwrap_err();
    assert!(longer.0.contains("1048576 bytes"), "{longer}");
}

#[test]
fn contents_are_tables_views_and_functions() {
    let made = Made::new(1);
    for target in made.both() {
        let contents = carried_out(async { open_async(&target).await.contents().await.unwrap() });
        for name in tables::NAMES {
            let table = contents.table(name).unwrap();
            let sql = format!("SELECT * FROM {name} LIMIT 0");
            let names: Vec<&str> = table.columns.iter().map(|column| &*column.name).collect();
            assert_eq!(csv(&target, &sql).trim_end(), names.join(","));
            assert!(!table.is_view, "{name}");
        }
        let dur = contents.table("KERNELS").unwrap().columns.iter().find(|c| c.name == "dur");
        assert_eq!(dur.map(|dur| (dur.ty, dur.unit.as_str())), Some(("BIGINT", "ns")));
        assert!(contents.table("device_work").unwrap().is_view);
        for function in ["interval_union", "kernel_class", "count", "upper", "row_number"] {
            assert!(contents.functions.iter().any(|name| name == function), "{function}");
        }
        let metric = contents.table("metrics.temporal_breakdown");
        assert_eq!(metric.is_some(), target == made.set);
        assert!(contents.tables.iter().all(|table| !table.name.contains("information_schema")));
    }
}

#[test]
fn what_is_missing_has_a_clear_word() {
    let made = Made::new(4);
    std::fs::remove_file(made.set.join(layout::manifest(2))).unwrap();
    let why = open(&made.set).unwrap_err();
    assert!(why.0.starts_with("rank 2 is half written"), "{why}");
    let limits = Limits { memory: None, partial: true };
    let ranks = ask_within(&made.set, "SELECT count(DISTINCT rank) AS n FROM kernels", limits);
    // The files of the rank are there, but nobody says that they are whole.
    assert_eq!(Cells::of(&ranks.unwrap()).int("n", 0), Some(3));
    std::fs::remove_file(made.traces().join("rank1.json")).unwrap();
    assert_eq!(open(&made.traces()).unwrap().left_out, ["rank 1 is missing"]);
    let copy = made.traces().join("copy.json");
    std::fs::copy(made.traces().join("rank0.json"), &copy).unwrap();
    let why = open(&made.traces()).unwrap_err();
    assert!(why.0.ends_with("are both rank 0"), "{why}");
    std::fs::write(&copy, "no trace").unwrap();
    assert!(open(&made.traces()).unwrap_err().0.contains("copy.json"));
    assert!(open(Path::new("none.json")).unwrap_err().0.starts_with("none.json"));
}
