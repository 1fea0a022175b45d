//! The shell of `kymo query`, on a terminal.
#![cfg(feature = "query")]

mod jobs;

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const PROMPT: &str = "kymo> ";
/// Longer than anything takes here.
const LONG: Duration = Duration::from_secs(120);

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kymo-scale"));
    command.arg("query").env_remove("XDG_STATE_HOME").env_remove("HOME").env("TERM", "xterm");
    command
}

fn traces(folder: &Path) -> PathBuf {
    let traces = folder.join("traces");
    std::fs::create_dir(&traces).unwrap();
    jobs::traces(&jobs::healthy(2, 2), &traces);
    traces
}

/// A terminal, and a program on it.
struct Terminal {
    ours: File,
    child: Child,
    /// How the terminal was set before.
    before: libc::termios,
    /// What has come, and where what was not waited for yet begins.
    seen: String,
    at: usize,
}

fn settings(terminal: &File) -> libc::termios {
    // SAFETY: zeros are settings; they are filled by a call that fails for no terminal.
    unsafe {
        let mut settings = std::mem::zeroed();
        assert_eq!(libc::tcgetattr(terminal.as_raw_fd(), &mut settings), 0);
        settings
    }
}

impl Terminal {
    fn start(command: &mut Command) -> Terminal {
        let (mut ours, mut theirs) = (0, 0);
        let null = std::ptr::null_mut();
        // SAFETY: fills the two integers; the other three may be null. Both descriptors are new
        // and owned by nobody else.
        let (ours, theirs) = unsafe {
            assert_eq!(libc::openpty(&mut ours, &mut theirs, null, null.cast(), null.cast()), 0);
            (File::from_raw_fd(ours), File::from_raw_fd(theirs))
        };
        let before = settings(&ours);
        let end = || theirs.try_clone().unwrap();
        command.stdin(end()).stdout(end()).stderr(end());
        let fd = theirs.as_raw_fd();
        // SAFETY: only calls that are safe after a fork: makes the terminal that of a new session.
        unsafe {
            command.pre_exec(move || {
                libc::setsid();
                libc::ioctl(fd, libc::TIOCSCTTY, 0);
                Ok(())
            });
        }
        let child = command.spawn().unwrap();
        Terminal { ours, child, before, seen: String::new(), at: 0 }
    }

    /// Waits for a text, and gives what came up to it.
    fn until(&mut self, text: &str) -> String {
        let began = Instant::now();
        loop {
            if let Some(found) = self.seen[self.at..].find(text) {
                let end = self.at + found + text.len();
                let came = self.seen[self.at..end].to_owned();
                self.at = end;
                return came;
            }
            assert!(began.elapsed() < LONG, "no {text:?}: {:?}", &self.seen[self.at..]);
            self.read().unwrap_or_else(|| panic!("no {text:?}, but the end: {:?}", self.seen));
        }
    }

