//! A client against daemons that behave, daemons that do not, and none at all. Time is an
//! argument here; sockets are real.

use super::*;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;

/// A daemon's end of the socket.
pub(super) struct Peer {
    socket: UnixDatagram,
}

impl Peer {
    pub(super) fn at(meeting: &Daemon) -> Peer {
        let socket = match &meeting.folder {
            Some(folder) => UnixDatagram::bind(folder.join(&meeting.name)),
            None => {
                let name = [meeting.name.as_bytes(), b"\0"].concat();
                UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name).unwrap())
            }
        };
        let socket = socket.unwrap();
        socket.set_nonblocking(true).unwrap();
        Peer { socket }
    }

    /// The next question and who asked, if there is one.
    pub(super) fn question(&self) -> Option<(Vec<u8>, SocketAddr)> {
        let mut bytes = [0; 1000];
        let (length, from) = self.socket.recv_from(&mut bytes).ok()?;
        Some((bytes[..length].to_vec(), from))
    }

    pub(super) fn answer(&self, to: &SocketAddr, text: &[u8]) {
        let mut bytes = (text.len() as u64).to_ne_bytes().to_vec();
        bytes.extend_from_slice(b"req");
        bytes.resize(40, 0);
        bytes.extend_from_slice(text);
        self.raw(to, &bytes);
    }

    fn raw(&self, to: &SocketAddr, bytes: &[u8]) {
        self.socket.send_to_addr(bytes, to).unwrap();
    }
}

fn in_folder(folder: &Path) -> Daemon {
    Daemon { name: "dynolog".into(), folder: Some(folder.into()), ..settings() }
}

/// Abstract names are the whole machine's, so the daemon has one of its own.
pub(super) fn abstract_name() -> Daemon {
    Daemon { name: format!("dynolog-{}", Random::new().uuid()), ..settings() }
}

fn settings() -> Daemon {
    Daemon { job: 7, ..crate::Config::default().daemon }
}

/// A client that has asked for the first time, and what it asked.
fn asked(meeting: &Daemon, daemon: &Peer) -> (Client, Instant, SocketAddr) {
    let now = Instant::now();
    let mut client = Client::new(meeting.clone(), now);
    let now = client.due();
    client.ask(now, Ready::Activities);
    assert_eq!(client.problem(), None);
    let (question, from) = daemon.question().expect("no question");
    let pids = ancestry::of(std::process::id());
    assert_eq!(question, request(Ready::Activities, 7, &pids).unwrap());
    (client, now, from)
}

#[test]
fn an_abstract_name_ends_with_a_nul() {
    let meeting = abstract_name();
    let daemon = Peer::at(&meeting);
    let (mut client, _, from) = asked(&meeting, &daemon);
    let name = from.as_abstract_name().expect("a stock daemon aborts");
    assert_eq!((name.len(), name[52]), (53, 0), "52 characters and a NUL");
    assert!(name.starts_with(b"dynoconfigclient") && CLIENT.len() == 16);
    daemon.answer(&from, b"");
    assert_eq!(client.receive(), [""; 0]);
    daemon.answer(&from, b"\n    A=1\n    REQUEST_TRACE_ID=5\n");
    assert_eq!(client.receive(), ["\n    A=1\n    REQUEST_TRACE_ID=5\n"]);
    let expected = Counts { asked: 1, answers: 2, requests: 1, ..Counts::default() };
    assert_eq!(client.counts(), expected);
}

/// A stock daemon tries for ten seconds to answer who is not there any more.
#[test]
fn nobody_leaves_before_the_answer() {
    let meeting = abstract_name();
    let daemon = Peer::at(&meeting);
    let (mut client, now, from) = asked(&meeting, &daemon);
    assert!(!client.is_settled(now) && !client.is_settled(now + ANSWER / 2));
    assert!(client.is_settled(now + 2 * ANSWER), "a dead daemon is not waited for");
    daemon.answer(&from, b"");
    assert!(client.is_settled(now));
}

