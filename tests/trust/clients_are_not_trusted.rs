//! The socket on which a process can be asked for traces: nonsense, clients that come all at
//! once or vanish, other users, and outputs that must not be written. The program goes on,
//! and can be asked again.

use harness::control;
use harness::kymo::Guarded;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use control::{Place, Program, TIMEOUT};

fn socket(place: &Place, program: &Program) -> UnixStream {
    let stream = UnixStream::connect(place.sockets().join(format!("{}.sock", program.pid)));
    let stream = stream.unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream
}

/// What it answers to this, until it hangs up.
fn answer(place: &Place, program: &Program, said: &[u8]) -> String {
    let mut stream = socket(place, program);
    // It may hang up before it has heard everything.
    let _ = stream.write_all(said);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

#[test]
fn nonsense_is_refused() {
    let place = Place::new();
    let program = place.start(&[]);
    for said in [
        &b"\n\n"[..],
        b"hello\n\n",
        b"\0\xff\xfe\n\n",
        b"trigger\n\n",
        b"trigger\nTIME\n\n",
        b"trigger\nTIME=\n\n",
        b"trigger\nTIME=-1s\n\n",
        b"trigger\nTIME=1s\nOUTPUT=relative\n\n",
        b"trigger\nTIME=1s\nSTART=18446744073709551616\n\n",
        b"trigger\nITERATIONS=99999999999999999999\n\n",
        b"stop\n\n",
        b"cancel\n\n",
        &[b'x'; 1 << 20],
    ] {
        let answer = answer(&place, &program, said);
        let shown = String::from_utf8_lossy(&said[..said.len().min(40)]).into_owned();
        // It may hang up on who says too much before that has read why.
        let fine = answer.starts_with("refused ") || said.len() == 1 << 20;
        assert!(fine, "{shown:?}: {answer:?}");
    }
    place.run(&["trigger", "--duration", "10ms"]).trace();
    assert!(program.end());
}

#[test]
fn clients_that_say_nothing_keep_nobody_out_for_long() {
    let place = Place::new();
    let program = place.start(&[]);
    let mut silent: Vec<_> = (0..100).map(|_| socket(&place, &program)).collect();
    for stream in &mut silent[..50] {
        stream.write_all(b"trigger\nTIME=1").unwrap();
    }
    drop(silent.drain(20..40));
    place.run(&["trigger", "--duration", "10ms"]).trace();
    assert!(program.end());
}

#[test]
fn of_several_at_once_each_gets_a_trace_or_a_reason() {
    let place = Place::new();
    let program = place.start(&[]);
    let asked: Vec<_> = (0..6)
        .map(|number| {
            let output = format!("{number}.pftrace");
            let mut command = place.kymo(&["trigger", "--duration", "300ms", "-o", &output]);
            Guarded::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
        })
        .collect();
    let said: Vec<_> =
        asked.into_iter().map(|c| control::Said::from(c.wait_with_output())).collect();
    let traces = said.iter().filter(|said| said.good).count();
    assert!(traces > 0, "{said:?}");
    for said in &said {
        let reason = ["is busy", "another request is pending"].iter().any(|r| said.err.contains(r));
        assert!(said.good && said.paths().len() == 1 || reason, "{said:?}");
    }
    assert!(program.end());
}

#[test]
fn outputs_that_must_not_be_written() {
    let place = Place::new();
    let program = place.start(&[]);
    let victim = place.path("victim");
    // Begins as a trace does.
    std::fs::write(&victim, "\nprecious").unwrap();
    std::fs::write(place.path("result"), "precious").unwrap();
    std::os::unix::fs::symlink(&victim, place.path("link")).unwrap();
    std::fs::hard_link(&victim, place.path("name")).unwrap();
    for (output, why) in [
        ("link", "symbolic link"),
        ("name", "hard links"),
        ("result", "is not a trace"),
        ("missing/t.pftrace", "create it first"),
        (".", "name a file"),
        ("/", "no file"),
    ] {
        let said = place.run(&["trigger", "--duration", "10ms", "-o", output]);
        assert!(!said.good && said.err.contains(why), "{output}: {said:?}");
    }
    let up = format!("trigger\nTIME=1ms\nOUTPUT={}/../t\n\n", place.path("").display());
    assert!(answer(&place, &program, up.as_bytes()).contains("`..`"));
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "\nprecious");
    assert_eq!(std::fs::read_to_string(place.path("result")).unwrap(), "precious");
    place.run(&["trigger", "--duration", "10ms"]).trace();
    assert!(program.end());
}

