//! Scopes: slices on the thread that opened them.

use std::marker::PhantomData;

use kymograph_protos::StrId;
use kymograph_protos::record::{Kind, Record};

use super::callsite::Callsite;
use super::draft::Draft;
use super::value::{Encoded, Value};
use crate::recorder::category::Category;
use crate::{clock, queue};

/// A slice that lasts until this is dropped. Made by [`crate::scope!`].
///
/// Scopes of a thread end in the reverse order of their beginning, as dropping does by
/// itself. One that is ended before scopes inside it ends them too (counted in
/// [`crate::Summary::misnested`]).
#[must_use = "the scope ends when this is dropped; bind it: `let _scope = scope!(…)`"]
#[derive(Debug)]
pub struct Scope {
    recorded: bool,
    /// It belongs to its thread.
    here: PhantomData<*const ()>,
}

impl Scope {
    /// A scope that records nothing.
    pub const fn none() -> Scope {
        Scope { recorded: false, here: PhantomData }
    }

    /// A scope with a name that is made at run time. Names are kept: make them few, and put
    /// what varies into arguments.
    #[inline]
    pub fn named(category: &'static Category, name: &str) -> Scope {
        if !category.is_enabled() {
            return Scope::none();
        }
        let mut draft = Draft::called(Kind::Begin, category.id(), name.as_bytes());
        Scope { recorded: draft.push(), here: PhantomData }
    }

    /// Ends it here and now, as dropping it does.
    #[inline]
    pub fn end(self) {}

    /// Ends it with arguments that were not known when it began.
    ///
    /// ```
    /// # use kymograph::scope;
    /// let query = scope!("query");
    /// let rows = 17;
    /// query.end_with([("rows", &rows), ("cached", &false)]);
    /// ```
    pub fn end_with<const N: usize>(mut self, args: [(&'static str, &dyn Value); N]) {
        if std::mem::take(&mut self.recorded) {
            let mut draft = Draft::new(Kind::End, StrId::NONE);
            draft.values(&args);
            draft.push();
        }
    }

    /// For the macro.
    #[doc(hidden)]
    #[inline(always)]
    pub fn open<const N: usize>(site: &'static Callsite<N>, values: [Encoded<'_>; N]) -> Scope {
        Scope { recorded: site.record(Kind::Begin, 0, None, values), here: PhantomData }
    }
}

impl Drop for Scope {
    #[inline(always)]
    fn drop(&mut self) {
        if self.recorded {
            end_here();
        }
    }
}

/// A call of its own: the drop of a scope that records nothing is then a comparison, where
/// it stands.
#[inline(never)]
fn end_here() {
    let head = Record { time: clock::ticks(), kind: Kind::End as u8, ..Record::default() };
    queue::with_producer(|producer| producer.end(&queue::POOL, head, 0, &[]));
}
