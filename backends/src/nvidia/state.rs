//! What the process remembers of CUPTI.
//!
//! A process has one CUPTI, whose callbacks carry no pointer of ours, and the program may call
//! it at any time, from any thread: so there is one static, made of atomics. Each part belongs
//! to the modules that its documentation names.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64};

/// Domains of callbacks, from 1.
pub(super) const DOMAINS: usize = 8;
/// Numbers of callbacks in a domain.
pub(super) const CALLBACKS: usize = 2048;
/// Contexts that are remembered.
const CONTEXTS: usize = 64;

/// Launches by the driver API are watched, now and later (`direct`).
pub(super) const ALWAYS: u8 = 2;

/// The one of this process.
pub(super) static STATE: State = State::new();

/// See the module.
pub(super) struct State {
    pub(super) setup: Setup,
    pub(super) calls: Calls,
    pub(super) direct: Direct,
    pub(super) other: Other,
    pub(super) subscriptions: Subscriptions,
}

/// How far CUPTI is set up (`collect`, `enable`, `detach`, `clock`, `buffers`).
pub(super) struct Setup {
    /// Whether the driver called us while it initialised.
    pub(super) injected: AtomicBool,
    /// Whether it is still waiting for us to return.
    pub(super) initialises: AtomicBool,
    /// Whether CUPTI is prepared.
    pub(super) prepared: AtomicBool,
    /// Whether we have recorded before.
    pub(super) begun: AtomicBool,
    /// Bit n: kind n waits for the driver.
    pub(super) waiting: AtomicU64,
    /// Whether CUPTI was given `CLOCK_BOOTTIME`.
    pub(super) clock_chosen: AtomicBool,
    /// Whether this version of CUPTI may be refused a buffer.
    pub(super) may_refuse: AtomicBool,
    /// Whether CUPTI is about to leave the process: see `detach`.
    pub(super) leaving: AtomicU8,
}

/// Calls of the API (`callbacks`, `sync`).
pub(super) struct Calls {
    /// Whether calls begin slices at the moment. Those that did end them in any case.
    pub(super) on: AtomicBool,
    /// What was enabled, as bits.
    pub(super) enabled: AtomicU64,
    /// Whether any work was asked for since this was last looked at.
    pub(super) launched: AtomicBool,
    /// Contexts that were made while we looked.
    pub(super) contexts: [AtomicPtr<c_void>; CONTEXTS],
    pub(super) context_seen: AtomicBool,
    /// Calls that waited, for which there was no room.
    pub(super) lost_waits: AtomicU64,
    /// Errors that CUPTI reported about itself, and the first of them.
    pub(super) errors: AtomicU64,
    pub(super) first_error: OnceLock<(c_int, String)>,
}

/// Launches by the driver API (`direct`).
pub(super) struct Direct {
    /// Whether they are watched.
    pub(super) watched: AtomicU8,
    /// Whether CUPTI calls us for them by now.
    pub(super) enabled: AtomicBool,
    /// Launches of the runtime's since there was something to launch.
    pub(super) launches: AtomicU32,
    /// What gave the program something to launch: its domain and number; 0 if nothing did.
    pub(super) since: AtomicU64,
    /// Whether there were launches that were not watched.
    pub(super) missed: AtomicBool,
    /// How often watching ended.
    pub(super) rests: AtomicU32,
    /// Changes of what is watched that CUPTI has not been told of.
    pub(super) changes: AtomicU32,
    /// The functions that launch.
    pub(super) functions: OnceLock<Box<[u32]>>,
    /// Calls that asked for work, by the lower half of their correlation id: the upper half
    /// plus one.
    pub(super) asked: [AtomicU16; 1 << 16],
}

/// What another user of CUPTI in the program asked for (`other`, `share`, `copies`).
pub(super) struct Other {
    /// Its buffer callbacks; both or none.
    pub(super) request: AtomicPtr<c_void>,
    pub(super) complete: AtomicPtr<c_void>,
    /// The clock that it asked for, and the same moment on CUPTI's clock and on it.
    pub(super) timestamp: AtomicPtr<c_void>,
    pub(super) anchor: [AtomicU64; 2],
    /// Whether CUPTI itself was given that clock: before we recorded anything.
    pub(super) has_clock: AtomicBool,
    /// Kinds that it has enabled, and those whose records it still gets.
    pub(super) kinds: AtomicU64,
    pub(super) delivered: AtomicU64,
    /// Kinds that we have enabled.
    pub(super) ours: AtomicU64,
    /// Whether CUPTI calls us for buffers: from our first recording on, for ever.
    pub(super) registered: AtomicBool,
    /// Threads that copy records for it, and records copied.
    pub(super) copying: AtomicU32,
    pub(super) copied: AtomicU64,
}

/// Who is subscribed (`relay`, `subscription`).
pub(super) struct Subscriptions {
    /// What the other subscribed with. The address of this is the handle that it has.
    pub(super) function: AtomicPtr<c_void>,
    pub(super) user: AtomicPtr<c_void>,
    /// CUPTI's own handle of the other, if it subscribed before we did.
    pub(super) direct: AtomicPtr<c_void>,
    /// Our own subscription.
    pub(super) ours: AtomicPtr<c_void>,
    /// Domains that the other enabled as a whole, and callbacks that it enabled one by one.
    pub(super) whole: [AtomicBool; DOMAINS],
    pub(super) single: [[AtomicU64; CALLBACKS / 64]; DOMAINS],
}

#[allow(clippy::declare_interior_mutable_const, reason = "initial values")]
const NULL: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
#[allow(clippy::declare_interior_mutable_const, reason = "as above")]
const NO: AtomicBool = AtomicBool::new(false);
#[allow(clippy::declare_interior_mutable_const, reason = "as above")]
const ZERO: AtomicU64 = AtomicU64::new(0);

impl State {
    const fn new() -> State {
        State {
            setup: Setup {
                injected: NO,
                initialises: NO,
                prepared: NO,
                begun: NO,
                waiting: ZERO,
                clock_chosen: NO,
                may_refuse: NO,
                leaving: AtomicU8::new(0),
            },
            calls: Calls {
                on: NO,
                enabled: ZERO,
                launched: NO,
                contexts: [NULL; CONTEXTS],
                context_seen: NO,
                lost_waits: ZERO,
                errors: ZERO,
                first_error: OnceLock::new(),
            },
            direct: Direct {
                watched: AtomicU8::new(ALWAYS),
                enabled: AtomicBool::new(true),
                launches: AtomicU32::new(0),
                since: ZERO,
                missed: NO,
                rests: AtomicU32::new(0),
                changes: AtomicU32::new(0),
                functions: OnceLock::new(),
                asked: [const { AtomicU16::new(0) }; 1 << 16],
            },
            other: Other {
                request: NULL,
                complete: NULL,
                timestamp: NULL,
                anchor: [ZERO; 2],
                has_clock: NO,
                kinds: ZERO,
                delivered: ZERO,
                ours: ZERO,
                registered: NO,
                copying: AtomicU32::new(0),
                copied: ZERO,
            },
            subscriptions: Subscriptions {
                function: NULL,
                user: NULL,
                direct: NULL,
                ours: NULL,
                whole: [NO; DOMAINS],
                single: [const { [ZERO; CALLBACKS / 64] }; DOMAINS],
            },
        }
    }
}
