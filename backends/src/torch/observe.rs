//! The observer: see [`super`].

use std::ffi::{CStr, c_char};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use kymograph_protos::record::OPERATOR;
use kymograph_protos::{ArgType, ColdRecorder, Extra, Kind, Record, StrId};

use super::collective::{self, Collectives};
use super::inputs::{self, Inputs};
use super::layout::{BACKWARD, Callback, Layout, NAME, SCOPE, TEXT, THREAD, USER, read};
use super::library::{self, Before, Torch};
use super::names::Name;
use super::thread::Recorded;
use super::values::Values;
use super::{arrows, check, names, thread};
use crate::annotate::guarded;

/// What became of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The process has no PyTorch.
    Absent,
    /// It is observed.
    Observed {
        /// The versions that have its layout.
        layout: &'static str,
        /// Why inputs are not recorded, if that was asked for.
        no_inputs: Option<&'static str>,
    },
    /// It is not observed, and why.
    Unknown(&'static str),
}

struct Session {
    recorder: &'static dyn ColdRecorder,
    /// To be called before the first operator is recorded, and whether it was.
    prepare: fn(),
    prepared: AtomicBool,
    layout: &'static Layout,
    operators: StrId,
    annotations: StrId,
    sequence: StrId,
    forward_thread: StrId,
    /// If inputs are recorded: how they are read, and what they are called.
    inputs: Option<(Values, [StrId; 4])>,
    collectives: Collectives,
}

static SESSION: AtomicPtr<Session> = AtomicPtr::new(std::ptr::null_mut());

/// Whether annotations nest apart from operators.
static APART: AtomicBool = AtomicBool::new(false);

/// Longest name by value.
const MAX_NAME: usize = 1 << 16;

/// Whether the process has PyTorch by now.
pub fn is_there() -> bool {
    library::find().is_some()
}

/// Has annotations nest apart from operators and other scopes of their threads, from here on. For
/// recordings in which calls of functions are scopes, too: `with record_function(…)` begins in one
/// call (`__enter__`) and ends in another.
pub fn nest_annotations_apart(apart: bool) {
    APART.store(apart, Ordering::Relaxed);
}

/// Observes the PyTorch of this process, if it has one by now; for as long as it lives. May be
/// called again: it is added once. `prepare` is called on the thread of the first operator,
/// before that is recorded. `inputs`: what operators are called with is recorded as well.
pub fn observe(recorder: &'static dyn ColdRecorder, inputs: bool, prepare: fn()) -> Outcome {
    static OUTCOME: OnceLock<Outcome> = OnceLock::new();
    if let Some(outcome) = OUTCOME.get() {
        return *outcome;
    }
    let Some(library) = library::find() else { return Outcome::Absent };
    *OUTCOME.get_or_init(|| match attach(library, recorder, inputs, prepare) {
        Ok((layout, no_inputs)) => Outcome::Observed { layout: layout.read_in, no_inputs },
        Err(why) => Outcome::Unknown(why),
    })
}

fn attach(
    library: crate::load::Library,
    recorder: &'static dyn ColdRecorder,
    inputs: bool,
    prepare: fn(),
) -> Result<(&'static Layout, Option<&'static str>), &'static str> {
    let torch = Torch::find(library).map_err(|missing| missing.to_str().unwrap_or("?"))?;
    let before = Before::find(library).ok_or("it has no RecordFunction::before that is known")?;
    let layout = check::layout(&torch, before)?;
    let values = inputs.then(|| Values::find(library));
    let no_inputs = values.as_ref().and_then(|values| values.as_ref().err()).copied();
    let values = values.and_then(Result::ok);
    let key = |text: &[u8]| recorder.intern_or_wait(StrId::NONE, text);
    let operators = key(b"cpu_op");
    let session = Session {
        recorder,
        prepare,
        prepared: AtomicBool::new(false),
        layout,
        operators,
        annotations: key(b"user_annotation"),
        sequence: key(b"Sequence number"),
        forward_thread: key(b"Fwd thread id"),
        inputs: values.map(|values| (values, inputs::NAMES.map(|name| key(name.as_bytes())))),
        collectives: Collectives::find(library, recorder, operators),
    };
    if session.operators.is_none() || session.annotations.is_none() {
        return Err("there is no room for more names");
    }
    SESSION.store(Box::into_raw(Box::new(session)), Ordering::Release);
    let callback = Callback { needs_inputs: values.is_some(), ..Callback::new(started, ended) };
    // SAFETY: the function has this type, and the callbacks stay.
    unsafe { (torch.add_callback)(callback) };
    Ok((layout, no_inputs))
}

