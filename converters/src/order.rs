//! Sorting by code that all callers share.
//!
//! Each call of `slice::sort_by_key` with types of its own is 7 kB of code of its own, and there are
//! a hundred of them for lists of ranks, names, steps and devices. These functions cost the caller
//! some hundred bytes, and some nanoseconds more per comparison. What sorts events calls the
//! standard library's.

use std::cmp::Ordering;

/// Stable sorting of lists that are short compared with the events of a trace.
pub trait Order<T> {
    /// As `slice::sort_by`.
    fn order_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering);

    /// As `slice::sort_by_key`.
    fn order_by_key<K: Ord>(&mut self, key: impl Fn(&T) -> K) {
        self.order_by(|a, b| key(a).cmp(&key(b)));
    }
}

impl<T> Order<T> for [T] {
    fn order_by(&mut self, mut compare: impl FnMut(&T, &T) -> Ordering) {
        let order = places(self.len(), &mut |a, b| compare(&self[a], &self[b]));
        put(self, order);
    }
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
    }
}
