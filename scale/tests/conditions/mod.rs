//! Conditions of queries over traces: those that scans try themselves change no answer, and what
//! does not fit is not made.

use super::{Made, ask, carried_out, csv, open_async};
use arrow_array::RecordBatch;
use datafusion::datasource::MemTable;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::prelude::SessionContext;
use futures::TryStreamExt;
use kymograph_analysis::table::Cells;
use kymograph_scale::query::Database;
use kymograph_scale::query::output::{Format, write};
use kymograph_scale::tables;
use std::sync::Arc;

/// The same tables in memory, whole, which the engine scans and filters itself.
async fn in_memory(database: &Database) -> SessionContext {
    let context = SessionContext::new();
    for name in tables::NAMES {
        let rows = database.ask(&format!("SELECT * FROM {name}")).await.unwrap();
        let schema = rows.schema();
        let batches: Vec<RecordBatch> = rows.try_collect().await.unwrap();
        let table = MemTable::try_new(schema, vec![batches]).unwrap();
        context.register_table(name, Arc::new(table)).unwrap();
    }
    context
}

/// The lines of an answer: their names, and the sorted rows.
async fn lines(rows: SendableRecordBatchStream) -> Vec<String> {
    let mut out = Vec::new();
    write(rows, Format::Csv, None, &mut out).await.unwrap();
    let mut lines: Vec<String> =
        String::from_utf8(out).unwrap().lines().map(str::to_owned).collect();
    lines[1..].sort();
    lines
}

/// How many rows the answer has, which is the same with and without scans that try conditions.
async fn same(database: &Database, memory: &SessionContext, sql: &str) -> usize {
    let theirs = memory.sql(sql).await.unwrap().execute_stream().await.unwrap();
    let theirs = lines(theirs).await;
    let ours = lines(database.ask(sql).await.unwrap()).await;
    assert!(ours == theirs, "{sql}: {} and {} lines", ours.len(), theirs.len());
    ours.len() - 1
}

