//! Every NVTX function, called through the tables as a program would.

mod lines;
mod nvtx_copy;

use lines::{BUSY, FULL, OFF, REFUSE, take};
use nvtx_copy::*;

#[track_caller]
fn expect(expected: &[&str]) {
    assert_eq!(take(), expected);
}

#[test]
fn pushes_and_pops_return_their_level_in_the_domain() {
    let other = domain("levels");
    assert_eq!((push("a"), push_w("b \u{1f600}"), pop()), (0, 1, 1));
    assert_eq!(domain_push(other, &event().name("x")), 0);
    assert_eq!((pop(), pop()), (0, -1));
    assert_eq!((domain_pop(other), domain_pop(other)), (0, -1));
    expect(&[
        "push nvtx \"a\"",
        "push nvtx \"b \u{1f600}\"",
        "pop nvtx",
        "push levels \"x\"",
        "pop nvtx",
        "pop nvtx",
        "pop levels",
        "pop levels",
    ]);
}

#[test]
fn attributes_become_arguments() {
    name_category(3, "io");
    mark_ex(&event().name("m").category(3).color(0xff00_80ff).payload(1, 9));
    mark_ex(&event().name("m").category(4).payload(2, (-9_i64).cast_unsigned()));
    mark_ex(&event().name("m").payload(3, 0.5_f64.to_bits()));
    mark_ex(&event().name("m").payload(4, 0xdead_0000_0007));
    mark_ex(&event().name("m").payload(5, 0xffff_fffe));
    mark_ex(&event().name("m").payload(6, 0.25_f32.to_bits().into()));
    mark_ex(&event().message(2, w("wide").as_ptr().expose_provenance() as u64));
    expect(&[
        "instant nvtx \"m\" category=\"io\" color=4278223103u payload=9u",
        "instant nvtx \"m\" category=4u payload=-9",
        "instant nvtx \"m\" payload=0.5",
        "instant nvtx \"m\" payload=7u",
        "instant nvtx \"m\" payload=-2",
        "instant nvtx \"m\" payload=0.25",
        "instant nvtx \"wide\"",
    ]);
}

#[test]
fn domains_strings_and_categories_are_found_from_every_copy() {
    let a = domain("shared");
    // Another copy registers the same name, and passes handles of this one.
    assert_eq!(domain_w("shared"), a);
    let text = register(a, "registered");
    assert_eq!(register(a, "registered"), text);
    domain_name_category(a, 1, "phase");
    domain_mark(a, &event().message(3, text).category(1));
    // In another domain the string is the same, the category's number is not.
    domain_mark(domain("stranger"), &event().message(3, text).category(1));
    domain_destroy(a);
    domain_mark(a, &event().message(3, text));
    mark_ex(&event().message(3, text));
    expect(&[
        "instant shared \"registered\" category=\"phase\"",
        "instant stranger \"registered\" category=1u",
        "instant shared \"registered\"",
        "instant nvtx \"registered\"",
    ]);
}

#[test]
fn a_range_that_was_lost_is_not_ended() {
    REFUSE.set(1);
    let lost = start("lost");
    let kept = start("kept");
    end(lost);
    end(kept);
    end(0);
    end(7);
    assert_ne!(lost, 0);
    REFUSE.set(1);
    assert_eq!((push("lost"), push("kept"), pop(), pop()), (0, 1, 1, 0));
    let d = domain("ranges");
    let id = domain_start(d, &event().name("in a domain"));
    domain_end(d, id);
    let lines = take();
    assert_eq!(lines.len(), 6, "{lines:?}");
    assert!(lines[0].starts_with("begin nvtx \"kept\" r"), "{lines:?}");
    assert_eq!(lines[1], lines[0].replace("begin nvtx \"kept\"", "end"));
    assert_eq!(lines[2..4], ["push nvtx \"kept\"", "pop nvtx"]);
    assert!(lines[4].starts_with("begin ranges \"in a domain\" r"), "{lines:?}");
}

#[test]
fn a_category_switched_off_records_nothing_but_ends() {
    push("before");
    OFF.set(true);
    push("during");
    mark("during");
    let range = start("during");
    assert_eq!(is_enabled(DEFAULT), 0);
    pop();
    OFF.set(false);
    pop();
    end(range);
    assert_eq!(is_enabled(DEFAULT), 1);
    expect(&["push nvtx \"before\"", "pop nvtx"]);
}

#[test]
fn names_travel_by_value_when_the_interner_is_full() {
    mark("intern the category");
    take();
    FULL.set(true);
    push("never seen before");
    pop();
    FULL.set(false);
    expect(&["push nvtx by value \"never seen before\"", "pop nvtx"]);
}

