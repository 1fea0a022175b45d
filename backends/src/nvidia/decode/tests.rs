use super::*;
use crate::device::notes::Notes;
use crate::device::raw::bytes;

fn decoder(version: u32) -> (&'static Notes, Decoder) {
    let notes = Notes::new();
    (notes, Decoder::new(notes, Clock::Chosen, version, false))
}

fn kernel(len: usize, name: &'static std::ffi::CStr) -> Vec<u8> {
    let fields = [
        (0, 10, 4),
        (6, 40, 2),
        (16, 1000, 8),
        (24, 1500, 8),
        (44, 1, 4),
        (48, 7, 4),
        (52, 4, 4),
        (80, 512, 4),
        (92, 9, 4),
        (104, name.as_ptr() as u64, 8),
        (156, 5, 4),
    ];
    bytes(len, &fields)
}

#[test]
fn a_kernel_has_what_its_version_has() {
    // Sizes of 11.8, 12.0, 13.1 and 13.4.
    for (len, version, priority) in [(200, 18, ""), (208, 18, ""), (224, 130_101, " priority=-3")] {
        let (notes, mut decoder) = decoder(version);
        let mut record = kernel(len, c"_Z3addPfi");
        if len > 216 {
            record[216..220].copy_from_slice(&(-3_i32).to_ne_bytes());
        }
        // SAFETY: the name is a C string.
        unsafe { decoder.record(Raw::new(&record)) };
        let expected =
            format!("add|add(float*, int) 500 #9 shared_mem_dynamic=512{priority} graph id=5");
        assert_eq!(notes.work(), [expected], "{len}");
    }
}

#[test]
fn padding_of_older_versions_is_not_read() {
    let mut record = kernel(216, c"k");
    record[208] = 1;
    for (version, expected) in [(28, ""), (130_001, " device launched=1")] {
        let (notes, mut decoder) = decoder(version);
        // SAFETY: the name is a C string.
        unsafe { decoder.record(Raw::new(&record)) };
        let work = format!("k| 500 #9 shared_mem_dynamic=512{expected} graph id=5");
        assert_eq!(notes.work(), [work]);
    }
}

#[test]
fn copies_and_sets_say_what_kineto_says() {
    let (notes, mut decoder) = decoder(28);
    let place = [(16, 100, 8), (24, 130, 8), (36, 1, 4), (40, 7, 4)];
    let record = |len, fields: &[(usize, u64, usize)]| bytes(len, &[&place, fields].concat());
    let records = [
        record(96, &[(0, 1, 4), (4, 1, 1), (5, 1, 1), (6, 3, 1), (8, 64, 8), (44, 11, 4)]),
        record(96, &[(0, 1, 4), (4, 77, 1), (5, 9, 1), (8, 1, 8), (44, 12, 4)]),
        record(88, &[(0, 2, 4), (4, 5, 4), (8, 32, 8), (44, 13, 4), (50, 2, 2)]),
        // Between devices: the correlation id lies elsewhere.
        record(96, &[(0, 22, 4), (4, 10, 1), (5, 3, 1), (6, 3, 1), (52, 1, 4), (60, 14, 4)]),
    ];
    for record in &records {
        // SAFETY: they have no names.
        unsafe { decoder.record(Raw::new(record)) };
    }
    assert_eq!(
        notes.work(),
        [
            "Memcpy HtoD (Pageable -> Device)| 30 #11 bytes=64",
            "Memcpy <unknown> (Unrecognized -> Unknown)| 30 #12 bytes=1",
            "Memset (Pinned)| 30 #13 bytes=32 value=5",
            "Memcpy PtoP (Device -> Device)| 30 #14 bytes=0 fromDevice=0 inDevice=0 \
             toDevice=1 fromContext=0 inContext=1 toContext=0",
        ]
    );
}

#[test]
fn times_that_were_lost_are_counted() {
    let (notes, mut decoder) = decoder(28);
    let mut record = kernel(208, c"k");
    record[24..32].fill(0);
    // SAFETY: the name is a C string.
    unsafe { decoder.record(Raw::new(&record)) };
    record[16..24].fill(0);
    // SAFETY: as above.
    unsafe { decoder.record(Raw::new(&record)) };
    // A record that ends early has no times either.
    // SAFETY: as above.
    unsafe { decoder.record(Raw::new(&record[..16])) };
    assert_eq!((notes.work().len(), *notes.lost.lock().unwrap()), (0, 3));
    assert_eq!(decoder.present.timeless, 3);
}

#[test]
fn an_external_id_finds_its_work() {
    let (notes, mut decoder) = decoder(28);
    let external = bytes(24, &[(0, 39, 4), (4, 5, 4), (8, 4711, 8), (16, 9, 4)]);
    // SAFETY: the name is a C string.
    unsafe {
        decoder.record(Raw::new(&external));
        decoder.record(Raw::new(&kernel(208, c"k")));
    }
    let work = notes.work();
    assert_eq!(work, ["k| 500 #9 shared_mem_dynamic=512 graph id=5 External id=4711"]);
}
