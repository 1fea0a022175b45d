//! What NVTX and ITT calls cost a program that Kymograph was injected into. This program
//! plays the annotation libraries: it loads `libkymograph.so` as they do, hands it their
//! tables, and calls what it finds there. See `docs/BENCHMARKS.md`.
//!
//! `cargo build --release && cargo bench --bench injected [-- --rounds N]`; the library is
//! `KYMOGRAPH_LIBRARY`, else the one in the target directory.

mod measure;

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::PathBuf;
use std::ptr;

use measure::cores;
use measure::floor::Floor;
use measure::table::{self, Row, Target};
use measure::turns::{self, Case};

/// Ranges in a batch.
const BATCH: u64 = 4096;
/// 25 characters.
const MESSAGE: &CStr = c"aten::scaled_dot_product_";

fn main() {
    let rounds = measure::option("rounds", 300);
    let Some(library) = library() else {
        println!("\nNo libkymograph.so: `cargo build --release` makes it.");
        return;
    };
    let [mine, other] = cores::two();
    // SAFETY: this program has one thread; the library reads these when it is attached.
    unsafe { std::env::set_var("KYMOGRAPH_OUTPUT", "/dev/null") };
    // The engine starts on the other core.
    cores::pin(&[other]);
    // SAFETY: the symbols are what NVTX and ITT say they are.
    let (nvtx, itt) = unsafe { (Nvtx::attach(&library), Itt::attach(&library)) };
    cores::pin(&[mine]);
    measure(rounds, &nvtx, &itt);
}

fn library() -> Option<libloading::Library> {
    let this = std::env::current_exe().ok()?;
    let beside = this.parent()?.parent()?.join("libkymograph.so");
    let path = std::env::var_os("KYMOGRAPH_LIBRARY").map_or(beside, PathBuf::from);
    // SAFETY: what it does when it is loaded is what is measured.
    unsafe { libloading::Library::new(path) }.ok()
}

#[rustfmt::skip]
fn measure(rounds: usize, nvtx: &Nvtx, itt: &Itt) {
    let mut floor = Floor::new();
    let text = MESSAGE.as_ptr();
    // SAFETY: functions of the types that the libraries declare, called as programs do.
    let mut cases = unsafe {
        let domain = (nvtx.domain_create)(c"bench".as_ptr());
        let registered = Attributes::new(3, (nvtx.register_string)(domain, text));
        let ascii = Attributes::new(1, text.cast());
        let itt_domain = (itt.domain_create)(c"bench".as_ptr());
        let handle = (itt.string_create)(text);
        [
            Case::new("floor", BATCH, || floor.run(BATCH)),
            repeat("NVTX push and pop, 25 characters", || {
                (nvtx.push)(text);
                (nvtx.pop)();
            }),
            repeat("NVTX push and pop in a domain, 25 characters", move || {
                (nvtx.domain_push)(domain, &ascii);
                (nvtx.domain_pop)(domain);
            }),
            repeat("NVTX push and pop in a domain, registered string", move || {
                (nvtx.domain_push)(domain, &registered);
                (nvtx.domain_pop)(domain);
            }),
            repeat("NVTX mark, 25 characters", || (nvtx.mark)(text)),
            repeat("NVTX start and end, 25 characters", || (nvtx.end)((nvtx.start)(text))),
            repeat("ITT task, string handle", move || {
                (itt.task_begin)(itt_domain, Id::NONE, Id::NONE, handle);
                (itt.task_end)(itt_domain);
            }),
            repeat("ITT task, handle looked up by 25 characters", move || {
                let handle = (itt.string_create)(text);
                (itt.task_begin)(itt_domain, Id::NONE, Id::NONE, handle);
                (itt.task_end)(itt_domain);
            }),
        ]
    };
    turns::take(&mut cases, rounds);
    let most = Target::Nanos(60.0);
    let none = Target::None;
    let targets = [none, most, none, most, none, none, most, none];
    let rows: Vec<_> = cases.iter().zip(targets).map(|(c, t)| Row::new(c, &cases[0], t)).collect();
    table::print("Through the injected library, while the engine on another core encodes", &rows);
}

fn repeat<'a>(name: &str, call: impl Fn() + 'a) -> Case<'a> {
    let batch = move || (0..BATCH).for_each(|_| call());
    Case::new(name, BATCH, batch).after(|| measure::pace(BATCH))
}

type Function = *const ();
type Handle = *const c_void;

/// # Safety
/// `F` is the type of the function.
unsafe fn typed<F: Copy>(function: Function) -> F {
    assert!(!function.is_null() && size_of::<F>() == size_of::<Function>());
    // SAFETY: of the same size, and by the caller's promise a function of that type.
    unsafe { std::mem::transmute_copy(&function) }
}

/// `nvtxEventAttributes_t` (nvtx3/nvToolsExt.h).
#[repr(C)]
#[derive(Clone, Copy)]
struct Attributes {
    version: u16,
    size: u16,
    category: u32,
    color_type: i32,
    color: u32,
    payload_type: i32,
    reserved: i32,
    payload: u64,
    message_type: i32,
    message: Handle,
}

impl Attributes {
    fn new(message_type: i32, message: Handle) -> Attributes {
        Attributes {
            version: 3,
            size: size_of::<Attributes>() as u16,
            category: 0,
            color_type: 0,
            color: 0,
            payload_type: 0,
            reserved: 0,
            payload: 0,
            message_type,
            message,
        }
    }
}

const SLOTS: usize = 16;
// The tables of one copy of NVTX (nvtx3/nvtxDetail/nvtxTypes.h): where it looks for its
// functions.
static mut CORE: [Function; SLOTS] = [ptr::null(); SLOTS];
static mut CORE2: [Function; SLOTS] = [ptr::null(); SLOTS];
static mut CORE_TABLE: [*mut Function; SLOTS + 1] = [ptr::null_mut(); SLOTS + 1];
static mut CORE2_TABLE: [*mut Function; SLOTS + 1] = [ptr::null_mut(); SLOTS + 1];

