//! Producer, pool and reader together. Written to run under Miri and the sanitizers too.

use super::chunk::Chunk;
use super::*;
use kymograph_protos::record::{ArgType, Extra, Kind, Record, Slot, StrId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

const ROUNDS: u64 = if cfg!(miri) { 300 } else { 60_000 };

fn pool(chunks: usize) -> Pool {
    let pool = Pool::new();
    assert!(pool.provide(chunks * size_of::<Chunk>()));
    pool
}

fn record(kind: Kind, time: u64) -> Record {
    Record { time, kind: kind as u8, ..Record::default() }
}

/// What a drained record was: kind, `time`, `arg`, tail.
fn parse(slots: &[Slot]) -> Vec<(Kind, u64, u64, u16)> {
    let mut all = Vec::new();
    let mut at = 0;
    while at < slots.len() {
        let head: Record = bytemuck::cast(slots[at]);
        all.push((Kind::from_u8(head.kind).unwrap(), head.time, head.arg, head.tail));
        at += 1 + usize::from(head.tail);
    }
    assert_eq!(at, slots.len(), "a record was cut");
    all
}

fn drain(reader: &mut Reader, pool: &Pool) -> Vec<(Kind, u64, u64, u16)> {
    let mut slots = Vec::new();
    reader.drain(pool, &mut slots, usize::MAX);
    parse(&slots)
}

/// The same numbers every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % sides
    }
}

#[test]
fn a_scope_without_content_is_one_record_and_one_with_content_is_two() {
    let (pool, producer) = (pool(2), Producer::new());
    assert!(producer.begin(&pool, record(Kind::Begin, 1), 0, &[], &[]));
    assert!(producer.end(&pool, record(Kind::End, 2), 0, &[]));
    assert!(producer.begin(&pool, record(Kind::Begin, 3), 0, &[], &[]));
    assert!(producer.event(&pool, record(Kind::Instant, 4), &[], &[]));
    assert!(producer.end(&pool, record(Kind::End, 5), 0, &[]));
    let mut reader = Reader::open(&pool, 0).unwrap();
    let mut slots = Vec::new();
    reader.drain(&pool, &mut slots, usize::MAX);
    let kinds: Vec<Kind> = parse(&slots).iter().map(|r| r.0).collect();
    assert_eq!(kinds, [Kind::Scope, Kind::Begin, Kind::Instant, Kind::End]);
    assert_eq!((slots[0][0], slots[0][1]), (1, 2), "begin and end of the scope");
}

#[test]
fn strings_and_arguments_arrive_as_they_were() {
    let (pool, producer) = (pool(4), Producer::new());
    let extras = [1, 2, 3].map(|n| Extra::new(StrId(n), ArgType::U64, u64::from(n) * 100));
    let text: Vec<u8> = (0..100).collect();
    assert!(producer.event(&pool, record(Kind::Instant, 7), &extras, &text));
    let mut slots = Vec::new();
    Reader::open(&pool, 0).unwrap().drain(&pool, &mut slots, usize::MAX);
    // Three extras and the one that describes the name: two slots; 100 bytes: four slots.
    assert_eq!(parse(&slots), [(Kind::Instant, 7, 0, 6)]);
    let pairs: [Extra; 4] = bytemuck::cast([slots[1], slots[2]]);
    assert_eq!(pairs[..3], extras);
    assert_eq!((pairs[3].ty, pairs[3].value), (ArgType::Bytes as u8, 100));
    assert_eq!(&bytemuck::cast_slice::<Slot, u8>(&slots[3..])[..100], text);
}

