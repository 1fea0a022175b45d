//! What it costs to be ready to be asked for traces, and how long an answer takes.
//!
//! Not a Criterion benchmark: it counts wake-ups and processor time over seconds, and looks
//! at moments that come once. Prints a row for each; see docs/BENCHMARKS.md.

use std::hint::black_box;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use kymograph::session::{Origin, Outcome, Request, Start, Window};
use kymograph::{Category, Config, control, scope};

static OFF: Category = Category::new("off");

/// Nanoseconds a call, the best of some rounds.
fn each(mut f: impl FnMut()) -> f64 {
    const CALLS: u32 = 1_000_000;
    let round = |f: &mut dyn FnMut()| {
        let start = Instant::now();
        for _ in 0..CALLS {
            f();
        }
        start.elapsed().as_nanos() as f64 / f64::from(CALLS)
    };
    (0..15).map(|_| round(&mut f)).fold(f64::MAX, f64::min)
}

fn usage() -> (Duration, i64) {
    // SAFETY: `usage` is filled before it is read.
    let usage = unsafe {
        let mut usage = std::mem::zeroed::<libc::rusage>();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
    (time(usage.ru_utime) + time(usage.ru_stime), usage.ru_nvcsw + usage.ru_nivcsw)
}

fn boottime() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Asks for a trace of 50 ms. Milliseconds from asking until its window opened, and from
/// its end until the file was whole.
fn ask(folder: &Path, number: u32) -> (f64, f64) {
    let broker = control::broker().expect("it is armed");
    let mut config = broker.config().clone();
    config.output = folder.join(format!("{number}.pftrace"));
    let (sender, receiver) = mpsc::channel();
    let asked = boottime();
    let duration = Duration::from_millis(50);
    let request = Request {
        origin: Origin::Control,
        window: Window::Time { start: Start::Now, warmup: Duration::ZERO, duration },
        config,
        trace_id: String::new(),
        group_trace_id: String::new(),
        custom: String::new(),
        iteration_of: String::new(),
        remarks: Vec::new(),
    };
    let answer = move |outcome: &Outcome| sender.send((outcome.clone(), boottime())).unwrap();
    broker.submit(request, Box::new(answer));
    let outcome = loop {
        // Something to record: at most a million scopes a second. At full speed, recording is
        // twice as fast as writing, and the end waits for what there is to write.
        let since = Instant::now();
        drop(scope!("work"));
        while since.elapsed() < Duration::from_micros(1) {
            std::hint::spin_loop();
        }
        if let Ok(outcome) = receiver.try_recv() {
            break outcome;
        }
    };
    match outcome {
        (Outcome::Done(done), answered) => {
            let ms = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e6;
            (ms(asked, done.opened), ms(done.closed, answered))
        }
        (Outcome::Refused(why), _) => panic!("{why}"),
    }
}

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let row = |what: &str, value: String| println!("{what:<58} {value}");
    let disabled = || drop(black_box(scope!(OFF, "never")));
    row("a scope that is off, nothing armed", format!("{:.2} ns", each(disabled)));
    row("step(), nothing armed", format!("{:.2} ns", each(kymograph::step)));

    let mut config = Config::to_file(folder.path().join("t.pftrace"));
    config.sockets = Some(folder.path().join("sockets"));
    control::arm(config).expect("it can be armed");
    row("the same scope, armed", format!("{:.2} ns", each(disabled)));
    row("step(), armed", format!("{:.2} ns", each(kymograph::step)));

    let seconds = 10;
    let (time, switches) = usage();
    std::thread::sleep(Duration::from_secs(seconds));
    let (time_after, switches_after) = usage();
    let percent = (time_after - time).as_secs_f64() / seconds as f64 * 100.0;
    row("armed and idle, of one core", format!("{percent:.4} %"));
    // One is the end of this thread's own sleep.
    let wakeups = (switches_after - switches - 1) as f64 / seconds as f64;
    row("armed and idle, wake-ups a second", format!("{wakeups:.1}"));

    let mut rounds: Vec<_> = (0..21).map(|number| ask(folder.path(), number)).collect();
    let mut median = |which: fn(&(f64, f64)) -> f64| {
        rounds.sort_by(|a, b| which(a).total_cmp(&which(b)));
        (which(&rounds[10]), which(&rounds[20]))
    };
    let (open, open_worst) = median(|round| round.0);
    let (whole, whole_worst) = median(|round| round.1);
    row("asked until the window opens", format!("{open:.1} ms, at worst {open_worst:.1} ms"));
    row("closed until the file is whole", format!("{whole:.1} ms, at worst {whole_worst:.1} ms"));
}
