//! What only all ranks together can answer.

pub mod blame;
pub mod clocks;
mod collectives;
pub mod outliers;

use crate::Failure;
use crate::dataset::Dataset;
use crate::labels::Labels;
use arrow_array::RecordBatch;
use kymograph_analysis::Column;

/// A question: its name, what it answers, its columns and the function.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// Its name, as in `kymo analyze NAME DATASET`.
    pub name: &'static str,
    /// What it answers, in a line.
    pub answers: &'static str,
    /// The columns of its table.
    pub columns: &'static [Column],
    /// The table.
    pub table: fn(&Dataset, &Labels) -> Result<RecordBatch, Failure>,
}

/// All of them.
pub static ALL: &[Question] = &[blame::BLAME, blame::STEPS, clocks::CLOCKS];

/// The median; 0 of nothing.
fn median(values: &mut [i64]) -> i64 {
    if values.is_empty() {
        return 0;
    }
    let (middle, odd) = (values.len() / 2, values.len() % 2 == 1);
    let (below, at, _) = values.select_nth_unstable(middle);
    let at = *at;
    if odd {
        return at;
    }
    let before = below.iter().max().copied().unwrap_or(at);
    before + (at - before) / 2
}

/// The median of distances from the median, which a few outliers do not move: 1.4826 of them are
/// a standard deviation.
fn deviation(values: &[i64], median_of: i64) -> f64 {
    let mut distances: Vec<i64> = values.iter().map(|value| (value - median_of).abs()).collect();
    1.4826 * median(&mut distances) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&mut []), 0);
        assert_eq!(median(&mut [3, 1, 2]), 2);
        assert_eq!(median(&mut [4, 1, 3, 2]), 2);
        assert_eq!(deviation(&[1, 2, 3, 4, 100], 3), 1.4826);
    }
}
