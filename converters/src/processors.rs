//! How many processors the work of a thread may take, and work that shares them.

use crate::order::Order as _;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

thread_local! {
    /// How many the work of this thread may take; 0 stands for all.
    static SHARE: Cell<usize> = const { Cell::new(0) };
}

/// How many processors there are to share work among, on this thread.
pub(crate) fn processors() -> usize {
    match SHARE.get() {
        0 => thread::available_parallelism().map_or(1, usize::from),
        share => share,
    }
}

/// Does `work` for each of many, on as many threads as there are processors, and gives the results
/// in the order of `all`. What has the largest `size` is begun first, since the last one to end
/// decides how long all of them take.
///
/// Reading or writing a trace within `work` takes its share of the processors: threads of its own
/// only where there are fewer traces than processors. More threads than that only wait for each
/// other.
///
/// # Panics
///
/// If `work` does.
pub fn each<'a, T: Sync, R: Send>(
    all: &'a [T],
    size: impl Fn(&T) -> u64,
    work: impl Fn(usize, &'a T) -> R + Sync,
) -> Vec<R> {
    let processors = processors();
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_cached_key(|at| std::cmp::Reverse(size(&all[*at])));
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(all.len()));
    let run = || {
        let before = SHARE.replace(share(processors, all.len()));
        while let Some(at) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = work(*at, &all[*at]);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((*at, result));
        }
        SHARE.set(before);
    };
    thread::scope(|scope| {
        // Without a further thread this one does more.
        let spawn = |_| thread::Builder::new().spawn_scoped(scope, run).is_ok();
        (1..processors.min(all.len())).all(spawn);
        run();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.order_by_numbers(|(at, _)| [*at as i64]);
    done.into_iter().map(|(_, result)| result).collect()
}

/// How many processors each of so many may take.
fn share(processors: usize, all: usize) -> usize {
    (processors / all.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_and_each_has_its_share() {
        for count in [0, 1, 2, 3, 50] {
            let all: Vec<usize> = (0..count).collect();
            let whole = processors();
            let results = each(&all, |n| *n as u64, |at, n| (at, *n, processors()));
            let expected: Vec<_> = all.iter().map(|n| (*n, *n, share(whole, count))).collect();
            assert_eq!(results, expected);
            assert_eq!(processors(), whole, "it holds only within");
        }
        assert_eq!([share(2, 4), share(2, 2), share(16, 4), share(8, 1)], [1, 1, 4, 8]);
    }
}
