//! `kymo open`: what it serves, to whom, how often, and how it ends. The requests are raw
//! HTTP, as browsers send them; `tests/open_in_chromium.mjs` asks a real one.

use harness::kymo;
use harness::kymo::Guarded;
use kymo::kymo;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{ChildStderr, Command, Stdio};
use std::time::Duration;

const UI: &str = "https://ui.perfetto.dev";
/// For a loaded machine; nothing waits that long where all goes well.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A `kymo open` that runs.
struct Server {
    child: Guarded,
    link: String,
    port: u16,
    path: String,
}

fn open(trace: &Path, change: impl FnOnce(&mut Command)) -> Server {
    let mut command = kymo();
    command.args(["open", "--no-browser", "--port", "0"]).arg(trace);
    command.env_remove("SSH_CONNECTION").env("USER", "ada");
    change(&mut command);
    let mut child = Guarded::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut link = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut link).unwrap();
    let url = link.split("url=http://127.0.0.1:").nth(1).expect(&link).split('&').next().unwrap();
    let (port, path) = url.split_once('/').unwrap();
    let (port, path) = (port.parse().unwrap(), format!("/{path}"));
    Server { child, link: link.trim_end().to_owned(), port, path }
}

/// An answer: its first line and fields, and its body.
struct Answer {
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn status(&self) -> u16 {
        self.head.split(' ').nth(1).expect(&self.head).parse().unwrap()
    }

    fn field(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The body without the lengths of its chunks; it must end with the last one.
    fn unchunked(&self) -> Vec<u8> {
        let (mut rest, mut whole) = (&self.body[..], Vec::new());
        loop {
            let line = rest.windows(2).position(|end| end == b"\r\n").unwrap();
            let length = std::str::from_utf8(&rest[..line]).unwrap();
            let length = usize::from_str_radix(length, 16).unwrap();
            let end = line + 2 + length;
            whole.extend_from_slice(&rest[line + 2..end]);
            assert_eq!(&rest[end..end + 2], b"\r\n");
            rest = &rest[end + 2..];
            if length == 0 {
                assert_eq!(rest, b"");
                return whole;
            }
        }
    }
}

impl Server {
    fn send(&self, request: &str) -> Answer {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        let end = all.windows(4).position(|end| end == b"\r\n\r\n").expect("no end of the head");
        let body = all.split_off(end + 4);
        Answer { head: String::from_utf8(all).unwrap(), body }
    }