#[test]
fn what_finds_no_room_is_counted_and_told_with_the_next_record() {
    let (pool, producer) = (pool(1), Producer::new());
    let fit = (0..).take_while(|n| producer.event(&pool, record(Kind::Instant, *n), &[], &[]));
    assert_eq!(fit.count(), CAPACITY as usize);
    assert!(!producer.event(&pool, record(Kind::Instant, 0), &[], &[]));
    let mut reader = Reader::open(&pool, 0).unwrap();
    assert_eq!(drain(&mut reader, &pool).len(), CAPACITY as usize);
    assert_eq!(reader.losses().dropped, 2);
    // The one chunk is full and still the thread's: a second one is needed to go on.
    assert!(pool.provide(2 * size_of::<Chunk>()));
    assert!(producer.event(&pool, record(Kind::Instant, 9), &[], &[]));
    let now = drain(&mut reader, &pool);
    assert_eq!(now, [(Kind::Lost, 0, 2, 0), (Kind::Instant, 9, 0, 0)]);
    assert_eq!(pool.bytes_in_use(), size_of::<Chunk>());
}

/// Scopes deeper than chunks are long, in a pool that is always nearly full, with
/// arguments on beginnings and ends.
#[test]
fn an_accepted_slice_has_an_end_however_full_the_pool_is() {
    for seed in 0..if cfg!(miri) { 4 } else { 40 } {
        let mut dice = Dice(seed);
        let (pool, producer) = (pool(2 + seed as usize % 4), Producer::new());
        let mut reader = None;
        let (mut open, mut refused, mut read) = (Vec::new(), 0, Vec::new());
        let extras = [Extra::new(StrId(1), ArgType::U64, 1); 9];
        // Phases in which slices mostly open, and in which they mostly end.
        for time in 1..ROUNDS / 10 {
            let rising = time / 1500 % 2 == 0;
            let some = &extras[..dice.roll(9) as usize * usize::from(dice.roll(4) == 0)];
            match dice.roll(10) {
                0..=5 if rising => {
                    match producer.begin(&pool, record(Kind::Begin, time), 0, some, &[]) {
                        true => open.push(time),
                        false => refused += 1,
                    }
                }
                0..=7 if !open.is_empty() => {
                    open.pop();
                    let done = producer.end(&pool, record(Kind::End, time), 0, some);
                    assert!(done, "seed {seed}, {} open", open.len());
                }
                _ => {
                    let bytes = vec![b'x'; dice.roll(60) as usize];
                    let head = record(Kind::Instant, time);
                    refused += u64::from(!producer.event(&pool, head, some, &bytes));
                }
            }
            if dice.roll(200) == 0 {
                reader = reader.or_else(|| Reader::open(&pool, 0));
                if let Some(reader) = &mut reader {
                    read.extend(drain(reader, &pool));
                }
            }
        }
        while open.pop().is_some() {
            assert!(producer.end(&pool, record(Kind::End, u64::MAX), 0, &[]), "seed {seed}");
        }
        producer.retire(&pool);
        let mut reader = reader.or_else(|| Reader::open(&pool, 0)).unwrap();
        read.extend(drain(&mut reader, &pool));
        let count = |kind| read.iter().filter(|r| r.0 == kind).count();
        assert_eq!(count(Kind::Begin), count(Kind::End), "seed {seed}");
        assert_eq!(reader.losses().dropped, refused, "seed {seed}");
        let told: u64 = read.iter().filter(|r| r.0 == Kind::Lost).map(|r| r.2).sum();
        assert!(told <= refused);
        assert_eq!(pool.bytes_in_use(), 0, "everything came back");
    }
}

/// The reserve is spent to the last slot and a loss is still to be told of.
#[test]
fn an_end_finds_its_slot_although_a_loss_was_not_told_yet() {
    let begin = |pool: &Pool, producer: &Producer| {
        producer.begin(pool, record(Kind::Begin, 1), 0, &[], &[])
    };
    let (first, other) = (pool(3), Producer::new());
    let fit = (0..).take_while(|_| begin(&first, &other)).count();
    assert!(fit > CAPACITY as usize, "spare chunks are needed for the ends");
    let (pool, producer) = (pool(3), Producer::new());
    assert!((0..fit).all(|_| begin(&pool, &producer)));
    // The leaf ends in place; the slot kept for it goes to something else.
    assert!(producer.end(&pool, record(Kind::End, 2), 0, &[]));
    let open = fit - 1;
    let event = || producer.event(&pool, record(Kind::Instant, 3), &[], &[]);
    assert!(event());
    assert!(!event());
    for left in (0..open).rev() {
        assert!(producer.end(&pool, record(Kind::End, 4), 0, &[]), "{left} still open");
    }
    producer.retire(&pool);
    let read = drain(&mut Reader::open(&pool, 0).unwrap(), &pool);
    let count = |kind| read.iter().filter(|r| r.0 == kind).count();
    assert_eq!((count(Kind::Begin), count(Kind::Scope)), (open, 1));
    assert_eq!(count(Kind::End), open);
}

