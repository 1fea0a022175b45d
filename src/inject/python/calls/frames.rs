//! Calls seen where the interpreter runs a frame (PEP 523), from Python 3.12 on: a function of ours
//! stands around the interpreter's own. It costs a call less than half of what two events of
//! `sys.monitoring` cost, since no object is made for an event.
//!
//! Frames then lie on the C stack, of which the interpreter allows less than of its own. So calls
//! that are nested deeper than [`MAX_DEPTH`], or fill half of their thread's stack, bring this to an
//! end, and [`super::monitoring`] goes on: frames that are open here end here, and their ends are
//! unknown there.
//!
//! PyTorch's compiler stands in the same place, and calls what stood there before: this.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use kymograph_backends::environment::gettid;
use kymograph_protos::Recorder;
use kymograph_protos::record::OPERATOR;

use super::super::PYTHON;
use super::{Calls, FUNCTIONS, Object, monitoring, state, wanted};
use crate::guard::guard;
use crate::inject::python::find;
use crate::queue::{Producer, producer};
use crate::recorder::PIPELINE;

/// `_PyFrameEvalFunction` of Python's pystate.h. A thread of a program that ends leaves it by
/// unwinding (`pthread_exit`), so nothing that has to be dropped may lie in a caller of this.
type Run = unsafe extern "C-unwind" fn(*mut c_void, *const u8, c_int) -> Object;

/// Frames on the C stack at most. The interpreter allows 1,500 in 3.12, and the program's own
/// calls of C count as well.
const MAX_DEPTH: usize = 400;

/// Where a frame may have its owner, and its first argument, by version: 3.12 and 3.13, 3.14.
const PLACES: [(usize, usize); 2] = [(70, 72), (74, 80)];
/// The owner of frames that a generator goes on in. The first frame of a generator's code only
/// makes the generator, and is no call to other tools.
const GENERATOR: u8 = 1;
/// What a frame runs is its first word. Bits of that are flags of the interpreter's, from 3.14 on.
const FLAGS: usize = 3;

/// What ran frames before.
static BEFORE: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
/// Where frames have their owner and their first argument; 0: not known.
static OWNER: AtomicUsize = AtomicUsize::new(0);
static ARGUMENT: AtomicUsize = AtomicUsize::new(0);
static ON: AtomicBool = AtomicBool::new(false);
/// Whether something that came to stand around [`run`] has it for what was there before.
static LEFT: AtomicBool = AtomicBool::new(false);

/// What is known of a thread.
struct Stack {
    /// Frames that [`run`] is around.
    depth: Cell<usize>,
    /// The address at which half of the C stack is full; 0: not known yet.
    half: Cell<usize>,
}

thread_local! {
    static STACK: Stack = const { Stack { depth: Cell::new(0), half: Cell::new(0) } };
}

impl Stack {
    /// Whether one more frame is one too many, for the caller at this address.
    #[inline(always)]
    fn is_full(&self, here: usize) -> bool {
        if self.half.get() == 0 {
            self.measure(here);
        }
        self.depth.get() >= MAX_DEPTH || here < self.half.get()
    }

    #[cold]
    #[inline(never)]
    fn measure(&self, here: usize) {
        self.half.set(here.saturating_sub(stack_bytes() / 2).max(1));
    }
}

/// How large the calling thread's stack may be, or may become.
fn stack_bytes() -> usize {
    const USUAL: usize = 8 << 20;
    // SAFETY: what is read was filled, and the attributes are given back. That of the main thread
    // is asked for in another way, which opens no file.
    unsafe {
        if gettid() == libc::getpid() {
            let mut limit = std::mem::zeroed::<libc::rlimit>();
            let known = libc::getrlimit(libc::RLIMIT_STACK, &mut limit) == 0;
            let bytes = usize::try_from(limit.rlim_cur).unwrap_or(USUAL);
            return if known { bytes.min(USUAL) } else { 0 };
        }
        let (mut attributes, mut bytes) = (std::mem::zeroed(), 0);
        if libc::pthread_getattr_np(libc::pthread_self(), &mut attributes) != 0 {
            return 0;
        }
        libc::pthread_attr_getstacksize(&attributes, &mut bytes);
        libc::pthread_attr_destroy(&mut attributes);
        bytes.min(USUAL)
    }
}

/// The part of Python's C interface that this needs, from 3.12 on.
struct Api {
    interpreter: unsafe extern "C" fn() -> *mut c_void,
    get: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    set: unsafe extern "C" fn(*mut c_void, *mut c_void),
    code: unsafe extern "C" fn(*const u8) -> Object,
}

impl Api {
    #[allow(clippy::missing_transmute_annotations, reason = "the fields say the types")]
    fn find() -> Option<Api> {
        macro_rules! symbol {
            ($name:literal) => {
                // SAFETY: what has this name in a process has the type of the field.
                unsafe { std::mem::transmute::<*mut c_void, _>(find(&[$name])?) }
            };
        }
        Some(Api {
            interpreter: symbol!(c"PyInterpreterState_Get"),
            get: symbol!(c"_PyInterpreterState_GetEvalFrameFunc"),
            set: symbol!(c"_PyInterpreterState_SetEvalFrameFunc"),
            code: symbol!(c"PyUnstable_InterpreterFrame_GetCode"),
        })
    }

