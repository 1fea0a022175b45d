//! What several metrics derive from a model.

use std::any::Any;
use std::cell::RefCell;
use std::sync::Arc;

/// Values by their type and a key.
#[derive(Debug, Default)]
pub(super) struct Memo(RefCell<Vec<Box<dyn Any + Send + Sync>>>);

impl Memo {
    /// The value of type `T` for this key, which is made when it is first asked for.
    pub(super) fn get<K, T>(&self, key: K, make: impl FnOnce() -> T) -> Arc<T>
    where
        K: PartialEq + Send + Sync + 'static,
        T: Send + Sync + 'static,
    {
        let known = self.0.borrow().iter().find_map(|entry| {
            let (own, value) = entry.downcast_ref::<(K, Arc<T>)>()?;
            (*own == key).then(|| Arc::clone(value))
        });
        known.unwrap_or_else(|| {
            // `make` may ask for other values.
            let value = Arc::new(make());
            self.0.borrow_mut().push(Box::new((key, Arc::clone(&value))));
            value
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
}
