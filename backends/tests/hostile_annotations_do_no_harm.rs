//! What a broken program may pass to NVTX. It must neither crash nor be believed.

mod lines;
mod nvtx_copy;

use std::ptr;

use kymograph_backends::annotate::stats;
use lines::take;
use nvtx_copy::*;

#[test]
fn null_and_empty_messages() {
    mark_raw(ptr::null());
    mark_w(ptr::null());
    mark_ex_raw(ptr::null());
    mark_ex(&event());
    mark_ex(&event().message(2, 0));
    mark_ex(&event().message(3, 0));
    mark("");
    assert_eq!(take(), ["instant nvtx \"unnamed\""; 7]);
}

#[test]
fn unknown_types_and_handles() {
    let invented = ptr::without_provenance_mut(0xdead_beef_0000);
    domain_mark(invented, &event().name("x").payload(99, 1));
    domain_destroy(invented);
    mark_ex(&event().message(77, 0x1234));
    mark_ex(&event().message(3, 0x1234));
    mark_ex(&event().message(3, 0x4b53_ffff_ffff));
    assert_eq!(domain_push(ptr::without_provenance_mut(1), &event().name("y")), 0);
    assert_eq!(domain_pop(DEFAULT), 0);
    assert_eq!(
        take(),
        [
            "instant nvtx \"x\"",
            "instant nvtx \"unnamed\"",
            "instant nvtx \"unnamed\"",
            "instant nvtx \"unnamed\"",
            "push nvtx \"y\"",
            "pop nvtx"
        ]
    );
}

#[test]
fn attributes_are_read_as_far_as_they_say() {
    // 16 bytes: version, size, category, colour; what follows is not ours to read.
    let short: Box<[u64]> = Box::new([3 | 16 << 16 | 5 << 32, 1 | 7 << 32]);
    mark_ex_raw(short.as_ptr());
    let tiny: Box<[u64]> = Box::new([3]);
    mark_ex_raw(tiny.as_ptr());
    mark_ex(&event().name("longer than we know").size(4096));
    assert_eq!(
        take(),
        [
            "instant nvtx \"unnamed\" category=5u color=7u",
            "instant nvtx \"unnamed\"",
            "instant nvtx \"longer than we know\"",
        ]
    );
}

#[test]
fn texts_of_any_length_and_content() {
    let long = "x".repeat(1 << 20);
    mark(&long);
    push(&long);
    pop();
    mark_ex_raw(event().message(2, w(&long).as_ptr().expose_provenance() as u64).0.as_ptr());
    mark_raw(c"\xff\xfe, seq = \xc3".as_ptr());
    mark_w([0xd800, 0x41, 0x7fff_ffff, 0].as_ptr());
    let lines = take();
    assert_eq!(lines.len(), 6);
    assert!(lines[0].starts_with("instant nvtx by value \"xxx"));
    assert!(lines[0].ends_with("x\" full length=1048576u"));
    assert!(lines[0].len() < 40_000);
    assert_eq!(lines[4], "instant nvtx \"\u{fffd}\u{fffd}, seq = \u{fffd}\"");
    assert_eq!(lines[5], "instant nvtx \"\u{fffd}A\u{fffd}\"");
}

#[test]
fn more_pushes_than_pops() {
    let d = domain("leak");
    for level in 0..1000 {
        assert_eq!(domain_push(d, &event().name("again")), level);
    }
    let open: Vec<_> = (0..40).map(|i| domain(&format!("open {i}"))).collect();
    let opened = open.iter().filter(|d| domain_push(**d, &event().name("o")) == 0).count();
    assert!(opened > 16, "{opened}");
    assert_eq!(domain_pop(d), 999);
    // Those that found no room were not recorded: their pops are pops too many.
    assert!(open.iter().all(|&d| domain_pop(d) <= 0));
    let pushed = take().iter().filter(|line| line.starts_with("push open ")).count();
    assert_eq!(pushed, opened);
}

