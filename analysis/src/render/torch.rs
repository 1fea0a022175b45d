//! `table()` of PyTorch's profiler, to the character.

use arrow_array::RecordBatch;

use crate::table::Cells;

/// What can be chosen of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TorchTable<'a> {
    /// How many rows are shown at most.
    pub row_limit: usize,
    /// How wide the column of names may be.
    pub name_width: usize,
    /// How wide the column of shapes may be.
    pub shapes_width: usize,
    /// A line above the table.
    pub header: Option<&'a str>,
    /// `s`, `ms` or `us` for all times; each as it fits without.
    pub time_unit: Option<&'a str>,
}

impl Default for TorchTable<'_> {
    fn default() -> Self {
        TorchTable {
            row_limit: 100,
            name_width: 55,
            shapes_width: 80,
            header: None,
            time_unit: None,
        }
    }
}

const WIDTH: usize = 12;

/// The rows of `operators`, in microseconds.
#[derive(Clone, Copy)]
struct Rows<'a>(Cells<'a>, usize);

impl<'a> Rows<'a> {
    fn all(self) -> std::ops::Range<usize> {
        0..self.1
    }

    fn micros(self, column: &str, row: usize) -> f64 {
        self.0.float(column, row).unwrap_or(0.0) / 1e3
    }

    fn int(self, column: &str, row: usize) -> i64 {
        self.0.int(column, row).unwrap_or(0)
    }

    fn text(self, column: &str, row: usize) -> &'a str {
        self.0.text(column, row).unwrap_or_default()
    }

    fn flops(self, row: usize) -> f64 {
        self.0.float("flops", row).unwrap_or(0.0)
    }

    /// How wide a column of texts is.
    fn width(self, column: &str, most: usize) -> usize {
        let widest = self.all().map(|row| self.text(column, row).chars().count()).max();
        (widest.unwrap_or(0) + 4).min(most)
    }

    /// What devices are called: `CUDA`, `XPU`, `HPU`.
    fn device(self) -> &'a str {
        let kinds = self.all().map(|row| self.text("device_type", row));
        kinds.into_iter().find(|kind| *kind != "CPU").unwrap_or("CUDA")
    }

    /// What shares of time on the host, and on devices, are shares of.
    fn totals(self) -> (f64, f64) {
        let host = self.all().map(|row| self.micros("self_cpu_time", row)).sum();
        let counts = |row: &usize| {
            self.text("device_type", *row) != "CPU" && self.int("is_user_annotation", *row) == 0
        };
        let device = self.all().filter(counts).map(|row| self.micros("self_device_time", row));
        (host, device.sum())
    }
}

/// A column: its header, its width, its cells.
type Printed<'a> = (String, usize, Box<dyn Fn(usize) -> String + 'a>);

