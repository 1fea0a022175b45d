//! A program that uses CUDA, HIP, Level Zero or Synapse, with the fakes: it loads
//! `libcuda.so.1` or what stands for it, and does what a script says, with each that is
//! named, one after the other.
//!
//! usage: `fake_cuda_program [--cuda] [--hip] [--xpu|--sycl] [--hpu] [--nvtx NAME] [--client]
//! [--release] [--hold] [--attach TOOL] [--exit N] [SCRIPT]`
//!
//! The script is the file SCRIPT, or the file or text in `FAKE_CUPTI_SCRIPT`; its grammar
//! is the fake driver's. Lines that say `thread` cut it into parts, which threads of their
//! own do, all at once; what comes before the first is done before, on the main thread.
//! `push NAME` and `pop`, outside of blocks, begin and end NVTX ranges.
//!
//! - `--cuda` (which is what it uses if nothing is said), `--hip`, `--xpu` (Level Zero),
//!   `--sycl` (Level Zero as SYCL's runtime uses it) and `--hpu` (Synapse) name interfaces;
//!   `--both` is CUDA and HIP.
//! - `--nvtx NAME` puts an NVTX range around every thread's part.
//! - `--roctx NAME` puts a ROCTX range, another inside, and one that is not nested around all.
//! - `--client` makes the program a user of CUPTI itself, as one that profiles itself with
//!   PyTorch is; it prints how many records of each kind it got. `--pti-client` is the same of
//!   PTI, whose session begins and ends with the second of the script's parts between `---`.
//! - `--release` makes it give Synapse's devices back.
//! - `--attach TOOL` has rocprofv3 attach with this library, where the script says `---`.
//! - `--hold` waits for its standard input to end before it does.
//! - `--exit N` ends it with that status, which is 0 otherwise, also without CUDA.

mod client;
mod gaudi;
mod intel;
mod nvtx;
mod pti;
mod roctx;

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::io::Read as _;

#[derive(Clone, Copy)]
enum Interface {
    Cuda,
    Hip,
    LevelZero,
    Sycl,
    Synapse,
}

struct Arguments {
    interfaces: Vec<Interface>,
    nvtx: Option<CString>,
    roctx: Option<CString>,
    client: bool,
    pti_client: bool,
    release: bool,
    hold: bool,
    attach: Option<CString>,
    exit: i32,
    script: String,
}

fn arguments() -> Arguments {
    let mut script = std::env::var("FAKE_CUPTI_SCRIPT").unwrap_or_default();
    let (mut interfaces, mut release, mut pti_client) = (Vec::new(), false, false);
    let (mut nvtx, mut roctx, mut client, mut hold, mut exit) = (None, None, false, false, 0);
    let mut attach = None;
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--nvtx" => nvtx = words.next().and_then(|name| CString::new(name).ok()),
            "--cuda" => interfaces.push(Interface::Cuda),
            "--hip" => interfaces.push(Interface::Hip),
            "--both" => interfaces.extend([Interface::Cuda, Interface::Hip]),
            "--roctx" => roctx = words.next().and_then(|name| CString::new(name).ok()),
            "--client" => client = true,
            "--pti-client" => pti_client = true,
            "--xpu" => interfaces.push(Interface::LevelZero),
            "--sycl" => interfaces.push(Interface::Sycl),
            "--hpu" => interfaces.push(Interface::Synapse),
            "--release" => release = true,
            "--hold" => hold = true,
            "--attach" => attach = words.next().and_then(|path| CString::new(path).ok()),
            "--exit" => exit = words.next().and_then(|n| n.parse().ok()).expect("--exit N"),
            _ => script = word,
        }
    }
    if !script.contains('\n') {
        script = std::fs::read_to_string(&script).unwrap_or(script);
    }
    if interfaces.is_empty() {
        interfaces.push(Interface::Cuda);
    }
    Arguments { interfaces, nvtx, roctx, client, pti_client, release, hold, attach, exit, script }
}

impl Interface {
    fn name(self) -> &'static str {
        match self {
            Interface::Cuda => "CUDA",
            Interface::Hip => "HIP",
            Interface::LevelZero | Interface::Sycl => "Level Zero",
            Interface::Synapse => "Synapse",
        }
    }

    fn start(self) -> Option<Run> {
        match self {
            Interface::Cuda => cuda(),
            Interface::Hip => hip(),
            Interface::LevelZero => intel::start(false),
            Interface::Sycl => intel::start(true),
            Interface::Synapse => gaudi::start(),
        }
    }
}

type Run = unsafe extern "C" fn(*const c_char) -> c_int;

