//! Statistics of columns, as data tools define them.

/// Sum, extremes, mean and deviation of some numbers.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Moments {
    /// How many there are.
    pub count: u64,
    /// Their sum.
    pub sum: i64,
    /// The least; 0 when there are none.
    pub min: i64,
    /// The greatest; 0 when there are none.
    pub max: i64,
    /// The sum of squared distances from the mean.
    squares: f64,
    mean: f64,
}

impl Moments {
    /// Takes in a number.
    pub fn add(&mut self, value: i64) {
        (self.min, self.max) = match self.count {
            0 => (value, value),
            _ => (self.min.min(value), self.max.max(value)),
        };
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        let apart = value as f64 - self.mean;
        self.mean += apart / self.count as f64;
        self.squares += apart * (value as f64 - self.mean);
    }

    /// The mean; NaN when there are none.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.count as f64
    }

    /// The standard deviation of a sample; NaN when there are fewer than two.
    pub fn deviation(&self) -> f64 {
        if self.count < 2 { f64::NAN } else { (self.squares / (self.count - 1) as f64).sqrt() }
    }
}

impl FromIterator<i64> for Moments {
    fn from_iter<I: IntoIterator<Item = i64>>(values: I) -> Moments {
        let mut moments = Moments::default();
        values.into_iter().for_each(|value| moments.add(value));
        moments
    }
}

/// The quantile of sorted numbers, between two of them on the straight line; NaN of none.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = q.clamp(0.0, 1.0) * last as f64;
    let below = place.floor();
    let (low, high) = (sorted[below as usize], sorted[(below as usize + 1).min(last)]);
    low + (high - low) * (place - below)
}

/// What `describe` says of a column in pandas.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Description {
    /// How many numbers there are.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// The standard deviation of a sample.
    pub std: f64,
    /// The least, the quartiles, the greatest.
    pub quartiles: [f64; 5],
}

/// Describes some numbers. All but the count is NaN when there are none.
pub fn describe(mut values: Vec<f64>) -> Description {
    values.sort_by(f64::total_cmp);
    let count = values.len();
    let mean = values.iter().sum::<f64>() / count as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let std = if count < 2 { f64::NAN } else { (squares / (count - 1) as f64).sqrt() };
    let quartiles = [0.0, 0.25, 0.5, 0.75, 1.0].map(|q| quantile(&values, q));
    Description { count: count as u64, mean, std, quartiles }
}

/// Rounds to decimal places as numpy does: ties to the even number.
pub fn round(value: f64, digits: u8) -> f64 {
    let scale = 10f64.powi(digits.into());
    let scaled = (value * scale).round_ties_even() / scale;
    if scaled.is_finite() { scaled } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_pandas_has_it() {
        let d = describe(vec![4.0, 1.0, 2.0, 3.0]);
        assert_eq!((d.count, d.mean), (4, 2.5));
        assert!((d.std - 1.2909944487358056).abs() < 1e-15);
        assert_eq!(d.quartiles, [1.0, 1.75, 2.5, 3.25, 4.0]);
        let one = describe(vec![7.0]);
        assert!(one.std.is_nan());
        assert_eq!(one.quartiles, [7.0; 5]);
        assert!(describe(Vec::new()).mean.is_nan());
        let moments: Moments = [3, 1, 2, 4].into_iter().collect();
        assert_eq!((moments.sum, moments.min, moments.max), (10, 1, 4));
        assert!((moments.deviation() - d.std).abs() < 1e-12);
    }

    #[test]
    fn rounding_is_numpys() {
        assert_eq!(round(0.125, 2), 0.12);
        assert_eq!(round(0.375, 2), 0.38);
        assert_eq!(round(53.555, 1), 53.6);
        assert!(round(f64::NAN, 2).is_nan());
    }
}
