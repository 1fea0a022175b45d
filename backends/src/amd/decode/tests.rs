use super::*;
use crate::amd::replay::register;
use crate::device::notes::Notes;
use crate::device::raw::bytes;

/// A record: size, and fields by offset, value and width.
fn record(kind: u32, size: u64, fields: &[(usize, u64, usize)]) -> (RecordHeader, Vec<u8>) {
    let head = [(0, size, 8), (8, kind.into(), 4)];
    let bytes = bytes(size as usize, &[&head, fields].concat());
    let payload = bytes.as_ptr();
    (RecordHeader { category: CATEGORY_TRACING, kind, payload }, bytes)
}

const NUMBERS: Numbers = Numbers {
    kernel: Some(11),
    copy: Some(10),
    scratch: Some(12),
    allocation: Some(16),
    graph: Some(33),
    migration: Some(6),
    fault: Some(7),
    event: Some(8),
};

fn decoder() -> (&'static Notes, Decoder) {
    let notes = Notes::new();
    let selection = Selection::parse("kernel,gpu_memcpy,gpu_memset,overhead,memory,graph_trace");
    (notes, Decoder::new(notes, Agents::made_up(2), selection, NUMBERS, false))
}

fn feed(decoder: &mut Decoder, (header, _bytes): &(RecordHeader, Vec<u8>)) {
    // SAFETY: the bytes live, and begin with their size.
    unsafe { decoder.record(header) };
}

const TIMES: [(usize, u64, usize); 2] = [(40, 1000, 8), (48, 1500, 8)];

#[test]
fn a_kernel_has_blocks_and_registers_and_its_own_memory() {
    let (notes, mut decoder) = decoder();
    register(9001, c"_Z3addPfi.kd", notes);
    let fields = [(16, 9, 8), (64, 2, 8), (72, 5, 8), (80, 9001, 8), (100, 768, 4)];
    let sizes = [(104, 64, 4), (108, 1, 4), (112, 1, 4), (116, 100, 4), (120, 2, 4), (124, 1, 4)];
    // Sizes of ROCm 6.3 and of 2026.
    for size in [184, 192] {
        feed(&mut decoder, &record(11, size, &[&TIMES[..], &fields, &sizes].concat()));
    }
    let text = "add|add(float*, int) 500 #9 hsa_queue=5 kind=Dispatch Kernel \
                shared_mem_dynamic=256";
    assert_eq!(notes.work(), [text, text]);
    let records = notes.records.lock().unwrap();
    let (_, extras) = records.iter().find(|(head, _)| head.kind == Kind::Device as u8).unwrap();
    let launch: LaunchSlot = bytemuck::cast([extras[2], extras[3]]);
    let LaunchSlot { grid, block, registers, shared } = launch;
    assert_eq!((grid, block), ([2, 2, 1], [64, 1, 1]), "the last block is smaller");
    assert_eq!((registers, shared), (40, 512));
}

#[test]
fn copies_are_shown_on_a_gpu_in_either_direction() {
    let (notes, mut decoder) = decoder();
    // 1 is a processor, 2 and 3 are GPUs 0 and 1.
    let copies = [(2, 3, 1), (3, 1, 3), (4, 3, 3), (4, 2, 3), (1, 1, 1), (77, 2, 2)];
    for (size, (direction, to, from)) in [80, 96].into_iter().cycle().zip(copies) {
        let fields = [(12, direction, 4), (56, to, 8), (64, from, 8), (72, 64, 8)];
        feed(&mut decoder, &record(10, size, &[&TIMES[..], &fields].concat()));
    }
    assert_eq!(
        notes.work(),
        [
            "Memcpy HtoD (Host -> Device)| 500 #0 hsa_queue=0 kind=HtoD bytes=64",
            "Memcpy DtoH (Device -> Host)| 500 #0 hsa_queue=0 kind=DtoH bytes=64",
            "Memcpy DtoD (Device -> Device)| 500 #0 hsa_queue=0 kind=DtoD bytes=64",
            "Memcpy PtoP (Device -> Device)| 500 #0 hsa_queue=0 kind=PtoP bytes=64 fromDevice=1 toDevice=0",
            "Memcpy HtoH (Host -> Host)| 500 #0 hsa_queue=0 kind=HtoH bytes=64",
            "Memcpy <unknown>| 500 #0 hsa_queue=0 kind=<unknown> bytes=64",
        ]
    );
    let records = notes.records.lock().unwrap();
    let work = records.iter().filter(|(head, _)| head.kind == Kind::Device as u8);
    let device = |extras: &[Extra]| bytemuck::cast::<_, DeviceSlot>([extras[0], extras[1]]);
    let gpus: Vec<u32> = work.map(|(_, extras)| device(extras).gpu & 0x3ff).collect();
    assert_eq!(gpus, [1, 1, 1, 1, 0, 0]);
}

