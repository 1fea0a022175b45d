//! Root's `kymo` looks for processes in the folders of all users. What it finds there may be
//! links, other files, sockets of other programs, and processes that say anything.

use harness::kymo::Guarded;
use harness::{kymo, users};
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// A user's folder for sockets, where `kymo` looks for it.
struct Folder {
    path: PathBuf,
    user: u32,
}

impl Folder {
    /// Where one is for a user whom nothing else belongs to: another in each test.
    fn place(number: u32) -> Folder {
        let user = 50_000 + std::process::id() % 1_000 * 10 + number;
        Folder { path: format!("/tmp/kymograph-{user}").into(), user }
    }

    fn new(number: u32) -> Folder {
        let folder = Folder::place(number);
        std::fs::create_dir(&folder.path).unwrap();
        users::give(&folder.path, folder.user).unwrap();
        folder
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

fn ask(args: &[&str]) -> Output {
    kymo::kymo().args(args).output().unwrap()
}

/// A socket to which nobody listens.
fn leave(path: &Path) {
    drop(UnixListener::bind(path).unwrap());
}

#[test]
fn nothing_is_deleted_through_a_link() {
    if !users::are_possible() {
        return;
    }
    let precious = tempfile::tempdir().unwrap();
    let file = precious.path().join("42.sock");
    std::fs::write(&file, "precious").unwrap();
    let socket = precious.path().join("43.sock");
    leave(&socket);
    let folder = Folder::place(0);
    symlink(precious.path(), &folder.path).unwrap();
    std::os::unix::fs::lchown(&folder.path, Some(folder.user), None).unwrap();
    for args in [&["ps"][..], &["status"], &["trigger", "--all", "--duration", "1ms"], &["stop"]] {
        ask(args);
    }
    assert!(file.exists() && socket.symlink_metadata().is_ok());
}

#[test]
fn what_is_another_users_is_left_to_them() {
    if !users::are_possible() {
        return;
    }
    let folder = Folder::new(1);
    let file = folder.path.join("42.sock");
    std::fs::write(&file, "not a socket").unwrap();
    let socket = folder.path.join("43.sock");
    leave(&socket);
    users::give(&socket, folder.user).unwrap();
    ask(&["ps"]);
    assert!(file.exists() && socket.symlink_metadata().is_ok());
    // One's own, and what has been left there is removed; but nothing that is no socket.
    let own = tempfile::tempdir().unwrap();
    let (file, socket) = (own.path().join("42.sock"), own.path().join("43.sock"));
    std::fs::write(&file, "not a socket").unwrap();
    leave(&socket);
    kymo::kymo().arg("ps").env("KYMOGRAPH_SOCKETS", own.path()).output().unwrap();
    assert!(file.exists() && socket.symlink_metadata().is_err());
}

/// Sockets of root's that a user leads root's `kymo` to: they hear nothing of it.
#[test]
fn nobody_else_is_spoken_to() {
    if !users::are_possible() {
        return;
    }
    let folder = Folder::new(2);
    let roots = tempfile::tempdir().unwrap();
    let path = roots.path().join("daemon");
    let listener = UnixListener::bind(&path).unwrap();
    symlink(&path, folder.path.join("42.sock")).unwrap();
    std::fs::hard_link(&path, folder.path.join("43.sock")).unwrap();
    // One that seems to be the user's.
    let given = folder.path.join("44.sock");
    let other = UnixListener::bind(&given).unwrap();
    users::give(&given, folder.user).unwrap();
    let (heard, hears) = mpsc::channel();
    for listener in [listener, other] {
        let heard = heard.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut text = Vec::new();
                let _ = stream.unwrap().read_to_end(&mut text);
                let _ = heard.send(text);
            }
        });
    }
    for args in [&["ps"][..], &["status"], &["trigger", "--all", "--duration", "1ms"]] {
        let said = ask(args);
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(["42", "43", "44"].iter().all(|pid| !said.contains(&format!(" {pid} "))), "{said}");
    }
    while let Ok(text) = hears.recv_timeout(Duration::from_millis(200)) {
        assert_eq!(String::from_utf8_lossy(&text), "");
    }
}

#[test]
fn a_folder_with_another_users_name_is_not_looked_into() {
    if !users::are_possible() {
        return;
    }
    let folder = Folder::new(3);
    users::give(&folder.path, users::NOBODY).unwrap();
    let socket = folder.path.join("42.sock");
    let listener = users::run_as(users::NOBODY, || UnixListener::bind(&socket).unwrap()).unwrap();
    listener.set_nonblocking(true).unwrap();
    ask(&["ps"]);
    assert!(listener.accept().is_err(), "somebody came");
}

/// A user's program that says that it is a `kymo` which answers for a process of root's.
#[test]
fn nobody_answers_for_processes_of_others() {
    if !users::are_possible() {
        return;
    }
    let folder = Folder::new(5);
    let me = std::process::id();
    let mut children = Vec::new();
    // Listens as the user, and is the user's process.
    for name in [format!("1@{me}.sock"), format!("{me}@{me}.sock"), "own".to_owned()] {
        let script = "import os, socket, sys
os.chdir(sys.argv[1])
name = sys.argv[2] if '@' in sys.argv[2] else '%d@%d.sock' % (os.getpid(), os.getpid())
listener = socket.socket(socket.AF_UNIX)
listener.bind(name)
listener.listen()
print(flush=True)
while True:
    stream, _ = listener.accept()
    if stream.recv(64):
        stream.send(b'state=waiting\\nrank=4711\\n')
    stream.close()";
        let mut command = Command::new("python3");
        command.args(["-c", script]).arg(&folder.path).arg(name).stdout(Stdio::piped());
        command.uid(folder.user).gid(folder.user);
        let mut child = Guarded::start(&mut command);
        let mut ready = [0];
        child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
        children.push(child);
    }
    let said = String::from_utf8(ask(&["ps"]).stdout).unwrap();
    let rows: Vec<_> = said.lines().filter(|row| row.contains(" 4711 ")).collect();
    let own = children[2].id().to_string();
    for child in &mut children {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert_eq!(rows.len(), 1, "{said}");
    assert_eq!(rows[0].split_whitespace().next(), Some(&*own), "{said}");
}

/// A user's process that can be asked is shown, as the kernel knows it and with nothing in
/// its words that a terminal obeys.
#[test]
fn what_a_users_process_says_is_shown_and_no_more() {
    if !users::are_possible() {
        return;
    }
    let folder = Folder::new(4);
    let socket = folder.path.join("1.sock");
    let listener = users::run_as(folder.user, || UnixListener::bind(&socket).unwrap()).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 64]);
            let text =
                "pid=1\nstate=\x1b[2J\x1b]0;x\x07\nsteps=\u{202e}\r1\nrank=\u{9b}5\n\x1b=\x08\n";
            let _ = stream.write_all(text.as_bytes());
        }
    });
    let me = std::process::id().to_string();
    for args in [&["ps"][..], &["status", "--pid", &me]] {
        let said = String::from_utf8(ask(args).stdout).unwrap();
        let row = said.lines().find(|row| row.split_whitespace().next() == Some(&me));
        assert!(row.is_some(), "{me} is not in {said}");
        let obeyed = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
        assert!(!said.contains(obeyed) && said.contains("?[2J"), "{said:?}");
    }
}
