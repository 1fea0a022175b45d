//! The command line: parse → call → print.
//!
//! Exit codes: 0, 2 when nothing was started (the reason is one line on stderr), and for
//! `kymo record` whatever the command's was.

mod analyze;
mod ask;
mod carried;
mod command;
mod convert;
mod dataset;
mod demo;
mod destination;
mod doctor;
mod elf;
mod ending;
mod export;
mod files;
mod follow;
mod generate;
mod help;
mod info;
mod inherited;
mod json;
mod launch;
mod library;
mod merge;
mod open;
mod outlived;
mod part;
mod post;
mod probe;
mod progress;
mod ps;
mod quoted;
mod reasons;
mod record;
mod recover;
mod report;
mod room;
mod selftest;
mod shown;
mod sockets;
mod spilled;
mod status;
mod suffix;
mod trigger;
mod witness;
mod workload;

use clap::{Parser, Subcommand};
use std::fmt;
use std::process::ExitCode;

const EXAMPLES: &str = "\
EXAMPLES
  Record a program, its children and grandchildren into one trace:
      kymo record -o app.pftrace -- python3 app.py --fast
  Only two NVTX or ITT domains, for ten seconds, compressed:
      kymo record --domain 'render,io*' --duration 10s -o app.pftrace.gz -- ./app
  A program with very many events:
      kymo record --buffer 512M -- ./app
  A program that runs for days: record half a second of it now and then, from elsewhere:
      kymo record --wait -- python3 train.py
      kymo trigger --duration 500ms -o now.pftrace
  What is in a trace, and the same trace for tools that read PyTorch's JSON:
      kymo info app.pftrace
      kymo convert app.pftrace app.json.gz
  The ranks of a job on one timeline:
      kymo merge job.pftrace rank*.json.gz
  Look at it in Perfetto's UI:
      kymo open app.pftrace
  See what a trace looks like:
      kymo demo
  What a program that records by itself, with RECOVER, had recorded when it was killed:
      kymo recover app.pftrace.recover
  Find out what can be recorded on this machine:
      kymo doctor

Traces open at https://ui.perfetto.dev. They stay on your machine there.";

/// Records programs that run on CPUs and accelerators into Perfetto traces.
#[derive(Parser)]
#[command(name = "kymo", version, long_version = help::version())]
#[command(after_help = EXAMPLES, max_term_width = 100)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Subcommand)]
enum Subcommands {
    Record(Box<record::Record>),
    Recover(recover::Recover),
    Ps(ps::Ps),
    Status(ps::Status),
    Trigger(Box<trigger::Trigger>),
    Stop(trigger::Stop),
    Convert(convert::Convert),
    Merge(merge::Merge),
    Export(export::Export),
    Info(info::Info),
    Analyze(Box<analyze::Analyze>),
    Dataset(dataset::Dataset),
    Query(dataset::Query),
    Report(report::Report),
    View(open::View),
    Open(open::Open),
    Demo(demo::Demo),
    Doctor(doctor::Doctor),
    Help(help::Help),
    #[command(hide = true)]
    Completions(generate::Completions),
    #[command(hide = true)]
    Man(generate::Man),
    #[command(hide = true, name = "__probe")]
    Probe(probe::Probe),
    #[command(hide = true, name = "__selftest")]
    Selftest(selftest::Work),
}

/// Why nothing was started: one line, which says what to do.
#[derive(Debug)]
struct Failure(String);

impl<E: fmt::Display> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure(error.to_string())
    }
}

