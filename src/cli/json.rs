//! Makes JSON of traces for which a daemon's users asked: see [`Conversion`].

use super::say;
use kymograph::control::Conversion;
use kymograph_converters::format::{self, Format};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

/// How soon after a trace its JSON is begun.
const LOOK: Duration = Duration::from_secs(1);

/// Looks for conversion requests and carries them out, on a thread of its own, until it is dropped. Then
/// those that are there are fulfilled first.
pub(super) struct Json {
    folder: PathBuf,
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Json {
    /// Begins with the folder `folder`, which it makes.
    pub(super) fn in_folder(folder: PathBuf) -> io::Result<Json> {
        std::os::unix::fs::DirBuilderExt::mode(&mut fs::DirBuilder::new(), 0o700)
            .create(&folder)?;
        Ok(Json { folder, end: None, thread: None })
    }

    /// The folder of the requests.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts the thread: not before the command was forked.
    pub(super) fn start(mut self) -> Json {
        let (end, ended) = mpsc::channel();
        let folder = self.folder.clone();
        self.end = Some(end);
        self.thread = Some(std::thread::spawn(move || {
            loop {
                let last = ended.recv_timeout(LOOK) != Err(RecvTimeoutError::Timeout);
                for conversion in Conversion::take_all(&folder) {
                    if let Err(error) = fulfil(&conversion) {
                        let (json, trace) = (conversion.json.display(), conversion.trace.display());
                        say(&format!("cannot make {json} of {trace}: {error}"));
                    }
                }
                if last {
                    return;
                }
            }
        }));
        self
    }
}

impl Drop for Json {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The folder may be everybody's (/tmp), and traces are for their owner's eyes: what is
/// written is a new file that no other process can have put there, and it becomes the JSON when
/// it is whole.
fn fulfil(conversion: &Conversion) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let file = File::open(&conversion.trace).map_err(|error| text(&error))?;
    let trace = format::read(file, Some(Format::Perfetto)).map_err(|error| text(&error))?;
    let mut partial = conversion.json.as_os_str().to_owned();
    partial.push(format!(".{}.partial", std::process::id()));
    let mut options = File::options();
    let created = options.write(true).create_new(true).mode(0o600).open(&partial);
    let mut out = created.map_err(|error| text(&error))?;
    let packing = format::packing_of_file(&conversion.json);
    let written = format::write(&trace, &mut out, Format::Kineto, packing)
        .and_then(|_| out.flush())
        .and_then(|()| fs::rename(&partial, &conversion.json));
    written.map_err(|error| {
        // What is half written is of no use.
        let _ = fs::remove_file(&partial);
        text(&error)
    })
}