#[test]
fn conditions_that_scans_try_change_no_answer() {
    let made = Made::new(2);
    // In the middle of the trace, where an event begins.
    let at = ask(&made.traces(), "SELECT ts FROM kernels ORDER BY ts, id LIMIT 1 OFFSET 40");
    let at = Cells::of(&at).int("ts", 0).unwrap();
    let later = at + 2_000_000;
    let conditions = [
        (format!("kernels WHERE ts > {at}"), true),
        (format!("kernels WHERE ts >= {at} AND {later} > ts"), true),
        (format!("kernels WHERE ts BETWEEN {at} AND {later}"), true),
        (format!("kernels WHERE ts NOT BETWEEN {at} AND {later}"), true),
        (format!("kernels WHERE ts = {at}"), true),
        (format!("kernels WHERE ts <> {at} AND rank = 1"), true),
        (format!("kernels WHERE ts IN ({at}, {later}, 7)"), true),
        (format!("kernels WHERE ts > {at}.5 AND ts < {later}.5"), true),
        (format!("kernels WHERE ts < {at} OR ts + dur > {later}"), true),
        (format!("kernels WHERE {at} BETWEEN ts AND ts + dur"), true),
        (format!("kernels WHERE ts > {later} AND ts < {at}"), false),
        ("kernels WHERE ts > 9223372036854775807".to_owned(), false),
        ("kernels WHERE ts >= -9223372036854775808".to_owned(), true),
        ("kernels WHERE ts = NULL".to_owned(), false),
        ("kernels WHERE NOT (ts = NULL)".to_owned(), false),
        ("kernels WHERE class = 'communication'".to_owned(), true),
        ("kernels WHERE class = 'memory' AND kind = 'communication'".to_owned(), false),
        ("kernels WHERE NOT class = 'computation'".to_owned(), true),
        ("kernels WHERE name LIKE '%gemm%' OR name LIKE 'nccl%'".to_owned(), true),
        ("kernels WHERE name NOT LIKE 'nccl%'".to_owned(), true),
        ("kernels WHERE upper(name) LIKE 'NCCL%' AND length(name) > 3".to_owned(), true),
        ("kernels WHERE bytes IS NULL".to_owned(), true),
        ("kernels WHERE NOT (bytes > 0)".to_owned(), false),
        ("kernels WHERE bytes > 0 IS NOT TRUE".to_owned(), true),
        ("kernels WHERE step IS NOT NULL AND operator IS NOT NULL".to_owned(), true),
        ("kernels WHERE step % 2 = rank % 2".to_owned(), true),
        ("kernels WHERE CASE WHEN rank = 0 THEN dur > 10 ELSE step = 11 END".to_owned(), true),
        ("kernels WHERE dur > (SELECT avg(dur) FROM kernels)".to_owned(), true),
        ("kernels WHERE name IN (SELECT name FROM names WHERE count > 2)".to_owned(), true),
        ("kernels k WHERE EXISTS (SELECT 1 FROM steps s WHERE s.step = k.step)".to_owned(), true),
        ("annotations WHERE parent IS NULL".to_owned(), true),
        ("operators WHERE parent IS NOT NULL AND tid > 0".to_owned(), true),
        ("calls WHERE correlation % 10 IN (1, 2, 3, 4)".to_owned(), true),
        (format!("annotations WHERE ts < {later} AND kind = 'annotation'"), true),
        (format!("flows WHERE ts > {at} AND kind = 'launch'"), true),
        ("flows WHERE from_id < to_id AND rank = 1".to_owned(), true),
        ("collectives WHERE message > 1000 AND step >= 0".to_owned(), true),
        ("steps WHERE step > 10 OR rank = 0".to_owned(), true),
        ("names WHERE class IS NULL AND count > 1".to_owned(), true),
        ("counters WHERE value > 0.5".to_owned(), false),
        ("quality WHERE rank = 1".to_owned(), true),
        ("memory WHERE bytes < 0".to_owned(), false),
    ];
    carried_out(async {
        let database = open_async(&made.traces()).await;
        let memory = in_memory(&database).await;
        for (from, some) in conditions {
            let rows = same(&database, &memory, &format!("SELECT * FROM {from}")).await;
            assert_eq!(rows > 0, some, "{from}: {rows} rows");
            same(&database, &memory, &format!("SELECT count(*), min(rank) FROM {from}")).await;
            let limited = format!("SELECT rank FROM {from} LIMIT 3");
            let limited = lines(database.ask(&limited).await.unwrap()).await;
            assert_eq!(limited.len() - 1, rows.min(3), "{from}");
        }
        // The columns of the answer are others than those of the conditions, or in another order.
        for sql in [
            "SELECT stream, ts, name FROM kernels WHERE name LIKE 'nccl%' AND dur > 1000",
            "SELECT dur FROM kernels WHERE class = 'computation' AND rank = 1 AND step = 11",
            "SELECT class AS one, class, name FROM kernels WHERE class <> 'memory'",
            "SELECT 1 FROM operators WHERE parent IS NOT NULL",
            "SELECT a.name, count(*) FROM operators a JOIN annotations b ON a.parent = b.id \
             AND a.rank = b.rank WHERE a.dur > 5 AND b.dur > 10 AND b.rank = 1 GROUP BY 1",
        ] {
            assert!(same(&database, &memory, sql).await > 0, "{sql}");
        }
    });
    // What only our engine has, as the data set says.
    let own = "SELECT rank, id FROM kernels WHERE kernel_class(name) = class AND dur > 100 \
               ORDER BY 1, 2";
    let [set, traces] = made.both().map(|target| csv(&target, own));
    assert!(set == traces && set.lines().count() > 10);
}

/// Conditions out of a few parts, by numbers of a generator that begins with a seed.
struct Conditions {
    state: u64,
    parts: Vec<String>,
}

impl Conditions {
    fn below(&mut self, n: usize) -> usize {
        self.state = self.state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.state >> 33) as usize % n
    }

    fn next(&mut self, depth: usize) -> String {
        let of = if depth == 0 { 0 } else { self.below(5) };
        match of {
            1 => format!("NOT ({})", self.next(depth - 1)),
            2 => format!("({} OR {})", self.next(depth - 1), self.next(depth - 1)),
            3 | 4 => format!("({} AND {})", self.next(depth - 1), self.next(depth - 1)),
            _ => {
                let at = self.below(self.parts.len());
                self.parts[at].clone()
            }
        }
    }
}

