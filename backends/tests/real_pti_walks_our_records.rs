//! The sizes of records that the fake PTI uses, and what it does without a driver, against
//! Intel's own libraries.
//!
//! `tests/oracle/setup pti` fetches them. What they need of Level Zero and of SYCL is made up
//! here: functions that say that there is nothing. That is enough for all that works without
//! a device.

mod real;
#[path = "../fakes/intel/libpti/sizes.rs"]
#[allow(dead_code)]
mod sizes;

use std::collections::BTreeSet;
use std::ffi::{CStr, c_char, c_int};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::ptr;

use real::{Library, child, libraries, lines};

/// Wheels.
const VERSIONS: [(&str, (u32, u32)); 2] = [("1.1.0", (1, 1)), ("1.2.0", (1, 2))];

/// Names the library in the child, and what to ask it.
const LIBRARY: &str = "KYMO_TEST_REAL_PTI";
const QUESTION: &str = "KYMO_TEST_REAL_PTI_QUESTION";

/// The functions that we use (`backends/src/intel/sys.rs`).
const FUNCTIONS: [&CStr; 13] = [
    c"ptiVersion",
    c"ptiViewSetCallbacks",
    c"ptiViewEnable",
    c"ptiViewDisable",
    c"ptiFlushAllViews",
    c"ptiViewGetNextRecord",
    c"ptiViewGetApiIdName",
    c"ptiViewGPULocalAvailable",
    c"ptiResultTypeToString",
    c"ptiViewEnableRuntimeApiClass",
    c"ptiViewEnableDriverApiClass",
    c"ptiViewMemcpyTypeToString",
    c"ptiViewMemoryTypeToString",
];

/// Libraries that have all functions of Level Zero and XPTI that this one needs. Each says
/// `ZE_RESULT_ERROR_UNINITIALIZED`.
fn stand_ins(library: &Path, folder: &Path) {
    let bytes = std::fs::read(library.with_file_name("pti/libpti.so")).expect("libpti.so");
    let is_function = |text: &&[u8]| {
        let begins = ["ze", "zes", "zet", "zel", "xpti"].into_iter().any(|prefix| {
            let rest = text.strip_prefix(prefix.as_bytes());
            rest.and_then(<[u8]>::first).is_some_and(u8::is_ascii_uppercase)
        });
        begins && text.iter().all(u8::is_ascii_alphanumeric)
    };
    let names: BTreeSet<_> = bytes.split(|byte| *byte == 0).filter(is_function).collect();
    assert!(names.len() > 60, "{}", names.len());
    let source: String = names
        .into_iter()
        .map(|name| {
            format!("int {}(void) {{ return 0x78000001; }}\n", String::from_utf8_lossy(name))
        })
        .collect();
    let file = folder.join("stand_in.c");
    std::fs::write(&file, source).expect("a file");
    for name in ["libze_loader.so.1", "libxptifw.so"] {
        let mut command = Command::new("cc");
        command.args(["-shared", "-fPIC", "-fno-builtin", "-w", "-o"]).arg(folder.join(name));
        assert!(command.arg(&file).status().expect("a C compiler").success());
    }
}

/// What a child says that asks the library.
fn ask(library: &Path, question: &str, path: &Path) -> Output {
    child()
        .env(LIBRARY, library)
        .env(QUESTION, question)
        .env("LD_LIBRARY_PATH", path)
        .output()
        .expect("the child")
}

#[test]
fn records_are_as_long_as_we_think() {
    let Some(libraries) = libraries("pti") else {
        return;
    };
    for (version, number) in VERSIONS {
        let folder = tempfile::tempdir().expect("a folder");
        let library = libraries.join(version).join("libpti_view.so.1");
        stand_ins(&library, folder.path());
        let mut expected = vec![format!("version {}.{}", number.0, number.1)];
        for kind in 0..16 {
            let size = sizes::size_of(kind, number).unwrap_or(0);
            expected.push(format!("kind {kind}: {size}"));
        }
        expected.extend(["copies: M2M H2D D2H S2S INVALID", "missing:"].map(str::to_owned));
        assert_eq!(lines(&ask(&library, "sizes", folder.path())), expected, "{version}");
    }
}

