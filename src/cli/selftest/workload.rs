//! The work: on each device two threads with two streams each, which copy in every direction,
//! set, launch every kernel, replay a graph, and are then far ahead of the device. Each piece
//! has a size that no other of its kind has, by which it is found again.

use kymograph_backends::environment::gettid;

use super::Vendor;
use super::annotate::Annotate;
use super::client::Client;
use super::devices::{BLOCK, Devices, Handle, KERNELS, Stop, THREADS, kernel_name};
use super::gpu::Gpu;
use super::habana::Habana;
use super::truth::{Kind, Op, Range, Truth};
use super::zero::Zero;

/// Streams of a thread.
const STREAMS: u32 = 2;
/// Launches of the graph, and kernels of the burst.
const REPLAYS: u32 = 3;
const BURST: u32 = 100;
/// Words of a buffer: as many as the largest piece of work has.
const WORDS: usize = 4096;
/// Words of the smallest copy.
const LEAST: u32 = 1024;

pub(super) fn run(vendor: Vendor, client: bool) -> Result<Truth, Stop> {
    let gpu: Box<dyn Devices> = match vendor {
        Vendor::Cuda => Box::new(Gpu::open(false)?),
        Vendor::Hip => Box::new(Gpu::open(true)?),
        Vendor::Xpu => Box::new(Zero::open()?),
        Vendor::Hpu => Box::new(Habana::open()?),
    };
    let client = if client { Client::start(vendor)? } else { None };
    let annotate = Annotate::find(vendor);
    let mut truth = Truth { devices: gpu.count(), ..Truth::default() };
    let done: Result<Vec<Lane<'_>>, Stop> = std::thread::scope(|scope| {
        let lanes = (0..gpu.count()).flat_map(|device| (0..THREADS).map(move |n| (device, n)));
        let (gpu, annotate) = (&*gpu, &annotate);
        let threads: Vec<_> = lanes
            .map(|(device, thread)| scope.spawn(move || lane(gpu, annotate, device, thread)))
            .collect();
        let ended = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|_| Err(Stop::Failed("a thread panicked".into())))
        };
        threads.into_iter().map(ended).collect()
    });
    for lane in done? {
        truth.hash = truth.hash.rotate_left(9) ^ lane.hash;
        truth.ops.extend(lane.ops);
        truth.ranges.extend(lane.ranges);
    }
    truth.reported = client.map(Client::stop);
    Ok(truth)
}

/// What a thread does.
struct Lane<'a> {
    gpu: &'a dyn Devices,
    annotate: &'a Annotate,
    device: u32,
    streams: Vec<Handle>,
    kernels: Vec<Handle>,
    /// Numbers its work: sizes of other threads begin elsewhere.
    next: u32,
    thread: u64,
    first_stream: u32,
    first_kernel: u32,
    ops: Vec<Op>,
    ranges: Vec<Range>,
    hash: u64,
}

