//! Every ITT function, called through the list of a static part as a program would.

mod lines;

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

use kymograph_backends::annotate::itt;
use lines::{BUSY, CUT, FULL, Lines, REFUSE, take};

static LINES: Lines = Lines::new(None);

/// `__itt_domain`, laid out once more from ittnotify.h.
#[repr(C)]
struct Domain {
    flags: c_int,
    name: *const c_char,
    wide: usize,
    extra1: c_int,
    extra2: usize,
    next: *mut Domain,
}

/// `__itt_string_handle`.
#[repr(C)]
struct Handle {
    text: *const c_char,
    wide: usize,
    extra1: c_int,
    extra2: usize,
    next: *mut Handle,
}

/// `__itt_counter_info_t`.
#[repr(C)]
struct Counter {
    name: *const c_char,
    wide: usize,
    domain: *const c_char,
    wide_domain: usize,
    ty: c_int,
    index: i64,
    extra1: c_int,
    extra2: usize,
    next: *mut Counter,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Id(u64, u64, u64);
const NULL: Id = Id(0, 0, 0);

/// `__itt_api_info`.
#[repr(C)]
struct Info {
    name: *const c_char,
    function: *mut *const c_void,
    init: usize,
    null: usize,
    group: c_int,
}

/// `__itt_global`, as words: the list of functions is at byte 120, domains at 144,
/// strings at 152, counters at 168.
#[repr(C)]
struct Global([usize; 25]);

extern "C" fn null() {}

const NAMES: [&str; 48] = [
    "domain_create",
    "string_handle_create",
    "thread_set_name",
    "thr_name_set",
    "id_create",
    "id_destroy",
    "get_timestamp",
    "task_begin",
    "task_begin_fn",
    "task_end",
    "task_begin_ex",
    "task_begin_fn_ex",
    "task_end_ex",
    "marker",
    "marker_ex",
    "task_begin_overlapped",
    "task_begin_overlapped_ex",
    "task_end_overlapped",
    "task_end_overlapped_ex",
    "region_begin",
    "region_end",
    "frame_begin_v3",
    "frame_end_v3",
    "frame_submit_v3",
    "event_create",
    "event_start",
    "event_end",
    "metadata_add",
    "metadata_str_add",
    "metadata_add_with_scope",
    "metadata_str_add_with_scope",
    "counter_create",
    "counter_create_typed",
    "counter_create_v3",
    "counter_destroy",
    "counter_set_value",
    "counter_set_value_v3",
    "counter_set_value_ex",
    "counter_inc",
    "counter_inc_delta",
    "counter_dec",
    "counter_dec_delta",
    "counter_inc_v3",
    "counter_inc_delta_v3",
    "counter_dec_v3",
    "counter_dec_delta_v3",
    "sync_create",
    "domain_createW",
];

fn c(text: &str) -> CString {
    CString::new(text).unwrap()
}

/// A static part; what it points to lives on.
struct Part {
    functions: HashMap<&'static str, usize>,
}

fn attach(domains: *mut Domain, strings: *mut Handle, counters: *mut Counter) -> Part {
    let slots: &'static mut [*const c_void] = vec![ptr::null(); NAMES.len()].leak();
    let mut list: Vec<Info> = NAMES
        .iter()
        .zip(slots.iter_mut())
        .map(|(name, slot)| Info {
            name: c(&format!("__itt_{name}")).into_raw(),
            function: slot,
            init: 0,
            null: null as *const () as usize,
            group: 0,
        })
        .collect();
    list.push(Info { name: ptr::null(), function: ptr::null_mut(), init: 0, null: 0, group: 0 });
    let mut global = Global([0; 25]);
    global.0[3] = 20_180_723;
    global.0[15] = list.leak().as_ptr().expose_provenance();
    global.0[18] = domains.expose_provenance();
    global.0[19] = strings.expose_provenance();
    global.0[21] = counters.expose_provenance();
    // SAFETY: laid out as ITT's static part does.
    unsafe { itt::initialize((&raw mut global).cast(), 0, &LINES) };
    let functions = NAMES.iter().zip(slots.iter()).map(|(&name, slot)| (name, slot.addr()));
    Part { functions: functions.collect() }
}

fn part() -> &'static Part {
    static PART: OnceLock<Part> = OnceLock::new();
    PART.get_or_init(|| attach(ptr::null_mut(), ptr::null_mut(), ptr::null_mut()))
}

/// Calls an ITT function of the given type.
macro_rules! itt {
    ($name:ident, fn($($ty:ty),*) -> $ret:ty, $($arg:expr),*) => {{
        let function = part().functions[stringify!($name)];
        // SAFETY: the tool's function of this name, which has this type in ittnotify.h.
        unsafe {
            let function: unsafe extern "C" fn($($ty),*) -> $ret =
                std::mem::transmute(ptr::with_exposed_provenance::<()>(function));
            function($($arg),*)
        }
    }};
}

