//! `kymo dataset`, `kymo query`, and `kymo analyze` of a data set: what `kymo-scale` does, a program beside `kymo`.
//! Parquet and what else it needs would make `kymo` twice as large, and few need it.

use super::Failure;
use clap::Args;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

/// The program.
const PROGRAM: &str = "kymo-scale";
/// The file that makes a folder a data set.
const HEADER: &str = "kymograph-dataset.json";

/// Data sets: the ranks of a large job as Parquet, for questions over all of them.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(super) struct Dataset {
    /// What is to be done: add, check. `kymo dataset --help` has more.
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

impl Dataset {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        hand_over(&[vec![OsString::from("dataset")], self.words].concat())
    }
}

/// SQL over a data set, or over traces; a shell if no query is given.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(super) struct Query {
    /// A data set or traces, and a query; a shell without one. `kymo query --help` has more.
    #[arg(value_name = "TARGET|SQL", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

impl Query {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        hand_over(&[vec![OsString::from("query")], self.words].concat())
    }
}

/// What addresses begin with: traces there are added to a data set, and not analysed by themselves.
const ADDRESSES: [&str; 5] = ["s3://", "gs://", "az://", "http://", "https://"];

/// The words of `kymo analyze` if one of them is a data set; none if it is about traces.
pub(super) fn analysed() -> Option<Vec<OsString>> {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let (command, rest) = words.split_first()?;
    let is_dataset = |word: &OsString| {
        let address =
            word.to_str().is_some_and(|word| ADDRESSES.iter().any(|start| word.starts_with(start)));
        address || Path::new(word).join(HEADER).is_file()
    };
    (command == "analyze" && rest.iter().any(is_dataset)).then_some(words)
}

/// Becomes the program; comes back only if that cannot be.
pub(super) fn hand_over(words: &[OsString]) -> Result<ExitCode, Failure> {
    let own = std::env::current_exe().and_then(|path| path.canonicalize());
    let beside = own.map_err(|error| Failure(format!("where kymo lies is not known: {error}")))?;
    let beside = beside.with_file_name(PROGRAM);
    if !beside.is_file() {
        return Err(Failure(format!(
            "data sets and queries need {PROGRAM} beside kymo, and {} is not there: `cargo build --release -p \
             kymograph-scale` makes it",
            beside.display()
        )));
    }
    let error = Command::new(&beside).args(words).exec();
    Err(Failure(format!("{}: {error}", beside.display())))
}
