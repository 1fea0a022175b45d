//! What packages install beside `kymo`: completions for shells, and manual pages.

use super::{Cli, Failure};
use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Prints completions for a shell.
#[derive(Args)]
pub(super) struct Completions {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Writes manual pages, one for each command.
#[derive(Args)]
pub(super) struct Man {
    /// The folder to write to.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Completions {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut visible(), "kymo", &mut script);
        // A closed stdout is no reason to fail.
        let _ = std::io::stdout().write_all(&script);
        Ok(ExitCode::SUCCESS)
    }
}

/// The command line without what is for `kymo` itself.
fn visible() -> Command {
    let all = Cli::command();
    let commands = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    Command::new("kymo").disable_help_subcommand(true).subcommands(commands.collect::<Vec<_>>())
}

impl Man {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let named = |error| Failure(format!("{}: {error}", self.folder.display()));
        std::fs::create_dir_all(&self.folder).map_err(named)?;
        clap_mangen::generate_to(Cli::command(), &self.folder).map_err(named)?;
        Ok(ExitCode::SUCCESS)
    }
}
