//! Whoever is on the machine can read the link in the arguments of what starts the browser,
//! and connect to `kymo open`. Another user gets nothing there, and the user gets the trace.

use harness::kymo::Guarded;
use harness::{install, kymo, users};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Another one who owns nothing.
const SOMEBODY: u32 = users::NOBODY - 1;
const TIMEOUT: Duration = Duration::from_secs(60);

struct Server {
    child: Guarded,
    folder: tempfile::TempDir,
    trace: Vec<u8>,
}

/// A folder that everybody can look into.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
    folder
}

/// `kymo open` of a user, with an `xdg-open` that stays for a moment, as a browser does.
fn open(user: u32) -> Server {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    // The folder of the build may be closed to others.
    install::copy(&kymo::binary(), &at("kymo"));
    let demo = kymo::kymo().args(["demo", "-o"]).arg(at("t.pftrace")).output().unwrap();
    assert!(demo.status.success(), "{demo:?}");
    std::fs::set_permissions(at("t.pftrace"), PermissionsExt::from_mode(0o644)).unwrap();
    let script = format!("#!/bin/sh\necho $$ > {}\nsleep 60 # \"$1\"\n", at("browser").display());
    install::write(&at("xdg-open"), script);
    let mut command = Command::new(at("kymo"));
    command.args(["open", "--port", "0"]).arg(at("t.pftrace")).env_clear().uid(user).gid(user);
    command.env("DISPLAY", ":0").env("PATH", format!("{}:/usr/bin:/bin", folder.path().display()));
    let child = Guarded::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let trace = std::fs::read(at("t.pftrace")).unwrap();
    Server { child, folder, trace }
}

/// The link, as everybody sees it.
fn seen(browser: &Path) -> String {
    let begun = Instant::now();
    loop {
        let pid = std::fs::read_to_string(browser).unwrap_or_default();
        let words = std::fs::read(PathBuf::from(format!("/proc/{}/cmdline", pid.trim())));
        let words = String::from_utf8(words.unwrap_or_default()).unwrap();
        if let Some(link) = words.split('\0').find(|word| word.contains("url=")) {
            return link.to_owned();
        }
        assert!(begun.elapsed() < TIMEOUT, "no browser was started: {words:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Asks as a browser that shows the UI.
fn fetch(link: &str) -> (String, Vec<u8>) {
    let url = link.split("url=http://").nth(1).unwrap().split('&').next().unwrap();
    let (host, path) = url.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let request =
        format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nOrigin: https://ui.perfetto.dev\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
    let body = answer.split_off(end);
    (String::from_utf8(answer).unwrap(), body)
}

#[track_caller]
fn is_refused((head, body): &(String, Vec<u8>)) {
    assert!(head.starts_with("HTTP/1.1 403 ") && !head.contains("Access-Control"), "{head}");
    assert!(body.len() < 200 && body.starts_with(b"Only pages of"), "{}", body.escape_ascii());
}

fn check(owner: u32, others: &[u32]) {
    let mut server = open(owner);
    let mut link = String::new();
    BufReader::new(server.child.stdout.take().unwrap()).read_line(&mut link).unwrap();
    for other in others {
        let answer = users::run_as(*other, || {
            let seen = seen(&server.folder.path().join("browser"));
            assert_eq!(seen, link.trim_end(), "the secret can be read by {other}");
            fetch(&seen)
        });
        is_refused(&answer.unwrap());
    }
    assert!(server.child.try_wait().unwrap().is_none(), "it waits for its user");
    let (head, body) = users::run_as(owner, || fetch(link.trim_end())).unwrap();
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert_eq!(body, server.trace);
    assert!(server.child.wait().unwrap().success());
    let mut said = String::new();
    server.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains(&format!("refused a request of user {}", others[0])), "{said}");
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let browser = std::fs::read_to_string(self.folder.path().join("browser"));
        if let Some(pid) = browser.ok().and_then(|pid| pid.trim().parse().ok()) {
            // SAFETY: no pointers; the script of this test.
            unsafe { libc::kill(pid, libc::SIGTERM) };
        }
    }
}

/// One test: a process that another thread starts at this moment would hold the copy of
/// `kymo` open for writing, and it could not be run.
#[test]
fn another_user_gets_nothing_even_with_the_link() {
    if users::are_possible() {
        check(0, &[users::NOBODY]);
        check(users::NOBODY, &[SOMEBODY, 1]);
        check_sudo();
    }
}

/// Root runs `kymo` for a user: the browser is that one's.
fn check_sudo() {
    let folder = folder();
    let path = folder.path().join("t.pftrace");
    assert!(kymo::kymo().args(["demo", "-o"]).arg(&path).output().unwrap().status.success());
    let mut command = kymo::kymo();
    command.args(["open", "--no-browser", "--port", "0"]).arg(&path);
    command.env_remove("SSH_CONNECTION").env("SUDO_UID", users::NOBODY.to_string());
    let mut child = Guarded::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut link = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut link).unwrap();
    is_refused(&users::run_as(SOMEBODY, || fetch(link.trim_end())).unwrap());
    let (_, body) = users::run_as(users::NOBODY, || fetch(link.trim_end())).unwrap();
    assert_eq!(body, std::fs::read(&path).unwrap());
    assert!(child.wait().unwrap().success());
}
