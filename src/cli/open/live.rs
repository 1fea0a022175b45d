//! `kymo view`: the pages of `kymo report`, served on this machine while traces may still change.
//!
//! The same protections as `kymo open` ([the module above](super)): a request must name this machine
//! as its host, know the path, which is random, come from a process of the same user, and, where a
//! browser says from which page, from one of this server.

use super::super::{Failure, files, report, room, say, spilled};
use super::audience::Audience;
use super::perfetto::Perfetto;
use super::site::{Field, Ui, field, is_this_machine, parse_ui};
use super::{PORT, browse, listen, secret, serve, tunnel};
use clap::Args;
use kymograph_report::{Details, Report, Settings};
use std::borrow::Cow;
use std::io::{self, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// How late a change may be seen, and how long a browser may read nothing.
const CHANGES: Duration = Duration::from_secs(2);
const BODY_TIMEOUT: Duration = Duration::from_secs(60);
const FIELDS: usize = 64;
/// How many times as much memory as its file a trace takes, at most: a packed file with little in each
/// event. Beyond that, parts of it are put on the disk.
const UNPACKED: u64 = 32;

const EXAMPLES: &str = "\
EXAMPLES
  The ranks of a job:
      kymo view traces/
  A recording that is still written; the page follows it:
      kymo view app.pftrace";

/// Shows the pages of `kymo report` in a browser, and follows traces that change.
///
/// The pages come from this machine, to this user only. Data is loaded when a page needs it.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(in super::super) struct View {
    /// The traces: files, folders, or patterns, as for `kymo report`.
    #[arg(value_name = "TRACE", required = true)]
    words: Vec<String>,
    /// Each TRACE is a run of its own.
    #[arg(long)]
    each: bool,
    /// Only print the link, on standard output.
    #[arg(long)]
    no_browser: bool,
    /// Where to serve it, on 127.0.0.1; 0 takes any port that is free.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
    /// The UI that places are opened in, if you run your own. Only its pages can read the traces.
    #[arg(long, value_name = "URL", default_value = "https://ui.perfetto.dev")]
    #[arg(value_parser = parse_ui)]
    ui: Ui,
}

/// A state of the traces.
struct State {
    version: u64,
    inputs: Vec<report::Input>,
    report: Report,
    page: Vec<u8>,
}

struct Server {
    secret: String,
    audience: Audience,
    state: Mutex<Arc<State>>,
    perfetto: Perfetto,
    /// The trace whose arguments were asked for last: version, number of the input.
    details: Mutex<Option<(u64, usize, Details)>>,
}

/// When files changed, and how long they are.
type Stamps = Vec<(PathBuf, Option<(SystemTime, u64)>)>;

impl View {
    pub(in super::super) fn run(self) -> Result<ExitCode, Failure> {
        let mut stamps = self.stamps()?;
        let began = Instant::now();
        let state = self.read(0)?;
        let mut took = began.elapsed();
        let listener = listen(self.port)?;
        let port = listener.local_addr()?.port();
        let server = Arc::new(Server {
            secret: secret()?,
            audience: Audience::here(),
            state: Mutex::new(Arc::new(state)),
            perfetto: Perfetto::new(self.ui.clone()),
            details: Mutex::new(None),
        });
        let link = format!("http://127.0.0.1:{port}/{}/", server.secret);
        // A closed stdout is no reason to fail.
        let _ = writeln!(io::stdout(), "{link}").and_then(|()| io::stdout().flush());
        self.show(&link, port);
        let theirs = Arc::clone(&server);
        let answer = |server: &Server, stream: TcpStream| {
            // A browser that is gone needs no answer.
            let _ = server.serve(stream);
        };
        std::thread::spawn(move || serve::accept(&listener, &theirs, answer));
        let mut complained = String::new();
        loop {
            // What takes long to read is read seldom.
            std::thread::sleep(CHANGES.max(took * 4));
            let Ok(now) = self.stamps() else { continue };
            if now == stamps {
                continue;
            }
            let began = Instant::now();
            match self.read(server.state().version + 1) {
                Ok(state) => *server.lock() = Arc::new(state),
                // It may be in the middle of being written; the next time tells.
                Err(Failure(why)) if why != complained => {
                    say(&format!("the page stays as it is: {why}"));
                    complained = why;
                }
                Err(_) => {}
            }
            (stamps, took) = (now, began.elapsed());
        }
    }

    fn stamps(&self) -> Result<Stamps, Failure> {
        let stamp = |input: report::Input| {
            let about = input.path.metadata().ok();
            let stamp = about.and_then(|about| Some((about.modified().ok()?, about.len())));
            (input.path, stamp)
        };
        Ok(report::inputs(&self.words, self.each)?.into_iter().map(stamp).collect())
    }