/// The driver's functions that the program calls, once it is initialised.
fn cuda() -> Option<Run> {
    let library = load(c"libcuda.so.1")?;
    // SAFETY: `cuda.h` declares it so.
    let init: unsafe extern "C" fn(c_uint) -> c_int = unsafe { symbol(library, c"cuInit")? };
    // SAFETY: zero is the only flag there is.
    if unsafe { init(0) } != 0 {
        return None;
    }
    // SAFETY: the fake declares it so.
    unsafe { symbol(library, c"fake_cuda_run") }
}

/// The same of HIP.
fn hip() -> Option<Run> {
    let library = load(c"libamdhip64.so.6")?;
    // SAFETY: the fake declares it so.
    unsafe { symbol(library, c"fake_hip_run") }
}

pub(crate) fn load(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a string, and a library that is meant to be loaded.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    (!library.is_null()).then_some(library)
}

/// # Safety
/// `F` is the type of the function with this name.
pub(crate) unsafe fn symbol<F: Copy>(library: *mut c_void, name: &CStr) -> Option<F> {
    // SAFETY: a library, or null for all, and a string.
    let symbol = unsafe { libc::dlsym(library, name.as_ptr()) };
    assert_eq!(size_of::<F>(), size_of_val(&symbol));
    // SAFETY: a function pointer, of the type that the caller says.
    (!symbol.is_null()).then(|| unsafe { std::mem::transmute_copy(&symbol) })
}

fn main() {
    let arguments = arguments();
    for interface in &arguments.interfaces {
        match interface.start() {
            Some(run) => match &arguments.roctx {
                Some(name) => roctx::around(name, || work(run, &arguments)),
                None => work(run, &arguments),
            },
            None => println!("no {}", interface.name()),
        }
    }
    if arguments.release {
        gaudi::release();
    }
    if arguments.hold {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
    }
    std::process::exit(arguments.exit);
}

/// Whether a line is about ranges: the name of one that begins, or none.
fn range(line: &str) -> Option<Option<&str>> {
    match line.trim_end().split_once(' ') {
        Some(("push", name)) => Some(Some(name)),
        None if line.trim_end() == "pop" => Some(None),
        _ => None,
    }
}

/// What a thread of the process does for rocprofv3 when that attaches.
fn attach(tool: &CStr) {
    let library = load(c"librocprofiler-register.so.0").expect("rocprofiler-register");
    type Attach = unsafe extern "C" fn(*const c_char, *const c_char) -> c_int;
    // SAFETY: the fake declares it so.
    let attach = unsafe { symbol::<Attach>(library, c"rocprofiler_register_attach") };
    // SAFETY: no environment, and a string.
    let result = attach.map(|attach| unsafe { attach(std::ptr::null(), tool.as_ptr()) });
    println!("attached: {result:?}");
}

fn work(run: Run, arguments: &Arguments) {
    if let Some(tool) = &arguments.attach {
        for (number, script) in arguments.script.split("---\n").enumerate() {
            if number == 1 {
                attach(tool);
            }
            parts(run, arguments, script);
        }
        return;
    }
    if !arguments.pti_client {
        return parts(run, arguments, &arguments.script);
    }
    for (number, script) in arguments.script.split("---\n").enumerate() {
        let client = (number % 2 == 1).then(pti::Client::start);
        parts(run, arguments, script);
        client.into_iter().for_each(pti::Client::stop);
    }
}

fn parts(run: Run, arguments: &Arguments, script: &str) {
    let client = arguments.client.then(client::Client::start);
    let part = |text: &str| {
        if let Some(name) = &arguments.nvtx {
            nvtx::push(name);
        }
        for piece in text
            .split_inclusive('\n')
            .collect::<Vec<_>>()
            .chunk_by(|a, b| ![a, b].iter().any(|line| range(line).is_some()))
        {
            match range(piece[0]) {
                Some(Some(name)) => nvtx::push(&CString::new(name).expect("no NUL")),
                Some(None) => nvtx::pop(),
                None => {
                    let text = CString::new(piece.concat()).expect("no NUL");
                    // SAFETY: a string.
                    assert_eq!(unsafe { run(text.as_ptr()) }, 0);
                }
            }
        }
        if arguments.nvtx.is_some() {
            nvtx::pop();
        }
    };
    let mut parts = script.split("\nthread\n");
    part(parts.next().unwrap_or_default());
    std::thread::scope(|scope| {
        for text in parts {
            scope.spawn(move || part(text));
        }
    });
    if let Some(client) = client {
        client.stop();
    }
}