/// Without what `libpti.so` needs, everything but the version is not implemented.
#[test]
fn without_its_other_half_it_does_nothing() {
    let Some(libraries) = libraries("pti") else {
        return;
    };
    for (version, number) in VERSIONS {
        let folder = tempfile::tempdir().expect("a folder");
        let library = libraries.join(version).join("libpti_view.so.1");
        let expected = [format!("version {}.{}", number.0, number.1), "enable: 2 2 2".to_owned()];
        assert_eq!(lines(&ask(&library, "enable", folder.path())), expected, "{version}");
    }
}

/// Why Level Zero is asked first: without a driver PTI ends the process.
#[test]
fn without_a_driver_it_ends_the_process() {
    let Some(libraries) = libraries("pti") else {
        return;
    };
    for (version, _) in VERSIONS {
        let folder = tempfile::tempdir().expect("a folder");
        let library = libraries.join(version).join("libpti_view.so.1");
        stand_ins(&library, folder.path());
        let output = ask(&library, "enable", folder.path());
        assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{version}: {output:?}");
    }
}

struct Pti(Library);

impl Pti {
    fn version(&self) -> [u32; 3] {
        // SAFETY: pti_version.h declares it so: a struct of three numbers.
        unsafe {
            let version: unsafe extern "C" fn() -> [u32; 3] = self.0.function(c"ptiVersion");
            version()
        }
    }

    /// The size of a kind's records: where the second one begins when every eighth byte
    /// could be a beginning.
    fn size(&self, kind: u32) -> usize {
        type Next = unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> c_int;
        let mut bytes = [u64::from(kind); 256];
        let start = bytes.as_mut_ptr().cast::<u8>();
        let mut record = ptr::null_mut::<u8>();
        for _ in 0..2 {
            // SAFETY: pti_view.h declares it so; a buffer with this many bytes.
            let status = unsafe {
                let next: Next = self.0.function(c"ptiViewGetNextRecord");
                next(start, 2048, &mut record)
            };
            if status != 0 {
                return 0;
            }
        }
        record.addr() - start.addr()
    }

    fn copy(&self, kind: c_int) -> String {
        // SAFETY: pti_view.h declares it so; a static string.
        unsafe {
            let name: unsafe extern "C" fn(c_int) -> *const c_char =
                self.0.function(c"ptiViewMemcpyTypeToString");
            CStr::from_ptr(name(kind)).to_string_lossy().into_owned()
        }
    }
}

unsafe extern "C" fn no_buffer(_: *mut *mut u8, _: *mut usize) {}
unsafe extern "C" fn nothing(_: *mut u8, _: usize, _: usize) {}

/// Not a test: what [`ask`] runs.
#[test]
fn the_child_asks() {
    let (Ok(path), Ok(question)) = (std::env::var(LIBRARY), std::env::var(QUESTION)) else {
        return;
    };
    let pti = Pti(Library::load(&path));
    let [major, minor, _] = pti.version();
    println!("\n> version {major}.{minor}");
    if question == "sizes" {
        for kind in 0..16 {
            println!("> kind {kind}: {}", pti.size(kind));
        }
        let copies = [0, 6, 9, 15, 16].map(|kind| pti.copy(kind)).join(" ");
        println!("> copies: {copies}");
        let missing =
            FUNCTIONS.iter().filter(|name| !pti.0.has(name)).map(|name| format!(" {name:?}"));
        println!("> missing:{}", missing.collect::<String>());
        return;
    }
    type Set = unsafe extern "C" fn(
        unsafe extern "C" fn(*mut *mut u8, *mut usize),
        unsafe extern "C" fn(*mut u8, usize, usize),
    ) -> c_int;
    // SAFETY: pti_view.h declares them so.
    let (set, enable, flush) = unsafe {
        let set: Set = pti.0.function(c"ptiViewSetCallbacks");
        let enable: unsafe extern "C" fn(u32) -> c_int = pti.0.function(c"ptiViewEnable");
        let flush: unsafe extern "C" fn() -> c_int = pti.0.function(c"ptiFlushAllViews");
        (set(no_buffer, nothing), enable(1), flush())
    };
    println!("> enable: {set} {enable} {flush}");
}
