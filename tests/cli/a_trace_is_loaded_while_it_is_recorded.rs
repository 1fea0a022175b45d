//! `kymo record --to-trace-processor` sends the trace to a trace processor while it is
//! written. Whatever becomes of that server, the program does not notice, the file is
//! whole, and the server has in the end what the file has, if it can be reached.

use harness::kymo::Guarded;
use harness::{kymo, native};
use oracle::{Server, Trace};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(120);
const STEPS: &str = "SELECT count(*), sum(extract_arg(arg_set_id, 'debug.n')), sum(dur), min(ts) \
                     FROM slice WHERE name = 'step'";

/// A program under `kymo record` that records so many steps when it is told.
struct Recorded {
    child: Guarded,
    answers: BufReader<std::process::ChildStdout>,
}

impl Recorded {
    fn start(folder: &Path, url: &str) -> Recorded {
        let program = native::compile("cc", "-std=c11", "tests/data/c/steps.c", folder);
        let mut command: Command = kymo::kymo();
        command.arg("record").arg(format!("--to-trace-processor={url}"));
        command.args(["--flush-interval", "10ms", "-o"]).arg(folder.join("t.pftrace"));
        command.arg("--").arg(program);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Guarded::start(&mut command);
        let answers = BufReader::new(child.stdout.take().unwrap());
        Recorded { child, answers }
    }

    /// Returns when they are in the file.
    fn steps(&mut self, count: u32) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{count}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        assert_eq!(line, "done\n");
    }

    /// Ends it; what `kymo` said.
    fn end(mut self) -> String {
        drop(self.child.stdin.take());
        let output = self.child.wait_with_output();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        said
    }
}

fn until(mut condition: impl FnMut() -> bool) {
    let since = Instant::now();
    while !condition() {
        assert!(since.elapsed() < TIMEOUT);
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn length(path: &Path) -> u64 {
    path.metadata().map_or(0, |file| file.len())
}

#[test]
fn the_server_has_what_the_file_has_also_if_it_died_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pftrace");
    let mut first = Server::start(0);
    let mut recorded = Recorded::start(folder.path(), &first.url());
    recorded.steps(20_000);
    // It has all there is while the program is being recorded.
    until(|| first.served().0 >= length(&path) && length(&path) > 100_000);
    let port = first.port();
    drop(first);
    recorded.steps(10_000);
    let mut second = Server::start(port);
    recorded.steps(10_000);
    let said = recorded.end();
    let done = format!("the trace processor at http://127.0.0.1:{port} has the whole trace");
    assert!(said.contains(&done), "{said}");
    let trace = Trace::open(&path);
    trace.assert_clean();
    assert_eq!(trace.rows(STEPS), second.rows(STEPS));
    assert_eq!(trace.rows(STEPS)[0][0], 40_000);
    // Once to begin anew, once at the end.
    assert_eq!(second.served(), (0, 2));
}

#[test]
fn nobody_there_costs_nothing_but_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    // A port where nobody listens, which no other test can draw while a connection comes
    // from it; and one where nobody ever answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = std::net::TcpStream::connect(silent.local_addr().unwrap()).unwrap();
    for address in [taken.local_addr().unwrap(), silent.local_addr().unwrap()] {
        let mut recorded = Recorded::start(folder.path(), &format!("http://{address}"));
        recorded.steps(1000);
        let said = recorded.end();
        assert!(said.contains(&format!("{address} does not have the whole trace: ")), "{said}");
        let trace = Trace::open(folder.path().join("t.pftrace"));
        trace.assert_clean();
        assert_eq!(trace.rows(STEPS)[0][0], 1000);
    }
}

#[test]
fn what_cannot_work_is_refused_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    for (options, why) in [
        (["--to-trace-processor=ftp://x/y", "-o", "t.pftrace"], "expected http://HOST:PORT"),
        (["--to-trace-processor", "-o", "t.pftrace.gz"], "a gzip file is not final"),
    ] {
        let mut command = kymo::kymo();
        command.arg("record").args(options).args(["--", "touch", "ran"]);
        let output = command.current_dir(folder.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(why), "{said}");
        assert!(!folder.path().join("ran").exists());
    }
}