/// `NvtxExportTableCallbacks`.
#[repr(C)]
struct Callbacks {
    size: usize,
    module_table: unsafe extern "C" fn(c_int, *mut *mut *mut Function, *mut c_uint) -> c_int,
}

static CALLBACKS: Callbacks = Callbacks { size: size_of::<Callbacks>(), module_table };

unsafe extern "C" fn export_table(id: u32) -> Handle {
    if id == 1 { ptr::from_ref(&CALLBACKS).cast() } else { ptr::null() }
}

unsafe extern "C" fn module_table(
    module: c_int,
    table: *mut *mut *mut Function,
    size: *mut c_uint,
) -> c_int {
    let of_module = match module {
        1 => &raw mut CORE_TABLE,
        5 => &raw mut CORE2_TABLE,
        _ => return 0,
    };
    // SAFETY: the caller's variables.
    unsafe {
        *table = of_module.cast();
        *size = SLOTS as c_uint;
    }
    1
}

/// What NVTX found in its slots.
struct Nvtx {
    push: unsafe extern "C" fn(*const c_char) -> c_int,
    pop: unsafe extern "C" fn() -> c_int,
    mark: unsafe extern "C" fn(*const c_char),
    start: unsafe extern "C" fn(*const c_char) -> u64,
    end: unsafe extern "C" fn(u64),
    domain_create: unsafe extern "C" fn(*const c_char) -> Handle,
    register_string: unsafe extern "C" fn(Handle, *const c_char) -> Handle,
    domain_push: unsafe extern "C" fn(Handle, *const Attributes) -> c_int,
    domain_pop: unsafe extern "C" fn(Handle) -> c_int,
}

impl Nvtx {
    /// # Safety
    /// `InitializeInjectionNvtx2` of the library is what NVTX expects it to be.
    unsafe fn attach(library: &libloading::Library) -> Nvtx {
        type Get = unsafe extern "C" fn(u32) -> Handle;
        // SAFETY: one thread; the types are those of nvtxTypes.h, by slot.
        unsafe {
            for slot in 1..SLOTS {
                CORE_TABLE[slot] = (&raw mut CORE).cast::<Function>().add(slot);
                CORE2_TABLE[slot] = (&raw mut CORE2).cast::<Function>().add(slot);
            }
            let initialize: libloading::Symbol<'_, unsafe extern "C" fn(Get) -> c_int> =
                library.get(c"InitializeInjectionNvtx2").expect("a library with the hooks");
            assert_eq!(initialize(export_table), 1, "NVTX could not be attached");
            Nvtx {
                push: typed(CORE[9]),
                pop: typed(CORE[11]),
                mark: typed(CORE[2]),
                start: typed(CORE[5]),
                end: typed(CORE[7]),
                domain_create: typed(CORE2[12]),
                register_string: typed(CORE2[10]),
                domain_push: typed(CORE2[4]),
                domain_pop: typed(CORE2[5]),
            }
        }
    }
}

/// `__itt_id` (ittnotify.h).
#[repr(C)]
#[derive(Clone, Copy)]
struct Id([u64; 3]);

impl Id {
    const NONE: Id = Id([0; 3]);
}

/// `__itt_api_info` and the part of `__itt_global` that a tool reads
/// (ittnotify_config.h).
#[repr(C)]
struct ApiInfo {
    name: *const c_char,
    function: *mut Function,
    init: Function,
    null: Function,
    group: c_int,
}

/// What the static part of ITT found.
struct Itt {
    domain_create: unsafe extern "C" fn(*const c_char) -> Handle,
    string_create: unsafe extern "C" fn(*const c_char) -> Handle,
    task_begin: unsafe extern "C" fn(Handle, Id, Id, Handle),
    task_end: unsafe extern "C" fn(Handle),
}

impl Itt {
    /// # Safety
    /// `__itt_api_init` of the library is what ITT expects it to be.
    unsafe fn attach(library: &libloading::Library) -> Itt {
        let names = [
            c"__itt_domain_create",
            c"__itt_string_handle_create",
            c"__itt_task_begin",
            c"__itt_task_end",
        ];
        let mut functions = [ptr::null::<()>(); 4];
        let at = (&raw mut functions).cast::<Function>();
        let info = |name, function| ApiInfo {
            name,
            function,
            init: ptr::null(),
            null: ptr::null(),
            group: 0,
        };
        // SAFETY: the array has an element for each name; it is read when all is done.
        let mut list: Vec<ApiInfo> =
            names.iter().enumerate().map(|(i, n)| info(n.as_ptr(), unsafe { at.add(i) })).collect();
        list.push(info(ptr::null(), ptr::null_mut()));
        // `__itt_global`: all zero but for the list, which lies at byte 120.
        let mut global = [0u64; 32];
        global[120 / 8] = list.as_mut_ptr().expose_provenance() as u64;
        // SAFETY: the descriptor is as large as the newest one, and nobody else uses it. The
        // types are those of ittnotify.h, by name.
        unsafe {
            let initialize: libloading::Symbol<'_, unsafe extern "C" fn(*mut u64, c_int)> =
                library.get(c"__itt_api_init").expect("a library with the hooks");
            initialize(global.as_mut_ptr(), 0);
            let [domain_create, string_create, task_begin, task_end] =
                at.cast::<[Function; 4]>().read();
            Itt {
                domain_create: typed(domain_create),
                string_create: typed(string_create),
                task_begin: typed(task_begin),
                task_end: typed(task_end),
            }
        }
    }
}
