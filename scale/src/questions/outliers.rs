//! Which ranks, hosts or switches differ from the others in a column of a metric.

use super::{deviation, median};
use crate::Failure;
use crate::labels::Labels;
use arrow_array::RecordBatch;
use kymograph_analysis::Column;
use kymograph_analysis::table::{Cells, Rows};
use std::collections::BTreeMap;

/// The columns.
pub const COLUMNS: &[Column] = &[
    Column::text("name", "the rank, the host, the switch"),
    Column::int("ranks", "how many ranks it has"),
    Column::float("value", "the mean of the metric's column over its rows"),
    Column::float("median", "the median over all of them"),
    Column::float("difference", "how much more than that"),
    Column::float("deviations", "the same, in deviations of the others; the largest first"),
    Column::text("verdict", "outlier: more than six deviations, and a hundredth of the median"),
];

/// Numbers as whole ones, for medians.
const SCALE: f64 = 1000.0;

/// The table of a metric, by rank or by a label.
///
/// # Errors
///
/// When the metric has no such column, or no rows of ranks.
pub fn table(
    batch: &RecordBatch,
    column: &str,
    by: &str,
    labels: &Labels,
) -> Result<RecordBatch, Failure> {
    let schema = batch.schema();
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    for needed in ["rank", column] {
        if !names.contains(&needed) {
            let names = names.join(", ");
            return Err(Failure(format!("this metric has no column `{needed}`: {names}")));
        }
    }
    if by != "rank" && !labels.names().contains(&by) {
        return Err(Failure(format!(
            "no rank has a label `{by}`: --labels names a file with some"
        )));
    }
    let cells = Cells::of(batch);
    // Sum, rows and ranks.
    let mut groups: BTreeMap<(i64, String), (f64, u64, std::collections::BTreeSet<i64>)> =
        BTreeMap::new();
    for row in 0..batch.num_rows() {
        let (Some(rank), Some(value)) = (cells.int("rank", row), cells.float(column, row)) else {
            continue;
        };
        let key = match by {
            "rank" => Some((rank, rank.to_string())),
            label => labels.get(label, rank).map(|name| (0, name.to_owned())),
        };
        let Some(key) = key else { continue };
        let of = groups.entry(key).or_default();
        of.0 += value;
        of.1 += 1;
        of.2.insert(rank);
    }
    if groups.len() < 3 {
        let what = "there are fewer than three to compare";
        return Err(Failure(format!("{column} by {by}: {what}")));
    }
    let means: Vec<f64> = groups.values().map(|(sum, rows, _)| sum / *rows as f64).collect();
    let mut whole: Vec<i64> = means.iter().map(|mean| (mean * SCALE) as i64).collect();
    let middle = median(&mut whole);
    let spread = deviation(&whole, middle) / SCALE;
    let middle = middle as f64 / SCALE;
    let mut lines: Vec<_> = groups.into_iter().zip(means).collect();
    lines.sort_by(|(_, a), (_, b)| (b - middle).abs().total_cmp(&(a - middle).abs()));
    let mut rows = Rows::new(COLUMNS);
    for (((_, name), (_, _, ranks)), mean) in lines {
        let difference = mean - middle;
        let far = difference.abs() > 6.0 * spread && difference.abs() > 0.01 * middle.abs();
        rows.push([
            name.as_str().into(),
            ranks.len().into(),
            mean.into(),
            middle.into(),
            difference.into(),
            Some(difference / spread).filter(|_| spread > 0.0).into(),
            Some("outlier").filter(|_| far).into(),
        ]);
    }
    Ok(rows.finish()?)
}