#[test]
fn any_conditions_change_no_answer() {
    let made = Made::new(2);
    let quarters = ask(
        &made.traces(),
        "SELECT ts FROM (SELECT ts, row_number() OVER (ORDER BY ts) AS n FROM kernels) \
         WHERE n % 30 = 1 ORDER BY ts",
    );
    let quarters = Cells::of(&quarters);
    let mut parts: Vec<String> = [
        "class = 'communication'",
        "kind IN ('kernel', 'copy')",
        "name LIKE '%a%'",
        "step = 11",
        "step IS NULL",
        "bytes > 100",
        "operator = 'aten::mm'",
        "operator IS NOT NULL",
        "dur > 1000",
        "dur % 3 = 1",
        "rank = 0",
        "rank + step = 11",
        "correlation % 2 = 0",
        "NULL",
    ]
    .map(str::to_owned)
    .into();
    for row in 0..3 {
        let ts = quarters.int("ts", row).unwrap();
        parts.extend(["<", "<=", ">", ">=", "="].map(|op| format!("ts {op} {ts}")));
        parts.push(format!("{ts} < ts"));
    }
    let mut conditions = Conditions { state: 1, parts };
    carried_out(async {
        let database = open_async(&made.traces()).await;
        let memory = in_memory(&database).await;
        let mut answers = [0; 2];
        for _ in 0..150 {
            let condition = conditions.next(3);
            let sql = format!("SELECT dur, rank, id, ts FROM kernels WHERE {condition}");
            answers[usize::from(same(&database, &memory, &sql).await > 0)] += 1;
        }
        assert!(answers.iter().all(|of| *of > 20), "{answers:?}");
    });
}

/// A count of a plan that was carried out.
fn count(plan: &str, name: &str) -> usize {
    let scan = plan.lines().find(|line| line.contains("TraceScan")).expect(plan);
    let (_, from) = scan.split_once(&format!("{name}=")).expect(scan);
    let digits: String = from.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

#[test]
fn what_does_not_fit_is_not_made() {
    let made = Made::new(1);
    let whole = |sql: &str| Cells::of(&ask(&made.traces(), sql)).int("n", 0).unwrap() as usize;
    let carried_out = |sql: &str| {
        let plan = ask(&made.traces(), &format!("EXPLAIN ANALYZE {sql}"));
        Cells::of(&plan).text("plan", 0).unwrap().to_owned()
    };
    let middle = "SELECT min(ts) AS n FROM kernels WHERE step = 11";
    let from = whole(middle);
    let until = from + 3_000_000;
    let times = format!("ts BETWEEN {from} AND {until}");
    let in_range = whole(&format!("SELECT count(*) AS n FROM kernels WHERE {times}"));
    let fits = format!("{times} AND class = 'communication'");
    let fit = whole(&format!("SELECT count(*) AS n FROM kernels WHERE {fits}"));
    let all = whole("SELECT count(*) AS n FROM kernels");
    assert!(0 < fit && fit < in_range && in_range < all && all < 1000, "{fit} {in_range} {all}");
    // The class of what is within the time, and name and duration of what fits.
    let plan = carried_out(&format!("SELECT name, sum(dur) FROM kernels WHERE {fits} GROUP BY 1"));
    assert_eq!(count(&plan, "rows_tried"), in_range, "{plan}");
    assert_eq!(count(&plan, "output_rows"), fit, "{plan}");
    assert_eq!(count(&plan, "values_made"), in_range + 2 * fit, "{plan}");
    assert!(!plan.contains("FilterExec"), "{plan}");
    // Times alone are found and not tried; what is counted alone has no columns.
    let plan = carried_out(&format!("SELECT count(*) FROM kernels WHERE {times}"));
    assert_eq!(count(&plan, "rows_tried"), 0, "{plan}");
    assert_eq!(count(&plan, "values_made"), 0, "{plan}");
    // No more than is wanted.
    let plan = carried_out("SELECT name FROM kernels LIMIT 5");
    assert_eq!(count(&plan, "values_made"), 5, "{plan}");
    // What may give something else each time is tried once, by the engine.
    let plan = carried_out("SELECT name FROM kernels WHERE random() < 0.5 AND dur > 0");
    assert_eq!(
        count(&plan, "output_rows"),
        whole("SELECT count(*) AS n FROM kernels WHERE dur > 0")
    );
    assert!(plan.contains("FilterExec: random()"), "{plan}");
}

#[test]
fn errors_of_conditions_are_told() {
    let made = Made::new(1);
    let target = made.traces();
    let sql = "SELECT count(*) FROM kernels WHERE 10 / (dur - dur) > 1";
    let why = super::ask_within(&target, sql, Default::default()).unwrap_err();
    assert!(why.0.to_lowercase().contains("divide by zero"), "{why}");
}