#[test]
fn arguments_wait_for_a_thread_that_adds_a_text() {
    BUSY.set(true);
    let d = domain("busy domain");
    domain_name_category(d, 1, "busy category");
    domain_mark(d, &event().name("busy").category(1).color(7).payload(1, 9));
    BUSY.set(false);
    expect(&[
        "instant busy domain by value \"busy\" category=\"busy category\" color=7u payload=9u",
    ]);
}

#[test]
fn threads_are_named() {
    name_thread(4711, "loader");
    let name = c("by resource");
    let message = name.as_ptr().expose_provenance() as u64;
    // {version, size, identifierType}, identifier, messageType, message
    let native: u64 = 1 << 16 | 3;
    assert!(!resource(DEFAULT, &[3 | 32 << 16 | native << 32, 4712, 1, message]).is_null());
    let posix: u64 = 1 << 16 | 4;
    // SAFETY: no preconditions.
    let me = unsafe { libc::pthread_self() };
    resource(DEFAULT, &[3 | 32 << 16 | posix << 32, me, 1, message]);
    resource(DEFAULT, &[3 | 32 << 16 | posix << 32, me + 1, 1, message]);
    let pointer: u64 = 1 << 16 | 1;
    resource(DEFAULT, &[3 | 32 << 16 | pointer << 32, 1, 1, message]);
    expect(&[
        "thread nvtx \"loader\" tid=4711",
        "thread nvtx \"by resource\" tid=4712",
        "thread nvtx \"by resource\"",
    ]);
}

#[test]
fn schema_entries_become_arguments() {
    let d = domain("payloads");
    let color = enumeration(d, &[("red", 1, false), ("a", 8, true), ("b", 16, true)], 4);
    let point = schema(d, 1, &[entry("x", 15, 0, 0, 0), entry("y", 43, 0, 0, 0)], 8, 0);
    let all = schema(
        d,
        1,
        &[
            entry("u8", 12, 0, 0, 0),
            entry("i64", 17, 0, 0, 0),
            entry("point", point, 0, 0, 0),
            entry("text", 75, 0, 4, 0),
            entry("color", color, 0, 0, 0),
            entry("flags", color, 0, 0, 0),
            entry("list", 16, 1 << 4, 2, 0),
            entry("hidden", 16, 1 << 9, 0, 0),
            entry("at", 23, 0, 0, 56),
            entry("", 14, 0, 0, 0),
        ],
        72,
        1 << 24,
    );
    assert_eq!(all, 1 << 24);
    let mut data = [0_u8; 72];
    data[0] = 200;
    data[8..16].copy_from_slice(&(-1_i64).to_le_bytes());
    data[16..20].copy_from_slice(&(-2_i32).to_le_bytes());
    data[20..24].copy_from_slice(&1.5_f32.to_le_bytes());
    data[24..28].copy_from_slice(b"ab\0c");
    data[28] = 1;
    data[32] = 24;
    data[36] = 5;
    data[40] = 6;
    data[44] = 7;
    data[56..64].copy_from_slice(&0xabc_u64.to_le_bytes());
    data[64] = 9;
    domain_mark(d, &event().name("all").extended(&[payload(all, &data)]));
    domain_mark(d, &event().name("plain").extended(&[payload(17, &5_i64.to_le_bytes())]));
    // A chosen id belongs to its domain.
    mark_payload(DEFAULT, &[payload(all, &data)]);
    expect(&[
        "instant payloads \"all\" u8=200u i64=-1 point.x=-2 point.y=1.5 text=\"ab\" \
         color=\"red\" flags=\"a|b\" list[0]=5u list[1]=6u at=0xabc payload[9]=9u",
        "instant payloads \"plain\" payload=5",
        "instant nvtx \"unnamed\"",
    ]);
}

#[test]
fn arrays_and_strings_of_any_length() {
    let d = domain("arrays");
    let dynamic = schema(
        d,
        2,
        &[
            entry("n", 16, 0, 0, 0),
            entry("list", 16, 3 << 4, 0, 0),
            entry("zero", 14, 2 << 4, 0, 0),
            entry("name", 76, 0, 0, 0),
            entry("last", 12, 0, 0, 0),
        ],
        0,
        0,
    );
    let mut data = Vec::new();
    for n in [2_u32, 10, 20] {
        data.extend(n.to_le_bytes());
    }
    for n in [7_u16, 0] {
        data.extend(n.to_le_bytes());
    }
    data.extend(b"hi\0\x05");
    domain_mark(d, &event().name("dynamic").extended(&[payload(dynamic, &data)]));
    let long = [1_u8; 40];
    domain_mark(d, &event().name("long").extended(&[payload(12, &long)]));
    let line = take();
    assert_eq!(
        line[0],
        "instant arrays \"dynamic\" n=2u list[0]=10u list[1]=20u zero[0]=7u name=\"hi\" last=5u"
    );
    assert!(line[1].contains("payload[15]=1u payload.length=40u"), "{}", line[1]);
}

