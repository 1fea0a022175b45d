//! Beginnings and ends of slices in any order, named or not: the hub and trace_processor
//! make the same slices of them.

use kymograph_converters::packed::Limits;
use kymograph_converters::perfetto;
use kymograph_protos::packet::{self, Message};
use oracle::Trace;
use std::collections::BTreeMap;

/// Numbers that look random and are the same every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

fn event(out: &mut Vec<u8>, track: u64, time: u64, ty: u64, fill: impl Fn(&mut Message<'_>)) {
    packet::packet(out, |p| {
        p.uint(10, 1).uint(8, time).message(11, |event| {
            event.uint(9, ty).uint(11, track);
            fill(event);
        });
    });
}

/// `disorder`: how far times may fall back. `wrong`: one end in so many has another name.
fn trace(tracks: u64, disorder: u64, wrong: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let mut numbers = Numbers(tracks ^ disorder << 8 ^ wrong << 16);
    packet::packet(&mut out, |p| {
        p.uint(10, 1).uint(13, 1);
    });
    for track in 1..=tracks {
        packet::packet(&mut out, |p| {
            p.uint(10, 1).message(60, |described| {
                described.uint(1, track).bytes(2, format!("track {track}").as_bytes());
            });
        });
        let mut time = 1_000 * track;
        let mut open: Vec<u64> = Vec::new();
        for _ in 0..40 {
            time = time + numbers.below(4) - numbers.below(disorder + 1).min(time);
            let name = numbers.below(5);
            let text = |n: u64| format!("{}", char::from(b'a' + n as u8));
            match numbers.below(5) {
                0 | 1 => {
                    open.push(name);
                    event(&mut out, track, time, 1, |e| {
                        e.bytes(23, text(name).as_bytes());
                    });
                }
                2 | 3 => {
                    let innermost = open.pop().unwrap_or(name);
                    let named = match numbers.below(wrong) {
                        0 => name,
                        _ => innermost,
                    };
                    let says = numbers.below(3) > 0;
                    event(&mut out, track, time, 2, |e| {
                        if says {
                            e.bytes(23, text(named).as_bytes());
                        }
                    });
                }
                _ => event(&mut out, track, time, 3, |e| {
                    e.bytes(23, b"moment");
                }),
            }
        }
    }
    out
}

/// How often each slice is there: its track, beginning, duration and name.
type Slices = BTreeMap<(String, i64, i64, String), u32>;

fn seen_by_the_hub(bytes: &[u8]) -> Slices {
    let trace = perfetto::read(bytes, Limits::default()).unwrap();
    let mut slices = Slices::new();
    for slice in trace.slices.iter() {
        let track = trace.strings.get(trace.tracks[slice.track].name).to_owned();
        let name = trace.strings.get(slice.name).to_owned();
        *slices.entry((track, slice.start.0, slice.dur.0, name)).or_default() += 1;
    }
    slices
}

fn seen_by_trace_processor(bytes: &[u8]) -> Slices {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pftrace");
    std::fs::write(&path, bytes).unwrap();
    let rows = Trace::open(&path).rows(
        "SELECT track.name, ts, dur, slice.name FROM slice JOIN track ON track_id = track.id \
         WHERE slice.name != 'moment'",
    );
    let mut slices = Slices::new();
    for row in rows {
        let text = |n: usize| row[n].as_str().unwrap().to_owned();
        let number = |n: usize| row[n].as_i64().unwrap();
        *slices.entry((text(0), number(1), number(2), text(3))).or_default() += 1;
    }
    slices
}

#[test]
fn slices_are_paired_as_trace_processor_does() {
    for (disorder, wrong) in [(0, 1_000_000), (0, 4), (6, 1_000_000), (6, 4)] {
        let bytes = trace(150, disorder, wrong);
        let (ours, theirs) = (seen_by_the_hub(&bytes), seen_by_trace_processor(&bytes));
        let differ: Vec<_> = ours
            .iter()
            .filter(|(slice, count)| theirs.get(*slice) != Some(*count))
            .take(3)
            .collect();
        let missing: Vec<_> = theirs.keys().filter(|slice| !ours.contains_key(*slice)).collect();
        let missing = &missing[..missing.len().min(3)];
        assert_eq!(ours, theirs, "disorder {disorder}, wrong {wrong}: {differ:?}, {missing:?}");
    }
}
