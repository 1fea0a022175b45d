//! The arguments of one event, gathered on the stack.

use std::mem::MaybeUninit;

use kymograph_protos::{ArgType, Extra, StrId};

use super::guard::arg_left_out;
use super::session::Session;
use super::table::Interned;
use super::text::{MAX_INTERNED, clip};

/// Arguments of one event at most.
const MAX: usize = 48;

/// Length in bytes of a text that was cut.
pub(crate) static FULL_LENGTH: Interned = Interned::known(b"full length");
/// NVTX category, name or number.
pub(crate) static CATEGORY: Interned = Interned::known(b"category");
/// 0xAARRGGBB.
pub(crate) static COLOR: Interned = Interned::known(b"color");
/// The value of an event that carries one value.
pub(crate) static PAYLOAD: Interned = Interned::known(b"payload");

/// Arguments. Not initialised before use, as most events have one or two.
pub(crate) struct Args {
    count: usize,
    list: [MaybeUninit<Extra>; MAX],
}

impl Args {
    #[inline(always)]
    pub(crate) const fn new() -> Args {
        Args { count: 0, list: [const { MaybeUninit::uninit() }; MAX] }
    }

    /// The arguments so far.
    #[inline(always)]
    pub(crate) fn extras(&self) -> &[Extra] {
        // SAFETY: `push` wrote the first `count` elements, and `MaybeUninit<Extra>` has the
        // layout of `Extra`.
        unsafe { std::slice::from_raw_parts(self.list.as_ptr().cast(), self.count) }
    }

    /// Adds an argument, unless there are too many.
    pub(crate) fn push(&mut self, extra: Extra) {
        match self.list.get_mut(self.count) {
            Some(place) => {
                place.write(extra);
                self.count += 1;
            }
            None => arg_left_out(),
        }
    }

    /// Adds a named argument; one whose name has no id is left out.
    pub(crate) fn add(&mut self, key: StrId, ty: ArgType, bits: u64) {
        if key.is_none() {
            return arg_left_out();
        }
        self.push(Extra::new(key, ty, bits));
    }

    pub(crate) fn unsigned(&mut self, key: StrId, value: u64) {
        self.add(key, ArgType::U64, value);
    }

    pub(crate) fn signed(&mut self, key: StrId, value: i64) {
        self.add(key, ArgType::I64, value.cast_unsigned());
    }

    /// Adds a string; its value is interned, as a record has room for one text by value
    /// only, and that is the name's.
    pub(crate) fn string(&mut self, session: &Session, key: StrId, value: &[u8]) {
        let id = session.intern_or_wait(StrId::NONE, clip(value, MAX_INTERNED));
        if id.is_none() {
            return arg_left_out();
        }
        self.add(key, ArgType::Str, u64::from(id.0));
    }

    /// Adds the beginning or the end of a flow.
    pub(crate) fn add_flow(&mut self, ty: ArgType, flow: u64) {
        self.push(Extra::new(StrId::NONE, ty, flow));
    }
}
