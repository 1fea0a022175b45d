//! The daemon that other tests talk to: what it sends and takes is byte for byte what
//! dynolog's does, and what dynolog does not survive is found out.

use dynolog::{Daemon, Gputrace, message};
use harness::dynolog;
use kymograph::control::dynolog::{Ready, reply, request};
use serde_json::json;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(60);

/// A client's end, and what it sends.
fn client(folder: &Path) -> UnixDatagram {
    let socket = UnixDatagram::bind(folder.join("client")).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    socket
}

fn ask(daemon: &Path, client: &UnixDatagram, datagram: &[u8]) -> Vec<u8> {
    client.send_to(datagram, daemon.join("dynolog")).unwrap();
    let mut bytes = [0; 4096];
    let length = client.recv(&mut bytes).unwrap();
    bytes[..length].to_vec()
}

#[test]
fn a_request_waits_until_it_is_fetched_and_is_then_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::in_folder(folder.path());
    let client = client(folder.path());
    let question = |ready| request(ready, 0, &[4242, 100]).unwrap();
    let empty = message("req", b"");
    assert_eq!(empty.len(), 40);
    assert_eq!(ask(folder.path(), &client, &question(Ready::Activities)), empty);

    let command = Gputrace { pids: "7,100".into(), ..Gputrace::to("/tmp/t.json") };
    let answer = command.run(daemon.port);
    let expected = json!({
        "processesMatched": [4242],
        "eventProfilersTriggered": [],
        "activityProfilersTriggered": [4242],
        "eventProfilersBusy": 0,
        "activityProfilersBusy": 0,
    });
    assert_eq!(answer, expected);
    assert_eq!(command.run(daemon.port)["activityProfilersBusy"], 1);
    let other = Gputrace { pids: "1,2".into(), ..command.clone() };
    assert_eq!(other.run(daemon.port)["processesMatched"], json!([]));
    let other = Gputrace { job_id: 5, ..command.clone() };
    assert_eq!(other.run(daemon.port)["processesMatched"], json!([]));

    // Who is not ready gets nothing, and loses nothing.
    assert_eq!(ask(folder.path(), &client, &question(Ready::Nothing)), empty);
    let answer = ask(folder.path(), &client, &question(Ready::Activities));
    let text = reply(&answer, answer.len()).unwrap().unwrap();
    // As a daemon built from dynolog's sources sent it.
    assert_eq!(
        text,
        "\n    ACTIVITIES_LOG_FILE=/tmp/t.json\nPROFILE_START_TIME=0\n\
         ACTIVITIES_DURATION_MSECS=500\nPROFILE_REPORT_INPUT_SHAPES=false\n\
         PROFILE_WITH_STACK=false\nPROFILE_WITH_FLOPS=false\nPROFILE_WITH_MODULES=false\n    \
         REQUEST_TRACE_ID=1004242\n"
    );
    assert_eq!(ask(folder.path(), &client, &question(Ready::Activities)), empty);
    assert_eq!(daemon.fault(), None);
}

#[test]
fn the_command_says_what_dynos_says() {
    // As the tests of dynolog's command have it.
    let all = Gputrace {
        record_shapes: true,
        profile_memory: true,
        with_stacks: true,
        with_modules: true,
        duration_ms: 42,
        profile_start_time: 1000,
        ..Gputrace::to("/tmp/test_trace.json")
    };
    assert_eq!(
        all.config(),
        "ACTIVITIES_LOG_FILE=/tmp/test_trace.json\n\
         PROFILE_START_TIME=1000\n\
         ACTIVITIES_DURATION_MSECS=42\n\
         PROFILE_REPORT_INPUT_SHAPES=true\n\
         PROFILE_PROFILE_MEMORY=true\n\
         PROFILE_MEMORY=true\n\
         PROFILE_MEMORY_DURATION_MSECS=42\n\
         PROFILE_WITH_STACK=true\n\
         PROFILE_WITH_FLOPS=false\n\
         PROFILE_WITH_MODULES=true"
    );
    let steps = Gputrace {
        iterations: 42,
        profile_start_iteration_roundup: 1000,
        ..Gputrace::to("/tmp/x.json")
    };
    assert!(steps.config().contains(
        "\nPROFILE_START_ITERATION=0\nPROFILE_START_ITERATION_ROUNDUP=1000\n\
         ACTIVITIES_ITERATIONS=42\n"
    ));
    assert!(
        steps
            .request()
            .starts_with("\n{\n    \"fn\": \"setKinetOnDemandRequest\",\n    \"config\"")
    );
    assert!(serde_json::from_str::<serde_json::Value>(&steps.request()).is_ok());
    assert_eq!(steps.printed(7), "/tmp/x_7.json");
}

#[test]
fn what_a_stock_daemon_does_not_survive_is_found_out() {
    let good = request(Ready::Activities, 0, &[1000]).unwrap();
    let changed = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    let cases: [(&str, Vec<u8>); 6] = [
        ("nothing at all", vec![]),
        ("a size beyond all memory", changed(7, 0x7f)),
        ("a size that is too small", changed(0, 4)),
        ("pids that are not there", changed(44, 2)),
        ("no pids", message("req", &[0; 16])),
        ("a type that it does not know", message("nonsense", b"")),
    ];
    for (what, datagram) in cases {
        let folder = tempfile::tempdir().unwrap();
        let daemon = Daemon::in_folder(folder.path());
        let client = client(folder.path());
        client.send_to(&datagram, folder.path().join("dynolog")).unwrap();
        must_fail(&daemon, what);
    }
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::in_folder(folder.path());
    let nameless = UnixDatagram::unbound().unwrap();
    nameless.send_to(&good, folder.path().join("dynolog")).unwrap();
    must_fail(&daemon, "a socket without a name");

    let elsewhere = tempfile::tempdir().unwrap();
    let daemon = Daemon::in_folder(folder.path());
    client(elsewhere.path()).send_to(&good, folder.path().join("dynolog")).unwrap();
    must_fail(&daemon, "a socket in another folder");

    let name = format!("dynolog-strict-{}", std::process::id());
    let daemon = Daemon::named(&name);
    let address = |name: String| SocketAddr::from_abstract_name(name).unwrap();
    let without_nul = UnixDatagram::bind_addr(&address(format!("{name}-client"))).unwrap();
    without_nul.send_to_addr(&good, &address(format!("{name}\0"))).unwrap();
    must_fail(&daemon, "a name without its NUL");
}

fn must_fail(daemon: &Daemon, what: &str) {
    let deadline = Instant::now() + TIMEOUT;
    while daemon.fault().is_none() {
        assert!(Instant::now() < deadline, "survived {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
