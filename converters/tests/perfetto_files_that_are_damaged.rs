//! Whatever is done to a Perfetto trace, reading it ends, and what lies before the damage
//! is kept.

use kymograph_converters::kineto;
use kymograph_converters::packed::Limits;
use kymograph_converters::perfetto::{self, Error};
use kymograph_converters::trace::{Trace, Value};
use std::io::Write;

/// A host thread with one slice that has one argument, and a second one: made by hand and
/// known to be read without complaint by trace_processor.
const GOLDEN: &str = "
    0a4a 5007 6801 b80501 d00201 da0308 d00340 5a0358a24432 330a0908061080a094a58d1d
    0a0b08401080a094a58d1d1801 0a0c0801108080c8a19b92f5d918 0a0908031080a094a58d1d 1006
    0a1e 5007 e203190891221a14089221320f707974686f6e20747261696e2e7079
    0a23 5007 e2031e08a2442891222216089221109a212a0e70745f6d61696e5f746872656164
    0a41 4000 6802 5007 622b0a0a080112066370755f6f70120c080112086174656e3a3a6d6d
    1a0f0801120b45787465726e616c206964 5a0c480118015001220408011805
    0a0d 40e807 6802 5007 5a0448025001
    0a15 40e807 6802 5007 5a0c480118015001220408011806
    0a0d 40e807 6802 5007 5a0448025001";

fn golden() -> Vec<u8> {
    let digits: String = GOLDEN.split_whitespace().collect();
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn read(bytes: &[u8]) -> Result<Trace, Error> {
    perfetto::read(bytes, Limits::default())
}

/// Starts of packets, and the end of the file.
fn packets(bytes: &[u8]) -> Vec<usize> {
    let mut starts = vec![0];
    while let Some(length) = bytes.get(starts.last().unwrap() + 1) {
        starts.push(starts.last().unwrap() + 2 + usize::from(*length));
    }
    starts
}

#[test]
fn the_golden_trace_is_read() {
    let bytes = golden();
    let trace = read(&bytes).unwrap();
    assert!(trace.facts.warnings.is_empty(), "{:?}", trace.facts.warnings);
    let (_, process) = trace.processes.iter().next().unwrap();
    let (_, thread) = trace.threads.iter().next().unwrap();
    assert_eq!((process.pid, trace.strings.get(process.name)), (4242, "python train.py"));
    assert_eq!((thread.tid, trace.strings.get(thread.name)), (4250, "pt_main_thread"));
    let id = trace.strings.find("External id").unwrap();
    let slices: Vec<_> = trace
        .slices
        .iter()
        .map(|slice| {
            assert_eq!(trace.strings.get(slice.name), "aten::mm");
            assert_eq!(trace.strings.get(slice.category), "cpu_op");
            assert_eq!(slice.track, thread.track);
            (slice.start.0, slice.dur.0, trace.args.find(slice.args, id))
        })
        .collect();
    let start = slices[0].0;
    let expected = [(start, 1000, Some(Value::U64(5))), (start + 2000, 1000, Some(Value::U64(6)))];
    assert_eq!(slices, expected);
    let reading = trace.facts.readings[0];
    assert_eq!(reading.trace.0, start);
    assert!(trace.facts.realtime_offset().unwrap().0 > 1_700_000_000_000_000_000 - start);
}

#[test]
fn a_file_cut_anywhere_is_read_up_to_there() {
    let bytes = golden();
    let packets = packets(&bytes);
    for cut in 0..bytes.len() {
        let whole = packets.iter().filter(|start| **start <= cut).count() - 1;
        match read(&bytes[..cut]) {
            Ok(trace) => {
                // Packet 4 begins the first slice, packet 6 the second.
                let begun = usize::from(whole > 3) + usize::from(whole > 5);
                assert_eq!(trace.slices.len(), begun, "cut at {cut}");
                let at_end = packets.contains(&cut);
                assert_eq!(trace.facts.warnings.is_empty(), at_end, "cut at {cut}");
                if let [warning] = &trace.facts.warnings[..] {
                    assert_eq!(warning.offset, Some(packets[whole] as u64), "cut at {cut}");
                    assert!(warning.what.contains("cut off"), "{}", warning.what);
                }
            }
            Err(error) => assert!(whole == 0 && cut > 0, "cut at {cut}: {error}"),
        }
    }
}

#[test]
fn any_byte_may_be_wrong() {
    let bytes = golden();
    let packets = packets(&bytes);
    for at in 0..bytes.len() {
        for value in [0, 1, 0x0a, 0x7f, 0x80, 0xff, !bytes[at], bytes[at] ^ 1] {
            let mut wrong = bytes.clone();
            wrong[at] = value;
            if let Ok(trace) = read(&wrong) {
                // What the packets before the wrong one began is there.
                let before = packets.iter().filter(|start| **start <= at).count() - 1;
                assert!(trace.slices.len() >= usize::from(before > 3), "{value} at {at}");
            }
        }
    }
}

#[test]
fn packed_files_that_are_cut_are_read_up_to_there() {
    let bytes = golden().repeat(50);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    gzip.write_all(&bytes).unwrap();
    let gzip = gzip.finish().unwrap();
    let trace = read(&gzip).unwrap();
    assert_eq!(trace.slices.len(), 100);
    assert!(trace.facts.warnings.is_empty(), "{:?}", trace.facts.warnings);
    let trace = read(&gzip[..gzip.len() / 2]).unwrap();
    assert!((40..=50).contains(&trace.slices.len()), "{}", trace.slices.len());
    assert_eq!(trace.facts.warnings.len(), 1);
    let zstd = zstd::encode_all(&bytes[..], 3).unwrap();
    assert_eq!(read(&zstd).unwrap().slices.len(), 100);
}

/// One packet with one field of bytes.
fn packet(field: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    kymograph_protos::packet::packet(&mut out, |p| {
        p.bytes(field, bytes);
    });
    out
}

#[test]
fn packed_packets_are_unpacked() {
    let bytes = golden();
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    zlib.write_all(&bytes).unwrap();
    let deflated = packet(50, &zlib.finish().unwrap());
    let zstd = packet(133, &zstd::encode_all(&bytes[..], 3).unwrap());
    for file in [&deflated, &zstd, &packet(50, &[deflated.clone(), zstd.clone()].concat())] {
        let trace = read(file).unwrap();
        let odd = trace.facts.warnings.len();
        assert!(trace.slices.len() == 2 || odd == 1, "{:?}", trace.facts.warnings);
    }
}

#[test]
fn packed_packets_that_are_cut_are_read_up_to_there() {
    let bytes = golden().repeat(200);
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::none());
    zlib.write_all(&bytes).unwrap();
    let file = packet(50, &zlib.finish().unwrap());
    assert_eq!(read(&file).unwrap().slices.len(), 400);
    let trace = read(&file[..file.len() / 2]).unwrap();
    assert!((150..=200).contains(&trace.slices.len()), "{}", trace.slices.len());
    let cut = trace.facts.warnings.iter().find(|warning| warning.what.starts_with("cut off"));
    assert_eq!(cut.unwrap().offset, Some(0));
    // Nothing is left of this one.
    assert!(matches!(read(&file[..8]), Err(Error::NotATrace(_))));
}