#[test]
fn a_fill_is_a_kernel_of_the_runtimes() {
    let (notes, mut decoder) = decoder();
    register(9002, c"__amd_rocclr_fillBufferAligned.kd", notes);
    launches::prepare();
    launches::remember(4711, Asked { stream: 0, bytes: 1024 });
    let fields = [(16, 4711, 8), (64, 2, 8), (72, 5, 8), (80, 9002, 8)];
    feed(&mut decoder, &record(11, 184, &[&TIMES[..], &fields].concat()));
    assert_eq!(notes.work(), ["Memset (Device)| 500 #4711 hsa_queue=5 bytes=1024"]);
}

#[test]
fn scratch_memory_in_every_layout() {
    let (notes, mut decoder) = decoder();
    let now = boottime();
    let (start, end) = (now - 1000, now - 500);
    // 0.5.0; 0.6.0, whose records have the same size; ROCm 7.0; 1.1.0.
    let first = [(12, 1, 4), (16, 3, 8), (24, 5, 8), (32, 77, 8), (40, start, 8), (48, end, 8)];
    let second = [(12, 2, 4), (16, 9, 8), (32, 3, 8), (40, 0x7f00, 8), (48, 77, 8)];
    let second = [&second[..], &[(56, start, 8), (64, end, 8)]].concat();
    let third = [(12, 3, 4), (40, 3, 8), (48, 5, 8), (64, start, 8), (72, end, 8)];
    let fourth = [&third[..], &[(88, 64, 8)]].concat();
    feed(&mut decoder, &record(12, 80, &first));
    feed(&mut decoder, &record(12, 80, &second));
    feed(&mut decoder, &record(12, 88, &third));
    feed(&mut decoder, &record(12, 96, &fourth));
    assert_eq!(
        notes.others(Kind::RangeBegin),
        [
            "Scratch memory allocated hsa_queue=5 device=1",
            "Scratch memory released hsa_queue=32512 device=1",
            "Scratch memory reclaimed hsa_queue=5 device=1",
            "Scratch memory reclaimed bytes=64 hsa_queue=5 device=1",
        ]
    );
    assert_eq!(decoder.counts.broken, 0);
}

#[test]
fn a_release_knows_what_was_allocated() {
    let (notes, mut decoder) = decoder();
    let of = |operation, bytes| {
        let times = [(48, 1000, 8), (56, 1500, 8)];
        let fields = [(12, operation, 4), (64, 2, 8), (72, 0x7000, 8), (80, bytes, 8)];
        record(16, 88, &[&times[..], &fields].concat())
    };
    feed(&mut decoder, &of(1, 4096));
    feed(&mut decoder, &of(3, 0));
    // 0.6.0.
    let fields = [(12, 1, 4), (56, 2, 8), (64, 0x7000, 8), (72, 64, 8)];
    feed(&mut decoder, &record(16, 80, &[&TIMES[..], &fields].concat()));
    assert_eq!(
        notes.others(Kind::Instant),
        [
            "HIP memory allocated bytes=4096 Addr=28672 device=0",
            "HIP memory released bytes=-4096 Addr=28672 device=0",
            "HIP memory allocated bytes=64 Addr=28672 device=0",
        ]
    );
}

#[test]
fn what_cannot_be_read_is_counted() {
    let (notes, mut decoder) = decoder();
    let kernel = [(16, 9, 8), (64, 2, 8)];
    // Too short, without times, backwards, of no known kind, not of tracing, nothing.
    feed(&mut decoder, &record(11, 96, &[&TIMES[..], &kernel].concat()));
    feed(&mut decoder, &record(11, 184, &kernel));
    feed(&mut decoder, &record(11, 184, &[(40, 9, 8), (48, 8, 8)]));
    feed(&mut decoder, &record(99, 64, &[]));
    let mut other = record(11, 184, &TIMES);
    other.0.category = 2;
    feed(&mut decoder, &other);
    other.0 = RecordHeader { category: 1, kind: 11, payload: std::ptr::null() };
    feed(&mut decoder, &other);
    // Its size lies.
    let mut long = record(10, 80, &TIMES);
    long.1[0..8].copy_from_slice(&40_u64.to_ne_bytes());
    feed(&mut decoder, &long);
    assert_eq!((notes.work().len(), *notes.lost.lock().unwrap()), (0, 4));
    let (Counts { broken, skipped, .. }, timeless) = (decoder.counts, decoder.present.timeless);
    assert_eq!((broken, timeless, skipped), (2, 2, 3));
    // Of sizes that no version has.
    feed(&mut decoder, &record(12, 72, &[]));
    feed(&mut decoder, &record(12, 92, &[]));
    feed(&mut decoder, &record(12, 92, &[]));
    let misfits: Vec<_> = decoder.misfits.iter().collect();
    let expected = [
        (&("copy", 40), &1),
        (&("kernel", 96), &1),
        (&("scratch", 72), &1),
        (&("scratch", 92), &2),
    ];
    assert_eq!((misfits, decoder.counts.broken), (expected.to_vec(), 5));
    // A kernel that nobody registered still ran.
    feed(&mut decoder, &record(11, 184, &[&TIMES[..], &[(80, 777_777, 8)]].concat()));
    assert_eq!(notes.work(), ["<unknown>| 500 #0 hsa_queue=0 kind=Dispatch Kernel"]);
    // As the two before it were.
    assert_eq!(decoder.counts.unnamed, 3);
}
