//! The buffers of a source whose vendor fills what it asks for: a [`Pool`], what the vendor's two
//! callbacks do with it, and the reading of what comes back.

use std::ffi::c_int;
use std::sync::OnceLock;

use kymograph_protos::ColdRecorder;

use super::pool::{Bounds, Counts, Full, Pool};
use super::raw::Raw;
use super::walk::{self, Next};

/// See the module. A static per source.
pub(crate) struct Buffers {
    bounds: Bounds,
    pool: OnceLock<(Pool, Next)>,
}

impl Buffers {
    pub(crate) const fn new(bounds: Bounds) -> Buffers {
        Buffers { bounds, pool: OnceLock::new() }
    }

    /// Gets ready to serve a library, which steps over records by `next`; makes `warm` buffers.
    pub(crate) fn prepare(&self, next: Next, warm: usize) {
        self.pool.get_or_init(|| (Pool::new(self.bounds), next)).0.warm(warm);
    }

    fn pool(&self) -> Option<&Pool> {
        self.pool.get().map(|(pool, _)| pool)
    }

    /// What happened so far.
    pub(crate) fn counts(&self) -> Counts {
        self.pool().map_or_else(Counts::default, Pool::counts)
    }

    /// A buffer that was filled.
    pub(crate) fn take_full(&self) -> Option<Full> {
        self.pool()?.take_full()
    }

    /// Gives a buffer back when its records were read.
    pub(crate) fn recycle(&self, full: Full) {
        self.pool().into_iter().for_each(|pool| pool.recycle(full));
    }

    /// Gives all buffers back whose records are not to be read.
    pub(crate) fn discard(&self) {
        while let Some(full) = self.take_full() {
            self.recycle(full);
        }
    }

    /// A buffer for the library, and its size. At the bound there is none if it may be refused
    /// one, and otherwise a scratch buffer.
    pub(crate) fn provide(&self, may_refuse: bool) -> Option<(*mut u8, usize)> {
        let pool = self.pool()?;
        pool.take().or_else(|| if may_refuse { None } else { pool.take_scratch() })
    }

    /// The library gives a buffer back: to `theirs` if it is not one of ours, which returns
    /// whether it knew it. `deliver` sees what is in one of ours before anything else happens.
    ///
    /// # Safety
    /// Called by the library, which is done with the buffer and has written `used` bytes of it.
    pub(crate) unsafe fn complete(
        &self,
        (buffer, size, used): (*mut u8, usize, usize),
        deliver: impl FnOnce(Next, &Full),
        theirs: impl FnOnce() -> bool,
    ) {
        let Some((pool, next)) = self.pool.get() else { return };
        if !pool.accept(buffer, size) {
            if buffer.is_null() || !theirs() {
                pool.refuse(buffer);
            }
            return;
        }
        let full = Full { start: buffer, used: used.min(size) };
        deliver(*next, &full);
        // SAFETY: the library wrote the records.
        pool.put(full, size, |full| unsafe { walk::count(*next, full) });
    }
}

/// What a recording reads of the buffers of its source.
pub(crate) struct Reading {
    buffers: &'static Buffers,
    recorder: &'static dyn ColdRecorder,
    /// What the library returns at the end of a buffer.
    end: c_int,
    before: Counts,
    discarded: u64,
    /// Buffers whose records ended in something that the library could not step over.
    pub(crate) broken: u64,
}

impl Reading {
    pub(crate) fn new(
        buffers: &'static Buffers,
        recorder: &'static dyn ColdRecorder,
        end: c_int,
    ) -> Reading {
        let before = buffers.counts();
        Reading { buffers, recorder, end, before, discarded: 0, broken: 0 }
    }

    /// What happened since the recording began.
    pub(crate) fn counts(&self) -> Counts {
        let (now, before) = (self.buffers.counts(), self.before);
        Counts {
            requested: now.requested - before.requested,
            completed: now.completed - before.completed,
            refused: now.refused - before.refused,
            foreign: now.foreign - before.foreign,
            discarded: now.discarded - before.discarded,
        }
    }

    /// Counts records that there was no room for as lost. Returns how many there were so far.
    pub(crate) fn count_discarded(&mut self) -> u64 {
        let discarded = self.counts().discarded;
        self.recorder.lost(discarded - self.discarded);
        self.discarded = discarded;
        discarded
    }

    /// Hands the records of a buffer to `read`: see [`walk::records`] for `size` and `pace`.
    ///
    /// # Safety
    /// The library has written the buffer, and given it back.
    pub(crate) unsafe fn buffer(
        &mut self,
        full: &Full,
        size: impl Fn(u32) -> usize,
        read: impl FnMut(Raw<'_>),
        pace: impl FnMut(),
    ) {
        let Some((_, next)) = self.buffers.pool.get() else { return };
        // SAFETY: the caller's promise.
        let whole = unsafe { walk::records(*next, self.end, full, size, read, pace) };
        if !whole {
            // How many records that are is unknown: one at least.
            self.broken += 1;
            self.recorder.lost(1);
        }
    }
}
