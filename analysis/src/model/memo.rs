//! What several metrics derive from a model.

use std::any::Any;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Values by their type and a key.
#[derive(Debug, Default)]
pub(super) struct Memo(Mutex<Vec<Box<dyn Any + Send + Sync>>>);

/// A value that is made outside of the list's lock: making it may ask for other values.
type Slot<T> = Arc<OnceLock<Arc<T>>>;

impl Memo {
    /// The value of type `T` for this key, which is made when it is first asked for. Other threads
    /// that ask for it meanwhile wait.
    pub(super) fn get<K, T>(&self, key: K, make: impl FnOnce() -> T) -> Arc<T>
    where
        K: PartialEq + Send + Sync + 'static,
        T: Send + Sync + 'static,
    {
        Arc::clone(self.slot(key).get_or_init(|| Arc::new(make())))
    }

    fn slot<K, T>(&self, key: K) -> Slot<T>
    where
        K: PartialEq + Send + Sync + 'static,
        T: Send + Sync + 'static,
    {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = slots.iter().find_map(|entry| {
            let (own, slot) = entry.downcast_ref::<(K, Slot<T>)>()?;
            (*own == key).then(|| Arc::clone(slot))
        });
        known.unwrap_or_else(|| {
            let slot = Slot::<T>::default();
            slots.push(Box::new((key, Arc::clone(&slot))));
            slot
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_made_once_for_a_type_and_a_key() {
        let memo = Memo::default();
        assert_eq!(*memo.get(1, || "one"), "one");
        assert_eq!(*memo.get(1, || "not made"), "one");
        assert_eq!(*memo.get(2, || "two"), "two");
        assert_eq!(*memo.get(1, || 1.0), 1.0);
        assert_eq!(*memo.get(3, || *memo.get(2, || "not made")), "two");
    }

    #[test]
    fn threads_get_the_same_value() {
        let memo = Memo::default();
        let made = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    memo.get((), || made.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                });
            }
        });
        assert_eq!(made.into_inner(), 1);
    }
}
