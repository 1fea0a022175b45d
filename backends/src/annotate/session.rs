//! What all callbacks share: the recorder, the pause switch, and how an event is sent.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use kymograph_protos::{ColdRecorder, Extra, Kind, Record, StrId};

use super::args::Args;
use super::table::Interned;
use super::text::{MAX_INTERNED, MAX_TEXT, Text, UNNAMED, clip};

static SESSION: OnceLock<Session> = OnceLock::new();
static PAUSED: AtomicBool = AtomicBool::new(false);
static RANGES: AtomicU64 = AtomicU64::new(1);

/// Category of NVTX's default domain.
pub(crate) static NVTX: Interned = Interned::known(b"nvtx");
/// Category of ROCTX.
pub(crate) static ROCTX: Interned = Interned::known(b"roctx");
/// Category of what ITT says outside every domain.
pub(crate) static ITT: Interned = Interned::known(b"itt");

/// The recorder that annotations go to.
pub(crate) struct Session {
    recorder: &'static dyn ColdRecorder,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Session")
    }
}

/// Starts the session, or returns the one there is: every shared object with a copy of
/// NVTX or ITT initialises us, and they all belong to one process.
pub(crate) fn start(recorder: &'static dyn ColdRecorder) -> &'static Session {
    let session = SESSION.get_or_init(|| Session { recorder });
    for category in [&NVTX, &ITT, &ROCTX] {
        session.key(category);
    }
    session
}

/// The session, once one was started.
#[inline(always)]
pub(crate) fn session() -> Option<&'static Session> {
    SESSION.get()
}

/// Stops or continues the recording of annotations; returns what it was.
pub(crate) fn set_paused(paused: bool) -> bool {
    PAUSED.swap(paused, Ordering::Relaxed)
}

/// A range id that no other range of this process has. `recorded` is kept in its lowest
/// bit, so that the end knows whether its beginning was recorded. The upper bits keep it
/// apart from ids that other sources give out ("NV" in ASCII).
pub(crate) fn range_id(number: u64, recorded: bool) -> u64 {
    (0x4e56 << 48) | (number << 1 & 0xffff_ffff_ffff) | u64::from(recorded)
}

/// A fresh number for [`range_id`].
pub(crate) fn range_number() -> u64 {
    RANGES.fetch_add(1, Ordering::Relaxed)
}

impl Session {
    /// The recording clock.
    #[inline(always)]
    pub(crate) fn now(&self) -> u64 {
        self.recorder.now()
    }

    /// Whether events of this category are recorded at this moment.
    #[inline(always)]
    pub(crate) fn live(&self, category: StrId) -> bool {
        !PAUSED.load(Ordering::Relaxed) && self.recorder.enabled(category)
    }

    /// Whether they are recorded now or may be later.
    pub(crate) fn may_live(&self, category: StrId) -> bool {
        self.recorder.may_be_enabled(category)
    }

    /// The id of the name of an event, which travels by value if it has none.
    #[inline(always)]
    pub(crate) fn intern(&self, category: StrId, text: &[u8]) -> StrId {
        self.recorder.intern(category, text)
    }

    /// The id of a text that cannot travel by value: of an argument, a category, a counter. Waits
    /// for a thread that adds another text.
    pub(crate) fn intern_or_wait(&self, category: StrId, text: &[u8]) -> StrId {
        self.recorder.intern_or_wait(category, text)
    }

    /// Events were left out before they could be sent.
    #[cold]
    pub(crate) fn lost(&self, events: u64) {
        self.recorder.lost(events);
    }

    /// An event goes without an argument.
    #[cold]
    pub(crate) fn cut_short(&self) {
        self.recorder.cut_short();
    }

    /// Sends a record as it is.
    #[inline(always)]
    pub(crate) fn push(&self, head: Record, extras: &[Extra]) -> bool {
        self.recorder.push(head, extras)
    }

    /// Sends an instant that is called `name`.
    pub(crate) fn instant(&self, category: StrId, name: &[u8]) {
        let head = Record { kind: Kind::Instant as u8, ..Record::default() };
        self.send_plain(head, category, name);
    }

    /// Sends an event named `name`, at the present time, without arguments. `head` has its kind.
    #[inline(always)]
    pub(crate) fn send_plain(&self, head: Record, category: StrId, name: &[u8]) -> bool {
        let interned = !name.is_empty() && name.len() <= MAX_INTERNED;
        let site = if interned { self.intern(category, name) } else { StrId::NONE };
        if site.is_none() {
            return self.send_unknown(head, category, name);
        }
        self.push(Record { time: self.now(), site, ..head }, &[])
    }

    /// As [`Session::send_plain`], of a name without an id. Apart, since what it needs of the
    /// stack would be every event's.
    #[cold]
    #[inline(never)]
    fn send_unknown(&self, head: Record, category: StrId, name: &[u8]) -> bool {
        self.send_head(head, category, &Text::Borrowed(name), &mut Args::new(), None)
    }

    /// Sends an event at the present time. The clock is read last: what we do before it
    /// belongs to the time before a beginning.
    pub(crate) fn send(
        &self,
        kind: Kind,
        category: StrId,
        name: &Text<'_>,
        other: u64,
        args: &mut Args,
    ) -> bool {
        let head = Record { other, kind: kind as u8, ..Record::default() };
        self.send_head(head, category, name, args, None)
    }

    /// As [`Session::send`], of a record prepared by the caller, at `time` if given.
    pub(crate) fn send_head(
        &self,
        head: Record,
        category: StrId,
        name: &Text<'_>,
        args: &mut Args,
        time: Option<u64>,
    ) -> bool {
        let now = || time.unwrap_or_else(|| self.now());
        let text = match name {
            Text::Site(site) => {
                return self.push(Record { time: now(), site: *site, ..head }, args.extras());
            }
            other if other.bytes().is_empty() => UNNAMED,
            other => other.bytes(),
        };
        if text.len() <= MAX_INTERNED {
            let site = self.intern(category, text);
            if !site.is_none() {
                return self.push(Record { time: now(), site, ..head }, args.extras());
            }
        }
        if text.len() > MAX_TEXT {
            args.unsigned(self.key(&super::args::FULL_LENGTH), text.len() as u64);
        }
        // By value: the site then says the category alone.
        let head = Record { time: now(), site: category, ..head };
        self.recorder.push_named(head, args.extras(), clip(text, MAX_TEXT))
    }

    /// The id of an argument's name.
    pub(crate) fn key(&self, key: &Interned) -> StrId {
        key.id(self, StrId::NONE)
    }

    /// The id of the category of this domain name, or of `default` if it has none.
    pub(crate) fn category(&self, name: &Interned, default: &Interned) -> StrId {
        let id = self.key(name);
        if id.is_none() { self.key(default) } else { id }
    }
}
