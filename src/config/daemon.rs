//! A daemon that may ask for traces.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use super::value;

/// A daemon that may ask for traces, as dynolog's: where it is, and how often it is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Daemon {
    /// `DAEMON`, the name of its socket. Empty: none is asked.
    pub name: String,
    /// `DAEMON_FOLDER`, as the daemon itself spells it. `None`: the socket has an abstract
    /// name.
    pub folder: Option<PathBuf>,
    /// `DAEMON_JOB`; 0 without one.
    pub job: i64,
    /// `DAEMON_POLL`; from 1 s to 30 s.
    pub poll: Duration,
    /// `DAEMON_UID`.
    pub uid: Option<u32>,
}

impl Daemon {
    /// Asking more often keeps a processor awake.
    pub(crate) const SHORTEST_POLL: Duration = Duration::from_secs(1);
    /// A stock daemon forgets a process that has not asked for a minute.
    pub(crate) const MAX_POLL: Duration = Duration::from_secs(30);

    /// None is asked. The table of options has the defaults.
    pub(super) const NONE: Daemon =
        Daemon { name: String::new(), folder: None, job: 0, poll: Duration::ZERO, uid: None };
}

/// The option that a variable of Kineto's or of the scheduler's stands for, and its value.
pub(super) fn of_kineto(name: &str, text: &OsStr) -> Option<(&'static str, OsString)> {
    match name {
        // Whatever it is set to.
        "KINETO_USE_DAEMON" => Some(("DAEMON", "dynolog".into())),
        "KINETO_IPC_SOCKET_DIR" => Some(("DAEMON_FOLDER", text.to_owned())),
        "KINETO_ONDEMAND_TRACE_DIR" => Some(("TRACE_DIRS", text.to_owned())),
        "SLURM_JOB_ID" => Some(("DAEMON_JOB", leading_number(text).to_string().into())),
        _ => None,
    }
}

/// As strtoll(3): the number that a text begins with, 0 if it does not.
fn leading_number(text: &OsStr) -> i64 {
    let text = text.to_str().unwrap_or_default().trim_ascii_start();
    let sign = text.starts_with(['-', '+']) as usize;
    let digits = text[sign..].bytes().take_while(u8::is_ascii_digit).count();
    text[..sign + digits].parse().unwrap_or(0)
}

/// Part of a socket's name, and of a path.
pub(super) fn name(text: &OsStr) -> Result<String, String> {
    let text = value::text(text)?;
    if text.len() > 64 || text.contains(['/', '\0']) {
        return Err("expected the name of a daemon's socket, such as dynolog".to_owned());
    }
    Ok(text.to_owned())
}

pub(super) fn number<T: std::str::FromStr>(text: &OsStr) -> Result<T, String> {
    value::text(text)?.trim().parse().map_err(|_| "expected a whole number".to_owned())
}

pub(super) fn poll(text: &OsStr) -> Result<Duration, String> {
    let poll = value::duration(text)?;
    if poll < Daemon::SHORTEST_POLL || poll > Daemon::MAX_POLL {
        return Err("expected a duration from 1s to 30s".to_owned());
    }
    Ok(poll)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_ids_are_read_as_kineto_reads_them() {
        let cases = [
            ("4711", 4711),
            (" 42", 42),
            ("12_3", 12),
            ("-1", -1),
            ("", 0),
            ("x1", 0),
            ("99999999999999999999", 0),
        ];
        for (text, number) in cases {
            assert_eq!(leading_number(text.as_ref()), number, "{text}");
        }
    }
}