fn domain(name: &str) -> *mut Domain {
    itt!(domain_create, fn(*const c_char) -> *mut Domain, c(name).as_ptr())
}
fn string(text: &str) -> *mut Handle {
    itt!(string_handle_create, fn(*const c_char) -> *mut Handle, c(text).as_ptr())
}
fn begin(domain: *mut Domain, name: &str) {
    let name = string(name);
    itt!(task_begin, fn(*mut Domain, Id, Id, *mut Handle) -> (), domain, NULL, NULL, name);
}
fn end(domain: *mut Domain) {
    itt!(task_end, fn(*mut Domain) -> (), domain);
}
fn number(domain: *mut Domain, id: Id, key: &str, ty: c_int, count: usize, data: &[u8]) {
    itt!(
        metadata_add,
        fn(*mut Domain, Id, *mut Handle, c_int, usize, *const u8) -> (),
        domain,
        id,
        string(key),
        ty,
        count,
        data.as_ptr()
    );
}
fn text(domain: *mut Domain, id: Id, key: &str, data: &str, length: usize) {
    itt!(
        metadata_str_add,
        fn(*mut Domain, Id, *mut Handle, *const c_char, usize) -> (),
        domain,
        id,
        string(key),
        c(data).as_ptr(),
        length
    );
}

#[track_caller]
fn expect(expected: &[&str]) {
    // Range ids are numbered across tests, which run at once.
    let strip = |line: String| match line.rsplit_once(" r") {
        Some((head, id)) if id.parse::<u32>().is_ok() => format!("{head} r"),
        _ => line,
    };
    assert_eq!(take().into_iter().map(strip).collect::<Vec<_>>(), expected);
}

