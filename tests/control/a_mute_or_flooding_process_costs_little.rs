//! Sockets that look like those of processes, and answer nothing, or nonsense without end:
//! `kymo` turns to the others, and says which do not answer.

use control::{Place, Said, TIMEOUT};
use harness::kymo::Guarded;
use harness::{control, users};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Much less than each of them could take one after the other, or than for ever.
const SOON: Duration = Duration::from_secs(20);

/// Answers each who comes with `answer`, then with `more` without end.
fn serve(listener: UnixListener, answer: &'static str, more: &'static str) {
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 64]);
            let _ = stream.write_all(answer.as_bytes());
            if more.is_empty() {
                kept.push(stream);
            } else {
                let more = more.repeat(1000);
                std::thread::spawn(move || while stream.write_all(more.as_bytes()).is_ok() {});
            }
        }
    });
}

/// A socket whose queue is full, and stays so.
fn full(path: &std::path::Path) -> (UnixListener, Vec<UnixStream>) {
    let listener = UnixListener::bind(path).unwrap();
    // SAFETY: no pointers. Again, for a shorter queue.
    assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
    let first = UnixStream::connect(path).unwrap();
    (listener, vec![first])
}

fn run(place: &Place, args: &[&str]) -> Said {
    wait_for(&mut place.kymo(args))
}

fn wait_for(command: &mut Command) -> Said {
    let mut child = Guarded::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > SOON {
            child.kill().unwrap();
            panic!("{command:?} still waits: {:?}", child.wait_with_output());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Said::from(child.wait_with_output())
}

fn listener(place: &Place, pid: u32) -> UnixListener {
    let _ = std::fs::create_dir(place.sockets());
    let private = PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(place.sockets(), private).unwrap();
    UnixListener::bind(place.sockets().join(format!("{pid}.sock"))).unwrap()
}

#[test]
fn the_others_are_asked_all_the_same() {
    let place = Place::new();
    for pid in 1..=8 {
        serve(listener(&place, pid), "", "");
    }
    serve(listener(&place, 9), "", "x=1\n");
    serve(listener(&place, 10), "", "x");
    serve(listener(&place, 11), "", "progress CollectTrace 1 2\n");
    let _full = full(&place.sockets().join("12.sock"));
    let program = place.start(&[]);
    let pid = program.pid.to_string();

    let said = run(&place, &["ps"]);
    assert!(said.good && said.err.is_empty(), "{said:?}");
    let row = said.out.lines().find(|row| row.contains(&pid)).expect(&said.out);
    assert!(row.contains("waiting"), "{said:?}");
    assert_eq!(said.out.matches("no answer").count(), 12, "{said:?}");
    let said = run(&place, &["status"]);
    assert!(said.good && said.out.contains("state: waiting"), "{said:?}");
    assert_eq!(said.out.matches("has not answered").count(), 12, "{said:?}");

    let said = run(&place, &["trigger", "--all", "--duration", "10ms", "-o", "%p.pftrace"]);
    assert!(!said.good, "{said:?}");
    let [path] = &said.paths()[..] else { panic!("{said:?}") };
    control::open(path);
    assert_eq!(said.err.matches("has not answered").count(), 9, "{said:?}");
    assert_eq!(said.err.matches("answers nonsense").count(), 3, "{said:?}");
    let said = run(&place, &["stop", "--all"]);
    assert!(!said.good && said.err.contains("nothing to stop"), "{said:?}");
    assert!(program.end());
}

/// What `kymo doctor` asks is a daemon's socket: there it only looks who is there.
#[test]
fn a_mute_daemon_is_no_reason_to_wait() {
    let place = Place::new();
    let path = place.path("dynolog");
    let daemon = UnixDatagram::bind(&path).unwrap();
    let client = UnixDatagram::unbound().unwrap();
    client.set_nonblocking(true).unwrap();
    while client.send_to(&[0; 4096], &path).is_ok() {}
    serve(listener(&place, 1), "", "");
    let mut doctor = place.kymo(&["doctor"]);
    doctor
        .env("KYMOGRAPH_DAEMON", "dynolog")
        .env("KYMOGRAPH_DAEMON_FOLDER", path.parent().unwrap());
    let said = wait_for(&mut doctor);
    assert!(said.out.contains("can be asked for requests"), "{said:?}");
    drop(daemon);
}

/// One's own process is waited for once it has accepted; another user's only while it is
/// heard of.
#[test]
fn a_process_of_another_user_that_accepts_and_falls_silent_is_left() {
    if !users::are_possible() {
        return;
    }
    let place = Place::new();
    drop(listener(&place, 1));
    std::fs::remove_file(place.sockets().join("1.sock")).unwrap();
    users::give(&place.path(""), users::NOBODY).unwrap();
    users::give(&place.sockets(), users::NOBODY).unwrap();
    let path = place.sockets().join("1.sock");
    let listener = users::run_as(users::NOBODY, || UnixListener::bind(path).unwrap()).unwrap();
    serve(listener, "accepted\nprogress CollectTrace 1 2\n", "");
    let said = run(&place, &["trigger", "--duration", "10ms"]);
    assert!(!said.good && said.err.contains("has not answered"), "{said:?}");
}

/// Programs look for what others left behind in the folder, and wait for nobody there.
#[test]
fn a_program_that_starts_is_not_kept_waiting() {
    let place = Place::new();
    drop(listener(&place, 1));
    std::fs::remove_file(place.sockets().join("1.sock")).unwrap();
    let _full = full(&place.sockets().join("1.sock"));
    let begun = Instant::now();
    let program = place.start(&[]);
    assert!(begun.elapsed() < TIMEOUT);
    assert!(program.end());
}
