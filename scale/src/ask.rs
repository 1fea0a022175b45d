//! `kymo query`.

use crate::Format;
use clap::Args;
use kymograph_scale::Failure;
#[cfg(feature = "query")]
use kymograph_scale::query::{Database, Limits, statements::is_query};
use std::path::PathBuf;
use std::process::ExitCode;

/// Asks a data set, or traces, in SQL; a shell if no query is given.
#[derive(Args)]
#[cfg_attr(not(feature = "query"), allow(dead_code, reason = "it says what is missing"))]
pub struct Query {
    /// A data set, or traces (files, folders, patterns), and behind them the query. Without a
    /// query there is a shell; it is read from standard input if that is no terminal. The last
    /// word is the query if it has a space and nothing of that name is there.
    #[arg(required = true, value_name = "TARGET|SQL")]
    words: Vec<String>,
    /// The format of the answer.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Where to write; standard output without it.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How many rows to show: all without it, and 50 of a table on standard output.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// How much memory sorting, grouping and joining take before they go to disk: 8G, 500M.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory: Option<usize>,
    /// Say how the query would be carried out, and do not.
    #[arg(long)]
    explain: bool,
    /// Go on although ranks of a data set are missing, half written or damaged.
    #[arg(long)]
    partial: bool,
}

/// A number of bytes, with K, M, G or T behind it.
fn size(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        "T" | "TB" | "TIB" => 40,
        unit => return Err(format!("`{unit}` is none of K, M, G, T")),
    };
    let number: usize = digits.parse().map_err(|_| "a number such as 8G is wanted".to_owned())?;
    let bytes = number.checked_mul(1 << shift).filter(|bytes| *bytes > 0);
    bytes.ok_or_else(|| "that is no amount of memory".to_owned())
}

#[cfg(not(feature = "query"))]
impl Query {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let what = "this kymo-scale was built without queries: `cargo build --release -p \
                    kymograph-scale --features query` makes one with them";
        Err(Failure(what.to_owned()))
    }
}

#[cfg(feature = "query")]
impl Query {
    pub fn run(self) -> Result<ExitCode, Failure> {
        use std::io::IsTerminal;
        let (targets, sql) = self.split()?;
        let sql = match sql {
            Some(sql) => sql.to_owned(),
            None if std::io::stdin().is_terminal() => {
                crate::shell::run(targets, &self)?;
                return Ok(ExitCode::SUCCESS);
            }
            None => std::io::read_to_string(std::io::stdin())
                .map_err(|error| Failure(format!("standard input: {error}")))?,
        };
        let work = async { self.answer(&self.open(targets).await?, &sql).await };
        kymograph_scale::query::carry_out(work)??;
        Ok(ExitCode::SUCCESS)
    }

    /// Opens the targets, and says what is not in them.
    pub async fn open(&self, targets: &[String]) -> Result<Database, Failure> {
        let limits = Limits { memory: self.memory, partial: self.partial };
        let database = Database::open(targets, limits).await?;
        database.left_out.iter().for_each(|why| crate::say(why));
        Ok(database)
    }

    /// Writes the answer where it was asked for.
    pub async fn answer(&self, database: &Database, sql: &str) -> Result<(), Failure> {
        use kymograph_scale::query::output::{Format as To, write};
        use std::io::{BufWriter, Write};
        if self.explain {
            let plan = database.explain(sql).await?;
            drop(std::io::stdout().write_all(plan.as_bytes()));
            return Ok(());
        }
        let rows = database.ask(sql).await?;
        let format = self.format();
        let Some(path) = &self.output else {
            let limit = self.limit.or((format == To::Table).then_some(50));
            let out = Output(BufWriter::new(std::io::stdout()));
            return write(rows, format, limit, out).await.map(drop);
        };
        let (file, partial) = crate::begin(path)?;
        let written = write(rows, format, self.limit, BufWriter::new(file)).await;
        crate::finish(path, &partial, written.map(drop))
    }

    /// Whether answers can be written one after the other, for people.
    pub fn can_be_a_shell(&self) -> Result<(), Failure> {
        let what = match self.format {
            _ if self.output.is_some() => "--output is",
            Format::Parquet => "--format parquet is",
            Format::Arrow => "--format arrow is",
            _ => return Ok(()),
        };
        let what = format!("{what} for one query: say it behind the targets, in quotes");
        Err(Failure(what))
    }

    /// The targets, and the query if it is the last word.
    fn split(&self) -> Result<(&[String], Option<&str>), Failure> {
        let (sql, targets) = match self.words.split_last() {
            Some((last, targets)) if is_query(last) => (Some(last.as_str()), targets),
            _ => (None, self.words.as_slice()),
        };
        if targets.is_empty() {
            return Err(Failure("say a data set or traces in front of the query".to_owned()));
        }
        Ok((targets, sql))
    }

    fn format(&self) -> kymograph_scale::query::output::Format {
        use kymograph_scale::query::output::Format as To;
        match self.format {
            Format::Table => To::Table,
            Format::Json => To::Json,
            Format::Csv => To::Csv,
            Format::Parquet => To::Parquet,
            Format::Arrow => To::Arrow,
        }
    }
}

/// Standard output. The program ends where nobody reads on, as behind `| head`.
#[cfg(feature = "query")]
struct Output(std::io::BufWriter<std::io::Stdout>);

#[cfg(feature = "query")]
impl std::io::Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes).inspect_err(leave)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush().inspect_err(leave)
    }
}

#[cfg(feature = "query")]
fn leave(error: &std::io::Error) {
    if error.kind() == std::io::ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("8G"), Ok(8 << 30));
        assert_eq!(size("500mb"), Ok(500 << 20));
        assert_eq!(size("4096"), Ok(4096));
        assert!(size("G").is_err() && size("0").is_err() && size("8X").is_err());
        assert!(size("99999999999T").is_err());
    }
}