#[test]
fn a_socket_in_a_folder_goes_with_its_client() {
    let folder = tempfile::tempdir().unwrap();
    let meeting = in_folder(folder.path());
    let daemon = Peer::at(&meeting);
    let (mut client, now, from) = asked(&meeting, &daemon);
    let path = from.as_pathname().unwrap().to_owned();
    assert_eq!(path.parent(), Some(folder.path()));
    daemon.answer(&from, b"A=1");
    assert_eq!(client.receive(), ["A=1"]);

    // Somebody cleans up: the next question comes from a new socket.
    std::fs::remove_file(&path).unwrap();
    let now = client.due().max(now);
    client.ask(now, Ready::Nothing);
    let (question, from) = daemon.question().unwrap();
    assert_eq!(question[40..44], [0, 0, 0, 0]);
    assert_ne!(from.as_pathname().unwrap(), path);
    daemon.answer(&from, b"B=1");
    assert_eq!(client.receive(), ["B=1"]);
    drop(client);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "the daemon's own");
}

#[test]
fn what_killed_processes_left_is_swept() {
    let folder = tempfile::tempdir().unwrap();
    let meeting = in_folder(folder.path());
    let daemon = Peer::at(&meeting);
    let path = |name: &str| folder.path().join(name);
    let [alive, dead] = ["alive", "dead"].map(|name| path(&format!("{CLIENT}{name}")));
    let _alive = UnixDatagram::bind(&alive).unwrap();
    drop(UnixDatagram::bind(&dead).unwrap());
    drop(UnixDatagram::bind(path("somebody-elses")).unwrap());
    std::fs::write(path(&format!("{CLIENT}.txt")), "").unwrap();
    let (client, ..) = asked(&meeting, &daemon);
    assert!(alive.exists() && !dead.exists());
    drop(client);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4, "nothing else is touched");
}

#[test]
fn questions_come_in_time_and_not_in_step() {
    let folder = tempfile::tempdir().unwrap();
    let meeting = in_folder(folder.path());
    let daemon = Peer::at(&meeting);
    let start = Instant::now();
    let mut firsts = std::collections::BTreeSet::new();
    for _ in 0..5 {
        let mut client = Client::new(meeting.clone(), start);
        assert!(client.due() < start + SPREAD);
        firsts.insert(client.due() - start);
        client.ask(start, Ready::Activities);
        let early = client.due() > start;
        assert_eq!(daemon.question().is_none(), early, "not before it is time");
        let mut pauses = std::collections::BTreeSet::new();
        for _ in 0..10 {
            let now = client.due();
            client.ask(now, Ready::Activities);
            let pause = client.due() - now;
            assert!((4.0..=5.0).contains(&pause.as_secs_f64()), "{pause:?}");
            pauses.insert(pause);
            assert!(daemon.question().is_some());
        }
        assert!(pauses.len() > 5);
    }
    assert!(firsts.len() > 2);
}

#[test]
fn a_late_answer_is_taken_when_it_comes() {
    let folder = tempfile::tempdir().unwrap();
    let meeting = in_folder(folder.path());
    let daemon = Peer::at(&meeting);
    let (mut client, _, from) = asked(&meeting, &daemon);
    assert_eq!(client.receive(), [""; 0]);
    // After the next question, say: both answers are there, and are taken before it is
    // asked once more.
    client.ask(client.due(), Ready::Activities);
    daemon.answer(&from, b"LATE=1");
    daemon.answer(&from, b"");
    assert_eq!(client.receive(), ["LATE=1"]);
    assert_eq!(client.counts().answers, 2);
}

