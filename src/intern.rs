//! The interner: strings to dense ids, without a lock once a string is known.
//!
//! ```text
//!  table (open addressing)          entries (segments that never move)
//!  ┌──────────┬───────┐             ┌──────┬─────┬──────────┬─────┐
//!  │ hash 32b │ id 32b│ ──────────► │ text │ len │ category │ arg │
//!  └──────────┴───────┘             └──────┴─────┴──────────┴─────┘
//! ```
//! A lookup reads the table and compares the text. An unknown string is added under a
//! spin lock that is only ever *tried*: who cannot get it (contention, a signal handler
//! inside an insertion) or finds the budget spent gets no id, and the string travels by
//! value. So interning does not block, and memory is bounded however many names a program
//! invents. Only names that are given once and cannot travel by value (of arguments,
//! categories, call sites) are worth waiting for, for [`TIMEOUT`]: a thread that adds one takes
//! microseconds, but may be off its processor just then.
//!
//! An id stands for a text *with* its category and the name of its first argument: that
//! is all the writer needs to know of a call site, under one number.

use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence,
};
use std::time::{Duration, Instant};

use kymograph_protos::StrId;
use kymograph_protos::packet::{Strings, Text};

use crate::guard::uncancelled;
use crate::queue::{self, Named};

/// Ids at most, and bytes of text at most.
const MAX_ENTRIES: u32 = if cfg!(miri) { 200 } else { (1 << 16) - 1 };
/// Of these, ids for the names that a program's code contains: of categories, call sites
/// and arguments. Names made at run time do not take them away.
const RESERVED: u32 = MAX_ENTRIES / 8;
const MAX_BYTES: usize = 16 << 20;
/// Longest text that is interned; longer ones count against the budget too fast.
const MAX_TEXT: usize = if cfg!(miri) { 2 << 10 } else { 2 << 20 };
/// Entries in the first segment; each next one doubles.
const FIRST_SEGMENT: u32 = 64;
const SEGMENTS: usize = 12;
const FIRST_TABLE: usize = 256;
/// How long to wait for a thread that adds a string.
const TIMEOUT: Duration = Duration::from_millis(100);

/// The interner of this process.
pub static INTERNER: Interner = Interner::new();

#[derive(Clone, Copy, Debug)]
struct Entry {
    text: &'static [u8],
    category: StrId,
    arg: StrId,
}

#[derive(Debug)]
struct Table {
    mask: usize,
    cells: &'static [AtomicU64],
    /// The one before it, so that who looks for lost memory finds it.
    _smaller: Option<&'static Table>,
}

/// See the module. All methods may be called from any thread and any signal handler.
#[derive(Debug)]
pub struct Interner {
    table: AtomicPtr<Table>,
    segments: [AtomicPtr<Entry>; SEGMENTS],
    count: AtomicU32,
    /// Which thread adds a string (see [`me`]); 0: none.
    busy: AtomicUsize,
    bytes: AtomicU64,
    /// Where the next text is copied to. Under the lock.
    arena: AtomicPtr<u8>,
    arena_left: AtomicU64,
    /// Whether another process has to know every name: see `queue/names.rs`.
    published: AtomicBool,
}

impl Default for Interner {
    fn default() -> Self {
        Self::new()
    }
}

impl Interner {
    /// An interner that knows nothing.
    pub const fn new() -> Interner {
        Interner {
            table: AtomicPtr::new(ptr::null_mut()),
            segments: [const { AtomicPtr::new(ptr::null_mut()) }; SEGMENTS],
            count: AtomicU32::new(0),
            busy: AtomicUsize::new(0),
            bytes: AtomicU64::new(0),
            arena: AtomicPtr::new(ptr::null_mut()),
            arena_left: AtomicU64::new(0),
            published: AtomicBool::new(false),
        }
    }

    /// The id of `text` within `category`, whose first argument is called `arg`.
    /// `StrId::NONE` when it cannot be interned.
    #[inline]
    pub fn intern(&self, category: StrId, arg: StrId, text: &[u8]) -> StrId {
        let hash = hash(category, arg, text);
        match self.find(hash, category, arg, text) {
            Some(id) => id,
            None => self.insert(hash, category, arg, text, None, Duration::ZERO),
        }
    }

    /// As [`Interner::intern`] for a text that cannot travel by value, or is used again and
    /// again: waits should another thread be adding one.
    pub fn intern_or_wait(&self, category: StrId, text: &[u8]) -> StrId {
        let hash = hash(category, StrId::NONE, text);
        match self.find(hash, category, StrId::NONE, text) {
            Some(id) => id,
            None => self.insert(hash, category, StrId::NONE, text, None, TIMEOUT),
        }
    }