#[test]
fn schemas_that_lie() {
    let d = domain("liar");
    assert_eq!(schema_raw(ptr::null()), 0);
    let attributes = [1 << 2 | 1 << 4 | 1 << 5, 0, 1, 0, 0, 9, 0, 0, 0, 0_u64];
    assert_eq!(schema_raw(attributes.as_ptr()), 0, "no entries");
    let attributes = [1 << 2 | 1 << 4 | 1 << 5, 0, 1, 0, 8, u64::MAX, 0, 0, 0, 0_u64];
    assert_eq!(schema_raw(attributes.as_ptr()), 0, "too many entries");
    let huge = u64::MAX;
    let entries = [
        entry("offset", 17, 0, 0, huge),
        entry("offset", 17, 0, 0, huge - 7),
        entry("past the end", 17, 0, 0, 4),
        entry("unknown type", 999, 0, 0, 1),
        entry("unknown schema", 1 << 33, 0, 0, 1),
        entry("array", 17, 1 << 4, huge, 1),
        entry("text", 75, 0, huge, 1),
        entry("text", 77, 0, 0, 1),
        entry("zero terminated", 12, 2 << 4, 0, 1),
        entry("length of none", 17, 3 << 4, huge, 1),
        entry("length of itself", 17, 3 << 4, 10, 1),
        entry("other payload's length", 17, 4 << 4, 3, 1),
        entry("pointer", 75, 1 << 1, 0, 0),
        entry("offset from base", 75, 1 << 2, 0, 0),
        entry("offset from here", 17, 1 << 3, 0, 0),
        entry("all flags", 75, huge, huge, huge),
    ];
    for ty in 0..6 {
        let id = schema(d, ty, &entries, huge, 0);
        for data in [&[0xff_u8; 8][..], &[0xff; 3], &[], &[1; 64]] {
            mark_payload(d, &[payload(id, data)]);
        }
        let many = vec![payload(id, &[1; 64]); 100];
        mark_payload(d, &many);
        mark_payload(d, &[Payload { schema: id, size: usize::MAX, data: ptr::null() }]);
        mark_payload(d, &[Payload { schema: id, size: 8, data: ptr::null() }]);
        mark_payload(d, &[Payload { schema: id, size: usize::MAX, data: [1_u8; 8].as_ptr() }]);
    }
    mark_payload(d, &[Payload { schema: 75, size: usize::MAX, data: c"c".as_ptr().cast() }]);
    mark_ex(&event().name("none").payload(0xdfbd_0009, 0));
    let lines = take();
    assert_eq!(lines.len(), 6 * 8 + 2);
    assert_eq!(lines[6 * 8], "instant liar \"unnamed\" payload=\"c\"");
    assert_eq!(stats().panics, 0);
}

#[test]
fn schemas_of_schemas_are_bounded() {
    let d = domain("nested");
    let mut id = schema(d, 1, &[entry("leaf", 12, 1 << 4, 1 << 20, 0)], 1 << 20, 0);
    for _ in 0..40 {
        let twice: Vec<_> = (0..20).map(|_| entry("n", id, 1 << 4, 1 << 30, 0)).collect();
        id = schema(d, 2, &twice, 0, 0);
    }
    let data = vec![1_u8; 1 << 21];
    mark_payload(d, &[payload(id, &data)]);
    assert_eq!(take().len(), 1);
    let mut kept = Vec::new();
    for i in 0..5000 {
        kept.push(schema(d, 1, &[entry("x", 17, 0, 0, 0)], 8, (1 << 24) + i));
    }
    assert!(kept.contains(&0), "chosen ids are bounded");
    assert_eq!(stats().panics, 0);
}

#[test]
fn every_byte_of_a_random_payload_may_be_anything() {
    let d = domain("random");
    let mut state = 1_u64;
    let mut random = move || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        state >> 33
    };
    for _ in 0..300 {
        // No deep copies: those are read where they point.
        let entries: Vec<_> = (0..1 + random() % 8)
            .map(|_| entry("e", random() % 110, random() & 0xe7e, random() % 20, random() % 40))
            .collect();
        let id = schema(d, 1 + random() % 2, &entries, random() % 64, 0);
        let data: Vec<u8> = (0..random() % 48).map(|_| random() as u8).collect();
        mark_payload(d, &[payload(id, &data), payload(random() % 110, &data)]);
        let group = counter(d, "group", id, 0, 0);
        sample(d, group, &data);
    }
    assert!(take().len() >= 300);
    assert_eq!(stats().panics, 0);
}

#[test]
fn names_and_counters_without_end() {
    let d = domain("endless");
    let registered = (0..200_000).filter(|i| register(d, &i.to_string()) != 0).count();
    assert!(registered < 200_000, "registered strings are bounded");
    mark_ex(&event().message(3, register(d, "one more")));
    assert_eq!(take(), ["instant nvtx \"unnamed\""]);
}

#[test]
fn many_threads_at_once() {
    let threads: Vec<_> = (0..8)
        .map(|_| {
            std::thread::spawn(|| {
                let d = domain("together");
                for i in 0..500 {
                    let text = register(d, &format!("string {}", i % 7));
                    assert_eq!(domain_push(d, &event().message(3, text)), 0);
                    let id = domain_start(d, &event().name("range"));
                    domain_end(d, id);
                    assert_eq!(domain_pop(d), 0);
                }
                take().len()
            })
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), 2000);
    }
}
