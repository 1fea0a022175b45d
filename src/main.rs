//! `kymo`: records programs, shows what the pipeline does, says what can be recorded.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
