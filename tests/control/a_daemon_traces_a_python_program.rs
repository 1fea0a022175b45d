//! A Python program under `kymo record --wait` is traced by a daemon as dynolog's, as
//! docs/DYNOLOG.md says: names as `dyno` prints them, exact windows, step markers.

use control::{Place, Program, fact};
use dynolog::{Daemon, Gputrace};
use harness::{child, control, dynolog, install, kymo};
use oracle::Trace;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// For a loaded machine; nothing waits that long where all goes well.
const TIMEOUT: Duration = Duration::from_secs(120);

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/control").join(name)
}

/// The folder of `place`, spelled without a slash at its end: daemons are particular.
fn folder(place: &Place) -> PathBuf {
    place.path("x").parent().unwrap().to_owned()
}

/// What lets a process ask the daemon in the folder of `place`, often.
fn variables(place: &Place) -> [(&'static str, PathBuf); 3] {
    [
        ("KYMOGRAPH_DAEMON", "dynolog".into()),
        ("KYMOGRAPH_DAEMON_FOLDER", folder(place)),
        ("KYMOGRAPH_DAEMON_POLL", "1s".into()),
    ]
}

fn start(place: &Place, args: &[&str]) -> Program {
    let mut command = place.kymo(&["record", "--wait", "--"]);
    command.arg(oracle::venv_python()).arg(data("steps.py")).args(args).envs(variables(place));
    Program::start(command)
}

/// A program with the surroundings that `kymo` has there.
fn command(place: &Place, program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, value) in place.kymo(&[]).get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.current_dir(folder(place));
    command
}

/// The daemon in the folder of `place`, as its clients spell it.
fn daemon(place: &Place) -> Daemon {
    Daemon::in_folder(&folder(place))
}

/// Where a process writes what was asked for: where `dyno` says if that is JSON. Else `dyno`
/// prints one name for all processes, and the pid goes before the extension.
fn output(command: &Gputrace, pid: u32) -> PathBuf {
    let asked = Path::new(&command.log_file);
    match asked.extension().and_then(|extension| extension.to_str()) {
        Some("json") => command.printed(pid).into(),
        Some(other) => {
            let stem = asked.with_extension("");
            format!("{}_{pid}.{other}", stem.display()).into()
        }
        None => panic!("no extension"),
    }
}