    /// Has frames run by `to` if they are run by `from`. Whether that is so.
    ///
    /// # Safety
    /// The interpreter's lock is held, and `to` is a [`Run`].
    unsafe fn replace(&self, from: *mut c_void, to: *mut c_void) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            let interpreter = (self.interpreter)();
            let found = (self.get)(interpreter) == from;
            if found {
                (self.set)(interpreter, to);
            }
            found
        }
    }
}

fn address(run: Run) -> *mut c_void {
    run as *mut c_void
}

/// Has calls seen from here on. False if this interpreter's frames are not known, or calls are
/// seen already by others that a deep one would have to go over to.
///
/// # Safety
/// The interpreter's lock is held.
pub(super) unsafe fn start(calls: &Calls) -> bool {
    if ON.load(Ordering::Acquire) {
        return true;
    }
    // SAFETY: the caller's promise.
    unsafe {
        let Some(api) = Api::find().filter(|_| monitoring::prepare(calls)) else { return false };
        let before = (api.get)((api.interpreter)());
        let left = LEFT.load(Ordering::Acquire) && before != BEFORE.load(Ordering::Acquire);
        if before != address(run) && !left {
            BEFORE.store(before, Ordering::Release);
            if !is_known(&api, before) {
                return false;
            }
            api.replace(before, address(run));
        }
    }
    ON.store(true, Ordering::Release);
    state("functions (frame evaluation)");
    true
}

/// Has no more calls seen.
///
/// # Safety
/// The interpreter's lock is held.
pub(super) unsafe fn stop() {
    if ON.swap(false, Ordering::AcqRel)
        && let Some(api) = Api::find()
    {
        // SAFETY: the caller's promise; what ran frames before can do so again.
        let removed = unsafe { api.replace(address(run), BEFORE.load(Ordering::Acquire)) };
        LEFT.store(!removed, Ordering::Release);
    }
}

/// Runs a frame.
unsafe extern "C-unwind" fn run(thread: *mut c_void, frame: *const u8, throws: c_int) -> Object {
    // Asked for once: where a library has its thread-locals is a call.
    let (stack, producer) = (STACK.with(ptr::from_ref), producer());
    // SAFETY: the calling thread's, which has no destructor.
    let stack = unsafe { &*stack };
    let depth = stack.depth.get();
    // SAFETY: called by the interpreter, with a frame.
    let recorded = ON.load(Ordering::Relaxed)
        && unsafe {
            match throws {
                0 => begin(frame, false, stack, producer),
                _ => begin_raising(frame, stack, producer),
            }
        };
    stack.depth.set(depth + 1);
    // SAFETY: what ran frames before this did has this type, and gets what it would have got.
    let result = unsafe {
        let before = BEFORE.load(Ordering::Relaxed);
        std::mem::transmute::<*mut c_void, Run>(before)(thread, frame, throws)
    };
    stack.depth.set(depth);
    if recorded {
        guard((), || {
            PIPELINE.end_on(producer);
        });
    }
    result
}

/// An exception is thrown into a generator's frame. It is put aside meanwhile: what asks for the
/// name of a function needs none to be set, and clears those of its own.
///
/// # Safety
/// Called by the interpreter, with a frame and an exception.
#[cold]
#[inline(never)]
unsafe fn begin_raising(frame: *const u8, stack: &Stack, producer: &Producer) -> bool {
    let raised = Calls::get().and_then(|calls| calls.raised);
    let Some((take, raise)) = raised else { return false };
    // SAFETY: the caller's promise; what is taken is given back.
    unsafe {
        let exception = take();
        let recorded = begin(frame, true, stack, producer);
        raise(exception);
        recorded
    }
}

/// A frame begins, or goes on. Whether that was recorded.
///
/// # Safety
/// Called by the interpreter, with a frame. `throws`: it goes on with an exception.
#[inline(always)]
unsafe fn begin(frame: *const u8, throws: bool, stack: &Stack, producer: &Producer) -> bool {
    guard(false, || {
        let Some(calls) = Calls::get() else { return false };
        if stack.is_full(ptr::from_ref(&throws).addr()) && !throws {
            // SAFETY: the caller's promise.
            unsafe { go_over(calls) };
            return false;
        }
        if !PIPELINE.enabled(calls.category) {
            return false;
        }
        // SAFETY: the caller's promise, and frames were found to be laid out like this.
        let site = unsafe {
            let code = code(frame);
            if calls.makes_generators(code) && !is_of_generator(frame) {
                return false;
            }
            calls.site(code, || argument(frame))
        };
        !site.is_none() && PIPELINE.begin_on(producer, site, OPERATOR)
    })
}

