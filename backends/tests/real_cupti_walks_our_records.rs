//! NVIDIA's own libraries say how long their records are: our table of sizes, and what the
//! fake CUPTI does without a driver, against them.
//!
//! `tests/oracle/setup cupti` fetches them. Each is loaded in a process of its own, because
//! two in one disturb each other. Versions from 13.2 on are not asked: they call the driver
//! first, 13.2 until its stack ends.

#[allow(dead_code)]
mod real;
#[path = "../fakes/nvidia/libcupti/sizes.rs"]
#[allow(dead_code)]
mod sizes;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;

use real::{Library, child, libraries, lines};

/// Wheels, and the toolkits that they are of.
const VERSIONS: [(&str, u32); 6] = [
    ("11.8.87", 1108),
    ("12.0.146", 1200),
    ("12.6.80", 1206),
    ("12.9.79", 1209),
    ("13.0.85", 1300),
    ("13.1.115", 1301),
];

/// Names the library in the child.
const LIBRARY: &str = "KYMO_TEST_REAL_CUPTI";

/// What the child says of the library in this folder, line by line.
fn ask(folder: &Path) -> Vec<String> {
    let library = std::fs::read_dir(folder).expect("the version's folder").flatten();
    let library = library.map(|entry| entry.path()).find(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libcupti"))
    });
    let mut child = child();
    child.env(LIBRARY, library.expect("a library"));
    lines(&child.output().expect("the child"))
}

#[test]
fn records_are_as_long_as_we_think() {
    let Some(folder) = libraries("cupti") else {
        return;
    };
    for (version, toolkit) in VERSIONS {
        let mut expected = Vec::new();
        for (kind, _) in sizes::SIZES {
            let size = sizes::size_of(*kind, toolkit).unwrap_or(0);
            expected.push(format!("kind {kind}: {size}"));
        }
        let said = ask(&folder.join(version));
        let kinds: Vec<_> = said.into_iter().filter(|line| line.starts_with("kind")).collect();
        assert_eq!(kinds, expected, "{version}");
    }
}

/// What `fakes/libcupti` was made to do.
#[test]
fn without_a_driver_they_answer_as_the_fake_does() {
    let Some(folder) = libraries("cupti") else {
        return;
    };
    for (version, toolkit) in VERSIONS {
        let api = match toolkit {
            1206 => 24,
            1209 => 28,
            1300 => 130_001,
            1301 => 130_101,
            _ => 18,
        };
        let missing = if toolkit < 1300 { 15 } else { 999 };
        let unknown = if toolkit < 1204 { 999 } else { 21 };
        let expected = [
            format!("version: {api}"),
            "cut in the second record: 0 12".to_owned(),
            "cut in the first record: 12".to_owned(),
            format!("unknown kind: 0 {unknown}"),
            "nothing: 12".to_owned(),
            format!("enable: {missing}"),
            format!("flush: {missing}"),
            "register: 0".to_owned(),
            "runtime 211: cudaLaunchKernel_v7000".to_owned(),
            "driver 307: cuLaunchKernel".to_owned(),
            "runtime 17: cudaGetDevice_v3020".to_owned(),
            "runtime 9999: 1".to_owned(),
        ];
        let said = ask(&folder.join(version));
        let others: Vec<_> = said.into_iter().filter(|line| !line.starts_with("kind")).collect();
        assert_eq!(others, expected, "{version}");
    }
}

type Next = unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> c_int;

struct Cupti(Library);

impl Cupti {
    /// Where the records of a buffer begin, and the status that ended the walk.
    fn walk(&self, bytes: &mut [u64], valid: usize, most: usize) -> (Vec<usize>, c_int) {
        // SAFETY: `cupti_activity.h` declares it so.
        let next: Next = unsafe { self.0.function(c"cuptiActivityGetNextRecord") };
        let start = bytes.as_mut_ptr().cast::<u8>();
        let (mut record, mut found) = (ptr::null_mut::<u8>(), Vec::new());
        while found.len() < most {
            // SAFETY: a buffer with this many bytes, and the record found before.
            let status = unsafe { next(start, valid, &mut record) };
            if status != 0 {
                return (found, status);
            }
            found.push(record.addr() - start.addr());
        }
        (found, 0)
    }

    /// The size of a kind's records: where the second one begins when every eighth byte
    /// could be a beginning.
    fn size(&self, kind: u32) -> usize {
        let mut bytes = [u64::from(kind); 256];
        let valid = size_of_val(&bytes);
        self.walk(&mut bytes, valid, 2).0.get(1).copied().unwrap_or(0)
    }

    fn name(&self, domain: u32, cbid: u32) -> String {
        type Name = unsafe extern "C" fn(u32, u32, *mut *const c_char) -> c_int;
        let mut name = ptr::null();
        // SAFETY: `cupti_callbacks.h` declares it so.
        let function: Name = unsafe { self.0.function(c"cuptiGetCallbackName") };
        // SAFETY: a place for the answer.
        match unsafe { function(domain, cbid, &mut name) } {
            // SAFETY: the library's string.
            0 => unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned(),
            status => status.to_string(),
        }
    }

    fn one(&self, name: &CStr, argument: u32) -> c_int {
        // SAFETY: those that are asked for have this type.
        let function: unsafe extern "C" fn(u32) -> c_int = unsafe { self.0.function(name) };
        // SAFETY: a number, of the header's.
        unsafe { function(argument) }
    }
}

unsafe extern "C" fn no_buffer(_: *mut *mut u8, _: *mut usize, _: *mut usize) {}
unsafe extern "C" fn nothing(_: *mut c_void, _: u32, _: *mut u8, _: usize, _: usize) {}

/// Not a test: what [`ask`] runs.
#[test]
fn the_child_asks() {
    let Ok(path) = std::env::var(LIBRARY) else {
        return;
    };
    let cupti = Cupti(Library::load(&path));
    println!();

    let mut version = 0;
    // SAFETY: `cupti_version.h` declares it so, and there is a place for the answer.
    unsafe {
        let get: unsafe extern "C" fn(*mut u32) -> c_int = cupti.0.function(c"cuptiGetVersion");
        get(&mut version);
    }
    println!("> version: {version}");

    for (kind, _) in sizes::SIZES {
        println!("> kind {kind}: {}", cupti.size(*kind));
    }

    let two = |second: u64| [5, 0, 0, 0, 0, second, 0, 0, 0, 0];
    let (starts, status) = cupti.walk(&mut two(5), 60, 9);
    assert_eq!(starts, [0]);
    println!("> cut in the second record: 0 {status}");
    println!("> cut in the first record: {}", cupti.walk(&mut two(5), 20, 9).1);
    println!("> unknown kind: 0 {}", cupti.walk(&mut two(200), 80, 9).1);
    println!("> nothing: {}", cupti.walk(&mut two(5), 0, 9).1);

    println!("> enable: {}", cupti.one(c"cuptiActivityEnable", 10));
    println!("> flush: {}", cupti.one(c"cuptiActivityFlushAll", 0));
    type Register = unsafe extern "C" fn(
        unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize),
        unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize),
    ) -> c_int;
    // SAFETY: `cupti_activity.h` declares it so; without a driver nothing is ever called.
    let status = unsafe {
        let register: Register = cupti.0.function(c"cuptiActivityRegisterCallbacks");
        register(no_buffer, nothing)
    };
    println!("> register: {status}");

    println!("> runtime 211: {}", cupti.name(2, 211));
    println!("> driver 307: {}", cupti.name(1, 307));
    println!("> runtime 17: {}", cupti.name(2, 17));
    println!("> runtime 9999: {}", cupti.name(2, 9999));
}
