//! Small traces for the tests of metrics.

use kymograph_converters::format;
use kymograph_converters::trace::Trace;

use crate::table::{Cells, RecordBatch};
use crate::{Metric, Model, Options, Part, Reading, run};

/// A trace of Kineto's, from lines with `category | name | thread or stream | begin | duration |
/// further arguments`, in microseconds.
pub(crate) fn kineto(lines: &str) -> Trace {
    let event = |line: &str| {
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let [category, name, lane, start, dur, args] = fields[..] else {
            panic!("six fields: {line}")
        };
        let on_device = matches!(category, "kernel" | "gpu_memcpy" | "gpu_memset");
        let (pid, own) = match on_device {
            true => (0, format!("\"device\": 0, \"stream\": {lane}, ")),
            false => (1, String::new()),
        };
        let phase = if category == "cpu_instant_event" { "i" } else { "X" };
        let args = format!("{{{own}{args}}}").replace(", }", "}");
        format!(
            "{{\"ph\": \"{phase}\", \"s\": \"t\", \"cat\": \"{category}\", \"name\": \"{name}\", \"pid\": {pid}, \
             \"tid\": {lane}, \"ts\": {start}, \"dur\": {dur}, \"args\": {args}}}"
        )
    };
    let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
    let events: Vec<String> = lines.map(event).collect();
    let json = format!(
        "{{\"schemaVersion\": 1, \"deviceProperties\": [{{\"id\": 0, \"name\": \"NVIDIA H200\", \
         \"computeMajor\": 9, \"computeMinor\": 0}}], \"traceEvents\": [{}]}}",
        events.join(",\n")
    );
    format::read(std::io::Cursor::new(json.into_bytes()), None).expect("a trace")
}

/// The table of a metric for such a trace.
pub(crate) fn table(metric: &Metric, lines: &str, options: &Options) -> RecordBatch {
    over(metric, &[(0, lines)], options)
}

/// The table of a metric over several such traces, each with its rank.
pub(crate) fn over(metric: &Metric, ranks: &[(i64, &str)], options: &Options) -> RecordBatch {
    let part = |(rank, lines): &(i64, &str)| -> Part {
        let trace = kineto(lines);
        let mut model = Model::new(&trace, None, *rank, Reading::Exact);
        model.restrict(options);
        run::of_rank(metric, &model, options).expect("a table")
    };
    run::over_ranks(metric, ranks.iter().map(part).collect(), options).expect("a table")
}

/// Rows as text, a cell each for some columns; the decimal places of floats are cut at three.
pub(crate) fn rows(batch: &RecordBatch, columns: &[&str]) -> Vec<String> {
    let cells = Cells::of(batch);
    let cell = |row: usize, column: &str| {
        if let Some(text) = cells.text(column, row) {
            return text.to_owned();
        }
        match (cells.int(column, row), cells.float(column, row)) {
            (Some(n), _) => n.to_string(),
            (None, Some(x)) => format!("{x:.3}").trim_end_matches(".000").to_owned(),
            (None, None) => "-".to_owned(),
        }
    };
    let row =
        |row: usize| columns.iter().map(|column| cell(row, column)).collect::<Vec<_>>().join(" ");
    (0..batch.num_rows()).map(row).collect()
}
