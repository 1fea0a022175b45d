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
    /// What devices are called: `CUDA`, `XPU`, `HPU`.
    pub device: &'a str,
}

impl Default for TorchTable<'_> {
    fn default() -> Self {
        TorchTable {
            row_limit: 100,
            name_width: 55,
            shapes_width: 80,
            header: None,
            time_unit: None,
            device: "CUDA",
        }
    }
}

const WIDTH: usize = 12;

impl TorchTable<'_> {
    /// The table of the metric `operators`, its rows in their order.
    pub fn text(&self, batch: &RecordBatch) -> String {
        let cells = Cells::of(batch);
        let all = || 0..batch.num_rows();
        let micros = |column: &str, row| cells.float(column, row).unwrap_or(0.0) / 1e3;
        let int = |column: &str, row| cells.int(column, row).unwrap_or(0);
        let has_device = all().any(|row| micros("self_device_time", row) > 0.0);
        let has_memory = all().any(|row| cells.int("cpu_memory", row).is_some());
        let has_device_memory = all().any(|row| int("self_device_memory", row) > 0);
        let has_shapes = all().any(|row| cells.text("input_shapes", row).is_some());
        let name_of = |row| cells.text("name", row).unwrap_or_default();
        let shapes_of = |row| cells.text("input_shapes", row).unwrap_or_default();
        let widest = |of: &dyn Fn(usize) -> usize, most: usize| {
            (all().map(of).max().unwrap_or(0) + 4).min(most)
        };
        let mut lines = Lines(String::new());
        let mut headers: Vec<(String, usize)> =
            vec![("Name".into(), widest(&|row| name_of(row).chars().count(), self.name_width))];
        let mut column = |name: &str| headers.push((name.to_owned(), WIDTH));
        for name in ["Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"] {
            column(name);
        }
        let device = self.device;
        if has_device {
            column(&format!("Self {device}"));
            column(&format!("Self {device} %"));
            column(&format!("{device} total"));
            column(&format!("{device} time avg"));
        }
        if has_memory {
            column("CPU Mem");
            column("Self CPU Mem");
            if has_device_memory {
                column(&format!("{device} Mem"));
                column(&format!("Self {device} Mem"));
            }
        }
        column("# of Calls");
        if has_shapes {
            let width = widest(&|row| shapes_of(row).chars().count(), self.shapes_width);
            headers.push(("Input Shapes".into(), width));
        }
        let flops = |row: usize| cells.float("flops", row).unwrap_or(0.0);
        let least = all().map(flops).filter(|flops| *flops > 0.0).reduce(f64::min);
        let scale = least.map(scale);
        if let Some((_, unit)) = scale {
            headers.push((format!("Total {unit}"), WIDTH));
        }
        let line: String = headers.iter().map(|(_, width)| "-".repeat(*width) + "  ").collect();
        if let Some(header) = self.header {
            lines.put(&"=".repeat(line.len() - 2));
            lines.put(header);
        }
        lines.put(&line);
        lines.row(&headers, headers.iter().map(|(name, _)| name.clone()));
        lines.put(&line);
        let host: f64 = all().map(|row| micros("self_cpu_time", row)).sum();
        let counts = |row: &usize| {
            cells.text("device_type", *row) == Some("device")
                && int("is_user_annotation", *row) == 0
        };
        let on_device: f64 = all().filter(counts).map(|row| micros("self_device_time", row)).sum();
        let time = |micros: f64| self.time(micros);
        for row in all().take(self.row_limit) {
            let own = micros("self_cpu_time", row);
            let total = micros("cpu_time_total", row);
            let mut values = vec![
                cut(name_of(row), self.name_width),
                share(own, host),
                time(own),
                share(total, host),
                time(total),
                time(micros("cpu_time_avg", row)),
            ];
            if has_device {
                let own = micros("self_device_time", row);
                values.extend([
                    time(own),
                    share(own, on_device),
                    time(micros("device_time_total", row)),
                    time(micros("device_time_avg", row)),
                ]);
            }
            if has_memory {
                values.extend(["cpu_memory", "self_cpu_memory"].map(|name| bytes(int(name, row))));
                if has_device_memory {
                    let names = ["device_memory", "self_device_memory"];
                    values.extend(names.map(|name| bytes(int(name, row))));
                }
            }
            values.push(int("calls", row).to_string());
            if has_shapes {
                values.push(shapes_of(row).chars().take(self.shapes_width).collect());
            }
            if let Some((scale, _)) = scale {
                values.push(match flops(row) {
                    some if some > 0.0 => format!("{:8.3}", some * scale),
                    _ => "--".to_owned(),
                });
            }
            lines.row(&headers, values.into_iter());
        }
        lines.put(&line);
        lines.put(&format!("Self CPU time total: {}", time(host)));
        if has_device {
            lines.put(&format!("Self {device} time total: {}", time(on_device)));
        }
        lines.0
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

    fn row(&mut self, headers: &[(String, usize)], values: impl Iterator<Item = String>) {
        let cells = headers.iter().zip(values).map(|((_, width), value)| {
            let room = width.saturating_sub(value.chars().count());
            " ".repeat(room) + &value + "  "
        });
        let line: String = cells.collect();
        self.put(&line);
    }
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
