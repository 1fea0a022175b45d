//! The work: on each device two threads with two streams each, which copy in every direction,
//! set, launch every kernel, replay a graph, and are then far ahead of the device. Each piece
//! has a size that no other of its kind has, by which it is found again.

use super::Vendor;
use super::client::Client;
use super::gpu::{BLOCK, Gpu, Handle, KERNELS, kernel_name};
use super::truth::{Kind, Op, Truth};

/// Why it was not done.
#[derive(Clone, Debug)]
pub(super) enum Stop {
    /// There is nothing to do it on.
    Missing(String),
    Failed(String),
}

/// Threads of a device, and streams of a thread.
const THREADS: u32 = 2;
const STREAMS: u32 = 2;
/// Launches of the graph, and kernels of the burst.
const REPLAYS: u32 = 3;
const BURST: u32 = 100;
/// Words of a buffer: as many as the largest piece of work has.
const WORDS: usize = 4096;
/// Words of the smallest copy.
const LEAST: u32 = 1024;

pub(super) fn run(vendor: Vendor, client: bool) -> Result<Truth, Stop> {
    let hip = match vendor {
        Vendor::Cuda => false,
        Vendor::Hip => true,
        Vendor::Xpu => return Err(Stop::Missing("kymo has no work for Level Zero yet".into())),
        Vendor::Hpu => return Err(Stop::Missing("kymo has no work for Synapse yet".into())),
    };
    let gpu = Gpu::open(hip)?;
    let client = if client { Client::start(vendor)? } else { None };
    let mut truth = Truth { devices: gpu.devices, ..Truth::default() };
    let done: Result<Vec<Lane<'_>>, Stop> = std::thread::scope(|scope| {
        let lanes = (0..gpu.devices).flat_map(|device| (0..THREADS).map(move |n| (device, n)));
        let gpu = &gpu;
        let threads: Vec<_> =
            lanes.map(|(device, thread)| scope.spawn(move || lane(gpu, device, thread))).collect();
        let ended = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|_| Err(Stop::Failed("a thread panicked".into())))
        };
        threads.into_iter().map(ended).collect()
    });
    for lane in done? {
        truth.hash = truth.hash.rotate_left(9) ^ lane.hash;
        truth.ops.extend(lane.ops);
    }
    truth.reported = client.map(Client::stop);
    Ok(truth)
}

/// What a thread does.
struct Lane<'a> {
    gpu: &'a Gpu,
    device: u32,
    streams: Vec<Handle>,
    kernels: Vec<Handle>,
    /// Numbers its work: sizes of other threads begin elsewhere.
    next: u32,
    thread: u64,
    first_stream: u32,
    ops: Vec<Op>,
    hash: u64,
}

fn lane(gpu: &Gpu, device: u32, number: u32) -> Result<Lane<'_>, Stop> {
    gpu.select(device)?;
    let streams = (0..STREAMS).map(|_| gpu.stream()).collect::<Result<_, _>>()?;
    // SAFETY: always succeeds.
    let thread = unsafe { libc::gettid() } as u64;
    let mut lane = Lane {
        gpu,
        device,
        streams,
        kernels: gpu.kernels()?,
        next: 1 + number * 500,
        thread,
        first_stream: number * STREAMS,
        ops: Vec::new(),
        hash: 0,
    };
    lane.work()?;
    Ok(lane)
}

