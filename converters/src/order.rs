//! Sorting by code that all callers share.
//!
//! Each call of `slice::sort_by_key` with types of its own is 7 kB of code of its own, and there are
//! a hundred of them: for lists of ranks, names, steps and devices, for times of kernels and of
//! memory. These functions cost the caller some hundred bytes. What sorts all events of a trace
//! calls the standard library's.

use std::cmp::Ordering;

/// Stable sorting of lists that are short compared with the events of a trace.
pub trait Order<T> {
    /// As `slice::sort_by_key`, by numbers that are computed once for each item: of two, the first
    /// counts before the second. `!number` reverses the order, as `Reverse(number)` does.
    fn order_by_numbers<const N: usize>(&mut self, numbers: impl Fn(&T) -> [i64; N]);

    /// As `slice::sort_by`. Some nanoseconds more per comparison.
    fn order_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering);

    /// As `slice::sort_by_key`.
    fn order_by_key<K: Ord>(&mut self, key: impl Fn(&T) -> K) {
        self.order_by(|a, b| key(a).cmp(&key(b)));
    }
}

impl<T> Order<T> for [T] {
    fn order_by_numbers<const N: usize>(&mut self, numbers: impl Fn(&T) -> [i64; N]) {
        let keys = self.iter().map(numbers).zip(0..).collect();
        if let Some(order) = places_of(keys) {
            put(self, order);
        }
    }

    fn order_by(&mut self, mut compare: impl FnMut(&T, &T) -> Ordering) {
        let order = places(self.len(), &mut |a, b| compare(&self[a], &self[b]));
        put(self, order);
    }
}

/// For each place, which item belongs there; none if all are where they belong. Those of equal
/// numbers keep their order, since their places are compared then.
#[inline(never)]
fn places_of<const N: usize>(mut keys: Vec<([i64; N], usize)>) -> Option<Vec<usize>> {
    if keys.is_sorted() {
        return None;
    }
    keys.sort_unstable();
    Some(keys.into_iter().map(|(_, place)| place).collect())
}

/// For each place, which item belongs there.
fn places(len: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = (0..len).collect();
    places.sort_by(|a, b| compare(*a, *b));
    places
}

/// Puts each item in its place, one circle of exchanges after another.
fn put<T>(items: &mut [T], mut places: Vec<usize>) {
    for first in 0..items.len() {
        let mut at = first;
        loop {
            let from = std::mem::replace(&mut places[at], at);
            if from == first {
                break;
            }
            items.swap(at, from);
            at = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn orders_as_the_standard_library_does(keys in prop::collection::vec(0_u8..20, 0..100)) {
            let mut items: Vec<(u8, String)> =
                keys.iter().enumerate().map(|(at, key)| (*key, at.to_string())).collect();
            let mut expected = items.clone();
            expected.sort_by_key(|(key, _)| *key);
            items.order_by_key(|(key, _)| *key);
            prop_assert_eq!(&items, &expected);
            expected.sort_by(|a, b| b.1.cmp(&a.1));
            items.order_by(|a, b| b.1.cmp(&a.1));
            prop_assert_eq!(items, expected);
        }

        #[test]
        fn orders_by_numbers_as_the_standard_library_does(
            keys in prop::collection::vec((-3_i64..4, prop::sample::select(vec![i64::MIN, -1, 0, i64::MAX])), 0..100)
        ) {
            let mut items: Vec<_> = keys.into_iter().enumerate().collect();
            let mut expected = items.clone();
            expected.sort_by_key(|(_, (one, other))| (*one, std::cmp::Reverse(*other)));
            items.order_by_numbers(|(_, (one, other))| [*one, !*other]);
            prop_assert_eq!(&items, &expected);
            expected.sort_by_key(|(_, (_, other))| *other);
            items.order_by_numbers(|(_, (_, other))| [*other]);
            prop_assert_eq!(items, expected);
        }
    }
}
