//! Categories: what can be switched on and off.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering};

use kymograph_protos::packet::Strings;
use kymograph_protos::{Recorder, StrId};

use super::{COMPILED_IN, PIPELINE};
use crate::hooks::{DECIDE, START_IF_DUE};
use crate::intern::INTERNER;

/// The category of everything that names no other.
pub static APP: Category = Category::new("app");

const OFF: u8 = 0;
const ON: u8 = 1;
/// Never asked for.
const NEW: u8 = 2;

/// All categories that were ever asked for.
static FIRST: AtomicPtr<Category> = AtomicPtr::new(ptr::null_mut());

/// A group of events that is recorded or not. Make it a `static`:
///
/// ```
/// use kymograph::{Category, scope};
///
/// static IO: Category = Category::new("io");
///
/// fn read() {
///     let _scope = scope!(IO, "read");
/// }
/// # read();
/// ```
/// A recording switches on the categories that its configuration wants;
/// [`Category::set_enabled`] overrides that while it runs.
#[derive(Debug)]
pub struct Category {
    name: &'static str,
    state: AtomicU8,
    listed: AtomicU8,
    id: AtomicU32,
    next: AtomicPtr<Category>,
}

impl Category {
    /// A category called `name`.
    pub const fn new(name: &'static str) -> Category {
        Category {
            name,
            state: AtomicU8::new(NEW),
            listed: AtomicU8::new(0),
            id: AtomicU32::new(0),
            next: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Whether its events are recorded now. One load when it is off.
    #[inline(always)]
    pub fn is_enabled(&'static self) -> bool {
        if !COMPILED_IN {
            return false;
        }
        match self.state.load(Ordering::Relaxed) {
            OFF => false,
            ON => true,
            _ => self.first_use(),
        }
    }

    /// Switches it on or off, until the recording ends or another one starts. This goes
    /// for all that has its name: other `Category`s, those of the C ABI, and domains of
    /// annotation libraries. Does nothing while no recording runs.
    pub fn set_enabled(&'static self, on: bool) {
        self.is_enabled();
        set_enabled(self.id(), on);
    }

    /// The id of its name; none while the interner has no room.
    pub(crate) fn id(&self) -> StrId {
        match self.id.load(Ordering::Relaxed) {
            0 => {
                let id = INTERNER.intern_static(StrId::NONE, StrId::NONE, self.name);
                self.id.store(id.0, Ordering::Relaxed);
                id
            }
            id => StrId(id),
        }
    }

    #[cold]
    fn first_use(&'static self) -> bool {
        if self.listed.swap(1, Ordering::AcqRel) == 0 {
            let this = ptr::from_ref(self).cast_mut();
            let mut first = FIRST.load(Ordering::Acquire);
            loop {
                self.next.store(first, Ordering::Relaxed);
                match FIRST.compare_exchange(first, this, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => break,
                    Err(now) => first = now,
                }
            }
        }
        // A recording that starts or ends meanwhile finds it in the list and knows better.
        let on = match self.id() {
            StrId::NONE => {
                DECIDE.get().and_then(|decide| decide(self.name.as_bytes())).unwrap_or(false)
            }
            id => PIPELINE.enabled(id),
        };
        let _ =
            self.state.compare_exchange(NEW, u8::from(on), Ordering::Relaxed, Ordering::Relaxed);
        self.state.load(Ordering::Relaxed) == ON
    }
}

/// Switches everything on or off that has the name `id`.
pub(crate) fn set_enabled(id: StrId, on: bool) {
    if id.is_none() || !START_IF_DUE.get().is_some_and(|start| start()) {
        return;
    }
    super::set_enabled(id, on);
    let name = INTERNER.text(id).bytes;
    each(|category| {
        if category.name.as_bytes() == name {
            category.state.store(u8::from(on), Ordering::Relaxed);
        }
    });
}

/// Switches every category on or off. Takes no lock and allocates nothing.
pub(crate) fn switch(wanted: impl Fn(&str) -> bool) {
    each(|category| category.state.store(u8::from(wanted(category.name)), Ordering::Relaxed));
}

/// In a forked child: every category asks again. Takes no lock and allocates nothing.
pub(crate) fn forget() {
    each(|category| category.state.store(NEW, Ordering::Relaxed));
}

fn each(mut f: impl FnMut(&'static Category)) {
    let mut next = FIRST.load(Ordering::Acquire);
    while !next.is_null() {
        // SAFETY: only `&'static` categories are listed.
        let category = unsafe { &*next };
        f(category);
        next = category.next.load(Ordering::Relaxed);
    }
}