    fn ask(&self, method: &str, path: &str, host: &str, origin: &str, more: &str) -> Answer {
        let origin = match origin {
            "" => String::new(),
            origin => format!("Origin: {origin}\r\n"),
        };
        self.send(&format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{origin}{more}\r\n"))
    }

    /// As the UI asks.
    fn ui(&self, method: &str, path: &str, more: &str) -> Answer {
        self.ask(method, path, &format!("127.0.0.1:{}", self.port), UI, more)
    }

    /// Waits for its end: whether it succeeded, and what it said.
    fn end(mut self) -> (bool, String) {
        let status = self.child.wait().unwrap();
        let mut said = String::new();
        let mut stderr: ChildStderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut said).unwrap();
        (status.success(), said)
    }
}

fn trace(folder: &Path, name: &str) -> std::path::PathBuf {
    let path = folder.join(name);
    let demo = kymo().args(["demo", "-o"]).arg(&path).output().unwrap();
    assert!(demo.status.success(), "{demo:?}");
    path
}

#[test]
fn the_ui_gets_the_trace_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), "a b.pftrace");
    let server = open(&path, |_| ());
    assert!(server.link.starts_with("https://ui.perfetto.dev/#!/?url="), "{}", server.link);
    let plugins = "&enablePlugins=dev.perfetto.GpuByProcess,com.meta.GpuCompute";
    assert!(server.link.ends_with(plugins), "{}", server.link);
    // Rows of GPUs are opened, and steps stay in sight.
    for command in ["startupCommands=%5B%7B", "ExpandTracksByRegex", "Hardware", "PinTracksByRegex"]
    {
        assert!(server.link.contains(command), "{command}: {}", server.link);
    }

    // The UI looks for a trace_processor first, and browsers ask whether they may.
    let probe = server.ui("POST", "/status", "Content-Length: 2\r\n");
    assert_eq!((probe.status(), probe.field("Access-Control-Allow-Origin")), (404, Some(UI)));
    let may = server.ui("OPTIONS", "/x", "Access-Control-Request-Private-Network: true\r\n");
    assert_eq!(may.status(), 204);
    assert_eq!(may.field("Access-Control-Allow-Origin"), Some(UI));
    assert_eq!(may.field("Access-Control-Allow-Methods"), Some("GET, HEAD, OPTIONS"));
    assert_eq!(may.field("Access-Control-Allow-Private-Network"), Some("true"));

    // Encoded once more in the link than in the request.
    let path_in_url = server.path.replace("%25", "%");
    assert!(path_in_url.ends_with("/a%20b.pftrace"), "{path_in_url}");
    let bytes = std::fs::read(&path).unwrap();
    let length = bytes.len().to_string();
    let head = server.ui("HEAD", &path_in_url, "");
    assert_eq!((head.status(), head.field("Content-Length")), (200, Some(length.as_str())));
    assert_eq!(head.body, b"");
    let part = server.ui("GET", &path_in_url, "Range: bytes=10-19\r\n");
    assert_eq!((part.status(), &part.body[..]), (206, &bytes[10..20]));
    let range = format!("bytes 10-19/{length}");
    assert_eq!(part.field("Content-Range"), Some(range.as_str()));
    let beyond = server.ui("GET", &path_in_url, &format!("Range: bytes={length}-\r\n"));
    assert_eq!(beyond.status(), 416);

    let whole = server.ui("GET", &path_in_url, "");
    assert_eq!((whole.status(), whole.field("Access-Control-Allow-Origin")), (200, Some(UI)));
    assert_eq!(whole.field("Cache-Control"), Some("no-store"));
    assert_eq!(whole.body, bytes);
    let (success, said) = server.end();
    assert!(success, "{said}");
    assert!(said.contains("the UI has it"), "{said}");
}

#[test]
fn nobody_else_gets_any_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), "secret.pftrace");
    let mut server = open(&path, |_| ());
    let host = format!("127.0.0.1:{}", server.port);
    let rebound = format!("evil.example:{}", server.port);
    let requests = [
        ("GET", host.as_str(), "https://evil.example"),
        ("OPTIONS", &host, "https://evil.example"),
        ("HEAD", &host, "https://evil.example"),
        ("GET", &host, "null"),
        ("GET", &host, "http://ui.perfetto.dev"),
        ("GET", &host, "https://ui.perfetto.dev.evil.example"),
        // An image, a script, a page of its own: these name no origin.
        ("GET", &host, ""),
        // A page whose name was pointed at this machine after it was loaded.
        ("GET", &rebound, ""),
        ("GET", &rebound, &format!("http://{rebound}")),
        ("GET", &rebound, UI),
    ];
    for (method, host, origin) in requests {
        let answer = server.ask(method, &server.path, host, origin, "");
        assert_eq!(answer.status(), 403, "{method} {host} {origin}");
        assert_eq!(answer.field("Access-Control-Allow-Origin"), None);
        assert!(answer.body.len() < 100, "{method} {host} {origin}");
    }
    let twice = server.ask("GET", &server.path, &host, UI, &format!("Origin: {UI}\r\n"));
    assert_eq!(twice.status(), 403);
    // Even the UI must know the path.
    for path in ["/", "/secret.pftrace", "/../secret.pftrace", &format!("{}x", server.path)] {
        assert_eq!(server.ui("GET", path, "").status(), 404, "{path}");
    }
    assert_eq!(server.ui("POST", &server.path, "").status(), 405);
    assert!(server.child.try_wait().unwrap().is_none(), "still waits for the UI");
    assert_eq!(server.ui("GET", &server.path, "").body, std::fs::read(&path).unwrap());
    let (success, said) = server.end();
    assert!(success, "{said}");
    // Once is enough, however many try.
    assert_eq!(said.matches("refused a request").count(), 1, "{said}");
}

