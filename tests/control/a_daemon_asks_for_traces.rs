//! A program is traced on demand by a daemon as dynolog's, with the bytes of `dyno gputrace`:
//! by time and by iterations, also when the daemon is slow, dies, comes back, or is mad.

use dynolog::{Daemon, Gputrace, message};
use harness::kymo::Guarded;
use harness::{child, dynolog};
use kymograph::{Config, control, scope};
use oracle::Trace;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// For a loaded machine; nothing waits that long where all goes well.
const TIMEOUT: Duration = Duration::from_secs(120);
const STEP: Duration = Duration::from_millis(5);

/// What the traced program does: one scope per iteration, until its standard input ends.
/// Then it says when each began and ended.
fn program() {
    let (config, problems) = Config::from_env();
    assert_eq!(problems, []);
    control::arm(config).unwrap();
    println!("\nready");
    let input = std::thread::spawn(|| std::io::stdin().read_to_end(&mut Vec::new()));
    let steps = std::env::var_os("TEST_STEPS").is_some();
    let now = || kymograph::clock::system(libc::CLOCK_BOOTTIME);
    let mut log = Vec::new();
    let mut number = 0_u64;
    while !input.is_finished() {
        let begin = now();
        {
            let _scope = scope!("iteration", number = number);
            std::thread::sleep(STEP);
        }
        log.push(format!("{number} {begin} {}", now()));
        number += 1;
        if steps {
            kymograph::step();
        }
    }
    println!("{}", log.join("\n"));
}

/// A program that runs.
struct Program {
    child: Guarded,
    output: BufReader<std::process::ChildStdout>,
}

/// An iteration, and a moment right before and right after it.
#[derive(Clone, Copy, Debug)]
struct Iteration {
    number: i64,
    begin: i64,
    end: i64,
}

impl Program {
    fn start(test: &str, folder: &Path, variables: &[(&str, &str)]) -> Program {
        let mut command = child::command(module_path!(), test, "program", folder);
        command.env("KYMOGRAPH_DAEMON_POLL", "1s").envs(variables.iter().copied());
        let mut child = Guarded::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while line != "ready\n" {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "the program did not start");
        }
        Program { child, output }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until a trace is finished.
    fn await_trace(&self, daemon: &Daemon, job: i64, path: &Path) -> Trace {
        let deadline = Instant::now() + TIMEOUT;
        while !path.exists() {
            assert!(Instant::now() < deadline, "there is no {}", path.display());
            assert_eq!(daemon.fault(), None);
            std::thread::sleep(Duration::from_millis(10));
        }
        self.await_idle(daemon, job);
        let trace = Trace::open(path);
        trace.assert_clean();
        trace
    }

    /// Waits until it says that it is ready for a request.
    fn await_idle(&self, daemon: &Daemon, job: i64) {
        let so_far = daemon.process(job, self.pid()).map_or(0, |process| process.questions);
        daemon.await_process(job, self.pid(), |p| p.questions > so_far && p.ready == 2);
    }

    /// Ends it; what it did.
    fn end(mut self) -> Vec<Iteration> {
        drop(self.child.stdin.take());
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success(), "{rest}");
        let rows = rest.lines().filter_map(|line| {
            let numbers: Vec<i64> =
                line.split(' ').map_while(|number| number.parse().ok()).collect();
            let [number, begin, end] = numbers[..] else { return None };
            Some(Iteration { number, begin, end })
        });
        rows.collect()
    }
}

/// The numbers of the iterations in a trace, in order.
fn iterations(trace: &Trace) -> Vec<i64> {
    let rows = trace.rows(
        "SELECT extract_arg(arg_set_id, 'debug.number') FROM slice
         WHERE name = 'iteration' ORDER BY ts",
    );
    rows.iter().map(|row| row[0].as_i64().unwrap()).collect()
}

/// When the window of a trace opened or closed.
fn moment(trace: &Trace, which: &str) -> i64 {
    trace.one_i64(&format!(
        "SELECT int_value FROM metadata WHERE name GLOB '*kymograph.[0-9]*.window.{which}'"
    ))
}

/// What a trace says about itself under `key`.
fn fact(trace: &Trace, key: &str) -> Option<String> {
    let rows = trace.rows(&format!("SELECT str_value FROM metadata WHERE name LIKE '%{key}'"));
    rows.first().and_then(|row| row[0].as_str()).map(str::to_owned)
}

fn in_folder(folder: &Path) -> Vec<(&'static str, &str)> {
    vec![("KYMOGRAPH_DAEMON", "dynolog"), ("KYMOGRAPH_DAEMON_FOLDER", folder.to_str().unwrap())]
}

fn output(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().unwrap().to_owned()
}

/// Where we write what `dyno` prints: the same name, but for what it is.
fn written(command: &Gputrace, pid: u32) -> PathBuf {
    command.printed(pid).replace(".json", ".pftrace").into()
}

