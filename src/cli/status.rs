//! What `kymo record` says while and after it records.

use super::quoted;
use kymograph::control::{Page, Totals};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// How often the line is drawn.
pub(super) const INTERVAL: Duration = Duration::from_millis(500);

/// One line on the terminal, drawn over itself. Nothing where stderr is no terminal.
pub(super) struct Line {
    drawn: bool,
    last: (Instant, Totals),
}

impl Line {
    /// `None` where it would not be seen, or would not be wanted.
    pub(super) fn new(quiet: bool) -> Option<Line> {
        let seen = std::io::stderr().is_terminal();
        (seen && !quiet).then(|| Line { drawn: false, last: (Instant::now(), Totals::default()) })
    }

    /// Draws it, twice a second at most.
    pub(super) fn draw(&mut self, page: &Page) {
        let (then, before) = self.last;
        let elapsed = then.elapsed();
        if elapsed < INTERVAL || keys_are_read_one_by_one() {
            return;
        }
        let now = page.totals();
        let rate = now.events.saturating_sub(before.events) as f64 / elapsed.as_secs_f64();
        self.last = (Instant::now(), now);
        self.drawn = true;
        let mut line = format!(
            "kymo: {} events/s, {} lost, {}",
            grouped(rate as u64),
            grouped(now.lost),
            size(page.committed())
        );
        line.truncate(width().saturating_sub(1));
        // The cursor goes back to the start, so that output of the program covers it.
        let (dim, plain) = if colours() { ("\x1b[2m", "\x1b[0m") } else { ("", "") };
        let _ = write!(std::io::stderr(), "\r\x1b[2K{dim}{line}{plain}\r");
    }

    /// Takes it away.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            let _ = write!(std::io::stderr(), "\r\x1b[2K");
        }
    }
}

/// Whether terminals may be sent colours: see no-color.org.
fn colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Whether an editor, a pager or a prompt with history has the terminal: its screen is
/// not ours to draw on.
fn keys_are_read_one_by_one() -> bool {
    let mut terminal = std::mem::MaybeUninit::<libc::termios>::uninit();
    // SAFETY: tcgetattr fills the struct when it returns 0, and only then is it read.
    unsafe {
        libc::tcgetattr(2, terminal.as_mut_ptr()) == 0
            && terminal.assume_init().c_lflag & libc::ICANON == 0
    }
}

fn width() -> usize {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: TIOCGWINSZ fills a winsize.
    unsafe { libc::ioctl(2, libc::TIOCGWINSZ, &mut size) };
    match size.ws_col {
        0 => 80,
        columns => columns.into(),
    }
}

/// What was recorded, and what to do next; line by line.
pub(super) fn summary(totals: &Totals, path: &Path, length: u64) -> Vec<String> {
    let output = path.display();
    let mut lines = Vec::new();
    if totals.events > 0 || totals.lost > 0 {
        let threads = count(totals.threads.into(), "thread", "threads");
        lines.push(contents(totals, path, length).replacen(", ", &format!(", {threads}, "), 1));
        let word = quoted::word(path);
        lines.push(look_at(path));
        lines.push(format!("where the time went: kymo analyze {word}"));
        lines.push(format!("all of it as a page to pass on: kymo report {word}"));
    }
    // A disk that is full fills the buffers, too.
    if totals.lost > 0 && totals.write_errors == 0 {
        lines.push(
            "events were lost because buffers were full: give more with --buffer 256M, or \
             record fewer with --domain"
                .to_owned(),
        );
    }
    if totals.write_errors > 0 {
        lines.push(format!(
            "{} could not be written to {output}: is the disk full?",
            count(totals.write_errors, "batch", "batches")
        ));
    }
    lines
}

/// What to do next.
pub(super) fn look_at(path: &Path) -> String {
    format!("look at it: kymo open {}", quoted::word(path))
}

/// What processes want to be known, line by line.
pub(super) fn notes(page: &Page) -> Vec<String> {
    let (notes, unsaid) = page.notes();
    let said = notes.into_iter().map(|(note, times)| match times {
        0 | 1 => note,
        times => format!("{note} ({})", count(times.into(), "process", "processes")),
    });
    let more = (unsaid > 0).then(|| format!("{unsaid} more of this kind are in the trace"));
    said.chain(more).collect()
}

/// What is in a file.
pub(super) fn contents(totals: &Totals, path: &Path, length: u64) -> String {
    format!(
        "{}, {}, {} lost → {} ({})",
        count(totals.processes.into(), "process", "processes"),
        count(totals.events, "event", "events"),
        grouped(totals.lost),
        path.display(),
        size(length)
    )
}

pub(super) fn count(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(n), if n == 1 { one } else { many })
}

/// 1234567 as 1,234,567.
pub(super) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}