    /// Takes what has come; none at the end.
    fn read(&mut self) -> Option<()> {
        let mut ready =
            libc::pollfd { fd: self.ours.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one descriptor, which is open.
        if unsafe { libc::poll(&mut ready, 1, 100) } == 1 {
            let mut bytes = [0; 4096];
            // A terminal whose other end is closed reads as an error.
            let n = self.ours.read(&mut bytes).ok().filter(|n| *n > 0)?;
            self.seen += &String::from_utf8_lossy(&bytes[..n]);
        }
        Some(())
    }

    fn types(&mut self, text: &str) {
        self.ours.write_all(text.as_bytes()).unwrap();
    }

    /// Types a line at a prompt, and gives what came up to the next prompt: the line as the
    /// editor shows it, and the answer.
    fn line(&mut self, text: &str) -> String {
        self.types(text);
        self.types("\r");
        // The editor is left, and comes back.
        let shown = self.until("\x1b[?2004l");
        shown + &self.until(PROMPT)
    }

    /// Ctrl-C while a line is edited.
    fn drop_line(&mut self) {
        self.types("\x03");
        self.until("\x1b[?2004l");
        self.until(PROMPT);
    }

    /// Waits until Ctrl-C is a signal again, as it is while no line is edited.
    fn until_signals(&self) {
        let began = Instant::now();
        while settings(&self.ours).c_lflag & libc::ISIG == 0 {
            assert!(began.elapsed() < LONG, "a line is still edited");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Leaves by Ctrl-D; the terminal is set as before then.
    fn leave(mut self) {
        self.types("\x04");
        while self.read().is_some() && self.child.try_wait().unwrap().is_none() {}
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{:?}", self.seen);
        let (after, before) = (settings(&self.ours), self.before);
        let all = |of: libc::termios| (of.c_iflag, of.c_oflag, of.c_cflag, of.c_lflag, of.c_cc);
        assert_eq!(all(after), all(before));
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn the_shell_completes_answers_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let traces = traces(folder.path());
    let start = || Terminal::start(program().arg(&traces).env("XDG_STATE_HOME", &state));
    let mut terminal = start();
    terminal.until(PROMPT);

    let tables = terminal.line("\\d");
    for table in ["kernels", "device_work", "quality"] {
        assert!(tables.contains(&format!("\n{table} ")), "{tables}");
    }
    let columns = terminal.line("\\d kernels");
    let dur = columns.lines().find(|line| line.starts_with("dur ")).unwrap();
    assert_eq!(dur.split_whitespace().collect::<Vec<_>>(), ["dur", "BIGINT", "ns"]);
    let step = columns.lines().find(|line| line.starts_with("step ")).unwrap();
    assert!(step.contains("may be"), "{columns}");
    assert!(terminal.line("\\d nothing").contains("there is no table `nothing`"));

    // Over lines, until the semicolon, and a table by its first letters.
    terminal.types("SELECT count(*) AS answers\r");
    let answer = terminal.line("FROM kern\t WHERE rank\r = 1 AND rank < 3;");
    assert!(answer.contains("kernels") && answer.contains("answers"), "{answer:?}");
    let count = answer.lines().find(|line| line.trim().parse::<u32>().is_ok());
    assert!(count.unwrap().trim().parse::<u32>().unwrap() > 0, "{answer}");
    // Several that fit are shown.
    terminal.types("SELECT ker\t\t");
    let shown = terminal.until("kernel_class(");
    assert!(shown.contains("kernels"), "{shown:?}");
    terminal.drop_line();

    // An error is told, and is not the end; what follows it on the line is not done.
    let wrong = terminal.line("SELECT nonsense FROM kernels; SELECT 'bee' || 'hive';");
    assert!(wrong.contains("kymo: the query failed") && !wrong.contains("beehive"), "{wrong}");
    assert!(terminal.line("SELECT 'bee' || 'hive' AS home;").contains("beehive"));
    // Ctrl-C drops the line.
    terminal.types("SELECT nonsense ");
    terminal.drop_line();
    assert!(terminal.line("SELECT 'ant' || 'hill' AS home;").contains("anthill"));

    // Ctrl-C ends a query that would take for ever, whichever way rows are joined.
    for join in [
        "kernels b, kernels c, kernels d, kernels e",
        "kernels b JOIN kernels c ON b.ts < c.dur + c.ts, kernels d, kernels e, kernels f",
    ] {
        terminal.types(&format!("SELECT count(*) FROM kernels a, {join};\r"));
        terminal.until("\x1b[?2004l");
        terminal.until_signals();
        terminal.types("\x03");
        terminal.until("kymo: the query was ended");
        terminal.until(PROMPT);
        assert!(terminal.line("SELECT 'wasp' || 'nest' AS home;").contains("waspnest"));
    }
    terminal.leave();

    // What was typed is there the next time, for its owner alone.
    let history = state.join("kymograph/query_history");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&history), mode(history.parent().unwrap())), (0o600, 0o700));
    let mut terminal = start();
    terminal.until(PROMPT);
    assert!(terminal.line("\x1b[A").contains("waspnest"));
    let help = terminal.line("help");
    assert!(help.contains("\\d TABLE"), "{help}");
    terminal.types("exit;\r");
    while terminal.read().is_some() && terminal.child.try_wait().unwrap().is_none() {}
    assert_eq!(terminal.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_shell_needs_no_home_and_has_the_options_of_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let traces = traces(folder.path());
    let mut terminal = Terminal::start(program().arg(&traces).args(["--format", "csv"]));
    terminal.until(PROMPT);
    assert!(terminal.line("SELECT rank, 1 AS one FROM quality;").contains("rank,one\r\n"));
    terminal.leave();
    let mut terminal = Terminal::start(program().arg(&traces).args(["--limit", "2"]));
    terminal.until(PROMPT);
    assert!(terminal.line("SELECT rank FROM kernels;").contains("\n2 of "));
    terminal.leave();
    // A history that cannot be: the folder is a file.
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let mut terminal = Terminal::start(program().arg(&traces).env("XDG_STATE_HOME", &file));
    terminal.until(PROMPT);
    assert!(terminal.line("SELECT 'bee' || 'hive';").contains("beehive"));
    terminal.leave();
    for (options, why) in [
        (["--format", "parquet"], "--format parquet is for one query"),
        (["--output", "x.csv"], "--output is for one query"),
    ] {
        let mut terminal = Terminal::start(program().arg(&traces).args(options));
        terminal.until(why);
        assert_eq!(terminal.child.wait().unwrap().code(), Some(2));
    }
}

/// Without a terminal.
fn piped(words: &[&str], input: &str) -> Output {
    let mut command = program();
    command.args(words).args(["--format", "csv"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The program need not read it.
    drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
    child.wait_with_output().unwrap()
}

#[test]
fn a_query_is_the_last_word_or_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let traces = traces(folder.path());
    let spaced = folder.path().join("rank 0.json");
    std::fs::copy(traces.join("rank0.json"), &spaced).unwrap();
    let pattern = folder.path().join("rank *.json");
    let [traces, spaced, pattern] = [&traces, &spaced, &pattern].map(|path| path.to_str().unwrap());
    let sql = "SELECT count(DISTINCT rank) AS n FROM kernels";
    for (words, input, answer) in [
        (vec![traces, sql], "", "n\n2\n"),
        (vec![traces], sql, "n\n2\n"),
        // Spaces alone make no query of a file, or of a pattern that files fit.
        (vec![spaced], sql, "n\n1\n"),
        (vec![pattern], sql, "n\n1\n"),
        (vec![pattern, sql], "", "n\n1\n"),
    ] {
        let output = piped(&words, input);
        let why = String::from_utf8_lossy(&output.stderr);
        assert_eq!(String::from_utf8_lossy(&output.stdout), answer, "{words:?}: {why}");
    }
    for (words, input, why) in [
        (vec![sql], "", "say a data set or traces in front of the query"),
        (vec![traces, "nothing.json"], sql, "nothing.json: No such file"),
        (vec![traces], "", "the query failed"),
    ] {
        let output = piped(&words, input);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains(why) && output.status.code() == Some(2), "{words:?}: {told}");
        assert!(output.stdout.is_empty(), "{words:?}");
    }
}
