//! The options that say which part of a trace is wanted.

use super::Failure;
use clap::Args;
use kymograph::config::CategoryFilter;
use kymograph_converters::trace::{Filter, Nanos, Trace};

/// Which part of a trace. Without any of these, all of it.
#[derive(Args)]
#[command(next_help_heading = "Part of the trace")]
pub(super) struct Part {
    /// Only what happens between two times after the trace's beginning, such as
    /// `1.5s..2s` or `100ms..`.
    #[arg(long, value_name = "A..B", value_parser = parse_range)]
    time_range: Option<(i64, i64)>,
    /// Only events of these categories, such as cpu_op or kernel. `*` stands for anything, and
    /// -NAME leaves one out. May be given several times.
    #[arg(long, value_name = "NAME", value_delimiter = ',', allow_hyphen_values = true)]
    category: Vec<String>,
    /// Only processes with these ids or names, and what they had devices do. `*` stands for
    /// anything. May be given several times.
    #[arg(long, value_name = "PID|NAME", value_delimiter = ',')]
    process: Vec<String>,
    /// Only processes of these ranks of a distributed job. May be given several times.
    #[arg(long, value_name = "N", value_delimiter = ',')]
    rank: Vec<i64>,
    /// Only events, device work and counters with these names. `*` stands for anything. May be
    /// given several times.
    #[arg(long, value_name = "PATTERN")]
    name: Vec<String>,
    /// Only threads with these ids or names, and what they had devices do. `*` stands for
    /// anything. May be given several times.
    #[arg(long, value_name = "TID|NAME", value_delimiter = ',')]
    thread: Vec<String>,
    /// Of what devices did, only what these did. May be given several times.
    #[arg(long, value_name = "N", value_delimiter = ',')]
    device: Vec<i64>,
}

impl Part {
    /// That part.
    pub(super) fn of(&self, trace: Trace) -> Result<Trace, Failure> {
        if self.given().is_empty() && self.time_range.is_none() {
            return Ok(trace);
        }
        let categories = (!self.category.is_empty())
            .then(|| CategoryFilter::of(self.category.iter().map(String::as_str)))
            .transpose()
            .map_err(|why| Failure(format!("--category {}: {why}", self.category.join(","))))?;
        let start = trace.time_span().map_or(Nanos(0), |(start, _)| start);
        Ok(trace.filtered(&Filter {
            times: self.time_range.map(|(from, to)| (start + Nanos(from), start + Nanos(to))),
            categories,
            processes: self.process.clone(),
            ranks: self.rank.clone(),
            names: self.name.clone(),
            threads: self.thread.clone(),
            devices: self.device.clone(),
        }))
    }

    /// That part, unless there is nothing in it.
    pub(super) fn of_some(&self, trace: Trace) -> Result<Trace, Failure> {
        let events = |trace: &Trace| {
            trace.slices.len()
                + trace.instants.len()
                + trace.activities.len()
                + trace.counters.len()
        };
        let before = events(&trace);
        let ranks: Vec<i64> = trace.processes.iter().filter_map(|(id, _)| trace.rank(id)).collect();
        let part = self.of(trace)?;
        // Counters have no category, and are in every part.
        let counters = if self.category.is_empty() { 0 } else { part.counters.len() };
        if before == 0 || events(&part) > counters {
            return Ok(part);
        }
        let mut given = self.given();
        if self.time_range.is_some() {
            given.push("--time-range".to_owned());
        }
        let mut why = format!("nothing is left of {before} events: none fits {}", given.join(" "));
        if !self.rank.is_empty() {
            let ranks: Vec<String> = ranks.iter().map(i64::to_string).collect();
            why += &match ranks.is_empty() {
                true => "; no process in this trace states its rank".to_owned(),
                false => format!("; the ranks here are {}", ranks.join(", ")),
            };
        }
        Err(Failure(why))
    }

    /// The options that were given, as they were.
    fn given(&self) -> Vec<String> {
        let numbers = |list: &[i64]| list.iter().map(i64::to_string).collect::<Vec<_>>();
        let options = [
            ("--category", self.category.clone()),
            ("--process", self.process.clone()),
            ("--rank", numbers(&self.rank)),
            ("--name", self.name.clone()),
            ("--thread", self.thread.clone()),
            ("--device", numbers(&self.device)),
        ];
        let given = options.into_iter().filter(|(_, values)| !values.is_empty());
        given.map(|(option, values)| format!("{option} {}", values.join(","))).collect()
    }
}

pub(super) fn parse_range(text: &str) -> Result<(i64, i64), String> {
    let (from, to) = text.split_once("..").ok_or("two times with `..` between them")?;
    let from = if from.is_empty() { 0 } else { parse_time(from)? };
    let to = if to.is_empty() { i64::MAX } else { parse_time(to)? };
    if from < to { Ok((from, to)) } else { Err("the second time must be after the first".into()) }
}

pub(super) fn parse_time(text: &str) -> Result<i64, String> {
    // At most a year, which fits.
    let nanos = kymograph::config::duration(text).map(|time| time.as_nanos() as i64);
    nanos.map_err(|_| format!("`{text}` is not a time such as 1.5s, 20ms or 2m"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_understood() {
        assert_eq!(parse_range("1.5s..2s"), Ok((1_500_000_000, 2_000_000_000)));
        assert_eq!(parse_range("100ms.."), Ok((100_000_000, i64::MAX)));
        assert_eq!(parse_range("..7ns"), Ok((0, 7)));
        assert_eq!(parse_range("0s..1.5m"), Ok((0, 90_000_000_000)));
        for wrong in ["", "1s", "1..2", "2s..1s", "-1s..2s", "NaNs..1s"] {
            assert!(parse_range(wrong).is_err(), "{wrong}");
        }
    }
}
