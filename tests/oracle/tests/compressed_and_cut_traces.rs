//! What trace_processor makes of compressed files, and of files that were cut.
//!
//! What is said here holds for the version that `setup` fetches; with `TRACE_PROCESSOR` set,
//! a difference is news, not a defect.

mod traces;

use std::io::Write;

use oracle::Trace;
use traces::{before_last_end, file, good, last_end};

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn zstd(content: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(content, 3).unwrap()
}

#[track_caller]
fn assert_complete(name: &str, content: &[u8]) {
    let (_directory, path) = file(name, content);
    let trace = Trace::open(path);
    trace.assert_clean();
    assert_eq!(trace.table("SELECT count(*) AS n, sum(dur) AS ns FROM slice"), "n  ns\n3  3000\n");
}

#[track_caller]
fn assert_refused(name: &str, content: &[u8], because: &str) {
    let (_directory, path) = file(name, content);
    let error = Trace::try_open(path).unwrap_err();
    assert!(error.contains(because), "{error}");
}

#[test]
fn gzip_of_one_or_several_members_is_read() {
    assert_complete("one.pftrace.gz", &gzip(&good()));
    assert_complete("two.pftrace.gz", &[gzip(&before_last_end()), gzip(&last_end())].concat());
    let (start, rest) = (&good()[..100], &good()[100..]);
    assert_complete("within_a_packet.pftrace.gz", &[gzip(start), gzip(rest)].concat());
}

#[test]
fn zstd_of_one_or_several_frames_is_read() {
    assert_complete("one.pftrace.zst", &zstd(&good()));
    assert_complete("two.pftrace.zst", &[zstd(&before_last_end()), zstd(&last_end())].concat());
    let (start, rest) = (&good()[..100], &good()[100..]);
    assert_complete("within_a_packet.pftrace.zst", &[zstd(start), zstd(rest)].concat());
}

/// Every member costs 32 MiB of address space, of which the WebAssembly has 4 GiB.
#[test]
fn gzip_of_many_members_is_too_much() {
    if std::env::var_os("TRACE_PROCESSOR").is_some() {
        return; // a native build has the space
    }
    let empty = gzip(&[]);
    let members = |n: usize| [gzip(&good()), empty.repeat(n - 1)].concat();
    assert_complete("100.pftrace.gz", &members(100));
    let full: Vec<u8> = (0..200).flat_map(|_| gzip(&good())).collect();
    assert_refused("200.pftrace.gz", &full, "Cannot enlarge memory");
}

#[test]
fn a_cut_packet_is_dropped_without_a_word() {
    let cut = good().len() - 3;
    for (name, content) in
        [("cut.pftrace", good()[..cut].to_vec()), ("cut.pftrace.gz", gzip(&good()[..cut]))]
    {
        let (_directory, path) = file(name, &content);
        let trace = Trace::open(path);
        trace.assert_clean();
        assert_eq!(trace.strings("SELECT dur FROM slice ORDER BY ts"), ["1000", "1000", "-1"]);
    }
}

#[test]
fn a_cut_gzip_file_is_lost_as_a_whole() {
    let incomplete = "incomplete, trace is likely corrupt";
    let one = gzip(&good());
    assert_refused("trailer.pftrace.gz", &one[..one.len() - 4], incomplete);
    let two = [gzip(&before_last_end()), gzip(&last_end())].concat();
    assert_refused("second_member.pftrace.gz", &two[..two.len() - 12], incomplete);
    assert_refused(
        "second_header.pftrace.gz",
        &two[..gzip(&before_last_end()).len() + 5],
        incomplete,
    );
}