#[test]
fn folders_can_be_limited() {
    let place = Place::new();
    std::fs::create_dir(place.path("traces")).unwrap();
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = place.kymo(&["record", "--wait", "--"]);
    command.arg(oracle::venv_python()).arg(script.join("tests/data/control/steps.py"));
    command.env("KYMOGRAPH_TRACE_DIRS", place.path("traces"));
    let program = Program::start(command);
    let said = place.run(&["trigger", "--duration", "10ms", "-o", "t.pftrace"]);
    assert!(!said.good && said.err.contains("traces may be written to"), "{said:?}");
    place.run(&["trigger", "--duration", "10ms", "-o", "traces/t.pftrace"]).trace();
    assert!(program.end());
}

#[test]
fn other_users_are_not_heard() {
    // SAFETY: no arguments, cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        println!("only root can be two users");
        return;
    }
    let place = Place::new();
    let program = place.start(&[]);
    let socket = place.sockets().join(format!("{}.sock", program.pid));
    for path in [place.path(""), place.sockets(), socket.clone()] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).unwrap();
    }
    let ask = "import socket, sys
s = socket.socket(socket.AF_UNIX)
s.settimeout(60)
s.connect(sys.argv[1])
try:
    s.sendall(b'status\\n\\n')
    print(s.recv(10000))
except OSError:
    print(b'')";
    let asked = Command::new("/usr/bin/env")
        .args(["python3", "-c", ask])
        .arg(&socket)
        .uid(65534)
        .current_dir("/")
        .output()
        .unwrap();
    let said = control::Said::from(asked);
    if said.err.contains("ermission") {
        println!("the other user cannot even start Python: {said:?}");
    } else {
        assert_eq!(said.out, "b''\n", "{said:?}");
    }
    assert!(program.end());
}

#[test]
fn what_cannot_be_asked_is_told_what_to_do() {
    let place = Place::new();
    let me = std::process::id().to_string();
    for args in [&["record", "--pid", &me][..], &["trigger", "--duration", "1s", "--pid", &me]] {
        let said = place.run(args);
        assert!(!said.good && said.err.contains("kymo record --wait"), "{said:?}");
    }
    let program = place.start(&[]);
    let pid = program.pid.to_string();
    let said = place.run(&["record", "--pid", &pid]);
    assert!(!said.good && said.err.contains(&format!("kymo trigger --pid {pid}")), "{said:?}");
    assert!(program.end());
}

#[test]
fn a_process_is_found_by_its_rank() {
    let place = Place::new();
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let programs = ["3", "7"].map(|rank| {
        let mut command = place.kymo(&["record", "--wait", "--"]);
        command.arg(oracle::venv_python()).arg(script.join("tests/data/control/steps.py"));
        Program::start({
            command.env("RANK", rank);
            command
        })
    });
    let unclear = place.run(&["trigger", "--duration", "1ms"]);
    assert!(!unclear.good && unclear.err.contains("--all"), "{unclear:?}");
    place.run(&["trigger", "--rank", "7", "--duration", "10ms", "-o", "%p.pftrace"]).trace();
    assert!(place.path(&format!("{}.pftrace", programs[1].pid)).exists());
    let listed = place.run(&["ps"]).out;
    let row = listed.lines().find(|row| row.contains(&programs[0].pid.to_string())).unwrap();
    assert_eq!(row.split_whitespace().nth(1), Some("3"), "{row}");
}