/// Now, by `CLOCK_BOOTTIME`.
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl Lane<'_> {
    fn work(&mut self) -> Result<(), Stop> {
        let bytes = WORDS * 4;
        let gpu = self.gpu;
        let (one, two) = (gpu.memory(bytes)?, gpu.memory(bytes)?);
        let other = (self.device + 1) % gpu.devices;
        gpu.select(other)?;
        let far = gpu.memory(bytes)?;
        gpu.select(self.device)?;
        let (from, to) = (gpu.host(bytes)?, gpu.host(bytes)?);
        for (at, word) in (0..).zip(from.iter_mut()) {
            *word = at * 3 + self.device;
        }
        for which in 0..STREAMS {
            let stream = self.streams[which as usize];
            let words = self.words();
            self.ask(Kind::ToDevice, which, words, || gpu.to_device(one, &from[..words], stream))?;
            for kernel in 0..KERNELS {
                self.kernel(kernel, which, one)?;
            }
            let words = self.words();
            self.ask(Kind::Within, which, words, || gpu.within(two, one, words * 4, stream))?;
            let words = self.words();
            self.ask(Kind::Set, which, words, || gpu.set(two, 0x5a5a_0000, words, stream))?;
            if gpu.devices > 1 {
                let words = self.words();
                let (to, from) = ((far, other), (two, self.device));
                self.ask(Kind::Peer, which, words, || gpu.peer(to, from, words * 4, stream))?;
            }
            let words = self.words();
            self.ask(Kind::ToHost, which, words, || gpu.to_host(&mut to[..words], two, stream))?;
            self.finish(which)?;
            self.add(&to[..words]);
        }
        self.graph(one, two)?;
        for _ in 0..BURST {
            self.kernel(1, 1, one)?;
        }
        let words = self.words();
        let stream = self.streams[1];
        self.ask(Kind::ToHost, 1, words, || gpu.to_host(&mut to[..words], one, stream))?;
        self.finish(1)?;
        self.add(&to[..words]);
        Ok(())
    }

    fn add(&mut self, words: &[u32]) {
        for word in words {
            self.hash = (self.hash ^ u64::from(*word)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// The size of the next piece of work.
    fn number(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    fn words(&mut self) -> usize {
        (LEAST + self.number()) as usize
    }

    /// Asks for work, and notes when.
    fn ask(
        &mut self,
        kind: Kind,
        stream: u32,
        words: usize,
        body: impl FnOnce() -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let before = now();
        body()?;
        let op = self.op(kind, stream, String::new(), words as u64 * 4, (before, now()));
        self.ops.push(op);
        Ok(())
    }

    fn op(&self, kind: Kind, stream: u32, name: String, size: u64, asked: (u64, u64)) -> Op {
        let stream = self.first_stream + stream;
        Op { kind, device: self.device, stream, thread: self.thread, name, size, asked, done: 0 }
    }

    fn kernel(&mut self, number: u32, which: u32, to: Handle) -> Result<(), Stop> {
        let blocks = self.number();
        let before = now();
        self.launch(number, blocks, which, to)?;
        let name = kernel_name(number);
        let op = self.op(Kind::Kernel, which, name, blocks.into(), (before, now()));
        self.ops.push(op);
        Ok(())
    }

    fn launch(&self, number: u32, blocks: u32, which: u32, to: Handle) -> Result<(), Stop> {
        let count = (blocks * BLOCK).min(WORDS as u32);
        let (kernel, stream) = (self.kernels[number as usize], self.streams[which as usize]);
        self.gpu.launch(kernel, blocks, stream, (to, count, blocks))
    }

    /// Three nodes, replayed some times.
    fn graph(&mut self, one: Handle, two: Handle) -> Result<(), Stop> {
        let (first, second, words) = (self.number(), self.number(), self.words());
        let stream = self.streams[0];
        let graph = self.gpu.capture(stream, || {
            self.launch(2, first, 0, one)?;
            self.gpu.within(two, one, words * 4, stream)?;
            self.launch(3, second, 0, two)
        })?;
        for _ in 0..REPLAYS {
            let before = now();
            self.gpu.replay(graph, stream)?;
            let asked = (before, now());
            let nodes = [
                (Kind::Kernel, kernel_name(2), first.into()),
                (Kind::Within, String::new(), words as u64 * 4),
                (Kind::Kernel, kernel_name(3), second.into()),
            ];
            for (kind, name, size) in nodes {
                let op = self.op(kind, 0, name, size, asked);
                self.ops.push(op);
            }
        }
        self.finish(0)
    }

    /// Waits for a stream: what it was asked for is done.
    fn finish(&mut self, which: u32) -> Result<(), Stop> {
        self.gpu.wait(self.streams[which as usize])?;
        let (stream, done) = (self.first_stream + which, now());
        for op in self.ops.iter_mut().filter(|op| op.stream == stream && op.done == 0) {
            op.done = done;
        }
        Ok(())
    }
}
