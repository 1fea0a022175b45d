//! The line editor: when a text is whole, and how words go on.

use kymograph_scale::query::completion::complete;
use kymograph_scale::query::contents::Contents;
use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper, Result};
use std::sync::Arc;

/// How many texts are remembered.
const REMEMBERED: usize = 1000;

/// An editor for queries about these tables.
pub fn new(contents: Arc<Contents>) -> Result<Editor<Sql, FileHistory>> {
    let config = Config::builder().max_history_size(REMEMBERED)?;
    let config = config.completion_type(CompletionType::List).build();
    let mut editor = Editor::with_config(config)?;
    editor.set_helper(Some(Sql(contents)));
    Ok(editor)
}

/// What the editor knows about SQL.
pub struct Sql(Arc<Contents>);

impl Completer for Sql {
    type Candidate = String;

    fn complete(&self, text: &str, at: usize, _: &Context<'_>) -> Result<(usize, Vec<String>)> {
        Ok(complete(&self.0, text, at))
    }
}

impl Validator for Sql {
    fn validate(&self, text: &mut ValidationContext<'_>) -> Result<ValidationResult> {
        Ok(match super::is_whole(text.input()) {
            true => ValidationResult::Valid(None),
            false => ValidationResult::Incomplete,
        })
    }
}

impl Hinter for Sql {
    type Hint = String;
}

impl Highlighter for Sql {}

impl Helper for Sql {}
