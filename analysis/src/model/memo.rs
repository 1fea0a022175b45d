//! What several metrics derive from a model.

use std::any::Any;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// Values by their type and a key.
#[derive(Debug, Default)]
pub(super) struct Memo(Mutex<Vec<Box<dyn Any + Send + Sync>>>);

impl Memo {
    /// The value of type `T` for this key, which is made when it is first asked for. Other threads
    /// that ask for it meanwhile wait.
    pub(super) fn get<K, T>(&self, key: K, make: impl FnOnce() -> T) -> Arc<T>
    where
        K: PartialEq + Send + Sync + 'static,
        T: Send + Sync + 'static,
    {
        // Made outside of the list's lock: making it may ask for other values.
        let slot: Arc<OnceLock<Arc<T>>> = self.slot(key);
        Arc::clone(slot.get_or_init(|| Arc::new(make())))
    }

    /// Likewise, but the value is forgotten when nobody holds it any more.
    pub(super) fn while_held<K, T>(&self, key: K, make: impl FnOnce() -> T) -> Arc<T>
    where
        K: PartialEq + Send + Sync + 'static,
        T: Send + Sync + 'static,
    {
        let slot: Arc<Mutex<Weak<T>>> = self.slot(key);
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        slot.upgrade().unwrap_or_else(|| {
            let value = Arc::new(make());
            *slot = Arc::downgrade(&value);
            value
        })
    }

    fn slot<K, S>(&self, key: K) -> Arc<S>
    where
        K: PartialEq + Send + Sync + 'static,
        S: Default + Send + Sync + 'static,
    {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = slots.iter().find_map(|entry| {
            let (own, slot) = entry.downcast_ref::<(K, Arc<S>)>()?;
            (*own == key).then(|| Arc::clone(slot))
        });
        known.unwrap_or_else(|| {
            let slot = Arc::<S>::default();
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
    fn what_nobody_holds_is_made_again() {
        let memo = Memo::default();
        let held = memo.while_held(1, || "one");
        assert_eq!(*memo.while_held(1, || "not made"), "one");
        drop(held);
        assert_eq!(*memo.while_held(1, || "another"), "another");
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