#[test]
fn by_time() {
    if child::part().is_some() {
        return program();
    }
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::in_folder(folder.path());
    // As Kineto's users say it, in a job of a scheduler.
    let variables = [
        ("KINETO_USE_DAEMON", "1"),
        ("KINETO_IPC_SOCKET_DIR", folder.path().to_str().unwrap()),
        ("SLURM_JOB_ID", "4711"),
    ];
    let program = Program::start("by_time", folder.path(), &variables);
    let process = daemon.await_process(4711, program.pid(), |_| true);
    assert_eq!(process.ready, 2);
    assert_eq!(process.pids[1], std::process::id() as i32, "its parent is this process");
    assert_eq!(daemon.process(0, program.pid()).map(|p| p.pids), None);

    // By its parent's pid. The default warm-up is five seconds.
    let command = Gputrace {
        job_id: 4711,
        pids: std::process::id().to_string(),
        duration_ms: 700,
        ..Gputrace::to(output(folder.path(), "t.json"))
    };
    let answer = command.run(daemon.port);
    assert_eq!(answer["activityProfilersTriggered"], serde_json::json!([program.pid()]));
    let path = written(&command, program.pid());
    // While it is busy it does not take further requests; they stay with the daemon.
    daemon.await_process(4711, program.pid(), |process| process.ready == 0);
    let trace = program.await_trace(&daemon, 4711, &path);
    let id = (1_000_000 + program.pid()).to_string();
    assert_eq!(fact(&trace, "trace_id"), Some(id));

    let (opened, closed) = (moment(&trace, "opened"), moment(&trace, "closed"));
    assert_eq!(closed - opened, 700_000_000, "to the nanosecond");
    let numbers = iterations(&trace);
    // What crosses an edge of the window is in the trace, too.
    let expected = |it: &Iteration| it.end >= opened && it.begin <= closed;
    let clearly = |it: &Iteration| it.begin >= opened && it.end <= closed;
    let log = program.end();
    for it in &log {
        assert!(expected(it) || !numbers.contains(&it.number), "{it:?} {opened} {closed}");
        assert!(!clearly(it) || numbers.contains(&it.number), "{it:?} {opened} {closed}");
    }
    // An iteration that was interrupted may be longer than the window: none lies within it then.
    assert!(log.iter().any(|it| numbers.contains(&it.number)), "{opened} {closed}");
}

#[test]
fn by_iterations_twice() {
    if child::part().is_some() {
        return program();
    }
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::in_folder(folder.path());
    let mut variables = in_folder(folder.path());
    variables.push(("TEST_STEPS", "1"));
    let program = Program::start("by_iterations_twice", folder.path(), &variables);
    daemon.await_process(0, program.pid(), |_| true);
    for (name, count, roundup) in [("a.json", 3, 1), ("b.pftrace", 10, 1000)] {
        let command = Gputrace {
            iterations: count,
            profile_start_iteration_roundup: roundup,
            ..Gputrace::to(output(folder.path(), name))
        };
        let answer = command.run(daemon.port);
        assert_eq!(answer["processesMatched"], serde_json::json!([program.pid()]));
        let path = match name {
            "a.json" => written(&command, program.pid()),
            // dyno prints this name as it was given; two processes would have the same.
            _ => folder.path().join(format!("b_{}.pftrace", program.pid())),
        };
        let trace = program.await_trace(&daemon, 0, &path);
        let numbers = iterations(&trace);
        let expected: Vec<i64> = (numbers[0]..numbers[0] + count).collect();
        assert_eq!(numbers, expected, "whole iterations, and as many as were asked for");
        // Later if the sources were not on by then: iterations are short, and it has one. They
        // are rounded up to so many that seconds may pass before.
        let late = numbers[0] % roundup as i64;
        assert!(late < 500, "{late} iterations late");
    }
    program.end();
}

#[test]
fn late_answers_count_and_a_daemon_may_come_back() {
    if child::part().is_some() {
        return program();
    }
    let folder = tempfile::tempdir().unwrap();
    let mut variables = in_folder(folder.path());
    variables.push(("TEST_STEPS", "1"));
    // First the program, then the daemon.
    let test = "late_answers_count_and_a_daemon_may_come_back";
    let program = Program::start(test, folder.path(), &variables);
    let daemon = Daemon::in_folder(folder.path());
    daemon.await_process(0, program.pid(), |_| true);
    // It answers when it has been asked twice more.
    let command = Gputrace { iterations: 3, ..Gputrace::to(output(folder.path(), "late.json")) };
    daemon.be_silent(true);
    command.run(daemon.port);
    let asked = daemon.process(0, program.pid()).unwrap().questions;
    daemon.await_process(0, program.pid(), |process| process.questions >= asked + 2);
    daemon.be_silent(false);
    program.await_trace(&daemon, 0, &written(&command, program.pid()));

    drop(daemon);
    std::thread::sleep(Duration::from_millis(100));
    let daemon = Daemon::in_folder(folder.path());
    daemon.await_process(0, program.pid(), |_| true);
    let command = Gputrace { iterations: 3, ..Gputrace::to(output(folder.path(), "again.json")) };
    command.run(daemon.port);
    program.await_trace(&daemon, 0, &written(&command, program.pid()));
    program.end();
}