#[test]
fn a_daemon_may_die_and_come_back() {
    let folder = tempfile::tempdir().unwrap();
    for meeting in [in_folder(folder.path()), abstract_name()] {
        let daemon = Peer::at(&meeting);
        let (mut client, _, _) = asked(&meeting, &daemon);
        drop(daemon);
        for _ in 0..3 {
            client.ask(client.due(), Ready::Activities);
            assert!(client.problem().unwrap().contains("there is no daemon dynolog"), "{client:?}");
        }
        assert_eq!(client.counts().unsent, 3);
        if let Some(folder) = &meeting.folder {
            std::fs::remove_file(folder.join(&meeting.name)).unwrap();
            client.ask(client.due(), Ready::Activities);
        }
        let daemon = Peer::at(&meeting);
        client.ask(client.due(), Ready::Activities);
        assert_eq!(client.problem(), None);
        let (_, from) = daemon.question().unwrap();
        daemon.answer(&from, b"A=1");
        assert_eq!(client.receive(), ["A=1"]);
    }
}

#[test]
fn a_folder_that_is_not_there_yet_is_waited_for() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("later");
    let meeting = in_folder(&folder);
    let mut client = Client::new(meeting.clone(), Instant::now());
    client.ask(client.due(), Ready::Activities);
    assert_eq!((client.counts().unsent, client.descriptor()), (1, None));
    assert!(client.problem().is_some());
    std::fs::create_dir(&folder).unwrap();
    let daemon = Peer::at(&meeting);
    client.ask(client.due(), Ready::Activities);
    assert!(daemon.question().is_some());
    // A name that no socket can have is a problem, not a panic.
    let meeting = in_folder(Path::new(&"/x".repeat(100)));
    let mut client = Client::new(meeting.clone(), Instant::now());
    client.ask(client.due(), Ready::Activities);
    assert!(client.problem().unwrap().contains("cannot reach the daemon"));
}

#[test]
fn a_daemon_whose_queue_is_full_is_asked_again_soon() {
    let folder = tempfile::tempdir().unwrap();
    let meeting = in_folder(folder.path());
    let daemon = Peer::at(&meeting);
    let (mut client, ..) = asked(&meeting, &daemon);
    let mut now = client.due();
    for _ in 0..100_000 {
        now = client.due();
        client.ask(now, Ready::Activities);
        if client.counts().unsent > 0 {
            break;
        }
    }
    assert_eq!(client.problem(), Some("the daemon dynolog is busy"));
    let pause = client.due() - now;
    assert!(pause >= BUSY && pause <= BUSY + SPREAD, "{pause:?}");
    while daemon.question().is_some() {}
    client.ask(client.due(), Ready::Activities);
    assert_eq!(client.problem(), None);
}

#[test]
fn lies_and_floods_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let meeting = in_folder(folder.path());
    let daemon = Peer::at(&meeting);
    let (mut client, _, from) = asked(&meeting, &daemon);
    daemon.raw(&from, b"");
    daemon.raw(&from, b"short");
    daemon.raw(&from, &[0xff; 40]);
    daemon.answer(&from, &vec![b'#'; MAX_TEXT]);
    daemon.answer(&from, &vec![b'#'; MAX_TEXT + 1]);
    daemon.answer(&from, b"A=\xff\xfe");
    daemon.answer(&from, b" \n\t\n");
    daemon.answer(&from, b"A=1");
    assert_eq!(client.receive(), ["#".repeat(MAX_TEXT), "A=1".to_owned()]);
    let counts = client.counts();
    assert_eq!((counts.answers, counts.requests, counts.malformed), (3, 2, 5));
    assert!(client.problem().unwrap().contains("makes no sense"));

    // As much as the system lets anybody send at once: it is not kept anywhere.
    let sizes = [10 << 20, 1 << 20, 200_000, 100_000];
    let send = |size: &&usize| daemon.socket.send_to_addr(&vec![b'#'; **size], &from).is_ok();
    let longest = sizes.iter().find(send).expect("less than is taken");
    daemon.answer(&from, b"A=2");
    assert_eq!(client.receive(), ["A=2"]);
    assert!(client.problem().unwrap().contains(&format!("it has {longest} bytes")), "{client:?}");
    assert_eq!(client.buffer.capacity(), MAX_LENGTH);

    // As fast as it is read, and faster: not for longer than one go.
    let mut sent = 0;
    let mut flood = |daemon: &Peer| {
        while daemon.socket.send_to_addr(b"flood", &from).is_ok() {
            sent += 1;
        }
    };
    for _ in 0..20 {
        flood(&daemon);
        client.receive();
        if client.descriptor().is_none() {
            break;
        }
    }
    // A queue has ten places by default; where it has more than we look at, it rests.
    let most = std::fs::read_to_string("/proc/sys/net/unix/max_dgram_qlen").unwrap();
    if most.trim().parse::<usize>().unwrap() + 1 >= AT_ONCE {
        assert_eq!(client.descriptor(), None, "rests");
    }
    client.ask(client.due(), Ready::Activities);
    assert!(client.descriptor().is_some(), "listens again");
}

