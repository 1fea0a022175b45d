//! `kymo info`: what is in a trace.

use super::files::{describe, read};
use super::shown::printable as one;
use super::{Failure, print, status};
use clap::Args;
use kymograph_converters::format::Format;
use kymograph_converters::trace::{ClockSummary, NameSummary, Nanos, ProcessSummary, Summary};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Shows what is in a trace: processes, devices, events, losses, warnings.
#[derive(Args)]
pub(super) struct Info {
    /// The trace; `-` for standard input. May be packed with gzip or zstd.
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// For programs.
    #[arg(long)]
    json: bool,
}

impl Info {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let trace = read(&self.input, None::<Format>)?;
        let summary = Summary::of(&trace);
        if self.json {
            // A closed stdout is no reason to fail.
            let _ = std::io::stdout().write_all(summary.to_json().as_bytes());
        } else {
            print(&page(&summary));
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn page(summary: &Summary) -> String {
    let mut lines = Vec::new();
    let mut line = |name: &str, value: String| lines.push(format!("{name:<12}{}", one(&value)));
    if !summary.producer.is_empty() {
        line("producer", summary.producer.clone());
    }
    line("time", format!("{:.6} s", summary.seconds()));
    if let Some(began) = summary.began_unix {
        line("began", date(began));
    }
    line("clock", clock(&summary.clock));
    let counts = [
        ("slices", summary.slices),
        ("unfinished", summary.unfinished),
        ("instants", summary.instants),
        ("device", summary.activities),
        ("samples", summary.samples),
        ("names", summary.names),
        ("arrows", summary.arrows),
    ];
    for (name, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        line(name, status::grouped(count));
    }
    let mut section = |title: &str, rows: Vec<(String, String)>| {
        if !rows.is_empty() {
            lines.push(format!("\n{title}"));
            let rows: Vec<_> = rows.iter().map(|(name, value)| (one(name), one(value))).collect();
            let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
            lines.extend(rows.iter().map(|(name, value)| format!("  {name:<width$}  {value}")));
        }
    };
    let grouped = |rows: &[(String, u64)]| {
        rows.iter().map(|(name, count)| (name.clone(), status::grouped(*count))).collect()
    };
    let events = |n: u64| status::count(n, "event", "events");
    let process = |p: &ProcessSummary| {
        let threads = status::count(p.threads, "thread", "threads");
        let rank = p.rank.map_or_else(String::new, |rank| format!(", rank {rank}"));
        let host = if p.host.is_empty() { String::new() } else { format!(", on {}", p.host) };
        let what = format!("{threads}, {}{rank}{host}", events(p.events));
        (format!("{} {}", p.pid, p.name), what)
    };
    section("processes", summary.processes.iter().map(process).collect());
    let devices = summary.devices.iter().flat_map(|device| {
        let used = device.queues.iter().filter(|queue| queue.activities > 0);
        let own = (format!("{} {}", device.number, device.name), events(device.activities));
        let queues = used.map(|queue| {
            let busy = format!("{}, {:.6} s", events(queue.activities), queue.busy.0 as f64 / 1e9);
            (format!("  {}", queue.name), busy)
        });
        std::iter::once(own).chain(queues).collect::<Vec<_>>()
    });
    section("devices", devices.collect());
    section("longest", summary.longest.iter().map(longest).collect());
    section("categories", grouped(&summary.categories));
    section("packets", grouped(&summary.kinds));
    // What is counted and did not happen says nothing.
    let metadata = summary.metadata.iter().filter(|(_, value)| value != "0");
    section("metadata", metadata.cloned().collect());
    let lost = summary.losses.iter().filter(|(_, count)| *count > 0);
    section("lost", lost.map(|(what, count)| (what.clone(), status::grouped(*count))).collect());
    if !summary.warnings.is_empty() {
        lines.push("\nwarnings".to_owned());
        let warnings = summary.warnings.iter().map(describe);
        lines.extend(warnings.map(|warning| format!("  {}", one(&warning))));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// A name, as wide as there is room for, and what it took together.
fn longest(row: &NameSummary) -> (String, String) {
    const WIDTH: usize = 60;
    let name = match row.name.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}…", &row.name[..end]),
        None => row.name.clone(),
    };
    let place = if row.on_device { " on devices" } else { "" };
    let seconds = row.total.0 as f64 / 1e9;
    (name, format!("{seconds:.6} s, {}{place}", status::count(row.count, "time", "times")))
}

fn clock(clock: &ClockSummary) -> String {
    let seconds = |time: Nanos| time.0 as f64 / 1e9;
    match clock.readings {
        0 => "not related to the time of day".to_owned(),
        1 => "related to the time of day once".to_owned(),
        readings => format!(
            "related to the time of day {} times in {:.1} s, differing by {:.1} µs",
            status::grouped(readings),
            seconds(clock.apart),
            clock.drift.0 as f64 / 1e3
        ),
    }
}

/// Nanoseconds since 1970 as a date, in UTC.
fn date(unix: i64) -> String {
    let (days, nanos) = (unix.div_euclid(DAY), unix.rem_euclid(DAY));
    // Days and years from March on, in 400-year eras: leap days come last.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    let (seconds, nanos) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{nanos:09} UTC")
}

const DAY: i64 = 86_400 * 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        let at = |days: i64| date(days * DAY)[..10].to_owned();
        assert_eq!(date(1), "1970-01-01 00:00:00.000000001 UTC");
        assert_eq!(date(1_790_857_026_123_456_789), "2026-10-01 12:17:06.123456789 UTC");
        let days = [-1, 59, 11_016, 11_017, 16_070, 47_540, 47_541].map(at);
        let expected = [
            "1969-12-31",
            "1970-03-01",
            "2000-02-29",
            "2000-03-01",
            "2013-12-31",
            "2100-02-28",
            "2100-03-01",
        ];
        assert_eq!(days, expected);
    }
}
