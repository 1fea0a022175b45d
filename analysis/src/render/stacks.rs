//! Stacks for flame graphs: collapsed lines, and speedscope's JSON.

use arrow_array::RecordBatch;

use super::json::put;
use crate::metric::stacks::Weight;
use crate::table::Cells;

fn column(weight: Weight) -> &'static str {
    match weight {
        Weight::Host => "host_time",
        Weight::Device => "device_time",
    }
}

/// A line for each row of `stacks`: the stack, a space, its time in `unit` nanoseconds.
pub fn collapsed(batch: &RecordBatch, weight: Weight, unit: i64) -> String {
    let cells = Cells::of(batch);
    let mut out = String::new();
    for row in 0..batch.num_rows() {
        let time = cells.int(column(weight), row).unwrap_or(0) / unit.max(1);
        if time > 0 {
            out += &format!("{} {time}\n", cells.text("stack", row).unwrap_or_default());
        }
    }
    out
}

/// The file format of speedscope: a sampled profile for each rank, in nanoseconds.
pub fn speedscope(batch: &RecordBatch, weight: Weight) -> String {
    let cells = Cells::of(batch);
    let mut frames: Vec<&str> = Vec::new();
    let mut numbers = hashbrown::HashMap::new();
    let mut profiles: Vec<(i64, String, String, i64)> = Vec::new();
    for row in 0..batch.num_rows() {
        let time = cells.int(column(weight), row).unwrap_or(0);
        if time <= 0 {
            continue;
        }
        let stack = cells.text("stack", row).unwrap_or_default().split(';');
        let stack = stack.map(|name| {
            let number = *numbers.entry(name).or_insert_with(|| {
                frames.push(name);
                frames.len() - 1
            });
            number.to_string()
        });
        let stack = format!("[{}]", stack.collect::<Vec<_>>().join(","));
        let rank = cells.int("rank", row).unwrap_or(0);
        match profiles.last_mut().filter(|(own, ..)| *own == rank) {
            Some((_, samples, weights, end)) => {
                *samples += &format!(",{stack}");
                *weights += &format!(",{time}");
                *end += time;
            }
            None => profiles.push((rank, stack, time.to_string(), time)),
        }
    }
    let mut out = String::from(
        "{\"$schema\": \"https://www.speedscope.app/file-format-schema.json\",\n\
         \"exporter\": \"Kymograph\",\n\"shared\": {\"frames\": [",
    );
    for (n, name) in frames.iter().enumerate() {
        out += if n == 0 { "\n{\"name\": " } else { ",\n{\"name\": " };
        put(&mut out, name);
        out.push('}');
    }
    out += "]},\n\"profiles\": [";
    for (n, (rank, samples, weights, end)) in profiles.iter().enumerate() {
        let comma = if n == 0 { "" } else { "," };
        out += &format!(
            "{comma}\n{{\"type\": \"sampled\", \"name\": \"rank {rank}\", \"unit\": \
             \"nanoseconds\", \"startValue\": 0, \"endValue\": {end},\n\"samples\": \
             [{samples}],\n\"weights\": [{weights}]}}"
        );
    }
    out + "]}\n"
}