    /// As [`Interner::intern_or_wait`], keeping the pointer instead of copying the text.
    pub fn intern_static(&self, category: StrId, arg: StrId, text: &'static str) -> StrId {
        let text = text.as_bytes();
        let hash = hash(category, arg, text);
        match self.find(hash, category, arg, text) {
            Some(id) => id,
            None => self.insert(hash, category, arg, text, Some(text), TIMEOUT),
        }
    }

    /// Publishes all names, those there are and each that comes. Returns false if there is no
    /// room for them.
    pub fn publish(&self) -> bool {
        if !self.lock() && !self.lock_within(TIMEOUT) {
            return false;
        }
        let all = (1..=self.count()).map(StrId).all(|id| {
            let Text { bytes: text, category, arg } = self.text(id);
            queue::publish(Named { id, category, arg, text })
        });
        self.published.store(all, Ordering::Relaxed);
        self.busy.store(0, Ordering::Release);
        all
    }

    /// Publishes what a thread is called that has recorded nothing.
    #[cfg(feature = "inject")]
    pub fn publish_thread(&self, tid: u32, name: &[u8]) {
        if self.lock() || self.lock_within(TIMEOUT) {
            queue::publish_thread(tid, name);
            self.busy.store(0, Ordering::Release);
        }
    }

    /// Adds the name that another process gave this id, from which ids go on without gaps.
    /// Returns false, and adds nothing, if this is not the next one.
    pub fn define(&self, name: Named<'_>) -> bool {
        let Named { id, category, arg, text } = name;
        if id.0 != self.count() + 1 || !self.lock() {
            return false;
        }
        let hash = hash(category, arg, text);
        let entry = Entry { text: &[], category, arg };
        let added = self.add(hash, entry, text, Some(None));
        self.busy.store(0, Ordering::Release);
        added == Some(id)
    }

    /// How many ids were given; also the last one.
    pub fn count(&self) -> u32 {
        self.count.load(Ordering::Acquire)
    }

    /// In a forked child: the thread that held the lock does not exist here. An insertion that was
    /// cut off left at most an id without a name.
    pub fn after_fork(&self) {
        self.busy.store(0, Ordering::Release);
    }

    #[inline]
    fn find(&self, hash: u32, category: StrId, arg: StrId, text: &[u8]) -> Option<StrId> {
        let table = self.table.load(Ordering::Acquire);
        if table.is_null() {
            return None;
        }
        // SAFETY: tables are published whole and never freed.
        let table = unsafe { &*table };
        let mut at = hash as usize & table.mask;
        loop {
            let cell = table.cells[at].load(Ordering::Acquire);
            if cell == 0 {
                return None;
            }
            if (cell >> 32) as u32 == hash {
                let id = cell as u32;
                // SAFETY: the cell was published after its entry.
                let entry = unsafe { &*self.entry(id) };
                if entry.category == category && entry.arg == arg && same(entry.text, text) {
                    return Some(StrId(id));
                }
            }
            at = (at + 1) & table.mask;
        }
    }

    /// Where the entry of `id` (from 1) lies. Its segment must exist.
    #[inline]
    fn entry(&self, id: u32) -> *mut Entry {
        let (segment, offset) = place(id);
        // SAFETY: the segment holds `FIRST_SEGMENT << segment` entries and `offset` is less.
        unsafe { self.segments[segment].load(Ordering::Acquire).add(offset) }
    }

    #[cold]
    fn insert(
        &self,
        hash: u32,
        category: StrId,
        arg: StrId,
        text: &[u8],
        kept: Option<&'static [u8]>,
        timeout: Duration,
    ) -> StrId {
        if text.len() > MAX_TEXT || !self.lock() && !self.lock_within(timeout) {
            return StrId::NONE;
        }
        // Somebody may have been faster.
        let id = match self.find(hash, category, arg, text) {
            Some(id) => Some(id),
            None => self.add(hash, Entry { text: &[], category, arg }, text, kept.map(Some)),
        };
        self.busy.store(0, Ordering::Release);
        id.unwrap_or(StrId::NONE)
    }

    /// Gets the lock if that takes no more than a moment.
    fn lock(&self) -> bool {
        let me = me();
        (0..200).any(|_| {
            let got = self
                .busy
                .compare_exchange_weak(0, me, Ordering::Acquire, Ordering::Relaxed)
                .is_ok();
            if !got {
                std::hint::spin_loop();
            }
            got
        })
    }