#[test]
fn recursion_deeper_than_a_chunk_is_exact_and_gives_its_reserve_back() {
    let (pool, producer) = (pool(12), Producer::new());
    let deep = u64::from(CAPACITY) * 3;
    assert!((0..deep).all(|n| producer.begin(&pool, record(Kind::Begin, n), 0, &[], &[])));
    let mut reader = Reader::open(&pool, 0).unwrap();
    let begins = drain(&mut reader, &pool);
    assert_eq!(begins.len() as u64, deep - 1, "all but the leaf");
    assert!((0..deep).all(|n| producer.end(&pool, record(Kind::End, n), 0, &[])));
    assert_eq!(producer.depth(), 0);
    let ends = drain(&mut reader, &pool);
    assert_eq!(ends[0].0, Kind::Scope, "the innermost");
    assert_eq!(ends.iter().filter(|r| r.0 == Kind::End).count() as u64, deep - 1);
    producer.retire(&pool);
    drain(&mut reader, &pool);
    assert_eq!(pool.bytes_in_use(), 0);
}

#[test]
fn an_open_leaf_can_be_seen_until_something_follows_it() {
    let (pool, producer) = (pool(2), Producer::new());
    assert!(producer.event(&pool, record(Kind::Instant, 1), &[], &[]));
    let extra = [Extra::new(StrId(1), ArgType::U64, 5)];
    assert!(producer.begin(&pool, record(Kind::Begin, 2), 0, &extra, &[]));
    let mut reader = Reader::open(&pool, 0).unwrap();
    let mut leaf = Vec::new();
    assert!(!reader.peek_leaf(&pool, &mut leaf), "what comes before it was not drained");
    leaf.clear();
    drain(&mut reader, &pool);
    assert!(reader.peek_leaf(&pool, &mut leaf));
    assert_eq!(parse(&leaf), [(Kind::Begin, 2, 0, 1)]);
    assert!(producer.event(&pool, record(Kind::Instant, 3), &[], &[]));
    leaf.clear();
    assert!(!reader.peek_leaf(&pool, &mut leaf));
    assert_eq!(drain(&mut reader, &pool).len(), 2);
}

#[test]
fn a_reader_keeps_up_with_a_writer_and_sees_whole_records_only() {
    let pool = pool(64);
    let done = AtomicBool::new(false);
    let refused = AtomicU64::new(0);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let producer = Producer::new();
            let mut dice = Dice(3);
            for time in 1..ROUNDS {
                // `time` and `arg` are the same, so that a torn record would show.
                let head = |kind| Record { arg: time, ..record(kind, time) };
                let extras = [Extra::new(StrId(1), ArgType::U64, time); 4];
                let extras = &extras[..dice.roll(5) as usize];
                let begun = producer.begin(&pool, head(Kind::Begin), 0, extras, &[]);
                if dice.roll(3) == 0 && !producer.event(&pool, head(Kind::Instant), &[], &[]) {
                    refused.fetch_add(1, Ordering::Relaxed);
                }
                match begun {
                    true => assert!(producer.end(&pool, head(Kind::End), 0, &[])),
                    false => drop(refused.fetch_add(1, Ordering::Relaxed)),
                }
            }
            producer.retire(&pool);
            done.store(true, Ordering::Release);
        });
        let mut reader = loop {
            match Reader::open(&pool, 0) {
                Some(reader) => break reader,
                None => std::thread::yield_now(),
            }
        };
        let (mut begins, mut ends, mut told, mut last) = (0u64, 0u64, 0, 0);
        let (mut slots, mut leaf) = (Vec::new(), Vec::new());
        loop {
            slots.clear();
            let drained = reader.drain(&pool, &mut slots, 1000);
            for (kind, time, arg, _) in parse(&slots) {
                match kind {
                    Kind::Lost => told += arg,
                    _ => {
                        assert_eq!(time, arg);
                        assert!(time >= last);
                        last = time;
                    }
                }
                begins += u64::from(kind == Kind::Begin);
                ends += u64::from(kind == Kind::End);
            }
            if drained == Drained::Ended {
                break;
            }
            leaf.clear();
            if reader.peek_leaf(&pool, &mut leaf) {
                assert_eq!(parse(&leaf)[0].1, parse(&leaf)[0].2);
                assert!(parse(&leaf)[0].1 >= last);
            }
        }
        assert!(done.load(Ordering::Acquire) || last + 1 == ROUNDS);
        assert_eq!(begins, ends);
        assert!(told <= refused.load(Ordering::Relaxed));
        assert_eq!(reader.losses().dropped, refused.load(Ordering::Relaxed));
    });
    assert_eq!(pool.bytes_in_use(), 0);
}