    fn read(&self, version: u64) -> Result<State, Failure> {
        let inputs = report::inputs(&self.words, self.each)?;
        let lengths = inputs.iter().filter_map(|input| Some(input.path.metadata().ok()?.len()));
        if room::memory().is_some_and(|(left, _)| lengths.sum::<u64>() > left / UNPACKED) {
            spilled::begin();
        }
        let settings = Settings { exact: true, ..Settings::default() };
        let report = report::read(&inputs, &settings)?;
        let mut page = Vec::new();
        report.write_live(version, &mut page)?;
        Ok(State { version, inputs, report, page })
    }

    fn show(&self, link: &str, port: u16) {
        let remote = std::env::var("SSH_CONNECTION").ok().filter(|it| !it.is_empty());
        if let Some(connection) = remote {
            let tunnel = tunnel(&connection, std::env::var("USER").ok(), port, port);
            say(&format!("on your own machine run `{tunnel}`, and open the link there"));
            if self.ui.is_default() {
                let other = super::tunnel(&connection, std::env::var("USER").ok(), PORT, PORT);
                say(&format!("to open places in Perfetto's UI, `{other}` as well"));
            }
        } else if !self.no_browser && !Audience::can_be_told() {
            say("other users could read the link in a browser's arguments; open it yourself");
        } else if !self.no_browser && !browse(link) {
            say("there is no browser to open here; open the link yourself");
        }
        say("serving until Ctrl-C; the page follows the traces");
    }
}

/// What to answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answer {
    Refuse,
    Method,
    NotFound,
    /// A block of another version.
    Gone,
    Page,
    Version,
    Block(usize),
    /// The arguments of an event of a rank.
    Arguments(usize, usize),
    /// To an input in Perfetto's UI, between two times.
    Perfetto(usize, i64, i64),
}

/// Decides, but for whose the connection is.
fn answer(
    secret: &str,
    version: u64,
    method: &str,
    path: &str,
    fields: &[(&str, &[u8])],
) -> Answer {
    let Field::One(host) = field(fields, "host") else { return Answer::Refuse };
    let own = [b"http://", host].concat();
    let from = match field(fields, "origin") {
        Field::None => true,
        Field::One(origin) => origin == own,
        Field::Several => false,
    };
    let site = match field(fields, "sec-fetch-site") {
        Field::None => true,
        Field::One(site) => site == b"same-origin" || site == b"none",
        Field::Several => false,
    };
    if !is_this_machine(host) || !from || !site {
        return Answer::Refuse;
    }
    let Some(name) = path.strip_prefix('/').and_then(|path| path.strip_prefix(secret)) else {
        return Answer::NotFound;
    };
    if method != "GET" {
        return Answer::Method;
    }
    match name.strip_prefix('/') {
        Some("") => Answer::Page,
        Some("version") => Answer::Version,
        Some(name) => of_version(name, version).unwrap_or(Answer::NotFound),
        None => Answer::NotFound,
    }
}

/// What is of one version only: `KIND-VERSION-NUMBER…`.
fn of_version(name: &str, version: u64) -> Option<Answer> {
    let mut words = name.split('-');
    let kind = words.next()?;
    let numbers = words.map(|word| word.parse().ok()).collect::<Option<Vec<u64>>>()?;
    let (of, answer) = match (kind, numbers.as_slice()) {
        ("block", [of, block]) => (of, Answer::Block(usize::try_from(*block).ok()?)),
        ("arguments", [of, rank, event]) => {
            (of, Answer::Arguments(usize::try_from(*rank).ok()?, usize::try_from(*event).ok()?))
        }
        ("perfetto", [of, input, from, to]) if from < to => {
            let (from, to) = (i64::try_from(*from).ok()?, i64::try_from(*to).ok()?);
            (of, Answer::Perfetto(usize::try_from(*input).ok()?, from, to))
        }
        _ => return None,
    };
    Some(if *of == version { answer } else { Answer::Gone })
}

