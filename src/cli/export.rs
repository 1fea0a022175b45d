//! `kymo export`: a trace as tables for data tools.

use super::Failure;
use super::part::Part;
use clap::{Args, ValueEnum};
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
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The format of the tables.
    #[arg(long, value_enum, default_value = "parquet")]
    format: Tables,
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

#[cfg(feature = "export")]
impl Export {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        use super::{files, say, status};
        use kymograph_converters::export::{Format, write};
        use std::io::IsTerminal;
        let format = match self.format {
            Tables::Parquet => Format::Parquet,
            Tables::Arrow => Format::Arrow,
            Tables::Csv => Format::Csv,
        };
        let trace = self.part.of(files::read(&self.input, None)?)?;
        let counts = write(&trace, &self.folder, format)
            .map_err(|error| Failure(format!("cannot write {error}")))?;
        if std::io::stderr().is_terminal() {
            for (table, rows) in counts {
                let path = self.folder.join(format!("{table}.{}", format.name()));
                say(&format!("{} → {}", status::count(rows, "row", "rows"), path.display()));
            }
        }
        files::say_warnings(&trace.facts.warnings);
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(not(feature = "export"))]
impl Export {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let Export { input, folder, format, part } = self;
        drop((input, folder, format, part));
        Err(Failure(
            "this kymo was built without tables, which bring Arrow and Parquet: build it with \
             `cargo build --release --features export`"
                .to_owned(),
        ))
    }
}