#[test]
fn what_cannot_be_followed_is_told_by_the_next_trace() {
    if child::part().is_some() {
        return program();
    }
    let folder = tempfile::tempdir().unwrap();
    let name = format!("dynolog-test-{}", std::process::id());
    let daemon = Daemon::named(&name);
    let variables = [("KYMOGRAPH_DAEMON", name.as_str()), ("TEST_STEPS", "1")];
    let test = "what_cannot_be_followed_is_told_by_the_next_trace";
    let program = Program::start(test, folder.path(), &variables);
    daemon.await_process(0, program.pid(), |_| true);
    let refused = [
        Gputrace::to("/etc/cron.d/payload.json"),
        Gputrace::to(format!("{}/../../etc/payload.json", folder.path().display())),
        Gputrace { profile_memory: true, ..Gputrace::to(output(folder.path(), "memory.json")) },
        Gputrace { profile_start_time: 1, ..Gputrace::to(output(folder.path(), "past.json")) },
        // Another key, by way of a line that the command lets through.
        Gputrace::to(output(folder.path(), "x.json") + "\nACTIVITY_TYPES=warp"),
    ];
    for command in &refused {
        let answer = command.run(daemon.port);
        assert_eq!(answer["activityProfilersBusy"], 0, "the one before was fetched");
        // A question that came before the command has not fetched it.
        let asked = daemon.process(0, program.pid()).unwrap().questions;
        daemon.await_process(0, program.pid(), |process| process.questions > asked);
    }
    let command = Gputrace { iterations: 2, ..Gputrace::to(output(folder.path(), "good.json")) };
    command.run(daemon.port);
    let trace = program.await_trace(&daemon, 0, &written(&command, program.pid()));
    let remarks = fact(&trace, "remarks").expect("says what was refused");
    for why in [
        "traces may be written to /tmp",
        "contains `..`",
        "snapshots of PyTorch's memory",
        "its start was",
        "there is no activity type warp",
    ] {
        assert!(remarks.contains(why), "{why}: {remarks}");
    }
    let files = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(files, 1, "nothing else was written");
    program.end();
}

#[test]
fn a_mad_daemon_does_no_harm() {
    if child::part().is_some() {
        return program();
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = UnixDatagram::bind(folder.path().join("dynolog")).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    let test = "a_mad_daemon_does_no_harm";
    let mut variables = in_folder(folder.path());
    variables.push(("TEST_STEPS", "1"));
    let program = Program::start(test, folder.path(), &variables);
    let mut question = [0; 4096];
    let mut next = || socket.recv_from(&mut question).unwrap().1;
    let client: PathBuf = next().as_pathname().unwrap().to_owned();
    let send = |bytes: &[u8]| {
        // It may rest; then its queue is full.
        let deadline = Instant::now() + Duration::from_millis(20);
        while socket.send_to(bytes, &client).is_err() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    socket.set_nonblocking(true).unwrap();
    let mut random = 0x1234_5678_9abc_def0_u64;
    let mut byte = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 56) as u8
    };
    for n in 0..300 {
        let mut bytes: Vec<u8> = match n % 4 {
            0 => (0..n).map(|_| byte()).collect(),
            1 => message("req", &(0..n).map(|_| byte()).collect::<Vec<_>>()),
            2 => message("req", "ACTIVITIES_LOG_FILE=/tmp/\u{0}=\n".repeat(n).as_bytes()),
            _ => message("nonsense", &vec![byte(); 100_000]),
        };
        if n % 5 == 0 && !bytes.is_empty() {
            let at = n % bytes.len();
            bytes[at] = byte();
        }
        send(&bytes);
    }
    // Its socket is taken away, and the daemon's with it.
    socket.set_nonblocking(false).unwrap();
    let _ = std::fs::remove_file(&client);
    let _ = std::fs::remove_file(folder.path().join("dynolog"));
    drop(socket);
    let daemon = Daemon::in_folder(folder.path());
    daemon.await_process(0, program.pid(), |_| true);
    let command = Gputrace { iterations: 3, ..Gputrace::to(output(folder.path(), "t.json")) };
    command.run(daemon.port);
    let trace = program.await_trace(&daemon, 0, &written(&command, program.pid()));
    let remarks = fact(&trace, "remarks").expect("says what came");
    assert!(remarks.contains("a datagram of the daemon makes no sense"), "{remarks}");
    assert!(!program.end().is_empty());
}