#[test]
fn threads_that_come_and_go_use_the_same_lanes_and_chunks() {
    let pool = pool(4);
    for n in 0..if cfg!(miri) { 20 } else { 5000 } {
        let producer = Producer::new();
        assert!(producer.event(&pool, record(Kind::Instant, n), &[], &[]));
        producer.retire(&pool);
        producer.retire(&pool);
        assert_eq!(pool.lanes_used(), 1);
        let mut reader = Reader::open(&pool, 0).unwrap();
        assert_eq!(drain(&mut reader, &pool), [(Kind::Instant, n, 0, 0)]);
        assert!(Reader::open(&pool, 0).is_none());
    }
    assert_eq!(pool.bytes_in_use(), 0);
}

#[test]
fn chunks_and_lanes_are_never_handed_out_twice() {
    let pool = pool(6);
    let owners: [AtomicU64; 16] = Default::default();
    std::thread::scope(|threads| {
        for me in 1..=3u64 {
            let (pool, owners) = (&pool, &owners);
            threads.spawn(move || {
                for _ in 0..ROUNDS / 10 {
                    let held = [pool.take_chunk(0), pool.take_chunk(0)];
                    for chunk in held.into_iter().flatten() {
                        let owner = &owners[chunk.index.load(Ordering::Relaxed) as usize];
                        assert_eq!(owner.swap(me, Ordering::AcqRel), 0);
                        std::thread::yield_now();
                        assert_eq!(owner.swap(0, Ordering::AcqRel), me);
                        pool.give_chunk(chunk.index.load(Ordering::Relaxed));
                    }
                }
            });
        }
    });
    assert_eq!(pool.bytes_in_use(), 0);
    assert!((0..6).all(|_| pool.take_chunk(0).is_some()), "none was lost");
    assert!(pool.take_chunk(0).is_none());
}

/// Forks by the bare system call, so that no handler hears of it; `child` runs in the child,
/// which is killed when that returns.
fn in_a_child_that_is_killed(child: impl FnOnce()) {
    // SAFETY: the child makes system calls and touches memory, and no more.
    unsafe {
        let pid = libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as libc::pid_t;
        assert!(pid >= 0);
        if pid == 0 {
            child();
            libc::kill(libc::getpid(), libc::SIGKILL);
        }
        assert_eq!(libc::waitpid(pid, ptr::null_mut(), 0), pid);
    }
}