fn lane<'a>(
    gpu: &'a dyn Devices,
    annotate: &'a Annotate,
    device: u32,
    number: u32,
) -> Result<Lane<'a>, Stop> {
    gpu.select(device)?;
    let streams = (0..STREAMS).map(|_| gpu.stream(device)).collect::<Result<_, _>>()?;
    let thread = gettid() as u64;
    let mut lane = Lane {
        gpu,
        annotate,
        device,
        streams,
        kernels: gpu.kernels(device)?,
        next: 1 + number * 500,
        thread,
        first_stream: number * STREAMS,
        first_kernel: number * KERNELS,
        ops: Vec::new(),
        ranges: Vec::new(),
        hash: 0,
    };
    let name = format!("kymo_selftest_lane_{device}_{number}");
    lane.annotated(&name, Lane::work)?;
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
        let (bytes, gpu, here) = (WORDS * 4, self.gpu, self.device);
        let (one, two) = (gpu.memory(here, bytes)?, gpu.memory(here, bytes)?);
        let other = (here + 1) % gpu.count();
        gpu.select(other)?;
        let far = gpu.memory(other, bytes)?;
        gpu.select(here)?;
        let (from, to) = (gpu.host(here, bytes)?, gpu.host(here, bytes)?);
        for (at, word) in (0..).zip(from.iter_mut()) {
            *word = at * 3 + here;
        }
        let (from, back) = (from.as_ptr() as u64, to.as_mut_ptr() as u64);
        let (one, two) = ((one, here), (two, here));
        for which in 0..STREAMS {
            self.copy(Kind::ToDevice, which, one, (from, here))?;
            let name = format!("kymo_selftest_kernels_{here}_{}", self.first_stream + which);
            self.annotated(&name, |lane| {
                (0..KERNELS).try_for_each(|kernel| lane.kernel(kernel, which, one.0))
            })?;
            self.copy(Kind::Within, which, two, one)?;
            self.set(which, two.0)?;
            if other != here && gpu.has_peers() {
                self.copy(Kind::Peer, which, (far, other), two)?;
            }
            let words = self.copy(Kind::ToHost, which, (back, here), two)?;
            self.finish(which)?;
            self.add(&to[..words]);
        }
        self.graph(one, two)?;
        for _ in 0..BURST {
            self.kernel(1, 1, one.0)?;
        }
        let words = self.copy(Kind::ToHost, 1, (back, here), one)?;
        self.finish(1)?;
        self.add(&to[..words]);
        Ok(())
    }

    /// Puts a range around what `body` does, and notes when.
    fn annotated(
        &mut self,
        name: &str,
        body: impl FnOnce(&mut Self) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let before = now();
        self.annotate.push(name);
        let begun = (before, now());
        body(self)?;
        let before = now();
        self.annotate.pop();
        let (name, thread) = (name.to_owned(), self.thread);
        self.ranges.push(Range { name, thread, begun, ended: (before, now()) });
        Ok(())
    }

    /// Copies, and says how many words.
    fn copy(
        &mut self,
        kind: Kind,
        which: u32,
        to: (Handle, u32),
        from: (Handle, u32),
    ) -> Result<usize, Stop> {
        let (gpu, stream, words) = (self.gpu, self.streams[which as usize], self.words());
        self.ask(kind, which, words, || gpu.copy(kind, to, from, words * 4, stream))?;
        Ok(words)
    }

    fn set(&mut self, which: u32, to: Handle) -> Result<(), Stop> {
        let (gpu, stream, words) = (self.gpu, self.streams[which as usize], self.words());
        self.ask(Kind::Set, which, words, || gpu.set(to, 0x5a5a_5a5a, words, stream))
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
        let name = kernel_name(self.first_kernel + number);
        let op = self.op(Kind::Kernel, which, name, blocks.into(), (before, now()));
        self.ops.push(op);
        Ok(())
    }

    fn launch(&self, number: u32, blocks: u32, which: u32, to: Handle) -> Result<(), Stop> {
        let count = (blocks * BLOCK).min(WORDS as u32);
        let number = self.first_kernel + number;
        let (kernel, stream) = (self.kernels[number as usize], self.streams[which as usize]);
        self.gpu.launch(kernel, blocks, stream, (to, count, blocks))
    }

    /// Three nodes, replayed some times.
    fn graph(&mut self, one: (Handle, u32), two: (Handle, u32)) -> Result<(), Stop> {
        let (first, second, words) = (self.number(), self.number(), self.words());
        let stream = self.streams[0];
        let graph = self.gpu.capture(stream, &mut || {
            self.launch(2, first, 0, one.0)?;
            self.gpu.copy(Kind::Within, two, one, words * 4, stream)?;
            self.launch(3, second, 0, two.0)
        })?;
        let Some(graph) = graph else { return Ok(()) };
        for _ in 0..REPLAYS {
            let before = now();
            self.gpu.replay(graph, stream)?;
            let asked = (before, now());
            let nodes = [
                (Kind::Kernel, kernel_name(self.first_kernel + 2), first.into()),
                (Kind::Within, String::new(), words as u64 * 4),
                (Kind::Kernel, kernel_name(self.first_kernel + 3), second.into()),
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
