//! Several processes write to one file, each when it comes to it. trace_processor refuses a
//! statement about clocks that is earlier than one it has read before, whoever made it, and
//! with it all times that build on it.

use harness::{kymo, native};
use kymograph_protos::perfetto;
use perfetto::trace_packet::Data;
use prost::Message as _;

/// `BuiltinClock`.
const BOOTTIME: u32 = 6;

#[test]
fn processes_state_clocks_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let program = native::compile("cc", "-std=c11", "tests/data/c/flight.c", folder.path());
    let path = folder.path().join("t.pftrace");
    let output = kymo::kymo().args(["record", "-o"]).arg(&path).arg("--").arg(program).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
    oracle::Trace::open(&path).assert_clean();

    let trace = perfetto::Trace::decode(&*std::fs::read(&path).unwrap()).unwrap();
    let mut stated = Vec::new();
    for packet in trace.packet {
        if let Some(Data::ClockSnapshot(snapshot)) = packet.data {
            let of = |clock: u32| {
                let found = snapshot.clocks.iter().find(|c| c.clock_id == Some(clock));
                found.map(|c| c.timestamp.unwrap())
            };
            stated.push(of(BOOTTIME).unwrap());
        }
    }
    // A process and a thread of each of three, and `kymo` at the end.
    assert!(stated.len() >= 7, "{stated:?}");
    let (end, before) = stated.split_last().unwrap();
    // Nobody knows who writes first: they agree.
    assert!(before.iter().all(|time| time == &before[0]), "{stated:?}");
    assert!(end > &before[0], "{stated:?}");
}