#[test]
#[cfg_attr(miri, ignore = "forks")]
fn what_a_killed_process_pushed_is_read_by_another() {
    let (arena, file) = Arena::create(1 << 20).unwrap();
    let theirs: &Arena = Box::leak(Box::new(arena));
    let pool = Pool::new();
    assert!(pool.share(theirs));
    let producer = Producer::new();
    in_a_child_that_is_killed(|| {
        for time in 0..2000 {
            producer.event(&pool, record(Kind::Instant, time), &[], b"by value");
        }
        producer.begin(&pool, record(Kind::Begin, 2000), 0, &[], &[]);
    });
    let seen = Pool::view(Arc::new(Arena::open(file).unwrap()), 0);
    let mut reader = Reader::open(&seen, 0).unwrap();
    let all = drain(&mut reader, &seen);
    assert_eq!(all.len(), 2000);
    assert!(all.iter().zip(0..).all(|(event, time)| event.1 == time));
    let mut leaf = Vec::new();
    reader.drain_leaf_of_the_dead(&seen, &mut leaf);
    assert_eq!(parse(&leaf), [(Kind::Begin, 2000, 0, 0)]);
    assert!(seen.bytes_in_use() > 0);
    seen.reclaim();
    assert_eq!(seen.bytes_in_use(), 0);
}

#[test]
fn a_scope_that_was_being_completed_is_not_lost() {
    let pool = pool(1);
    let producer = Producer::new();
    assert!(producer.begin(&pool, record(Kind::Begin, 1), 0, &[], &[]));
    let mut reader = Reader::open(&pool, 0).unwrap();
    assert_eq!(drain(&mut reader, &pool), []);
    let mut kinds = Vec::new();
    // What a thread that is killed between two stores of `finish_leaf` leaves.
    let chunk = pool.chunk(0).unwrap();
    for step in 0..3 {
        chunk.stop_completing(0, 9, u64::from(Kind::Scope as u8) << 48, 1, step);
        let mut leaf = Vec::new();
        Reader::open(&pool, 0).unwrap().leaf_of(&pool, &mut leaf);
        let head: Record = bytemuck::cast(leaf[0]);
        kinds.push((Kind::from_u8(head.kind).unwrap(), head.other));
        assert!(!reader.peek_leaf(&pool, &mut leaf), "nobody alive may see it");
    }
    assert_eq!(kinds, [(Kind::Begin, 0), (Kind::Begin, 9), (Kind::Scope, 9)]);
}

#[test]
fn an_arena_that_is_none_or_can_be_cut_short_is_not_mapped() {
    let open = |file: &std::fs::File| Arena::open(file.try_clone().unwrap().into());
    let file = tempfile::tempfile().unwrap();
    assert!(open(&file).is_err(), "empty");
    file.set_len(64 << 20).unwrap();
    assert!(open(&file).is_err(), "not sealed");
    let (arena, sealed) = Arena::create(1 << 20).unwrap();
    assert!(Arena::open(sealed.try_clone().unwrap()).is_ok());
    // SAFETY: the first word of a mapping that nobody else uses.
    unsafe { arena.chunk(0).cast::<u64>().write(7) };
    assert!(std::fs::File::from(sealed).set_len(0).is_err());
}

#[test]
fn names_are_published_whole_and_in_order() {
    let (arena, _file) = Arena::create(1 << 20).unwrap();
    let pool = Pool::view(Arc::new(arena), 1);
    pool.set_limit(64);
    let writer = names::Writer::new();
    let long: Vec<u8> = (0..40_000u32).map(|n| n as u8).collect();
    let texts: [&[u8]; 4] = [b"io", b"", &long, b"read"];
    for (id, text) in (1..).map(StrId).zip(texts) {
        let (category, arg) = (StrId(id.0 - 1), StrId(id.0 / 2));
        assert!(writer.publish(&pool, Named { id, category, arg, text }));
    }
    let (mut log, mut found) = (NameLog::default(), Vec::new());
    assert!(writer.publish_thread(&pool, 77, b"worker"));
    let mut threads = Vec::new();
    let each = |name: Named<'_>| {
        found.push((name.id.0, name.category.0, name.arg.0, name.text.to_vec()));
    };
    log.read(&pool, each, |tid, name| threads.push((tid, name.to_vec())));
    assert_eq!(threads, [(77, b"worker".to_vec())]);
    let expected = (1..).zip(texts).map(|(id, text)| (id, id - 1, id / 2, text.to_vec()));
    assert_eq!(found, expected.collect::<Vec<_>>());
    log.read(&pool, |_| panic!("read twice"), |_, _| panic!("read twice"));
    assert!(Reader::open(&pool, 0).is_none(), "no thread's");
}
