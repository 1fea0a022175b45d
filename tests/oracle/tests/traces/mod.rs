//! A trace small enough to be written by hand: one thread of pid 4242 that runs
//! `aten::mm` three times for 1000 ns each.
#![allow(dead_code)] // each test file uses its own part

use std::path::PathBuf;

/// The sequence's first packet: clears the state, defines the clock and the defaults.
const FIRST: &str = "0a4a 5007 6801 b80501 d00201 da0308d00340 5a0358a24432 \
    330a0908061080a094a58d1d 0a0b08401080a094a58d1d1801 0a0c0801108080c8a19b92f5d918 \
    0a0908031080a094a58d1d 1006";
const PROCESS: &str = "0a1e 5007 e203190891221a14089221320f707974686f6e20747261696e2e7079";
const THREAD: &str = "0a23 5007 e2031e08a2442891222216089221109a212a0e\
    70745f6d61696e5f746872656164";
/// A slice begins; category 1, event name 1 and annotation name 1 are introduced with it.
const BEGIN_FIRST: &str = "0a41 4000 6802 5007 622b0a0a080112066370755f6f70\
    120c080112086174656e3a3a6d6d 1a0f0801120b45787465726e616c206964 5a0c480118015001220408011805";
const BEGIN: &str = "0a15 40e807 6802 5007 5a0c480118015001220408011806";
/// The innermost slice ends; it must be called 1.
const END: &str = "0a0d 40e807 6802 5007 5a0448025001";
/// A slice begins that is called 2, which is introduced with it.
const BEGIN_OTHER: &str = "0a1c 40e807 6802 5007 620b 1209 0802 12056f74686572 5a06 4801 1801 5002";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn trace(packets: &[&str]) -> Vec<u8> {
    packets.iter().flat_map(|packet| bytes(packet)).collect()
}

/// Three slices, complete.
pub(crate) fn good() -> Vec<u8> {
    [before_last_end(), bytes(END)].concat()
}

/// All of [`good`] but its last packet.
pub(crate) fn before_last_end() -> Vec<u8> {
    trace(&[FIRST, PROCESS, THREAD, BEGIN_FIRST, END, BEGIN, END, BEGIN])
}

/// A slice ends while another one is innermost. The next event on the thread is what makes
/// trace_processor count it.
pub(crate) fn misplaced_end() -> Vec<u8> {
    trace(&[FIRST, PROCESS, THREAD, BEGIN_FIRST, BEGIN_OTHER, END, BEGIN, END])
}

/// The same with nothing after it on the thread.
pub(crate) fn misplaced_last_end() -> Vec<u8> {
    trace(&[FIRST, PROCESS, THREAD, BEGIN_FIRST, BEGIN_OTHER, END])
}

/// Says of itself that five packets are missing.
pub(crate) fn lossy() -> Vec<u8> {
    [good(), trace_stats(5)].concat()
}

fn trace_stats(lost: u8) -> Vec<u8> {
    // TraceStats{1 buffer_stats{19 trace_writer_packet_loss}, 18 writer_stats{1, 4}}
    let buffer = [&[0x0a, 3][..], &[0x98, 0x01, lost]].concat();
    let writer = [&[0x92, 0x01, 4][..], &[0x08, 7, 0x20, 0]].concat();
    let stats = [buffer, writer].concat();
    let packet = [&[0x50, 7, 0x9a, 0x02, stats.len() as u8][..], &stats].concat();
    [&[0x0a, packet.len() as u8][..], &packet].concat()
}

/// What ends the last slice of [`good`].
pub(crate) fn last_end() -> Vec<u8> {
    bytes(END)
}

/// Writes `content` to a file of this name in a directory that goes with the first value.
pub(crate) fn file(name: &str, content: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    std::fs::write(&path, content).unwrap();
    (directory, path)
}
