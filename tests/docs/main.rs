//! The documentation and the examples are true.

mod every_example_runs_and_its_trace_is_clean;
mod every_statement_of_the_readme_is_checked;
#[cfg(feature = "inject")]
mod the_commands_of_the_documents_run;
mod the_readme_and_the_book_are_whole;
mod the_readme_is_true_of_traces;
