//! In the recorded process: makes an arena and sends it to `kymo`.

pub(crate) mod dump;
pub(crate) mod message;
pub(crate) mod rendezvous;

use std::ffi::OsStr;
use std::io;
use std::mem::{MaybeUninit, offset_of};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use crate::clock;
use crate::config::Config;
use crate::engine::origin::Origin;
use crate::flight::Dump;
use crate::intern::INTERNER;
use crate::process::identity;
use crate::queue::{self, Arena};
use message::Subject;

/// Where `kymo` listens, in its rendezvous directory.
pub(crate) const SOCKET: &str = "collect";
/// The fact that tells programs from each other that a process becomes one after the other.
pub(crate) const IMAGE: &str = "image";
/// The fact that names the output of a recording that a process writes itself.
pub(crate) const OUTPUT: &str = "output";
/// How long a `kymo` that has too many messages before it is waited for, in milliseconds.
const TIMEOUT_MILLIS: libc::suseconds_t = 500;

/// Joins the recording that `config` names, once. Returns whether this process is part of
/// it: if not, nothing has changed.
///
/// Makes about twenty system calls, and does not wait for `kymo`.
pub(crate) fn join(config: &Config) -> bool {
    joined(config).is_none()
}

/// Why the recording that `config` names could not be joined.
fn joined(config: &Config) -> Option<io::ErrorKind> {
    static JOINED: OnceLock<Option<io::ErrorKind>> = OnceLock::new();
    *JOINED.get_or_init(|| try_join(config).err().map(|error| error.kind()))
}

/// Tells `kymo` that this process has something to record and may not join. To be called
/// when [`join`] has failed.
#[cfg(feature = "inject")]
pub(crate) fn tell_left_out(config: &Config) {
    if let (Some(io::ErrorKind::PermissionDenied), Some(control)) =
        (joined(config), &config.control)
    {
        rendezvous::tell_left_out(control);
    }
}

