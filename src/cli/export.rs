//! `kymo export`: a trace as tables for data tools.

use super::part::Part;
use super::{Failure, files, say, status};
use clap::{Args, ValueEnum};
use kymograph_converters::export::{Format, write};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
EXAMPLES
  Which kernels took longest:
      kymo export run.pftrace tables
      duckdb -c \"SELECT name, sum(dur) FROM 'tables/activities.parquet' GROUP BY 1 ORDER BY 2 DESC\"";

/// Writes a trace as tables for DuckDB, Polars, pandas, Spark and the like.
///
/// DIR gets a file each for slices, instants, activities (of devices), flows, counters and
/// metadata. docs/EXPORT.md describes their columns.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Export {
    /// The trace to read; `-` for standard input. May be packed with gzip or zstd.
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// The folder to write to; made if it is not there.
    #[arg(value_name = "DIR", required_unless_present = "output")]
    folder: Option<PathBuf>,
    /// DIR, as an option.
    #[arg(short, long, value_name = "DIR", conflicts_with = "folder")]
    output: Option<PathBuf>,
    /// The format of the tables.
    #[arg(long, value_enum, default_value = "parquet")]
    format: Tables,
    /// Only complain.
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    part: Part,
}

#[derive(Clone, Copy, ValueEnum)]
enum Tables {
    /// Parquet, packed with zstd.
    Parquet,
    /// Arrow's file format (Feather).
    Arrow,
    /// Comma-separated values.
    Csv,
}

impl Export {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let format = match self.format {
            Tables::Parquet => Format::Parquet,
            Tables::Arrow => Format::Arrow,
            Tables::Csv => Format::Csv,
        };
        // One of the two is there, and not both.
        let folder = self.folder.or(self.output).unwrap_or_default();
        if files::is_pipe(&folder) {
            return Err(Failure(
                "tables are several files: name a folder for them; `kymo analyze --format csv` \
                 writes one table to a pipe"
                    .to_owned(),
            ));
        }
        let trace = self.part.of(files::read(&self.input, None)?)?;
        let counts = write(&trace, &folder, format)
            .map_err(|error| Failure(format!("cannot write {error}")))?;
        if std::io::stderr().is_terminal() && !self.quiet {
            for (table, rows) in counts {
                let path = folder.join(format!("{table}.{}", format.name()));
                say(&format!("{} → {}", status::count(rows, "row", "rows"), path.display()));
            }
        }
        files::say_warnings(&trace.facts.warnings);
        Ok(ExitCode::SUCCESS)
    }
}