#[inline(always)]
fn as_scope(recorded: bool) -> Recorded {
    if recorded { Recorded::Scope } else { Recorded::Not }
}

#[inline(always)]
fn session() -> Option<&'static Session> {
    // SAFETY: null, or one that is never freed.
    unsafe { SESSION.load(Ordering::Acquire).as_ref() }
}

/// An operator begins.
unsafe extern "C" fn started(context: *mut *mut u8, function: *const u8) -> *mut *mut u8 {
    // SAFETY: room for a pointer, where PyTorch expects the observer's context: none.
    unsafe { context.write(std::ptr::null_mut()) };
    guarded((), || {
        let Some(session) = session() else { return };
        thread::with(|thread| {
            if !thread.has_room() {
                return session.recorder.lost(1);
            }
            // SAFETY: a RecordFunction, whose layout was found to be this one.
            let recorded = unsafe { session.begin(function) };
            thread.begin(function.addr(), recorded);
        });
    });
    context
}

/// An operator ends.
unsafe extern "C" fn ended(function: *const u8, _: *mut u8) {
    guarded((), || {
        let Some(session) = session() else { return };
        thread::with(|thread| {
            let ends = thread.end(function.addr());
            for _ in 0..ends.scopes {
                session.recorder.end();
            }
            for _ in 0..ends.apart {
                session.pop();
            }
        });
    });
}

impl Session {
    /// Records a beginning; how that was done, if it was.
    ///
    /// # Safety
    /// `function` is a `RecordFunction`.
    #[inline(always)]
    unsafe fn begin(&self, function: *const u8) -> Recorded {
        // SAFETY: the caller's promise, and the layout was found to be this one.
        unsafe {
            let scope: u8 = read(function, SCOPE);
            let (category, tag) = match scope {
                USER => (self.annotations, 0),
                _ => (self.operators, OPERATOR),
            };
            if !self.recorder.enabled(category) && !self.is_enabled_now(category) {
                return Recorded::Not;
            }
            let sequence: i64 = read(function, self.layout.sequence);
            if read::<u8>(function, self.layout.name_kind) != TEXT
                && sequence < 0
                && self.inputs.is_none()
            {
                let name = Name::of_schema(read(function, NAME), self.layout);
                let site = names::of_schema(self.recorder, category, name);
                if !site.is_none() {
                    return as_scope(self.recorder.begin(site, tag));
                }
            }
            self.begin_more(function, (category, scope), tag, sequence)
        }
    }

    /// The innermost annotation ends that nests apart.
    #[cold]
    fn pop(&self) {
        let (time, site) = (self.recorder.now(), self.annotations);
        self.recorder.push(Record { time, site, kind: Kind::Pop as u8, ..Record::default() }, &[]);
    }

    /// What is not wanted may be when everything is prepared.
    #[cold]
    fn is_enabled_now(&self, category: StrId) -> bool {
        if self.prepared.load(Ordering::Relaxed) || self.prepared.swap(true, Ordering::AcqRel) {
            return false;
        }
        (self.prepare)();
        self.recorder.enabled(category)
    }

