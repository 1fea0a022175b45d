//! What Kineto asserts about its daemon and its config loader (ConfigLoaderTest,
//! ConfigLoaderPollThreadExceptionTest, and its IPC client), by the same names.
//!
//! It has lists of handlers, which must all accept; here is one broker, so the tests of
//! adding, removing and asking several have nothing to be about. That the process lives on
//! after an error is tested with whole processes in `tests/control/a_daemon_asks_for_traces.rs`,
//! too.

use super::tests::{Peer, abstract_name};
use super::*;
use crate::Config;
use crate::session::{Phase, Refusal, Window};
use std::os::unix::net::SocketAddr;
use std::path::Path;

/// A client, its broker, and a daemon that has been asked once.
struct Process {
    client: Client,
    broker: Broker,
    daemon: Peer,
    from: SocketAddr,
}

impl Process {
    fn new(folder: &Path) -> Process {
        let mut config = Config { daemon: abstract_name(), ..Config::default() };
        config.trace_dirs = vec![folder.to_owned()];
        let daemon = Peer::at(&config.daemon);
        let mut client = Client::new(config.daemon.clone(), Instant::now() - SPREAD);
        let broker = Broker::new(config, Vec::new()).unwrap();
        client.attend(&broker);
        let (_, from) = daemon.question().expect("asked at once: it is due");
        Process { client, broker, daemon, from }
    }

    /// The daemon says `text`, and the client hears it.
    fn hear(&mut self, text: &str) {
        self.daemon.answer(&self.from, text.as_bytes());
        self.client.attend(&self.broker);
    }

    /// What the daemon is asked for when the time has come.
    fn next_kind(&mut self) -> i32 {
        self.client.next = Instant::now();
        self.client.attend(&self.broker);
        let (question, _) = self.daemon.question().expect("a question");
        i32::from_ne_bytes(question[40..44].try_into().unwrap())
    }

    fn pends(&self) -> bool {
        self.broker.status().pending
    }

    fn remarks(&self) -> Vec<String> {
        self.client.remarks.take()
    }
}

const REQUEST: &str = "\n    ACTIVITIES_DURATION_MSECS=500\n    REQUEST_TRACE_ID=7\n";

#[test]
fn no_daemon_config_loader_factory_means_nothing_is_polled() {
    assert_eq!(Config::default().daemon.name, "");
    let named = Config::from_vars([("KINETO_IPC_SOCKET_DIR", "/x"), ("SLURM_JOB_ID", "1")]).0;
    assert_eq!(named.daemon.name, "", "where it would be is not that there is one");
    // Any value will do, as in Kineto.
    for value in ["1", "0", ""] {
        let (config, problems) = Config::from_vars([("KINETO_USE_DAEMON", value)]);
        assert_eq!((config.daemon.name.as_str(), problems), ("dynolog", vec![]), "{value:?}");
    }
    let vars = [("KYMOGRAPH_DAEMON", ""), ("KINETO_USE_DAEMON", "1")];
    assert_eq!(Config::from_vars(vars).0.daemon.name, "", "ours is the more precise one");
}

#[test]
fn daemon_is_polled_repeatedly() {
    let folder = tempfile::tempdir().unwrap();
    let mut process = Process::new(folder.path());
    for _ in 0..10 {
        assert_eq!(process.next_kind(), 2);
        process.hear("");
    }
    assert_eq!(process.client.counts().asked, 11);
}

#[test]
fn an_empty_on_demand_config_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let mut process = Process::new(folder.path());
    for text in ["", "\n", " \n\t\n"] {
        process.hear(text);
        assert!(!process.pends(), "{text:?}");
    }
    assert_eq!(process.remarks(), [""; 0], "and is nothing to talk about");
}

#[test]
fn an_on_demand_config_reaches_the_handler() {
    let folder = tempfile::tempdir().unwrap();
    let mut process = Process::new(folder.path());
    process.hear(REQUEST);
    assert!(process.pends());
    assert_eq!(process.remarks(), [""; 0]);
}

#[test]
fn a_busy_handler_is_polled_without_activities() {
    let folder = tempfile::tempdir().unwrap();
    let mut process = Process::new(folder.path());
    assert_eq!(process.next_kind(), 2);
    process.hear(REQUEST);
    assert_eq!(process.next_kind(), 0, "keep-alive: a further one stays with the daemon");
    let ticket = process.broker.current().unwrap();
    process.broker.cancel(ticket);
    assert_eq!(process.next_kind(), 2);
}

/// What Kineto logs, and nobody gets to know: here the next trace tells.
#[test]
fn second_request_while_pending_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let mut process = Process::new(folder.path());
    process.hear(REQUEST);
    process.hear(REQUEST);
    assert_eq!(process.remarks(), [format!("request refused: {}", Refusal::Pending)]);
    assert_eq!(process.broker.status().phase, Phase::WaitForRequest);
}

#[test]
fn an_exception_in_parse_does_not_kill_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let mut process = Process::new(folder.path());
    for text in ["foo", "=foo=", "ACTIVITY_TYPES=no_such_type", "A=1\r\n", &"x".repeat(60_000)] {
        process.hear(text);
        assert!(!process.pends());
        let [remark] = &process.remarks()[..] else { panic!("no remark") };
        assert!(remark.starts_with("request refused: line 1: "), "{remark}");
    }
    process.hear(REQUEST);
    assert!(process.pends(), "it goes on");
}

#[test]
fn on_demand_config_update_interval_secs() {
    let folder = tempfile::tempdir().unwrap();
    let mut process = Process::new(folder.path());
    for (seconds, poll) in [(2, 2), (0, 1), (86_400, 30)] {
        process.hear(&format!(
            "ACTIVITIES_LOG_FILE={}\nON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS={seconds}\n",
            folder.path().join("x.json").display()
        ));
        assert_eq!(process.client.settings.poll, Duration::from_secs(poll));
        let ticket = process.broker.current().unwrap();
        process.broker.cancel(ticket);
    }
}

/// AsyncActivityProfilerHandlerTest, with the text that `dyno gputrace --iterations` sends.
#[test]
fn iteration_request_with_duration_falls_back_to_timestamp() {
    let text = "PROFILE_START_ITERATION=0\nPROFILE_START_ITERATION_ROUNDUP=1\n\
                ACTIVITIES_ITERATIONS=3";
    let parsed = crate::session::parse(
        text.as_bytes(),
        crate::session::Dialect::Kineto,
        crate::session::Origin::Daemon,
        &Config::default(),
        crate::session::Now { boot: 0, wall: 0 },
    );
    let Window::Iterations { otherwise, .. } = parsed.unwrap().request.window else {
        panic!("not by iterations");
    };
    assert_eq!(otherwise, Some((Duration::from_millis(500), Duration::from_secs(5))));
}

/// dyno's users know ancestors only: a launcher's pid reaches all that it launched.
#[test]
fn pids_of_ancestors_are_leaf_first_and_stay_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let mut process = Process::new(folder.path());
    process.client.next = Instant::now();
    process.client.attend(&process.broker);
    let first = process.daemon.question().unwrap().0;
    assert_eq!(first[56..60], (std::process::id() as i32).to_ne_bytes());
    process.client.next = Instant::now();
    process.client.attend(&process.broker);
    assert_eq!(process.daemon.question().unwrap().0, first);
}