fn await_file(path: &Path) {
    let deadline = Instant::now() + TIMEOUT;
    while !path.exists() {
        assert!(Instant::now() < deadline, "there is no {}", path.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The markers of steps: `ProfilerStep#N`, in order.
fn steps(trace: &Trace) -> Vec<i64> {
    let rows = trace.rows("SELECT name FROM slice WHERE name GLOB 'ProfilerStep#*' ORDER BY ts");
    let number = |row: &Vec<Value>| row[0].as_str()?.split('#').nth(1)?.parse().ok();
    rows.iter().filter_map(number).collect()
}

fn log_file(place: &Place, name: &str) -> String {
    place.path(name).to_str().unwrap().to_owned()
}

#[test]
fn by_iterations_as_json_and_as_it_is() {
    let place = Place::new();
    let daemon = daemon(&place);
    let program = start(&place, &["steps"]);
    daemon.await_process(0, program.pid, |process| process.ready == 2);
    for name in ["a.json", "b.pftrace"] {
        let command = Gputrace { iterations: 5, ..Gputrace::to(log_file(&place, name)) };
        let answer = command.run(daemon.port);
        assert_eq!(answer["activityProfilersTriggered"], serde_json::json!([program.pid]));
        let path = output(&command, program.pid);
        await_file(&path);
        place.wait_for(program.pid, "waiting");
        if name == "a.json" {
            check_json(&path);
        }
        let trace = control::open(&path.with_extension("pftrace"));
        let steps = steps(&trace);
        assert_eq!(steps.len(), 5, "{steps:?}");
        assert!(steps.windows(2).all(|pair| pair[1] == pair[0] + 1), "{steps:?}");
        assert_eq!(trace.one_i64("SELECT COUNT(*) FROM slice WHERE name = 'work'"), 5);
        daemon.await_process(0, program.pid, |process| process.ready == 2);
    }
    assert_eq!(daemon.fault(), None);
    assert!(program.end());
}

/// Kineto's JSON with the same steps, for its owner's eyes only.
fn check_json(path: &Path) {
    use std::os::unix::fs::MetadataExt;
    let json: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    // Whole events, and the beginnings of those that have two ends.
    let begins = |event: &&Value| event["ph"] == "X" || event["ph"] == "b";
    let is = |event: &Value, name: &str| {
        event["name"].as_str().is_some_and(|found| found.starts_with(name))
    };
    let named = |name: &str| events.iter().filter(begins).filter(|e| is(e, name)).count();
    assert_eq!((named("ProfilerStep#"), named("work")), (5, 5));
    assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
}

#[test]
fn by_time_in_four_processes_and_nobody_else_meanwhile() {
    let place = Place::new();
    let daemon = daemon(&place);
    // They are nearly always at work: also one that does not run while it is recorded.
    let programs: Vec<Program> = (0..4).map(|_| start(&place, &["busy"])).collect();
    for program in &programs {
        daemon.await_process(0, program.pid, |process| process.ready == 2);
        let status = place.run(&["status", "--pid", &program.pid.to_string()]);
        assert!(status.out.contains("daemon: dynolog "), "{status:?}");
    }
    // Synchronised, as for many hosts: at a time of day that leaves room for the warm-up.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let start = now.as_millis() as u64 + 15_000;
    let command = Gputrace {
        duration_ms: 300,
        profile_start_time: start,
        process_limit: 4,
        ..Gputrace::to(log_file(&place, "t.pftrace"))
    };
    command.run(daemon.port);
    daemon.await_process(0, programs[0].pid, |process| process.ready == 0);
    let pid = programs[0].pid.to_string();
    let refused = place.run(&["trigger", "--pid", &pid, "--duration", "1s", "-o", "x.pftrace"]);
    assert!(!refused.good && refused.err.contains(&pid), "{refused:?}");
    let reason = ["busy", "pending"].iter().any(|word| refused.err.contains(word));
    assert!(reason, "{refused:?}");

    // Of some readings of both clocks the one in which the least time passed.
    let clock = |id| kymograph::clock::system(id) as i64;
    let readings = (0..20).map(|_| {
        let before = clock(libc::CLOCK_BOOTTIME);
        let wall = clock(libc::CLOCK_REALTIME);
        (clock(libc::CLOCK_BOOTTIME) - before, before - wall)
    });
    let (_, difference) = readings.min().unwrap();
    let began = start as i64 * 1_000_000 + difference;
    let mut openings = Vec::new();
    for program in programs {
        let path = output(&command, program.pid);
        await_file(&path);
        place.wait_for(program.pid, "waiting");
        let trace = control::open(&path);
        let (opened, closed) = (fact(&trace, "window.opened"), fact(&trace, "window.closed"));
        assert_eq!(closed - opened, 300_000_000, "to the nanosecond");
        assert!((opened - began).abs() < 5_000_000, "{opened} {began}");
        openings.push(opened);
        assert!(trace.one_i64("SELECT COUNT(*) FROM slice WHERE name = 'work'") > 0);
        let outside = trace.one_i64(&format!(
            "SELECT COUNT(*) FROM slice
             WHERE name = 'work'
             AND ((dur != -1 AND ts + dur < {opened}) OR ts > {closed})"
        ));
        assert_eq!(outside, 0);
        assert!(program.end());
    }
    let apart = openings.iter().max().unwrap() - openings.iter().min().unwrap();
    assert!(apart < 2_000_000, "{openings:?}");
}

/// Says what it does through NVTX, until its standard input ends.
const ANNOTATED: &str = r#"
import ctypes, os, sys, threading, nvtx
step = ctypes.CDLL(os.environ["NVTX_INJECTION64_PATH"]).kymo_step
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
nvtx.push_range("first"); nvtx.pop_range()
print("begun", os.getpid(), flush=True)
while not ended.wait(0.002):
    step()
    nvtx.push_range("work"); nvtx.pop_range()
print("ended 0", flush=True)
"#;

/// As Kineto in a program that CUDA or NVTX has load it: nothing is recorded until the
/// daemon asks, and there is no `kymo` that could make JSON.
#[test]
fn a_program_without_kymo_waits_for_its_daemon() {
    let place = Place::new();
    let daemon = daemon(&place);
    let mut python = command(&place, &oracle::venv_python());
    python.args(["-c", ANNOTATED]).envs(variables(&place));
    python.env("NVTX_INJECTION64_PATH", kymo::library());
    let program = Program::start(python);
    daemon.await_process(0, program.pid, |process| process.ready == 2);
    let command = Gputrace { iterations: 4, ..Gputrace::to(log_file(&place, "t.json")) };
    command.run(daemon.port);
    let json = output(&command, program.pid);
    let path = json.with_extension("pftrace");
    await_file(&path);
    place.wait_for(program.pid, "waiting");
    let trace = control::open(&path);
    assert_eq!(steps(&trace).len(), 4);
    assert_eq!(trace.one_i64("SELECT COUNT(*) FROM slice WHERE name = 'work'"), 4);
    assert!(program.end());
    assert!(!json.exists(), "it would not be JSON");
    assert!(!place.path("trace.pftrace").exists(), "nothing was recorded unasked");
}

/// The words after `dyno gputrace`.
fn parse(words: &[String]) -> Gputrace {
    let mut command = Gputrace::to("");
    let mut words = words.iter();
    while let Some(option) = words.next() {
        let value = words.next().unwrap_or_else(|| panic!("{option} has no value"));
        match option.as_str() {
            "--log-file" => command.log_file.clone_from(value),
            "--duration-ms" => command.duration_ms = value.parse().unwrap(),
            "--iterations" => command.iterations = value.parse().unwrap(),
            "--job-id" => command.job_id = value.parse().unwrap(),
            "--pids" => command.pids.clone_from(value),
            _ => panic!("dyno has no option {option}, or not here"),
        }
    }
    command
}

/// The commands of docs/DYNOLOG.md, one after the other. `dynolog` is the daemon of the
/// tests, `dyno` this program, `train.py` one that says where its iterations are.
#[test]
fn the_docs_say_what_works() {
    if let Some(port) = child::part() {
        let words: Vec<String> =
            std::env::var("DYNO").unwrap().split(' ').map(str::to_owned).collect();
        assert_eq!(words[0], "gputrace");
        let answer = parse(&words[1..]).run(port.parse().unwrap());
        assert_eq!(answer["processesMatched"].as_array().unwrap().len(), 1);
        return;
    }
    let place = Place::new();
    let folder = folder(&place);
    let daemon = daemon(&place);
    let bin = place.path("bin");
    std::fs::create_dir(&bin).unwrap();
    let script = |name: &str, text: &str| {
        install::write(&bin.join(name), format!("#!/bin/sh\n{text}\n"));
    };
    script("dynolog", "test \"$*\" = --enable_ipc_monitor");
    script("python3", &format!("exec {} \"$@\"", oracle::venv_python().display()));
    script("kymo", &format!("exec {} \"$@\"", env!("CARGO_BIN_EXE_kymo")));
    let test = std::env::current_exe().unwrap();
    script(
        "dyno",
        &format!(
            "DYNO=\"$*\" KYMO_TEST_PART={} exec {} {} --exact",
            daemon.port,
            test.display(),
            child::name(module_path!(), "the_docs_say_what_works")
        ),
    );
    let steps = std::fs::read_to_string(data("steps.py")).unwrap();
    // Nearly always at work: also where it does not run while it is recorded.
    let always = ["steps", "busy"].into_iter().fold(steps, |text, word| {
        let asked = format!("\"{word}\" in sys.argv");
        assert!(text.contains(&asked));
        text.replace(&asked, "True")
    });
    std::fs::write(place.path("train.py"), always).unwrap();

    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/DYNOLOG.md"));
    let text = text.unwrap().replace("/tmp/", &format!("{}/", folder.display()));
    let mut environment = BTreeMap::from(variables(&place));
    environment.remove("KYMOGRAPH_DAEMON");
    let run = |line: &str| {
        let mut shell = command(&place, Path::new("/bin/sh"));
        let path = std::env::join_paths([bin.clone(), "/usr/bin".into(), "/bin".into()]).unwrap();
        shell.args(["-c", line]).env("PATH", path).envs(&environment);
        shell
    };
    let mut program = None;
    let mut commands = 0;
    for block in text.split("```sh\n").skip(1) {
        for line in block.split("```").next().unwrap().lines() {
            commands += 1;
            let foreground = line.trim_end_matches('&');
            if line.contains("kymo record") {
                let started = Program::start(run(foreground));
                daemon.await_process(0, started.pid, |process| process.ready == 2);
                program = Some(started);
                continue;
            }
            let ended = run(foreground).output().unwrap();
            assert!(ended.status.success(), "{line}: {ended:?}");
            let Some(program) = program.as_ref().filter(|_| line.starts_with("dyno ")) else {
                continue;
            };
            let words: Vec<String> = line.split(' ').skip(2).map(str::to_owned).collect();
            let path = output(&parse(&words), program.pid);
            await_file(&path);
            place.wait_for(program.pid, "waiting");
            let trace = control::open(&path.with_extension("pftrace"));
            assert!(trace.one_i64("SELECT COUNT(*) FROM slice WHERE name = 'work'") > 0);
            daemon.await_process(0, program.pid, |process| process.ready == 2);
        }
    }
    assert_eq!(commands, 4);
    assert!(program.unwrap().end());
}
