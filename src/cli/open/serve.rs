//! The sockets: one request per connection, a thread each.
//!
//! A thread each because browsers open connections in advance and say nothing on them.

use super::super::say;
use super::audience::Audience;
use super::site::{Answer, Request, Site};
use kymograph_converters::packed::{Limits, Packing, Unpacked};
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What a request's head may have, in bytes and in fields. Browsers send 700 and 15.
const HEAD: usize = 16 << 10;
const FIELDS: usize = 64;
/// How long a head may take, and how long the browser may read nothing.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
const BODY_TIMEOUT: Duration = Duration::from_secs(60);
/// Connections at a time. More than any browser opens.
const MAX_CONNECTIONS: usize = 32;

/// Traces that the UI can still fetch from one server; of more, the first ones are forgotten.
const MAX_TRACES: usize = 16;

/// A trace, and who may have it under which path.
struct Served {
    site: Site,
    file: File,
    packing: Packing,
}

/// What answers the UI.
pub(super) struct Server {
    served: Mutex<Vec<Arc<Served>>>,
    audience: Audience,
    /// Connections that send a trace.
    sending: AtomicUsize,
    warned: AtomicBool,
    /// Told when a trace was fetched to its end.
    fetched: Option<SyncSender<()>>,
}

/// Serves `file` until it was fetched; `false` if it was not within `timeout`.
pub(super) fn once(listener: TcpListener, site: Site, file: File, timeout: Duration) -> bool {
    let (fetched, done) = mpsc::sync_channel(1);
    let server = Arc::new(Server::new(Some(fetched)));
    server.add(site, file);
    let theirs = Arc::clone(&server);
    std::thread::spawn(move || accept(&listener, &theirs, Server::attend));
    loop {
        match done.recv_timeout(timeout) {
            Ok(()) => return true,
            // A slow fetch is not to be cut off; it has a timeout of its own.
            Err(RecvTimeoutError::Timeout) if server.sending.load(Ordering::Relaxed) > 0 => {}
            Err(_) => return false,
        }
    }
}

fn packing(file: &File) -> Packing {
    let part = Part { file, at: 0, end: 4 };
    Unpacked::new(part, Limits::default()).map_or(Packing::Plain, |file| file.packing())
}