    /// As [`Session::begin`], of any.
    ///
    /// # Safety
    /// `function` is a `RecordFunction`.
    #[inline(never)]
    unsafe fn begin_more(
        &self,
        function: *const u8,
        (category, scope): (StrId, u8),
        tag: u8,
        sequence: i64,
    ) -> Recorded {
        let mut extras = [Extra::default(); 6];
        let mut count = 0;
        // SAFETY: the caller's promise, and the layout was found to be this one.
        let site = unsafe {
            if read::<u8>(function, self.layout.name_kind) == TEXT {
                self.recorder.intern(category, self.name(function))
            } else {
                let name = Name::of_schema(read(function, NAME), self.layout);
                names::of_schema(self.recorder, category, name)
            }
        };
        let (kind, recorded) = match scope {
            USER if APART.load(Ordering::Relaxed) => (Kind::Push, Recorded::Apart),
            _ => (Kind::Begin, Recorded::Scope),
        };
        let said = |done| if done { recorded } else { Recorded::Not };
        let mut head = Record { site, kind: kind as u8, tag, ..Record::default() };
        if sequence >= 0 {
            // SAFETY: the caller's promise, and the layout was found to be this one.
            let (here, forward): (u64, u64) =
                unsafe { (read(function, THREAD), read(function, self.layout.forward_thread)) };
            extras[0] = Extra::new(self.sequence, ArgType::I64, sequence.cast_unsigned());
            extras[1] = Extra::new(self.forward_thread, ArgType::U64, forward);
            // Most have none.
            count = if forward == 0 { 1 } else { 2 };
            let flow = match (scope, forward) {
                (BACKWARD, 1..) => arrows::take(forward, sequence).map(|f| (ArgType::FlowEnd, f)),
                (BACKWARD | USER, _) | (_, 1..) => None,
                _ => Some((ArgType::Flow, arrows::begin(here, sequence))),
            };
            if let Some((ty, flow)) = flow {
                head.tag |= ty as u8;
                head.arg = flow;
            }
        }
        if let Some((values, names)) = &self.inputs {
            // SAFETY: as above; they live while it begins.
            let inputs = unsafe { Inputs::of(function.add(self.layout.inputs), values) };
            let texts =
                if inputs.len() > 0 { inputs.texts(self.recorder) } else { Default::default() };
            for (name, text) in names.iter().zip(texts).filter(|(_, text)| !text.is_none()) {
                extras[count] = Extra::new(*name, ArgType::Str, text.0.into());
                count += 1;
            }
        }
        if self.collectives.is_one(site) {
            return said(self.begin_collective(head, &extras[..count]));
        }
        head.time = self.recorder.now();
        if !head.site.is_none() {
            return said(self.recorder.push(head, &extras[..count]));
        }
        // SAFETY: the caller's promise.
        let name = unsafe { self.name(function) };
        head.site = category;
        said(self.recorder.push_named(head, &extras[..count], &name[..name.len().min(MAX_NAME)]))
    }

    #[cold]
    #[inline(never)]
    fn begin_collective(&self, head: Record, before: &[Extra]) -> bool {
        let mut extras = [Extra::default(); 6 + collective::MAX_ARGS];
        let (first, rest) = extras.split_at_mut(before.len());
        first.copy_from_slice(before);
        let count = before.len() + self.collectives.args(self.recorder, rest);
        self.recorder.push(Record { time: self.recorder.now(), ..head }, &extras[..count])
    }

    /// The name of an operator, for as long as that is open.
    ///
    /// # Safety
    /// `function` is a `RecordFunction`.
    unsafe fn name<'a>(&self, function: *const u8) -> &'a [u8] {
        // SAFETY: the caller's promise, and the layout was found to be this one.
        unsafe {
            let mut name: *const c_char = read(function, NAME);
            if read::<u8>(function, self.layout.name_kind) != TEXT {
                name = read(name.cast(), 0);
            }
            CStr::from_ptr(name).to_bytes()
        }
    }
}
