//! A daemon's text becomes a request, and the request's fate something that people can find
//! out: a daemon takes no answer, so what went wrong is told by the next trace.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::Client;
use crate::config::Config;
use crate::control::{Broker, Conversion};
use crate::session::{self, Dialect, Origin, Outcome};

/// Remarks that are kept until a trace can tell them.
const KEPT: usize = 16;
/// Where Kineto writes a trace if the request does not say.
const UNNAMED: &str = "libkineto_activities_%p.json";

/// What went wrong since the last trace. Shared with answers, which come from any thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Remarks(Arc<Mutex<Told>>);

#[derive(Debug, Default)]
struct Told {
    lines: VecDeque<String>,
    /// Lines that there was no room for.
    more: u64,
}

impl Remarks {
    pub(super) fn add(&self, line: String) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.lines.len() == KEPT {
            told.lines.pop_front();
            told.more += 1;
        }
        told.lines.push_back(line);
    }

    /// The newest.
    pub(super) fn last(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).lines.back().cloned()
    }

    /// All of them, for a trace to tell.
    pub(super) fn take(&self) -> Vec<String> {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let told = std::mem::take(&mut *told);
        let more = (told.more > 0).then(|| format!("and {} more before", told.more));
        told.lines.into_iter().chain(more).collect()
    }
}

impl Client {
    /// Asks the broker for what a daemon's `text` says.
    pub(super) fn hand_over(&mut self, text: &str, broker: &Broker) {
        let folder = broker.config().trace_dirs.first().map_or(Path::new("/tmp"), PathBuf::as_path);
        let base = Config { output: folder.join(UNNAMED), ..broker.config().clone() };
        let parsed =
            session::parse(text.as_bytes(), Dialect::Kineto, Origin::Daemon, &base, broker.now());
        let parsed = match parsed {
            Ok(parsed) => parsed,
            Err(refusal) => return self.remarks.add(format!("request refused: {refusal}")),
        };
        if let Some(poll) = parsed.poll {
            self.poll_every(poll);
        }
        let mut request = parsed.request;
        let asked = request.config.output_path(std::process::id(), false);
        request.config.output = as_perfetto(&request.config.output);
        request.remarks = parsed.problems;
        request.remarks.extend(self.remarks.take());
        let (remarks, untold) = (self.remarks.clone(), request.remarks.clone());
        let notes = broker.config().json_notes.clone();
        let answer = move |outcome: &Outcome| match outcome {
            Outcome::Done(done) if done.path != asked => {
                let conversion = Conversion { trace: done.path.clone(), json: asked };
                // Without a `kymo` around, there is the trace, and `kymo convert`.
                let noted = notes.map_or(Ok(()), |notes| conversion.note(&notes));
                if let Err(error) = noted {
                    remarks.add(format!("{} is not made: {error}", conversion.json.display()));
                }
            }
            Outcome::Done(_) => {}
            Outcome::Refused(refusal) => {
                untold.into_iter().for_each(|line| remarks.add(line));
                remarks.add(format!("request refused: {refusal}"));
            }
        };
        broker.submit(request, Box::new(answer));
    }
}

/// The name of what is written when JSON is asked for: a process that is traced writes
/// Perfetto's format only, and says so; see [`Conversion`].
fn as_perfetto(path: &Path) -> PathBuf {
    let bytes = path.as_os_str().as_bytes();
    let (name, packed) = [b".gz".as_slice(), b".zst"]
        .into_iter()
        .find_map(|end| Some((bytes.strip_suffix(end)?, end)))
        .unwrap_or((bytes, b""));
    let stem = name.strip_suffix(b".pt.trace.json").or_else(|| name.strip_suffix(b".json"));
    match stem {
        Some(stem) => {
            let name = [stem, b".pftrace", packed].concat();
            std::ffi::OsString::from_vec(name).into()
        }
        None => OsStr::from_bytes(bytes).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_becomes_what_it_is() {
        for (asked, written) in [
            ("/tmp/t_7.json", "/tmp/t_7.pftrace"),
            ("/tmp/t_7.pt.trace.json", "/tmp/t_7.pftrace"),
            ("/tmp/t_7.json.gz", "/tmp/t_7.pftrace.gz"),
            ("/tmp/t_7.pftrace", "/tmp/t_7.pftrace"),
            ("/tmp/t_7.pftrace.zst", "/tmp/t_7.pftrace.zst"),
            ("/tmp/json", "/tmp/json"),
        ] {
            assert_eq!(as_perfetto(Path::new(asked)), Path::new(written), "{asked}");
        }
    }

    #[test]
    fn remarks_are_bounded_and_told_once() {
        let remarks = Remarks::default();
        (0..20).for_each(|n| remarks.add(n.to_string()));
        let told = remarks.take();
        assert_eq!((told.len(), told[0].as_str()), (KEPT + 1, "4"));
        assert_eq!(told[KEPT], "and 4 more before");
        assert_eq!(remarks.take(), Vec::<String>::new());
    }
}
