//! How fast Perfetto traces are written and read, and what the hub takes for one.
//!
//! `cargo bench -p kymograph-converters --bench perfetto [-- FILE]`: a synthetic trace of a
//! million slices with the arguments of PyTorch's operators, or a file. The best of five.

use kymograph_converters::format;
use kymograph_converters::packed::Limits;
use kymograph_converters::perfetto;
use kymograph_converters::trace::{Nanos, Slice, Trace, Value};
use std::time::Instant;

fn main() {
    let file = std::env::args().skip(1).find(|arg| !arg.starts_with("--"));
    let trace = match file {
        Some(path) => format::read(std::fs::File::open(path).unwrap(), None).unwrap(),
        None => synthetic(1_000_000),
    };
    let mut bytes = Vec::new();
    let write = best(|| {
        bytes.clear();
        perfetto::write(&trace, &mut bytes).unwrap();
    });
    let mut back = Trace::default();
    let read = best(|| back = perfetto::read(&bytes[..], Limits::default()).unwrap());
    let (slices, size) = (back.slices.len() as f64, bytes.len() as f64);
    println!("{slices} slices, {:.1} MB, {:.1} bytes a slice", size / 1e6, size / slices);
    let rates = |what, seconds: f64| {
        let (megabytes, millions) = (size / seconds / 1e6, slices / seconds / 1e6);
        println!("{what}: {megabytes:.0} MB/s, {millions:.2} million slices/s");
    };
    rates("write", write);
    rates("read", read);
    println!("hub: {:.1} bytes a slice", back.bytes() as f64 / slices);
}

fn best(mut run: impl FnMut()) -> f64 {
    let once = |()| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    };
    [(); 5].map(once).into_iter().fold(f64::INFINITY, f64::min)
}

fn synthetic(slices: u64) -> Trace {
    let mut trace = Trace::default();
    let process = trace.process(4242, "train");
    let thread = trace.thread(process, 4250, "main");
    let track = trace.threads[thread].track;
    let names: Vec<_> = (0..300).map(|n| trace.strings.intern(&format!("aten::op_{n}"))).collect();
    let category = trace.strings.intern("cpu_op");
    let [id, sequence, index, dims] = ["External id", "Sequence number", "Ev Idx", "Input Dims"]
        .map(|key| trace.strings.intern(key));
    for n in 0..slices {
        let shape = [64, 128 + n as i64 % 50].map(Value::I64);
        let shape = trace.args.list(&shape);
        let shapes = trace.args.list(&[shape, shape]);
        let number = |n: u64| Value::I64(n as i64);
        let args = trace.args.add(&[
            (id, number(n)),
            (sequence, number(n / 3)),
            (index, number(n)),
            (dims, shapes),
        ]);
        // Three levels deep.
        let (start, dur) = match n % 3 {
            0 => (n * 1000, 2900),
            1 => (n * 1000, 1900),
            _ => (n * 1000, 400),
        };
        trace.slices.push(Slice {
            name: names[(n * 7 % 300) as usize],
            category,
            args,
            ..Slice::new(track, Nanos(start as i64), Nanos(dur))
        });
    }
    trace
}