    /// Gets it when who has it lets go, for so long at most. Not if that is this very thread,
    /// below us in a signal handler.
    #[cold]
    fn lock_within(&self, timeout: Duration) -> bool {
        let since = Instant::now();
        while since.elapsed() < timeout && self.busy.load(Ordering::Relaxed) != me() {
            uncancelled(|| std::thread::sleep(Duration::from_micros(20)));
            if self.lock() {
                return true;
            }
        }
        false
    }

    /// Under the lock: adds an entry, in an order that leaves everything usable if the
    /// process forks at any point of it. `code`: it is one of the names for which ids are
    /// reserved, and where it lies for good if it need not be copied.
    fn add(
        &self,
        hash: u32,
        entry: Entry,
        text: &[u8],
        code: Option<Option<&'static [u8]>>,
    ) -> Option<StrId> {
        let id = self.count.load(Ordering::Relaxed) + 1;
        if id > MAX_ENTRIES - if code.is_some() { 0 } else { RESERVED } {
            return None;
        }
        self.make_room(id)?;
        let (category, arg) = (entry.category, entry.arg);
        let copied = match code.flatten() {
            Some(text) => text,
            None => self.copy(text)?,
        };
        let (segment, _) = place(id);
        if self.segments[segment].load(Ordering::Relaxed).is_null() {
            let none = Entry { text: &[], category: StrId::NONE, arg: StrId::NONE };
            let fresh = leaked(none, (FIRST_SEGMENT as usize) << segment)?;
            self.segments[segment].store(fresh.as_mut_ptr(), Ordering::Release);
        }
        let published = self.published.load(Ordering::Relaxed);
        if published && !queue::publish(Named { id: StrId(id), category, arg, text }) {
            return None;
        }
        // SAFETY: no reader knows this id yet, so none reads the entry while it is written.
        unsafe { self.entry(id).write(Entry { text: copied, ..entry }) };
        self.count.store(id, Ordering::Release);
        // SAFETY: `make_room` left a table, and tables are never freed.
        let table = unsafe { &*self.table.load(Ordering::Relaxed) };
        table.put(hash, id);
        Some(StrId(id))
    }

    /// Under the lock: makes the table large enough for `id` entries at half load.
    fn make_room(&self, id: u32) -> Option<()> {
        let table = self.table.load(Ordering::Relaxed);
        // SAFETY: as in `find`.
        let old = unsafe { table.as_ref() };
        if old.is_some_and(|t| (id as usize) * 2 <= t.mask + 1) {
            return Some(());
        }
        let size = old.map_or(FIRST_TABLE, |t| (t.mask + 1) * 2);
        let cells = leaked_with(size, || AtomicU64::new(0))?;
        let table = || Table { mask: size - 1, cells, _smaller: old };
        let new = &leaked_with(1, table)?[0];
        for cell in old.iter().flat_map(|t| t.cells) {
            let cell = cell.load(Ordering::Relaxed);
            if cell != 0 {
                new.put((cell >> 32) as u32, cell as u32);
            }
        }
        // The old table is left to readers that are in it: all old ones together are
        // smaller than the new one.
        self.table.store(ptr::from_ref(new).cast_mut(), Ordering::Release);
        Some(())
    }

    /// Under the lock: copies a text to memory that is never freed, within the budget.
    fn copy(&self, text: &[u8]) -> Option<&'static [u8]> {
        const BLOCK: usize = 64 << 10;
        let bytes = self.bytes.load(Ordering::Relaxed) + text.len() as u64;
        if bytes > MAX_BYTES as u64 {
            return None;
        }
        self.bytes.store(bytes, Ordering::Relaxed);
        if text.len() > BLOCK / 4 {
            let copy = leaked(0u8, text.len())?;
            copy.copy_from_slice(text);
            return Some(copy);
        }
        if self.arena_left.load(Ordering::Relaxed) < text.len() as u64 {
            // In this order: a fork in between must not take the old block for a new one.
            self.arena_left.store(0, Ordering::Relaxed);
            compiler_fence(Ordering::SeqCst);
            self.arena.store(leaked(0u8, BLOCK)?.as_mut_ptr(), Ordering::Relaxed);
            compiler_fence(Ordering::SeqCst);
            self.arena_left.store(BLOCK as u64, Ordering::Relaxed);
        }
        let to = self.arena.load(Ordering::Relaxed);
        self.arena_left.fetch_sub(text.len() as u64, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        // SAFETY: `arena_left` bytes follow `to`, not used otherwise: they are handed out
        // once, under the lock.
        unsafe {
            self.arena.store(to.add(text.len()), Ordering::Relaxed);
            ptr::copy_nonoverlapping(text.as_ptr(), to, text.len());
            Some(std::slice::from_raw_parts(to, text.len()))
        }
    }
}