pub(crate) fn main() -> ExitCode {
    if let Some(words) = dataset::analysed() {
        return ended(dataset::hand_over(&words));
    }
    let parsed = match Cli::try_parse() {
        Ok(Cli { command: Subcommands::Help(help) }) => Cli::try_parse_from(help.words()),
        parsed => parsed,
    };
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) if !error.use_stderr() => {
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            // `kymo` alone: the help, not a complaint.
            if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
                let _ = error.print();
            } else {
                say(&one_line(&error.render().to_string()));
            }
            return ExitCode::from(2);
        }
    };
    let result = match cli.command {
        Subcommands::Record(record) => record.run(),
        Subcommands::Recover(recover) => recover.run(),
        Subcommands::Ps(ps) => ps.run(),
        Subcommands::Status(status) => status.run(),
        Subcommands::Trigger(trigger) => trigger.run(),
        Subcommands::Stop(stop) => stop.run(),
        Subcommands::Convert(convert) => convert.run(),
        Subcommands::Merge(merge) => merge.run(),
        Subcommands::Export(export) => export.run(),
        Subcommands::Info(info) => info.run(),
        Subcommands::Analyze(analyze) => analyze.run(),
        Subcommands::Dataset(dataset) => dataset.run(),
        Subcommands::Query(query) => query.run(),
        Subcommands::Report(report) => report.run(),
        Subcommands::View(view) => view.run(),
        Subcommands::Open(open) => open.run(),
        Subcommands::Demo(demo) => demo.run(),
        Subcommands::Doctor(doctor) => doctor.run(),
        // Its words were parsed again, and ended in a help or in an error.
        Subcommands::Help(_) => Ok(ExitCode::SUCCESS),
        Subcommands::Completions(completions) => completions.run(),
        Subcommands::Man(man) => man.run(),
        Subcommands::Probe(probe) => probe.run(),
        Subcommands::Selftest(work) => work.run(),
    };
    ended(result)
}

fn ended(result: Result<ExitCode, Failure>) -> ExitCode {
    result.unwrap_or_else(|Failure(why)| {
        say(&why);
        ExitCode::from(2)
    })
}

/// One line on stderr, whatever is in it. A closed stderr is no reason to fail.
fn say(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "kymo: {}", shown::printable(line));
}

/// Lines on stdout. A closed stdout is no reason to fail.
fn print(text: &str) {
    use std::io::Write;
    let _ = std::io::stdout().write_all(shown::printable_lines(text).as_bytes());
}

/// clap's several lines as one: the error itself, its tips, and where the help is.
fn one_line(error: &str) -> String {
    let mut lines = error.lines().map(str::trim);
    let mut said: Vec<String> = Vec::new();
    // The error itself goes on up to the first empty line (a list of missing arguments).
    for line in lines.by_ref().take_while(|line| !line.is_empty()) {
        let line = line.strip_prefix("error: ").unwrap_or(line);
        match said.last_mut() {
            Some(first) => *first = format!("{first} {line}"),
            None => said.push(line.to_owned()),
        }
    }
    let mut help = "kymo --help".to_owned();
    for line in lines {
        if let Some(tip) = line.strip_prefix("tip: ") {
            // Not the hidden ones.
            if !tip.contains("'__") {
                said.push(tip.to_owned());
            }
        } else if let Some(usage) = line.strip_prefix("Usage: ") {
            let words = usage.split(' ').take_while(|w| !w.starts_with(['[', '<', '-']));
            help = words.collect::<Vec<_>>().join(" ") + " --help";
        }
    }
    format!("{} (see `{help}`)", said.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_follows_the_command_is_the_commands() {
        let words = ["kymo", "record", "-q", "ls", "-l", "--output", "x", "--", "y"];
        let Ok(cli) = Cli::try_parse_from(words) else {
            panic!("not understood");
        };
        let Subcommands::Record(record) = cli.command else {
            panic!("not record");
        };
        assert_eq!(record.command, ["ls", "-l", "--output", "x", "--", "y"]);
    }

    #[test]
    fn errors_become_one_line() {
        let error = "error: unexpected argument '--bufer' found\n\n  tip: a similar argument \
                     exists: '--buffer'\n\nUsage: kymo record --buffer <SIZE> <COMMAND>...\n\n\
                     For more information, try '--help'.\n";
        assert_eq!(
            one_line(error),
            "unexpected argument '--bufer' found; a similar argument exists: '--buffer' \
             (see `kymo record --help`)"
        );
    }
}