/// Answers each connection on a thread of its own, so many of them at a time.
pub(super) fn accept<S: Send + Sync + 'static>(
    listener: &TcpListener,
    server: &Arc<S>,
    answer: fn(&S, TcpStream),
) {
    let connections = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            // Out of descriptors, say: until some are free.
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        if connections.fetch_add(1, Ordering::Relaxed) < MAX_CONNECTIONS {
            let (server, connections) = (Arc::clone(server), Arc::clone(&connections));
            std::thread::spawn(move || {
                answer(&server, stream);
                connections.fetch_sub(1, Ordering::Relaxed);
            });
        } else {
            connections.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Server {
    /// One that has no trace yet.
    pub(super) fn new(fetched: Option<SyncSender<()>>) -> Server {
        Server {
            served: Mutex::new(Vec::new()),
            audience: Audience::here(),
            sending: AtomicUsize::new(0),
            warned: AtomicBool::new(false),
            fetched,
        }
    }

    /// Serves a trace from now on.
    pub(super) fn add(&self, site: Site, file: File) {
        let mut served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        if served.len() == MAX_TRACES {
            served.remove(0);
        }
        served.push(Arc::new(Served { site, packing: packing(&file), file }));
    }

    /// The trace of a path; of another path the last one, whose site says what is wrong.
    fn of_path(&self, path: &str) -> io::Result<Arc<Served>> {
        let served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        let own = served.iter().find(|served| served.site.path() == path).or(served.last());
        own.map(Arc::clone).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Answers one connection.
    pub(super) fn attend(&self, stream: TcpStream) {
        // A client that is gone needs no answer.
        if let (Ok(true), Some(fetched)) = (self.serve(stream), &self.fetched) {
            let _ = fetched.try_send(());
        }
    }

    /// Answers one request; whether the end of the trace is now with the browser.
    fn serve(&self, mut stream: TcpStream) -> io::Result<bool> {
        let head = read_head(&mut stream)?;
        stream.set_write_timeout(Some(BODY_TIMEOUT))?;
        let mut fields = [httparse::EMPTY_HEADER; FIELDS];
        let mut request = httparse::Request::new(&mut fields);
        let Ok(httparse::Status::Complete(_)) = request.parse(&head) else {
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")?;
            finish(&stream);
            return Ok(false);
        };
        let fields: Vec<_> =
            request.headers.iter().map(|field| (field.name, field.value)).collect();
        let asked = Request {
            method: request.method.unwrap_or_default(),
            path: request.path.unwrap_or_default(),
            fields: &fields,
        };
        let served = self.of_path(asked.path)?;
        let length = match served.packing {
            // How long it is unpacked is known at its end.
            Packing::Zstd => None,
            _ => Some(served.file.metadata()?.len()),
        };
        let answer = match self.audience.includes(&stream) {
            Ok(()) => served.site.answer(asked, length),
            Err(whose) => Answer::Refuse(whose),
        };
        let whole = match answer {
            Answer::Trace { head, range } => match length {
                Some(length) => self.send(&served, &mut stream, head, range, length)?,
                None => self.send_unpacked(&served, &mut stream, head)?,
            },
            answer => {
                let origin = served.site.origin();
                stream.write_all(self.without_trace(origin, &answer, length).as_bytes())?;
                false
            }
        };
        finish(&stream);
        Ok(whole)
    }

    /// All answers but the trace.
    fn without_trace(&self, origin: &str, answer: &Answer, length: Option<u64>) -> String {
        let empty =
            |status, more: &str| head(origin, status, &format!("Content-Length: 0\r\n{more}"));
        match answer {
            Answer::Refuse(why) => {
                if !self.warned.swap(true, Ordering::Relaxed) {
                    say(&format!(
                        "refused a request {why}: only {origin} in your own browser gets the trace"
                    ));
                }
                let body =
                    format!("Only pages of {origin} get this trace, in its user's browser.\n");
                format!(
                    "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\
                     Connection: close\r\n\r\n{body}",
                    body.len()
                )
            }
            Answer::Preflight => head(
                origin,
                "204 No Content",
                "Access-Control-Allow-Methods: GET, HEAD, OPTIONS\r\n\
                 Access-Control-Allow-Headers: *\r\n\
                 Access-Control-Allow-Private-Network: true\r\n",
            ),
            Answer::NotFound => empty("404 Not Found", ""),
            Answer::Method => empty("405 Method Not Allowed", "Allow: GET, HEAD, OPTIONS\r\n"),
            Answer::Range | Answer::Trace { .. } => {
                let range = format!("Content-Range: bytes */{}\r\n", length.unwrap_or(0));
                empty("416 Range Not Satisfiable", &range)
            }
        }
    }

    /// Sends the file, or a part of it, as it is.
    fn send(
        &self,
        served: &Served,
        stream: &mut TcpStream,
        only_head: bool,
        range: Option<(u64, u64)>,
        length: u64,
    ) -> io::Result<bool> {
        let (start, end) = range.unwrap_or((0, length));
        let (status, part) = match range {
            None => ("200 OK", String::new()),
            Some(_) => (
                "206 Partial Content",
                format!("Content-Range: bytes {start}-{}/{length}\r\n", end - 1),
            ),
        };
        let more = format!(
            "Content-Type: application/octet-stream\r\nAccept-Ranges: bytes\r\n\
             Access-Control-Expose-Headers: Content-Range\r\nContent-Length: {}\r\n{part}",
            end - start
        );
        stream.write_all(head(served.site.origin(), status, &more).as_bytes())?;
        if only_head {
            return Ok(false);
        }
        let part = Part { file: &served.file, at: start, end };
        let sent = self.sending(part, |bytes| stream.write_all(bytes))?;
        if sent < end - start {
            // The promised length does not come, which the browser sees.
            say("the file was cut while it was read; run `kymo open` again");
            return Ok(false);
        }
        Ok(end == length)
    }

    /// Sends the file unpacked, in chunks: the UI does not read zstd.
    fn send_unpacked(
        &self,
        served: &Served,
        stream: &mut TcpStream,
        only_head: bool,
    ) -> io::Result<bool> {
        let more = "Content-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\n";
        stream.write_all(head(served.site.origin(), "200 OK", more).as_bytes())?;
        if only_head {
            return Ok(false);
        }
        let part = Part { file: &served.file, at: 0, end: served.file.metadata()?.len() };
        let unpacked = Unpacked::new(part, Limits::default())?;
        self.sending(unpacked, |bytes| {
            write!(stream, "{:x}\r\n", bytes.len())?;
            stream.write_all(bytes)?;
            stream.write_all(b"\r\n")
        })?;
        stream.write_all(b"0\r\n\r\n")?;
        Ok(true)
    }

    /// Hands on all of `from`; how much that was.
    fn sending(
        &self,
        mut from: impl Read,
        mut to: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<u64> {
        self.sending.fetch_add(1, Ordering::Relaxed);
        let mut buffer = vec![0; 256 << 10];
        let mut sent = 0;
        let result = loop {
            match from.read(&mut buffer) {
                Ok(0) => break Ok(sent),
                // A packed recording that was killed: up to there it is whole.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break Ok(sent),
                Err(error) => {
                    say(&format!("cannot read the trace: {error}"));
                    break Err(error);
                }
                Ok(read) => match to(&buffer[..read]) {
                    Ok(()) => sent += read as u64,
                    Err(error) => break Err(error),
                },
            }
        };
        self.sending.fetch_sub(1, Ordering::Relaxed);
        result
    }
}

/// A head that pages of `origin` may read, up to its end.
fn head(origin: &str, status: &str, more: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nAccess-Control-Allow-Origin: {origin}\r\nVary: Origin\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
         Connection: close\r\n{more}\r\n"
    )
}

/// A request up to the empty line.
pub(super) fn read_head(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let deadline = Instant::now() + HEAD_TIMEOUT;
    let mut head = Vec::new();
    let mut buffer = [0; 2048];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || head.len() > HEAD {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => head.extend_from_slice(&buffer[..read]),
        }
    }
    Ok(head)
}

/// Ends a connection such that the browser gets all of it: closing while something it sent
/// is unread would throw away what it has not read.
pub(super) fn finish(stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Write);
    let _ = stream.set_read_timeout(Some(Duration::from_secs(1)));
    let _ = io::copy(&mut stream.take(1 << 20), &mut io::sink());
}

/// A part of a file, read without moving the position that other connections share.
struct Part<'f> {
    file: &'f File,
    at: u64,
    end: u64,
}

impl Read for Part<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = (self.end - self.at).min(buffer.len() as u64) as usize;
        let read = self.file.read_at(&mut buffer[..most], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