#[test]
fn bombs_and_deep_nests_are_stopped() {
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..64 {
        zlib.write_all(&[0; 1 << 20]).unwrap();
    }
    let bomb = packet(50, &zlib.finish().unwrap());
    let limits = Limits { bytes: 1 << 20, ratio: 10 };
    let trace = perfetto::read(&bomb[..], limits).unwrap();
    assert!(trace.facts.warnings.iter().any(|w| w.what.contains("more than")));

    // A packed packet within a packed packet within …
    let mut inner = golden();
    for _ in 0..20 {
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        zlib.write_all(&inner).unwrap();
        inner = packet(50, &zlib.finish().unwrap());
    }
    assert!(!read(&inner).unwrap().facts.warnings.is_empty());

    // Dictionaries within dictionaries.
    let mut nested = Vec::new();
    for _ in 0..2_000 {
        let mut around = Vec::with_capacity(nested.len() + 6);
        kymograph_protos::packet::Message::new(&mut around).bytes(11, &nested);
        nested = around;
    }
    let mut event = Vec::new();
    kymograph_protos::packet::Message::new(&mut event).uint(9, 1).uint(11, 5).bytes(4, &nested);
    let trace = read(&packet(11, &event)).unwrap();
    assert_eq!(trace.slices.len(), 1);
    assert!(trace.facts.warnings.iter().any(|w| w.what == "values nested too deep"));
}

#[test]
fn lengths_that_lie_take_no_memory() {
    for lie in [
        &[0x0a, 0xff, 0xff, 0xff, 0xff, 0x03, 0x08][..],
        &[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
        &[0x0a],
        &[0x0b, 0x00],
        b"{\"traceEvents\": []}",
        b"\x7fELF\x02\x01\x01",
    ] {
        assert!(matches!(read(lie), Err(Error::NotATrace(_))), "{lie:x?}");
        let trace = read(&[&golden()[..], lie].concat()).unwrap();
        assert_eq!(trace.slices.len(), 2);
        assert_eq!(trace.facts.warnings.len(), 1, "{lie:x?}");
        assert_eq!(trace.facts.warnings[0].offset, Some(golden().len() as u64));
    }
    assert_eq!(read(b"").unwrap().slices.len(), 0);
}

/// What a flow says at an end that closes nothing, or at a counter, is about no event. It used to be
/// about the first slice, though there may be none.
#[test]
fn arrows_to_no_event_are_left_out() {
    let bytes = golden();
    let head = packets(&bytes)[3];
    let flow = [0x81, 0x03, 7, 0, 0, 0, 0, 0, 0, 0];
    // An end; a counter, of which track 9 is.
    for event in [&[0x48, 2][..], &[0x48, 4, 0x58, 9, 0xf0, 1, 5]] {
        let event = [event, &flow[..]].concat();
        let length = |bytes: &[u8]| u8::try_from(bytes.len()).unwrap();
        let packet = [&[0x40, 0, 0x68, 2, 0x50, 7, 0x5a, length(&event)], &event[..]].concat();
        let packet = [&[0x0a, length(&packet)], &packet[..]].concat();
        for rest in [&[][..], &bytes[head..]] {
            let trace = read(&[&bytes[..head], &packet, rest].concat()).unwrap();
            assert_eq!(trace.flows.points.len(), 0);
            assert_eq!(trace.slices.len(), if rest.is_empty() { 0 } else { 2 });
            kineto::write(&trace, &mut Vec::new()).unwrap();
        }
    }
}