impl Strings for Interner {
    fn text(&self, id: StrId) -> Text<'_> {
        if id.is_none() || id.0 > self.count.load(Ordering::Acquire) {
            return Text::default();
        }
        // SAFETY: entries up to `count` were written before `count` was raised.
        let entry = unsafe { *self.entry(id.0) };
        Text { bytes: entry.text, category: entry.category, arg: entry.arg }
    }
}

impl Table {
    /// Publishes an id that is not in the table. The table is at most half full.
    fn put(&self, hash: u32, id: u32) {
        let mut at = hash as usize & self.mask;
        while self.cells[at].load(Ordering::Relaxed) != 0 {
            at = (at + 1) & self.mask;
        }
        self.cells[at].store(u64::from(hash) << 32 | u64::from(id), Ordering::Release);
    }
}

/// Memory for good, or none if the program has used it up.
fn leaked<T: Copy>(value: T, count: usize) -> Option<&'static mut [T]> {
    leaked_with(count, || value)
}

fn leaked_with<T>(count: usize, value: impl FnMut() -> T) -> Option<&'static mut [T]> {
    let mut memory = Vec::new();
    memory.try_reserve_exact(count).ok()?;
    memory.resize_with(count, value);
    Some(memory.leak())
}

/// Segment and offset of an id: segments hold 64, 128, 256… entries.
#[inline]
fn place(id: u32) -> (usize, usize) {
    let n = id - 1 + FIRST_SEGMENT;
    let segment = n.ilog2() - FIRST_SEGMENT.ilog2();
    (segment as usize, (n - (FIRST_SEGMENT << segment)) as usize)
}

/// Folds eight bytes at a time through a 64×64→128 bit multiplication.
#[inline]
fn hash(category: StrId, arg: StrId, text: &[u8]) -> u32 {
    const K: u64 = 0x9e37_79b9_7f4a_7c15;
    let fold = |a: u64, b: u64| {
        let wide = u128::from(a) * u128::from(b);
        (wide as u64) ^ (wide >> 64) as u64
    };
    let seed = u64::from(category.0) << 32 | u64::from(arg.0);
    // Two words a multiplication: names are short, and what their hash takes is that chain.
    let mut h = fold(seed ^ K, text.len() as u64 ^ 0xd6e8_feb8_6659_fd93);
    for part in text.chunks_exact(16) {
        h = fold(h ^ word(&part[..8]), K ^ word(&part[8..]));
    }
    let [one, other] = last_words(text);
    h = fold(h ^ one, K ^ other);
    (h ^ h >> 32) as u32
}

/// A number of the calling thread, which no other has as long as it lives.
fn me() -> usize {
    thread_local! {
        static HERE: u8 = const { 0 };
    }
    HERE.with(ptr::from_ref).addr()
}

/// The end of a text: with its length and its whole pairs of words, all of it.
#[inline]
fn last_words(text: &[u8]) -> [u64; 2] {
    match text.len() {
        length @ 16.. => [word(&text[length - 16..][..8]), word(&text[length - 8..])],
        8.. => [word(&text[..8]), last_word(text)],
        _ => [last_word(text), 0],
    }
}

/// Whether two texts are the same. Names are short, so without a call.
#[inline]
fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len()
        && one.chunks_exact(8).zip(other.chunks_exact(8)).all(|(a, b)| word(a) == word(b))
        && last_word(one) == last_word(other)
}

#[inline]
fn word(eight: &[u8]) -> u64 {
    eight.try_into().map_or(0, u64::from_le_bytes)
}