impl TorchTable<'_> {
    /// The table of the metric `operators`, its rows in their order.
    pub fn text(&self, batch: &RecordBatch) -> String {
        let rows = Rows(Cells::of(batch), batch.num_rows());
        let (host, on_device) = rows.totals();
        let columns = self.columns(rows);
        let mut lines = Lines(String::new());
        let line: String = columns.iter().map(|(_, width, _)| "-".repeat(*width) + "  ").collect();
        if let Some(header) = self.header {
            lines.put(&"=".repeat(line.len() - 2));
            lines.put(header);
        }
        lines.put(&line);
        lines.row(&columns, |(header, ..)| header.clone());
        lines.put(&line);
        for row in rows.all().take(self.row_limit) {
            lines.row(&columns, |(.., cell)| cell(row));
        }
        lines.put(&line);
        lines.put(&format!("Self CPU time total: {}", self.time(host)));
        if has_device_time(rows) {
            lines.put(&format!("Self {} time total: {}", rows.device(), self.time(on_device)));
        }
        lines.0
    }

    fn columns<'a>(&'a self, rows: Rows<'a>) -> Vec<Printed<'a>> {
        let (host, on_device) = rows.totals();
        let time = move |column: &'static str| -> Box<dyn Fn(usize) -> String + 'a> {
            Box::new(move |row| self.time(rows.micros(column, row)))
        };
        let part = move |column: &'static str, whole: f64| -> Box<dyn Fn(usize) -> String + 'a> {
            Box::new(move |row| share(rows.micros(column, row), whole))
        };
        let memory = move |column: &'static str| -> Box<dyn Fn(usize) -> String + 'a> {
            Box::new(move |row| bytes(rows.int(column, row)))
        };
        let device = rows.device();
        let name = move |row| cut(rows.text("name", row), self.name_width);
        let name_width = rows.width("name", self.name_width);
        let mut columns: Vec<Printed<'a>> = vec![("Name".into(), name_width, Box::new(name))];
        let mut put = |header: String, cell| columns.push((header, WIDTH, cell));
        put("Self CPU %".into(), part("self_cpu_time", host));
        put("Self CPU".into(), time("self_cpu_time"));
        put("CPU total %".into(), part("cpu_time_total", host));
        put("CPU total".into(), time("cpu_time_total"));
        put("CPU time avg".into(), time("cpu_time_avg"));
        if has_device_time(rows) {
            put(format!("Self {device}"), time("self_device_time"));
            put(format!("Self {device} %"), part("self_device_time", on_device));
            put(format!("{device} total"), time("device_time_total"));
            put(format!("{device} time avg"), time("device_time_avg"));
        }
        if rows.all().any(|row| rows.0.int("cpu_memory", row).is_some()) {
            put("CPU Mem".into(), memory("cpu_memory"));
            put("Self CPU Mem".into(), memory("self_cpu_memory"));
            if rows.all().any(|row| rows.int("self_device_memory", row) > 0) {
                put(format!("{device} Mem"), memory("device_memory"));
                put(format!("Self {device} Mem"), memory("self_device_memory"));
            }
        }
        put("# of Calls".into(), Box::new(move |row| rows.int("calls", row).to_string()));
        self.by_shapes(rows, &mut columns);
        columns
    }

    /// What there is where the trace has shapes.
    fn by_shapes<'a>(&'a self, rows: Rows<'a>, columns: &mut Vec<Printed<'a>>) {
        if rows.all().any(|row| rows.0.text("input_shapes", row).is_some()) {
            let width = rows.width("input_shapes", self.shapes_width);
            let shapes =
                move |row| rows.text("input_shapes", row).chars().take(self.shapes_width).collect();
            columns.push(("Input Shapes".into(), width, Box::new(shapes)));
        }
        let some = rows.all().map(move |row| rows.flops(row)).filter(|flops| *flops > 0.0);
        if let Some((scale, unit)) = some.reduce(f64::min).map(scale) {
            let flops = move |row| match rows.flops(row) {
                some if some > 0.0 => format!("{:8.3}", some * scale),
                _ => "--".to_owned(),
            };
            columns.push((format!("Total {unit}"), WIDTH, Box::new(flops)));
        }
    }

    fn time(&self, micros: f64) -> String {
        let unit = self.time_unit.unwrap_or(match micros {
            1e6.. => "s",
            1e3.. => "ms",
            _ => "us",
        });
        match unit {
            "s" => format!("{:.3}s", micros / 1e6),
            "ms" => format!("{:.3}ms", micros / 1e3),
            _ => format!("{micros:.3}us"),
        }
    }
}

struct Lines(String);

impl Lines {
    fn put(&mut self, line: &str) {
        self.0 += line;
        self.0.push('\n');
    }

    fn row(&mut self, columns: &[Printed<'_>], cell: impl Fn(&Printed<'_>) -> String) {
        let cells = columns.iter().map(|column| {
            let text = cell(column);
            " ".repeat(column.1.saturating_sub(text.chars().count())) + &text + "  "
        });
        let line: String = cells.collect();
        self.put(&line);
    }
}

fn has_device_time(rows: Rows<'_>) -> bool {
    rows.all().any(|row| rows.micros("self_device_time", row) > 0.0)
}

fn cut(name: &str, width: usize) -> String {
    if name.chars().count() >= width - 3 {
        name.chars().take(width - 3).collect::<String>() + "..."
    } else {
        name.to_owned()
    }
}

fn share(part: f64, whole: f64) -> String {
    if whole == 0.0 { "NaN".to_owned() } else { format!("{:.2}%", part * 100.0 / whole) }
}

/// What numbers are multiplied with so that the least is not below 1, and what they are then.
fn scale(least: f64) -> (f64, &'static str) {
    const UNITS: [&str; 6] = ["FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs"];
    let thousands = (least.log10() / 3.0).clamp(0.0, 5.0).floor();
    (10f64.powf(thousands * -3.0), UNITS[thousands as usize])
}

fn bytes(n: i64) -> String {
    let size = n.unsigned_abs();
    let x = n as f64;
    match size {
        0x4000_0000.. => format!("{:.2} GB", x / f64::from(1 << 30)),
        0x10_0000.. => format!("{:.2} MB", x / f64::from(1 << 20)),
        0x400.. => format!("{:.2} KB", x / 1024.0),
        _ => format!("{n} B"),
    }
}
