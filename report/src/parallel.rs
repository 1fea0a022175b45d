//! Work that is divided among threads.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many threads this machine carries out at a time.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// What `of` gives for each number below `count`, in their order, by at most so many threads, this
/// one among them. Each takes the lowest number that is left, so that what takes long should come
/// first. A panic of `of` comes out of this call.
pub fn each<T: Send>(count: usize, threads: usize, of: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(count));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                break;
            }
            let given = of(number);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((number, given));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(count) {
            // Where there is no thread to be had, the others do its part.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, given)| given).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_their_order() {
        let squares: Vec<usize> = (0..100).map(|n| n * n).collect();
        for threads in [0, 1, 3, 200] {
            assert_eq!(each(100, threads, |n| n * n), squares);
        }
        assert!(each(0, 4, |n| n).is_empty());
    }
}