/// Calls are nested too deep to go on here.
///
/// # Safety
/// The interpreter's lock is held, and no exception is set.
#[cold]
#[inline(never)]
unsafe fn go_over(calls: &'static Calls) {
    if wanted() == FUNCTIONS {
        // SAFETY: the caller's promise.
        unsafe {
            stop();
            monitoring::start(calls);
        }
    }
}

/// What a frame runs.
///
/// # Safety
/// It is a frame.
#[inline(always)]
unsafe fn code(frame: *const u8) -> Object {
    // SAFETY: the caller's promise.
    let word = unsafe { frame.cast::<*mut c_void>().read() };
    word.map_addr(|address| address & !FLAGS)
}

/// Whether a generator goes on in it.
///
/// # Safety
/// It is a frame.
#[inline(always)]
unsafe fn is_of_generator(frame: *const u8) -> bool {
    // SAFETY: the caller's promise, and the place was found to be this.
    unsafe { frame.add(OWNER.load(Ordering::Relaxed)).read() == GENERATOR }
}

/// A reference to its first argument, if it has one.
///
/// # Safety
/// It is a frame of a function that has arguments, and has not begun.
unsafe fn argument(frame: *const u8) -> Option<Object> {
    // SAFETY: the caller's promise, and the place was found to be this.
    let word = unsafe { frame.add(ARGUMENT.load(Ordering::Relaxed)).cast::<Object>().read() };
    let object = word.map_addr(|address| address & !FLAGS);
    let calls = Calls::get().filter(|_| !object.is_null())?;
    // SAFETY: it lives as long as the frame.
    unsafe { (calls.keep)(object) };
    Some(object)
}

const SOURCE: &str = "def f(x): return x
def g(x): yield x
f(mark)
for _ in g(mark): pass
\0";

/// What the functions of the check are called with, while that runs.
static MARK: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
/// Of places in [`PLACES`], as bits: where the mark was found, where the frame that makes a
/// generator had another owner, and where the frame in which it goes on had the one expected.
static FOUND: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];

/// Whether frames are laid out as expected: has the interpreter call two functions.
///
/// # Safety
/// The interpreter's lock is held, and `before` runs its frames.
unsafe fn is_known(api: &Api, before: *mut c_void) -> bool {
    let Some((python, _)) = PYTHON.get() else { return false };
    FOUND.iter().for_each(|found| found.store(0, Ordering::Relaxed));
    // SAFETY: the caller's promise; what is made is released.
    unsafe {
        let mark = (python.new_text)(c"kymograph".as_ptr());
        if mark.is_null() || !python.is_main() {
            (python.clear)();
            return false;
        }
        MARK.store(mark, Ordering::Release);
        api.replace(before, address(check));
        let ran = python.run(SOURCE, &[(c"mark", mark)]);
        api.replace(address(check), before);
        MARK.store(ptr::null_mut(), Ordering::Release);
        match ran {
            Some(globals) => (python.release)(globals),
            None => (python.clear)(),
        }
        (python.release)(mark);
    }
    let all = FOUND.iter().fold(usize::MAX, |all, found| all & found.load(Ordering::Relaxed));
    let found = (0..PLACES.len()).find(|place| all >> place & 1 != 0);
    let Some((owner, argument)) = found.and_then(|place| PLACES.get(place)) else { return false };
    OWNER.store(*owner, Ordering::Release);
    ARGUMENT.store(*argument, Ordering::Release);
    true
}

/// Runs a frame of the check, of the module or of a function.
unsafe extern "C-unwind" fn check(thread: *mut c_void, frame: *const u8, throws: c_int) -> Object {
    // SAFETY: called by the interpreter, with a frame; as in `run`.
    unsafe {
        guard((), || look(frame));
        let before = BEFORE.load(Ordering::Relaxed);
        std::mem::transmute::<*mut c_void, Run>(before)(thread, frame, throws)
    }
}

/// # Safety
/// Called by the interpreter, with a frame.
unsafe fn look(frame: *const u8) {
    let (Some(api), Some(calls)) = (Api::find(), Calls::get()) else { return };
    // SAFETY: the caller's promise. A frame has as many bytes: behind it lies the stack that it is
    // on, or the rest of the generator. References are given back.
    unsafe {
        let expected = (api.code)(frame);
        let is_code = expected == code(frame);
        let name = calls.text(expected, c"co_name");
        (calls.release)(expected);
        let mark = MARK.load(Ordering::Acquire).addr();
        for (place, (owner, argument)) in PLACES.into_iter().enumerate() {
            let is_generator = frame.add(owner).read() == GENERATOR;
            let has_mark = frame.add(argument).cast::<usize>().read() & !FLAGS == mark;
            let found = match name.as_deref() {
                Some(b"f") if has_mark && !is_generator => 0,
                Some(b"g") if has_mark => 1 + usize::from(is_generator),
                _ => continue,
            };
            if is_code && let Some(found) = FOUND.get(found) {
                found.fetch_or(1 << place, Ordering::Relaxed);
            }
        }
    }
}