#[test]
fn functions_are_ours_or_null() {
    let own = null as *const () as usize;
    for (name, &function) in &part().functions {
        assert_eq!(function == own, *name == "sync_create", "{name}");
    }
    let again = attach(ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    assert_eq!(again.functions, part().functions);
}

#[test]
fn tasks_nest_per_domain() {
    let (a, b) = (domain("a"), domain("b"));
    assert_eq!(domain("a"), a);
    begin(a, "one");
    begin(b, "two");
    begin(a, "three");
    REFUSE.set(1);
    begin(b, "lost");
    end(b);
    end(a);
    end(b);
    end(a);
    end(a);
    expect(&[
        "push a \"one\"",
        "push b \"two\"",
        "push a \"three\"",
        "pop a",
        "pop b",
        "pop a",
        "pop a",
    ]);
    // One handle in two domains.
    begin(b, "one");
    end(b);
    // SAFETY: ours, and of this layout.
    unsafe { (*a).flags = 0 };
    begin(a, "switched off");
    end(a);
    expect(&["push b \"one\"", "pop b"]);
}

#[test]
fn tasks_by_function_or_with_timestamps() {
    let d = domain("variants");
    let function = itt::initialize as *const c_void;
    itt!(task_begin_fn, fn(*mut Domain, Id, Id, *const c_void) -> (), d, NULL, NULL, function);
    let now = itt!(get_timestamp, fn() -> u64,);
    let clock = ptr::null::<c_void>();
    itt!(task_end_ex, fn(*mut Domain, *const c_void, u64) -> (), d, clock, now);
    itt!(
        task_begin_ex,
        fn(*mut Domain, *const c_void, u64, Id, Id, *mut Handle) -> (),
        d,
        clock,
        now,
        NULL,
        NULL,
        string("timed")
    );
    end(d);
    let name = string("flag");
    itt!(marker, fn(*mut Domain, Id, *mut Handle, c_int) -> (), d, NULL, name, 1);
    itt!(marker, fn(*mut Domain, Id, *mut Handle, c_int) -> (), d, NULL, ptr::null_mut(), 77);
    let lines = take();
    assert!(lines[0].starts_with("push variants \""), "{lines:?}");
    assert_eq!(
        lines[1..],
        [
            "pop variants",
            "push variants \"timed\"",
            "pop variants",
            "instant variants \"flag\" scope=\"global\"",
            "instant variants \"unnamed\"",
        ]
    );
}

#[test]
fn metadata_is_added_at_the_end() {
    let d = domain("meta");
    begin(d, "outer");
    number(d, NULL, "bytes", 1, 1, &4096_u64.to_le_bytes());
    begin(d, "inner");
    number(d, NULL, "shape", 4, 2, &[1, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff]);
    number(d, NULL, "half", 6, 1, &[0xff, 0xff]);
    text(d, NULL, "file", "name.bin and more", 8);
    end(d);
    number(d, NULL, "ratio", 7, 1, &0.5_f32.to_le_bytes());
    end(d);
    number(d, NULL, "late", 8, 1, &0.25_f64.to_le_bytes());
    text(d, NULL, "whole", "zero-terminated", 0);
    number(d, NULL, "unknown", 55, 1, &[0; 8]);
    number(d, NULL, "none", 1, 0, &[]);
    expect(&[
        "push meta \"outer\"",
        "push meta \"inner\"",
        "pop meta shape[0]=1 shape[1]=-2 half=-1 file=\"name.bin\"",
        "pop meta bytes=4096u ratio=0.5",
        "instant meta \"late\" late=0.25",
        "instant meta \"whole\" whole=\"zero-terminated\"",
    ]);
    begin(d, "packed");
    (0..40_u64).for_each(|i| number(d, NULL, "n", 1, 1, &i.to_le_bytes()));
    end(d);
    let lines = take();
    assert_eq!(lines.len(), 2 + 8, "what finds no room is an instant: {lines:?}");
}

#[test]
fn metadata_waits_for_a_thread_that_adds_a_text() {
    BUSY.set(true);
    let d = domain("busy");
    begin(d, "read");
    number(d, NULL, "busy bytes", 1, 1, &4096_u64.to_le_bytes());
    text(d, NULL, "busy file", "name.bin", 0);
    end(d);
    BUSY.set(false);
    expect(&["push busy by value \"read\"", "pop busy busy bytes=4096u busy file=\"name.bin\""]);
}

#[test]
fn metadata_that_finds_no_room_is_counted() {
    let d = domain("crowded");
    begin(d, "read");
    number(d, NULL, "crowd", 1, 1, &4096_u64.to_le_bytes());
    FULL.set(true);
    text(d, NULL, "a key that is one too many", "name.bin", 0);
    FULL.set(false);
    end(d);
    expect(&["push crowded \"read\"", "pop crowded crowd=4096u"]);
    assert_eq!(CUT.get(), 1);
}

#[test]
fn overlapped_tasks_frames_and_regions() {
    let d = domain("overlap");
    let (x, y) = (Id(1, 2, 3), Id(1, 2, 4));
    for (id, name) in [(x, "x"), (y, "y")] {
        let name = string(name);
        itt!(task_begin_overlapped, fn(*mut Domain, Id, Id, *mut Handle) -> (), d, id, NULL, name);
    }
    text(d, x, "path", "/tmp", 0);
    itt!(task_end_overlapped, fn(*mut Domain, Id) -> (), d, x);
    itt!(task_end_overlapped, fn(*mut Domain, Id) -> (), d, x);
    let address = d.expose_provenance();
    std::thread::spawn(move || {
        let d = ptr::with_exposed_provenance_mut(address);
        itt!(task_end_overlapped, fn(*mut Domain, Id) -> (), d, Id(1, 2, 4));
        assert_eq!(take().len(), 1);
    })
    .join()
    .unwrap();
    itt!(frame_begin_v3, fn(*mut Domain, *const Id) -> (), d, ptr::null());
    itt!(frame_end_v3, fn(*mut Domain, *const Id) -> (), d, ptr::null());
    itt!(frame_begin_v3, fn(*mut Domain, *const Id) -> (), d, &x);
    itt!(frame_end_v3, fn(*mut Domain, *const Id) -> (), d, &x);
    itt!(frame_submit_v3, fn(*mut Domain, *const Id, u64, u64) -> (), d, ptr::null(), 5, u64::MAX);
    REFUSE.set(1);
    let name = string("lost");
    itt!(region_begin, fn(*mut Domain, Id, Id, *mut Handle) -> (), d, x, NULL, name);
    itt!(region_end, fn(*mut Domain, Id) -> (), d, x);
    let lines = take();
    let words = |line: &String| line.split(' ').next().unwrap().to_owned();
    assert_eq!(
        lines.iter().map(words).collect::<Vec<_>>(),
        ["begin", "begin", "end", "begin", "end", "begin", "end", "begin", "end"]
    );
    assert!(lines[2].ends_with(" path=\"/tmp\""), "{lines:?}");
    assert!(lines[3].starts_with("begin overlap \"overlap\" r"), "{lines:?}");
}

#[test]
fn events_may_lack_an_end() {
    let event = itt!(event_create, fn(*const c_char, c_int) -> c_int, c("tick").as_ptr(), 4);
    assert!(event > 0);
    assert_eq!(itt!(event_start, fn(c_int) -> c_int, event), 0);
    assert_eq!(itt!(event_start, fn(c_int) -> c_int, event), 0);
    assert_eq!(itt!(event_end, fn(c_int) -> c_int, event), 0);
    assert_eq!(itt!(event_start, fn(c_int) -> c_int, 77_777), -1);
    assert_eq!(itt!(event_start, fn(c_int) -> c_int, -3), -1);
    expect(&["begin itt \"tick\" r", "begin itt \"tick\" r", "end r", "end r"]);
}

#[test]
fn counters_are_set_and_counted() {
    let create = |name: &str| {
        let (name, domain) = (c(name), c("memory"));
        itt!(
            counter_create,
            fn(*const c_char, *const c_char) -> *mut Counter,
            name.as_ptr(),
            domain.as_ptr()
        )
    };
    let plain = create("allocated");
    assert_eq!(create("allocated"), plain);
    itt!(counter_set_value, fn(*mut Counter, *const u64) -> (), plain, &12);
    itt!(counter_inc, fn(*mut Counter) -> (), plain);
    itt!(counter_inc_delta, fn(*mut Counter, u64) -> (), plain, 10);
    itt!(counter_dec_delta, fn(*mut Counter, u64) -> (), plain, 30);
    itt!(counter_dec, fn(*mut Counter) -> (), plain);
    let d = domain("memory");
    let name = c("load");
    let load = itt!(
        counter_create_v3,
        fn(*mut Domain, *const c_char, c_int) -> *mut Counter,
        d,
        name.as_ptr(),
        8
    );
    itt!(counter_set_value_v3, fn(*mut Counter, *const f64) -> (), load, &0.5);
    itt!(counter_set_value_ex, fn(*mut Counter, usize, u64, *const f64) -> (), load, 0, 0, &0.25);
    itt!(counter_inc_v3, fn(*mut Domain, *mut Handle) -> (), d, string("old"));
    itt!(counter_dec_delta_v3, fn(*mut Domain, *mut Handle, u64) -> (), d, string("old"), 3);
    itt!(counter_destroy, fn(*mut Counter) -> (), plain);
    itt!(counter_inc, fn(*mut Counter) -> (), ptr::null_mut());
    itt!(counter_set_value, fn(*mut Counter, *const u64) -> (), plain, ptr::null());
    expect(&[
        "counter memory \"allocated\" 12u",
        "counter memory \"allocated\" 13u",
        "counter memory \"allocated\" 23u",
        "counter memory \"allocated\" -7",
        "counter memory \"allocated\" -8",
        "counter memory \"load\" 0.5",
        "counter memory \"load\" 0.25",
        "counter memory \"old\" 1",
        "counter memory \"old\" -2",
    ]);
}

#[test]
fn what_was_created_before_is_adopted() {
    let name = c("early");
    let mut domain = Domain {
        flags: 0,
        name: name.as_ptr(),
        wide: 0,
        extra1: -1,
        extra2: 0,
        next: ptr::null_mut(),
    };
    let mut handle = Handle {
        text: name.as_ptr(),
        wide: 0,
        extra1: 0,
        extra2: usize::MAX,
        next: ptr::null_mut(),
    };
    // The static part does not initialise the `extra` fields of counters.
    let mut counter = Counter {
        name: name.as_ptr(),
        wide: 0,
        domain: name.as_ptr(),
        wide_domain: 0,
        ty: 1,
        index: 0,
        extra1: 0x5a5a,
        extra2: 0x5a5a,
        next: ptr::null_mut(),
    };
    let d = &raw mut domain;
    attach(d, &mut handle, &mut counter);
    itt!(task_begin, fn(*mut Domain, Id, Id, *mut Handle) -> (), d, NULL, NULL, &mut handle);
    end(d);
    itt!(counter_inc, fn(*mut Counter) -> (), &mut counter);
    expect(&["push early \"early\"", "pop early", "counter early \"early\" 1u"]);
}

#[test]
fn null_arguments() {
    let none = ptr::null_mut::<Domain>();
    begin(none, "no domain");
    end(none);
    itt!(task_begin, fn(*mut Domain, Id, Id, *mut Handle) -> (), none, NULL, NULL, ptr::null_mut());
    end(none);
    itt!(thread_set_name, fn(*const c_char) -> (), ptr::null());
    let created = itt!(domain_create, fn(*const c_char) -> *mut Domain, ptr::null());
    // SAFETY: made by the tool.
    assert!(unsafe { CStr::from_ptr((*created).name) }.is_empty());
    let wide = [0x57_u32, 0xd800, 0];
    let created = itt!(domain_createW, fn(*const u32) -> *mut Domain, wide.as_ptr());
    begin(created, "wide");
    end(created);
    expect(&[
        "push itt \"no domain\"",
        "pop itt",
        "push itt \"unnamed\"",
        "pop itt",
        "thread itt \"unnamed\"",
        "push W\u{fffd} \"wide\"",
        "pop W\u{fffd}",
    ]);
}