#[test]
fn nobody_but_the_daemon_can_send_anything() {
    let folder = tempfile::tempdir().unwrap();
    for meeting in [in_folder(folder.path()), abstract_name()] {
        let daemon = Peer::at(&meeting);
        let (mut client, _, from) = asked(&meeting, &daemon);
        let other = Peer::at(&Daemon { name: format!("not-{}", meeting.name), ..meeting });
        let nameless = Peer { socket: UnixDatagram::unbound().unwrap() };
        for stranger in [other, nameless] {
            let error = stranger.socket.send_to_addr(b"EVIL=1", &from).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        }
        daemon.answer(&from, b"A=1");
        assert_eq!(client.receive(), ["A=1"]);
    }
}

/// A stock daemon aborts on a client in a folder that it spells differently.
#[test]
fn a_daemon_that_would_abort_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Peer::at(&in_folder(folder.path()));
    // Where it is mounted in a container, say.
    let elsewhere = folder.path().join("elsewhere");
    std::os::unix::fs::symlink(folder.path(), &elsewhere).unwrap();
    let mut client = Client::new(in_folder(&elsewhere), Instant::now());
    client.ask(client.due(), Ready::Activities);
    assert!(client.problem().unwrap().contains("under the same path"), "{client:?}");
    assert!(daemon.question().is_none());
    drop(daemon);

    // As the daemon spells it: with two slashes, if the folder's name ends with one.
    std::fs::remove_file(folder.path().join("dynolog")).unwrap();
    let slash = format!("{}/", folder.path().display());
    let stock = UnixDatagram::bind(format!("{slash}/dynolog")).unwrap();
    stock.set_nonblocking(true).unwrap();
    let (_client, _, from) = asked(&in_folder(Path::new(&slash)), &Peer { socket: stock });
    let from = from.as_pathname().unwrap().to_str().unwrap();
    assert_eq!(&from[slash.len()..=slash.len()], "/", "{from}");
}

#[test]
fn a_daemon_of_another_user_must_be_named() {
    // SAFETY: no arguments, cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        // Nobody else can be another user.
        return;
    }
    const NOBODY: u32 = 65534;
    let meeting = abstract_name();
    let trusting = Daemon { uid: Some(NOBODY), ..meeting.clone() };
    let daemon = Peer::at(&meeting);
    let (mut wary, _, first) = asked(&meeting, &daemon);
    let (mut trusting, _, second) = asked(&trusting, &daemon);
    std::thread::spawn(move || {
        // The system call itself, other than the C library's function, changes only the
        // thread that makes it.
        // SAFETY: no pointers.
        let done = unsafe { libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) };
        assert_eq!(done, 0);
        daemon.answer(&first, b"A=1");
        daemon.answer(&second, b"A=1");
    })
    .join()
    .unwrap();
    assert_eq!(wary.receive(), [""; 0]);
    assert_eq!(wary.counts().foreign, 1);
    assert!(wary.problem().unwrap().contains("set DAEMON_UID=65534"), "{wary:?}");
    assert_eq!(trusting.receive(), ["A=1"]);
}
