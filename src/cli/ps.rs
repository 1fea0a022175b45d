//! `kymo ps` and `kymo status`: the processes that can be asked for traces.

use super::ask::{self, Process};
use super::shown::printable;
use super::{Failure, print, quoted, say};
use clap::Args;
use std::collections::BTreeMap;
use std::process::ExitCode;

/// Lists the processes that can be asked for traces.
#[derive(Args)]
pub(super) struct Ps {
    /// For programs.
    #[arg(long)]
    json: bool,
}

/// Says how processes that can be asked for traces are doing.
#[derive(Args)]
pub(super) struct Status {
    /// Only these processes.
    #[arg(long, value_name = "PID", value_delimiter = ',')]
    pid: Vec<u32>,
    /// For programs.
    #[arg(long)]
    json: bool,
}

impl Ps {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let processes = ask::processes()?;
        if self.json {
            print(&json(&processes));
            return Ok(ExitCode::SUCCESS);
        }
        if processes.is_empty() {
            say(NONE);
            return Ok(ExitCode::SUCCESS);
        }
        let mut table =
            format!("{:>8} {:>5} {:<15} {:>8}  COMMAND\n", "PID", "RANK", "STATE", "STEPS");
        for (process, status) in processes.iter().zip(ask::statuses(&processes)) {
            table += &row(process, status);
        }
        print(&table);
        Ok(ExitCode::SUCCESS)
    }
}

/// What to do when no process can be asked.
pub(super) const NONE: &str = "no process can be asked for traces: start one with \
                               `kymo record --wait -- COMMAND`";

fn row(process: &Process, status: Option<BTreeMap<String, String>>) -> String {
    let silent = if status.is_none() { "no answer" } else { "?" };
    let status = status.unwrap_or_default();
    let field = |key: &str, otherwise| status.get(key).map_or(otherwise, String::as_str);
    format!(
        "{:>8} {:>5} {:<15} {:>8}  {}\n",
        process.pid,
        printable(field("rank", "-")),
        printable(in_words(field("state", silent))),
        printable(field("steps", "?")),
        process.command
    )
}

impl Status {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let mut processes = ask::processes()?;
        processes.retain(|process| self.pid.is_empty() || self.pid.contains(&process.pid));
        if processes.is_empty() {
            return Err(Failure(NONE.to_owned()));
        }
        if self.json {
            print(&json(&processes));
            return Ok(ExitCode::SUCCESS);
        }
        let mut text = String::new();
        for (process, status) in processes.iter().zip(ask::statuses(&processes)) {
            text += &format!("{} {}\n", process.pid, process.command);
            let Some(status) = status else {
                text += &format!("  it has not answered for {} s\n", ask::TIMEOUT.as_secs());
                continue;
            };
            for (key, value) in status {
                match &*key {
                    "pid" => {}
                    "state" => text += &format!("  state: {}\n", printable(in_words(&value))),
                    "progress" => text += &progress(&value).unwrap_or_default(),
                    _ => text += &format!("  {}: {}\n", printable(&key), printable(&value)),
                }
            }
        }
        print(&text);
        Ok(ExitCode::SUCCESS)
    }
}

/// What a process does, by the name that it gives its state.
fn in_words(state: &str) -> &str {
    match state {
        "WaitForRequest" => "waiting",
        "Pending" => "starts later",
        "Warmup" => "warming up",
        "CollectTrace" => "recording",
        "ProcessTrace" => "writing",
        "ProgramRecords" => "records itself",
        other => other,
    }
}

/// What processes say of themselves; anything else could be taken for what `kymo` says.
const KEYS: [&str; 7] = ["rank", "state", "steps", "progress", "version", "daemon", "problem"];

/// A list with an object for each process; `"answers": false` if it says nothing.
fn json(processes: &[Process]) -> String {
    let rows = processes.iter().zip(ask::statuses(processes)).map(|(process, status)| {
        let mut row = format!(
            "  {{\"pid\": {}, \"command\": {}, \"answers\": {}",
            process.pid,
            quoted::json(&process.command),
            status.is_some()
        );
        let known = status.unwrap_or_default();
        for (key, value) in known.iter().filter(|(key, _)| KEYS.contains(&key.as_str())) {
            let value = if key == "state" { in_words(value) } else { value };
            let is_number = ["rank", "steps"].contains(&&**key) && value.parse::<u64>().is_ok();
            let value = if is_number { value.to_owned() } else { quoted::json(value) };
            row += &format!(", {}: {value}", quoted::json(key));
        }
        row + "}"
    });
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() { "[]\n".to_owned() } else { format!("[\n{}\n]\n", rows.join(",\n")) }
}

/// `0.6 s of 3.0 s`, or iterations; nothing if there is none. Nobody asks for a million of
/// these, nor for a window of a millisecond to watch its progress.
fn progress(said: &str) -> Option<String> {
    let (done, of) = said.split_once(' ')?;
    let (done, of): (u64, u64) = (done.parse().ok()?, of.parse().ok()?);
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    match of {
        0 => None,
        1_000_000.. => {
            Some(format!("  progress: {:.1} s of {:.1} s\n", seconds(done), seconds(of)))
        }
        _ => Some(format!("  progress: {done} of {of} iterations\n")),
    }
}