fn try_join(config: &Config) -> io::Result<()> {
    let folder = config.control.as_deref().and_then(Path::parent).ok_or(io::ErrorKind::NotFound)?;
    let socket = connect(folder)?;
    let (arena, file) = Arena::create(config.buffer as usize)?;
    let arena: &Arena = Box::leak(Box::new(arena));
    clock::choose(config.clock);
    if !queue::share(arena) {
        return Err(io::ErrorKind::ResourceBusy.into());
    }
    if !queue::enter() || !INTERNER.publish() {
        arena.close();
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    queue::watch_threads();
    let mut metadata = Origin::of_this_process(config).to_metadata();
    metadata.push((IMAGE.to_owned(), image().to_string()));
    let message = message::write(Subject::Join, &metadata);
    message::send(socket.as_fd(), &message, Some(file.as_fd())).inspect_err(|_| arena.close())
}

/// A number that the process has until it becomes another program: of the random bytes that the
/// kernel gives to each (AT_RANDOM), which themselves are to stay secret.
fn image() -> u64 {
    // SAFETY: takes a number.
    let random = unsafe { libc::getauxval(libc::AT_RANDOM) } as *const [u8; 16];
    if random.is_null() {
        return 0;
    }
    // SAFETY: not null, so it points to sixteen bytes that stay.
    let [first, second] = bytemuck::cast::<[u8; 16], [u64; 2]>(unsafe { random.read_unaligned() });
    identity::mix(&[first, second])
}

/// Has `kymo` write what it holds of this process, into `path` or else the next numbered file,
/// and waits for that.
///
/// # Errors
/// `kymo` cannot be reached, does not answer within `timeout`, or could not do it.
pub(crate) fn request_dump(
    config: &Config,
    path: Option<&Path>,
    why: &str,
    timeout: Duration,
) -> io::Result<Dump> {
    let folder = config.control.as_deref().and_then(Path::parent).ok_or(io::ErrorKind::NotFound)?;
    let socket = connect(folder)?;
    wait_for_answers(&socket, timeout);
    let mut metadata = vec![("why".to_owned(), why.to_owned())];
    if let Some(path) = path {
        let path = std::path::absolute(path)?.into_os_string().into_string();
        metadata.push(("path".to_owned(), path.map_err(|_| io::ErrorKind::InvalidFilename)?));
    }
    message::send(socket.as_fd(), &message::write(Subject::Dump, &metadata), None)?;
    let (answer, _) = message::receive(socket.as_fd())?;
    let (_, metadata) = message::read(&answer).ok_or(io::ErrorKind::ConnectionReset)?;
    dump::read(&metadata)
}

/// Asks the `kymo` whose rendezvous directory is `folder` to write the recording into `output` if
/// this process is killed before it has done so. `file`: the memory that holds the recording, with
/// the first request.
pub(crate) fn ask_to_keep(
    folder: &Path,
    origin: &Origin,
    output: &Path,
    file: Option<OwnedFd>,
) -> io::Result<()> {
    let socket = connect(folder)?;
    let output = std::path::absolute(output)?.into_os_string().into_string();
    let output = output.map_err(|_| io::ErrorKind::InvalidFilename)?;
    let metadata = [(OUTPUT.to_owned(), output), (IMAGE.to_owned(), image().to_string())];
    let metadata: Vec<_> = metadata.into_iter().chain(origin.to_metadata()).collect();
    message::send(
        socket.as_fd(),
        &message::write(Subject::Keep, &metadata),
        file.as_ref().map(AsFd::as_fd),
    )
}

/// Whether the `kymo` that `config` names, which has not moved for a while, is dead: nothing listens
/// at its socket, or another one has removed what it left.
pub(crate) fn is_gone(config: &Config) -> bool {
    let folder = config.control.as_deref().and_then(Path::parent);
    let why = folder.and_then(|folder| connect(folder).err());
    let gone = [io::ErrorKind::ConnectionRefused, io::ErrorKind::NotFound];
    why.is_some_and(|why| gone.contains(&why.kind()))
}

/// What a process states about itself, for the `kymo` that encodes what it records.
pub(crate) fn introduction(origin: &Origin) -> Vec<u8> {
    message::write(Subject::Join, &origin.to_metadata())
}

/// No read takes longer than this.
pub(crate) fn wait_for_answers(socket: &OwnedFd, time: Duration) {
    let time = libc::timeval {
        tv_sec: time.as_secs() as libc::time_t,
        tv_usec: (time.subsec_micros() as libc::suseconds_t).max(1),
    };
    let (option, value) = (libc::SO_RCVTIMEO, (&raw const time).cast());
    // SAFETY: `time` lives through the call and is as long as is said.
    unsafe {
        let length = size_of_val(&time) as u32;
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, value, length);
    }
}

/// Connects to the `kymo` whose rendezvous directory is `folder`.
fn connect(folder: &Path) -> io::Result<OwnedFd> {
    let (address, length) = address(folder)?;
    // SAFETY: takes numbers; the descriptor is new and ours.
    let socket = unsafe {
        let fd = libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(fd)
    };
    let time = libc::timeval { tv_sec: 0, tv_usec: TIMEOUT_MILLIS * 1000 };
    // SAFETY: `time` and `address` live through the calls, and are as long as is said.
    let connected = unsafe {
        let fd = socket.as_raw_fd();
        let (option, value) = (libc::SO_SNDTIMEO, (&raw const time).cast());
        libc::setsockopt(fd, libc::SOL_SOCKET, option, value, size_of_val(&time) as u32);
        libc::connect(fd, (&raw const address).cast(), length)
    };
    if connected == 0 { Ok(socket) } else { Err(io::Error::last_os_error()) }
}

/// The address of the socket in `folder`.
pub(crate) fn address(folder: &Path) -> io::Result<(libc::sockaddr_un, libc::socklen_t)> {
    // SAFETY: a plain struct, for which zeros are "nothing".
    let mut address: libc::sockaddr_un = unsafe { MaybeUninit::zeroed().assume_init() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let path = folder.join(OsStr::new(SOCKET));
    let bytes = path.as_os_str().as_bytes();
    if bytes.len() >= address.sun_path.len() {
        return Err(io::ErrorKind::InvalidFilename.into());
    }
    for (to, from) in address.sun_path.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    let length = offset_of!(libc::sockaddr_un, sun_path) + bytes.len() + 1;
    Ok((address, length as libc::socklen_t))
}