#[test]
fn what_the_ui_cannot_unpack_is_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let plain = trace(folder.path(), "t.pftrace");
    let expected = std::fs::read(&plain).unwrap();
    // zstd is unpacked under way, gzip is not: the UI reads it.
    let zst = folder.path().join("t.pftrace.zst");
    std::fs::write(&zst, zstd::encode_all(&expected[..], 3).unwrap()).unwrap();
    let server = open(&zst, |_| ());
    assert!(server.path.ends_with("/t.pftrace"), "{}", server.path);
    let answer = server.ui("GET", &server.path, "Range: bytes=0-3\r\n");
    assert_eq!(answer.status(), 200, "a part cannot be had");
    assert_eq!(answer.unchunked(), expected);
    assert!(server.end().0);

    let json = folder.path().join("t.json.gz");
    let convert = kymo().arg("convert").arg(&plain).arg(&json).status().unwrap();
    assert!(convert.success());
    let server = open(&json, |_| ());
    let answer = server.ui("GET", &server.path, "");
    assert_eq!(answer.body, std::fs::read(&json).unwrap());
    assert!(server.end().0);
}

#[test]
fn rude_connections_are_in_nobodys_way() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), "t.pftrace");
    let server = open(&path, |_| ());
    // Opened in advance, as browsers do; and one that sends half a request.
    let silent: Vec<_> =
        (0..8).map(|_| TcpStream::connect(("127.0.0.1", server.port)).unwrap()).collect();
    (&silent[0]).write_all(b"GET / HT").unwrap();
    // One that goes on for ever, and one that is no HTTP at all.
    let mut endless = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let field = format!("X: {}\r\n", "x".repeat(1000));
    let _ = endless.write_all(b"GET / HTTP/1.1\r\n");
    while endless.write_all(field.as_bytes()).is_ok() {}
    assert_eq!(server.send("\x16\x03\x01 no HTTP\r\n\r\n").status(), 400);
    assert_eq!(server.ui("GET", &server.path, "").body, std::fs::read(&path).unwrap());
    assert!(server.end().0);
}

#[test]
fn who_leaves_in_the_middle_has_not_got_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.pftrace");
    // More than fits into the buffers of any socket.
    let length = 64 << 20;
    std::fs::File::create(&path).unwrap().set_len(length).unwrap();
    let mut server = open(&path, |_| ());
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nOrigin: {UI}\r\n\r\n",
        server.path, server.port
    );
    let mut gone = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    gone.set_read_timeout(Some(TIMEOUT)).unwrap();
    gone.write_all(request.as_bytes()).unwrap();
    gone.read_exact(&mut [0; 4096]).unwrap();
    drop(gone);
    assert!(server.child.try_wait().unwrap().is_none());
    assert_eq!(server.ui("GET", &server.path, "").body.len() as u64, length);
    assert!(server.end().0);
}

#[test]
fn waiting_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), "t.pftrace");
    let server = open(&path, |command| {
        command.args(["--timeout", "100ms"]);
    });
    let (success, said) = server.end();
    assert!(!success);
    assert!(said.contains("no browser fetched it"), "{said}");
}

#[test]
fn over_ssh_it_says_how_to_come_here() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), "t.pftrace");
    let server = open(&path, |command| {
        command.env("SSH_CONNECTION", "10.0.0.1 5555 10.0.0.2 2222").args(["--timeout", "100ms"]);
    });
    assert_eq!(server.port, 9001, "where the tunnel begins: {}", server.link);
    let (_, said) = server.end();
    assert!(said.contains("`ssh -N -L 9001:127.0.0.1:"), "{said}");
    assert!(said.contains(" -p 2222 ada@10.0.0.2`"), "{said}");
}

#[test]
fn what_cannot_be_served_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), "t.pftrace");
    let server = open(&path, |_| ());
    let port = server.port.to_string();
    let empty = folder.path().join("empty.pftrace");
    std::fs::write(&empty, "").unwrap();
    let cases = [
        (folder.path().join("none.pftrace"), "0", "check the path"),
        (folder.path().to_owned(), "0", "is not a file"),
        (empty, "0", "is empty"),
        ("/dev/zero".into(), "0", "is not a file"),
        (path.clone(), port.as_str(), "is in use"),
    ];
    for (trace, port, why) in cases {
        let output = kymo().args(["open", "--port", port]).arg(&trace).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(why) && said.lines().count() == 1, "{said}");
    }
}