/// The end of a text: with its length and its whole words, all of it. The bytes may overlap
/// with each other or with the last whole word.
#[inline]
fn last_word(text: &[u8]) -> u64 {
    let half = |at: usize| {
        text.get(at..at + 4)
            .and_then(|four| four.try_into().ok())
            .map_or(0, |four| u64::from(u32::from_le_bytes(four)))
    };
    match text.len() {
        0 => 0,
        length @ 8.. => word(&text[length - 8..]),
        length @ 4.. => half(0) | half(length - 4) << 32,
        length => {
            let byte = |at: usize| u64::from(text[at]);
            byte(0) | byte(length / 2) << 8 | byte(length - 1) << 16
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_that_may_wait_waits_for_another_thread_and_not_for_itself() {
        let interner = Interner::new();
        // A thread that is off its processor while it adds a string.
        interner.busy.store(1, Ordering::Relaxed);
        assert!(interner.intern(StrId::NONE, StrId::NONE, b"at once").is_none());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(5));
                interner.busy.store(0, Ordering::Release);
            });
            assert!(interner.lock_within(Duration::from_secs(60)));
        });
        // Now it is this one, as if a signal had come in the middle of it.
        assert_eq!(interner.busy.load(Ordering::Relaxed), me());
        assert!(!interner.lock_within(Duration::MAX));
    }

    #[test]
    fn texts_are_the_same_if_all_of_them_is() {
        for length in 0..40 {
            let text: Vec<u8> = (1..=length).collect();
            assert!(same(&text, &text.clone()), "{length}");
            for at in 0..text.len() {
                let mut other = text.clone();
                other[at] ^= 0x80;
                assert!(!same(&text, &other), "{at} of {length}");
                let ids = |text: &[u8]| hash(StrId(1), StrId::NONE, text);
                assert_ne!(ids(&text), ids(&other), "{at} of {length}");
            }
            assert!(!same(&text, &text[..text.len().saturating_sub(1)]) || length == 0);
        }
    }

    #[test]
    fn equal_strings_get_equal_ids_and_come_back_unchanged() {
        let interner = Interner::new();
        let texts: Vec<String> = (0..150).map(|n| "x".repeat(n % 40) + &n.to_string()).collect();
        let ids: Vec<StrId> =
            texts.iter().map(|t| interner.intern(StrId::NONE, StrId::NONE, t.as_bytes())).collect();
        for (text, id) in texts.iter().zip(&ids) {
            assert_eq!(interner.intern(StrId::NONE, StrId::NONE, text.as_bytes()), *id);
            assert_eq!(interner.text(*id).bytes, text.as_bytes());
        }
        assert_eq!(interner.count(), 150);
        assert_eq!(ids.iter().map(|id| id.0).collect::<Vec<_>>(), (1..=150).collect::<Vec<_>>());
    }

    #[test]
    fn the_same_text_in_two_categories_is_two_entries() {
        let interner = Interner::new();
        let io = interner.intern_static(StrId::NONE, StrId::NONE, "io");
        let a = interner.intern(StrId::NONE, StrId::NONE, b"read");
        let b = interner.intern(io, StrId::NONE, b"read");
        assert_ne!(a, b);
        assert_eq!(interner.text(b).category, io);
        assert_eq!(interner.text(io).bytes, b"io");
    }

    #[test]
    fn when_full_it_says_so_and_still_finds_what_it_knows() {
        let interner = Interner::new();
        for n in 0..MAX_ENTRIES - RESERVED {
            let id = interner.intern(StrId::NONE, StrId::NONE, &n.to_le_bytes());
            assert_eq!(id, StrId(n + 1));
        }
        assert!(interner.intern(StrId::NONE, StrId::NONE, b"one too many").is_none());
        let name = interner.intern_static(StrId::NONE, StrId::NONE, "in the code");
        assert_eq!(name, StrId(MAX_ENTRIES - RESERVED + 1));
        assert_eq!(interner.intern(StrId::NONE, StrId::NONE, &7u32.to_le_bytes()), StrId(8));
        assert!(
            Interner::new().intern(StrId::NONE, StrId::NONE, &vec![b'a'; MAX_TEXT + 1]).is_none()
        );
    }

    #[test]
    fn threads_agree_on_ids() {
        let interner = Interner::new();
        let names: Vec<String> = (0..60).map(|n| format!("name {n}")).collect();
        let ids = std::thread::scope(|s| {
            let threads: Vec<_> = (0..3)
                .map(|_| s.spawn(|| names.iter().map(|n| again(&interner, n)).collect::<Vec<_>>()))
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(ids.windows(2).all(|w| w[0] == w[1]));
        assert_eq!(interner.count(), 60);
    }

    /// Interns until the lock was free for it.
    fn again(interner: &Interner, text: &str) -> StrId {
        loop {
            let id = interner.intern(StrId::NONE, StrId::NONE, text.as_bytes());
            if !id.is_none() {
                return id;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn an_unknown_id_has_an_empty_text() {
        assert_eq!(Interner::new().text(StrId(9)).bytes, b"");
    }
}
