//! How far reading and writing of large files have come: a line on the terminal. Nothing
//! where stderr is none.

use super::shown::printable;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, Read, Write};

/// A line about one file, gone when it is dropped.
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// `doing` and `name` say what happens to which file; `size` is its length, if known.
    pub(super) fn new(doing: &str, name: &str, size: Option<u64>) -> Progress {
        let template = match size {
            Some(_) => "{msg} {wide_bar} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left",
            None => "{msg} {bytes}, {bytes_per_sec}",
        };
        // Twice a second, so that a short run draws nothing. Hidden where it is no terminal.
        let target = ProgressDrawTarget::stderr_with_hz(2);
        let message = format!("{doing} {}", printable(name));
        let bar = ProgressBar::with_draw_target(size, target).with_message(message);
        // The templates are known to be right; without one there is another bar.
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━╸ "));
        }
        Progress(bar)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A file that is read or written, with its line.
pub(super) struct Watched<F> {
    pub(super) file: F,
    pub(super) progress: Progress,
}

impl<F: Read> Read for Watched<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.progress.0.inc(read as u64);
        Ok(read)
    }
}

impl<F: Write> Write for Watched<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.progress.0.inc(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