/// The time that a link shows.
fn shown(link: &str) -> (i64, i64) {
    let number = |name: &str| {
        let text = link.split(name).nth(1).expect(link).split('&').next().unwrap();
        text.parse().expect(link)
    };
    (number("&visStart="), number("&visEnd="))
}

#[test]
fn a_place_of_the_trace_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), "t.pftrace");
    let at = |range: &str| {
        let server = open(&path, |command| {
            command.args(["--at", range]);
        });
        shown(&server.link)
    };
    let (start, end) = at("0ns..100ns");
    assert_eq!(end - start, 100);
    let (later, last) = at("50ns..");
    assert_eq!(later - start, 50);
    assert!(last > later + 1_000, "{later} {last}: up to the end");
    let mut command = kymo();
    let beyond = command.args(["open", "--no-browser", "--port", "0", "--at", "1h..2h"]).arg(&path);
    let beyond = beyond.output().unwrap();
    assert!(!beyond.status.success());
    let said = String::from_utf8_lossy(&beyond.stderr);
    assert!(said.contains("after its first event"), "{said}");
}

#[test]
fn a_place_on_a_page_of_kymo_view_opens_in_the_ui() {
    const OWN: &str = "http://localhost:1";
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), "t.pftrace");
    let mut command = kymo();
    command.args(["view", "--no-browser", "--ui", OWN]).arg(&path).env_remove("SSH_CONNECTION");
    let mut child = Guarded::start(command.stdout(Stdio::piped()).stderr(Stdio::null()));
    let mut link = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut link).unwrap();
    let (port, page) = link.trim_end().split_once("127.0.0.1:").unwrap().1.split_once('/').unwrap();
    let mut view = Server {
        child,
        link: String::new(),
        port: port.parse().unwrap(),
        path: format!("/{page}"),
    };
    let (port, place) = (view.port, format!("{}perfetto-0-0-5-105", view.path));
    let own = |view: &Server, path: &str, more: &str| {
        view.ask("GET", path, &format!("127.0.0.1:{port}"), "", more)
    };
    let moved = own(&view, &place, "Sec-Fetch-Site: same-origin\r\n");
    assert_eq!(moved.status(), 303);
    let location = moved.field("Location").unwrap().to_owned();
    assert!(location.starts_with(&format!("{OWN}/#!/?url=http://127.0.0.1:")), "{location}");
    let (from, to) = shown(&location);
    assert_eq!(to - from, 100);
    assert_eq!(own(&view, &place, "Sec-Fetch-Site: cross-site\r\n").status(), 403);
    assert_eq!(own(&view, &format!("{}perfetto-0-7-5-105", view.path), "").status(), 404);
    assert_eq!(own(&view, &format!("{}perfetto-1-0-5-105", view.path), "").status(), 410);
    let arguments = own(&view, &format!("{}arguments-0-0-0", view.path), "");
    assert_eq!(arguments.status(), 200);
    assert!(arguments.body.starts_with(b"["));

    // The UI, and nobody else, gets the trace, as often as it asks.
    let url = location.split("url=http://127.0.0.1:").nth(1).unwrap().split('&').next().unwrap();
    let (port, path_of_trace) = url.split_once('/').unwrap();
    view.port = port.parse().unwrap();
    let (host, path_of_trace) = (format!("127.0.0.1:{port}"), format!("/{path_of_trace}"));
    for _ in 0..2 {
        let whole = view.ask("GET", &path_of_trace, &host, OWN, "");
        assert_eq!((whole.status(), whole.body), (200, std::fs::read(&path).unwrap()));
    }
    assert_eq!(view.ask("GET", &path_of_trace, &host, UI, "").status(), 403);
    assert_eq!(view.ask("GET", "/t.pftrace", &host, OWN, "").status(), 404);
}