#[test]
fn payload_events_carry_their_message() {
    let d = domain("messages");
    let message = 1 << 10;
    let by_text = schema(d, 1, &[entry("m", 75, message, 8, 0), entry("v", 15, 0, 0, 0)], 12, 0);
    let by_handle = schema(d, 1, &[entry("m", 80, message, 0, 0)], 8, 0);
    let data = *b"hello\0\0\0\x2a\0\0\0";
    let handle = register(d, "by handle").to_le_bytes();
    let text = c("somewhere else");
    let deep = schema(d, 1, &[entry("m", 75, message | 1 << 1 | 1 << 8, 0, 0)], 8, 0);
    let pointer = (text.as_ptr().expose_provenance() as u64).to_le_bytes();
    assert_eq!(push_payload(d, &[payload(by_text, &data)]), 0);
    assert_eq!(pop_payload(d, &[payload(17, &3_i64.to_le_bytes())]), 0);
    mark_payload(d, &[payload(by_handle, &handle)]);
    mark_payload(d, &[payload(deep, &pointer)]);
    let id = start_payload(d, &[payload(by_text, &data)]);
    end_payload(d, id, &[payload(17, &4_i64.to_le_bytes())]);
    let lines = take();
    assert_eq!(
        lines[..4],
        [
            "push messages \"hello\" v=42",
            "pop messages payload=3",
            "instant messages \"by handle\"",
            "instant messages \"somewhere else\"",
        ]
    );
    assert!(lines[4].starts_with("begin messages \"hello\" r") && lines[4].ends_with(" v=42"));
    assert!(lines[5].starts_with("end r") && lines[5].ends_with(" payload=4"));
}

#[test]
fn counters() {
    let d = domain("counters");
    let unit = c("Bytes");
    let unit = unit.as_ptr().expose_provenance() as u64;
    // {structSize, semanticId, version}, next, flags, unit, …
    let bytes: [u64; 9] = [72 | 5 << 32 | 2 << 48, 0, 0, unit, 1, 1, 0, 0, 0];
    let delta: [u64; 9] = [72 | 5 << 32 | 2 << 48, 0, 2 << 4, 0, 1, 1, 0, 0, 0];
    let plain = counter(d, "plain", 17, 0, 0);
    let chosen = counter(d, "chosen", 44, 1 << 24, bytes.as_ptr().expose_provenance() as u64);
    let sum = counter(d, "sum", 17, 0, delta.as_ptr().expose_provenance() as u64);
    let fields = [entry("read", 16, 0, 0, 0), entry("written", 44, 0, 0, 0)];
    let group = counter(d, "io", schema(d, 1, &fields, 16, 0), 0, 0);
    assert_eq!(chosen, 1 << 24);
    sample_i64(d, plain, -5);
    sample_f64(d, chosen, 2.5);
    sample(d, plain, &6_i64.to_le_bytes());
    sample_i64(d, sum, 4);
    sample_i64(d, sum, -1);
    let mut data = [0; 16];
    data[0] = 9;
    data[8..].copy_from_slice(&1.5_f64.to_le_bytes());
    sample(d, group, &data);
    sample_nothing(d, plain, 0);
    sample_nothing(d, plain, 1);
    sample_i64(d, 99, 1);
    sample(d, group, &data[..5]);
    expect(&[
        "counter counters \"plain\" -5",
        "counter counters \"chosen\" 2.5 unit=3",
        "counter counters \"plain\" 6",
        "counter counters \"sum\" 4",
        "counter counters \"sum\" 3",
        "counter counters \"io.read\" 9u",
        "counter counters \"io.written\" 1.5",
        "counter counters \"plain\" 0",
        "counter counters \"io.read\" 9u",
    ]);
}

#[test]
fn batches_of_counters() {
    let d = domain("batches");
    let time: [u64; 3] = [24 | 2 << 32 | 1 << 48, 0, 1];
    let ours = counter(d, "ours", 17, 0, time.as_ptr().expose_provenance() as u64);
    let foreign = counter(d, "foreign", 17, 0, 0);
    let values = [1_i64, 2, 3];
    let times = [timestamp(); 3];
    let data = values.as_ptr().expose_provenance() as u64;
    let times = times.as_ptr().expose_provenance() as u64;
    batch(d, &[ours, data, 24, 0, times, 24]);
    batch(d, &[foreign, data, 24, 0, times, 24]);
    batch(d, &[foreign, data, 7, 0, 0, 0]);
    batch(d, &[ours, 0, 24, 1 << 32, 0, 0]);
    expect(&[
        "counter batches \"ours\" 1",
        "counter batches \"ours\" 2",
        "counter batches \"ours\" 3",
        "counter batches \"foreign\" 3",
    ]);
}
