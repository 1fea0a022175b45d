//! How much memory is in use over time.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;

use super::records::{records, within};
use crate::table::Rows;
use crate::{Column, Error, Model, Options, Unit};

pub(super) const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::text("device", "whose memory it is: CPU, GPU0, …"),
    Column::moment("ts", "when it changes"),
    Column::int("allocated", "in use from then on").unit(Unit::Bytes),
    Column::int("reserved", "held by the allocator, in use or not").unit(Unit::Bytes),
];

/// Time, in use, reserved.
type Point = (i64, i64, i64);

pub(super) fn of_trace(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    let mut records = records(model, options.tensorboard)?;
    within(&mut records, model, options);
    let mut curves: BTreeMap<String, Vec<Point>> = BTreeMap::new();
    // The plugin leaves out what has no address.
    records.retain(|record| options.tensorboard.is_none() || record.address.is_some());
    for record in &records {
        if let Some((allocated, reserved)) = record.totals {
            let point = (record.time, allocated, reserved);
            curves.entry(record.device()).or_default().push(point);
        }
    }
    if options.tensorboard.is_some() {
        for curve in curves.values_mut() {
            *curve = sampled(steps(curve));
        }
    }
    let mut rows = Rows::new(COLUMNS);
    for (device, curve) in curves {
        for (time, allocated, reserved) in curve {
            rows.push([
                model.rank.into(),
                device.as_str().into(),
                time.into(),
                allocated.into(),
                reserved.into(),
            ]);
        }
    }
    rows.finish()
}

/// With a point at each change that has the values before it, so that a line through all of them
/// goes up and down in steps.
fn steps(curve: &[Point]) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::with_capacity(2 * curve.len());
    for (time, allocated, reserved) in curve {
        if let Some((_, before, reserved)) = points.last().copied() {
            points.push((*time, before, reserved));
        }
        points.push((*time, *allocated, *reserved));
    }
    points
}

/// How many points the plugin keeps.
const MOST: usize = 10_240;

/// The points that make the shape of a curve: of each of as many buckets the one that makes the
/// largest triangle with the point kept before it and the mean of the next bucket (Steinarsson,
/// "Downsampling Time Series for Visual Representation", 2013).
fn sampled(points: Vec<Point>) -> Vec<Point> {
    if points.len() <= MOST {
        return points;
    }
    let (inner, buckets) = (points.len() - 2, MOST - 2);
    // The first buckets have one more, where they cannot all be of one size.
    let begin = |n: usize| 1 + n * (inner / buckets) + n.min(inner % buckets);
    let flat = |point: &Point| (point.0 as f64 / 1e6, point.1 as f64 / 1_048_576.0);
    let mut kept = vec![points[0]];
    for n in 0..buckets {
        let next = match n + 1 {
            last if last == buckets => &points[points.len() - 1..],
            n => &points[begin(n)..begin(n + 1)],
        };
        let mean = |of: fn((f64, f64)) -> f64| {
            next.iter().map(|point| of(flat(point))).sum::<f64>() / next.len() as f64
        };
        let (a, c) = (flat(&kept[n]), (mean(|p| p.0), mean(|p| p.1)));
        let mut best = (points[begin(n)], -1.0);
        for point in &points[begin(n)..begin(n + 1)] {
            let b = flat(point);
            let area = ((a.0 - c.0) * (b.1 - a.1) - (a.0 - b.0) * (c.1 - a.1)).abs();
            if area > best.1 {
                best = (*point, area);
            }
        }
        kept.push(best.0);
    }
    kept.push(points[points.len() - 1]);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_goes_in_steps_and_keeps_its_ends_and_peaks() {
        assert_eq!(steps(&[(0, 1, 9), (5, 2, 9)]), [(0, 1, 9), (5, 1, 9), (5, 2, 9)]);
        let peak = |n: i64| if n == 7_777 { 1_000_000_000 } else { n % 7 };
        let points: Vec<Point> = (0..30_001).map(|n| (n * 1_000_000, peak(n), 0)).collect();
        let kept = sampled(points.clone());
        assert_eq!(kept.len(), MOST);
        assert_eq!((kept[0], kept[MOST - 1]), (points[0], points[30_000]));
        assert!(kept.contains(&points[7_777]));
    }
}