impl Server {
    fn lock(&self) -> std::sync::MutexGuard<'_, Arc<State>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> Arc<State> {
        Arc::clone(&self.lock())
    }

    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        let head = serve::read_head(&mut stream)?;
        stream.set_write_timeout(Some(BODY_TIMEOUT))?;
        let mut fields = [httparse::EMPTY_HEADER; FIELDS];
        let mut request = httparse::Request::new(&mut fields);
        let state = self.state();
        let decided = match request.parse(&head) {
            Ok(httparse::Status::Complete(_)) if self.audience.includes(&stream).is_ok() => {
                let fields: Vec<_> =
                    request.headers.iter().map(|field| (field.name, field.value)).collect();
                let (method, path) = (request.method, request.path);
                let path = path.unwrap_or_default();
                answer(&self.secret, state.version, method.unwrap_or_default(), path, &fields)
            }
            _ => Answer::Refuse,
        };
        let plain = |status, text: String| (status, "text/plain", Cow::Owned(text.into_bytes()));
        let empty = |status| plain(status, String::new());
        let mut more = String::new();
        let (status, kind, body): (&str, &str, Cow<'_, [u8]>) = match decided {
            Answer::Refuse => plain("403 Forbidden", "Only for its user's browser.\n".to_owned()),
            Answer::Method => empty("405 Method Not Allowed"),
            Answer::NotFound => empty("404 Not Found"),
            Answer::Gone => plain("410 Gone", "The traces have changed; reload the page.\n".into()),
            Answer::Page => ("200 OK", "text/html; charset=utf-8", Cow::Borrowed(&state.page)),
            Answer::Version => plain("200 OK", state.version.to_string()),
            Answer::Block(number) => match state.report.block(number) {
                Some(block) => ("200 OK", "text/plain", Cow::Borrowed(block.as_bytes())),
                None => empty("404 Not Found"),
            },
            Answer::Arguments(rank, event) => match self.arguments(&state, rank, event) {
                Ok(Some(json)) => ("200 OK", "application/json", Cow::Owned(json.into_bytes())),
                Ok(None) => empty("404 Not Found"),
                Err(Failure(why)) => plain("503 Service Unavailable", format!("{why}\n")),
            },
            Answer::Perfetto(input, from, to) => match state.inputs.get(input) {
                Some(input) => match self.perfetto.link(&input.path, from, to) {
                    Ok(link) => {
                        more = format!("Location: {link}\r\n");
                        empty("303 See Other")
                    }
                    Err(Failure(why)) => plain("503 Service Unavailable", format!("{why}\n")),
                },
                None => empty("404 Not Found"),
            },
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{more}\
             Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
             X-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n\
             Cross-Origin-Resource-Policy: same-origin\r\nConnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(&body)?;
        serve::finish(&stream);
        Ok(())
    }

    /// The arguments of an event, as JSON. The trace is read when the first one of it is asked for.
    fn arguments(&self, state: &State, id: usize, event: usize) -> Result<Option<String>, Failure> {
        let Some(rank) = state.report.rank(id) else { return Ok(None) };
        let Some(input) = state.inputs.get(rank.source) else { return Ok(None) };
        let mut details = self.details.lock().unwrap_or_else(PoisonError::into_inner);
        let known = |(version, source, _): &(u64, usize, Details)| {
            (*version, *source) == (state.version, rank.source)
        };
        if !details.as_ref().is_some_and(known) {
            // The one before goes first: two need not fit into memory.
            *details = None;
            let trace = files::read(&input.path, None)?;
            *details = Some((state.version, rank.source, Details::new(trace, input.otherwise)));
        }
        Ok(details.as_ref().and_then(|(.., details)| details.of(rank.rank, event)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: (&str, &[u8]) = ("Host", b"127.0.0.1:4711");

    fn ask(path: &str, fields: &[(&str, &[u8])]) -> Answer {
        answer("s3cret", 7, "GET", path, fields)
    }

    #[test]
    fn only_pages_of_this_server_that_know_the_path_get_anything() {
        assert_eq!(ask("/s3cret/", &[HOST]), Answer::Page);
        assert_eq!(ask("/s3cret/version", &[HOST]), Answer::Version);
        assert_eq!(ask("/s3cret/block-7-12", &[HOST]), Answer::Block(12));
        assert_eq!(ask("/s3cret/block-6-12", &[HOST]), Answer::Gone);
        assert_eq!(ask("/s3cret/arguments-7-0-5", &[HOST]), Answer::Arguments(0, 5));
        assert_eq!(ask("/s3cret/perfetto-7-1-5-9", &[HOST]), Answer::Perfetto(1, 5, 9));
        assert_eq!(ask("/s3cret/perfetto-6-1-5-9", &[HOST]), Answer::Gone);
        for name in ["perfetto-7-1-9-5", "perfetto-7-1-5", "arguments-7-0", "arguments-7-0--1"] {
            assert_eq!(ask(&format!("/s3cret/{name}"), &[HOST]), Answer::NotFound, "{name}");
        }
        for path in ["/", "/other/", "/s3cre", "/s3cret", "/s3cretx/", "/s3cret/block-7-x"] {
            assert_eq!(ask(path, &[HOST]), Answer::NotFound, "{path}");
        }
        assert_eq!(answer("s3cret", 7, "POST", "/s3cret/", &[HOST]), Answer::Method);
        let refused: [&[(&str, &[u8])]; 6] = [
            &[],
            &[("Host", b"evil.example:4711")],
            &[HOST, HOST],
            &[HOST, ("Origin", b"https://evil.example")],
            &[HOST, ("Origin", b"null")],
            &[HOST, ("Sec-Fetch-Site", b"cross-site")],
        ];
        for fields in refused {
            assert_eq!(ask("/s3cret/", fields), Answer::Refuse, "{fields:?}");
        }
        let own: &[(&str, &[u8])] =
            &[HOST, ("Origin", b"http://127.0.0.1:4711"), ("Sec-Fetch-Site", b"same-origin")];
        assert_eq!(ask("/s3cret/version", own), Answer::Version);
    }
}
