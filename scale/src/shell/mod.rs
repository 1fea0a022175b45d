//! The shell of `kymo query`: statements are edited, completed and remembered, until Ctrl-D.

mod editor;
mod history;
mod interrupt;

use crate::ask::Query;
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use kymograph_analysis::render;
use kymograph_scale::Failure;
use kymograph_scale::query::completion::COMMANDS;
use kymograph_scale::query::contents::Contents;
use kymograph_scale::query::{Database, Engine, statements};
use rustyline::error::ReadlineError;
use std::io::Write;
use std::ops::ControlFlow;
use std::sync::Arc;

const PROMPT: &str = "kymo> ";

/// Reads the targets once, and answers queries about them.
pub fn run(targets: &[String], query: &Query) -> Result<(), Failure> {
    query.can_be_a_shell()?;
    let engine = Engine::new()?;
    let opened = async {
        let database = query.open(targets).await?;
        let contents = database.contents().await?;
        Ok::<_, Failure>((database, contents))
    };
    let (database, contents) = engine.carry_out(opened)??;
    let contents = Arc::new(contents);
    let failed = |error: ReadlineError| Failure(format!("the terminal: {error}"));
    let mut editor = editor::new(contents.clone()).map_err(failed)?;
    let history = history::file();
    if let Some(history) = &history {
        // There is none the first time.
        drop(editor.load_history(history));
    }
    // From here on Ctrl-C ends queries, and not the shell.
    interrupt::listen();
    let shell = Shell { query, engine, database, contents };
    print("SQL, up to a semicolon. \\? has help, Ctrl-D leaves.\n");
    loop {
        interrupt::forget();
        let text = match editor.readline(PROMPT) {
            Ok(text) => text,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        if text.trim().is_empty() {
            continue;
        }
        // At once, so that it is there even if the shell is killed.
        drop(editor.add_history_entry(text.trim()));
        if let Some(history) = &history {
            drop(editor.append_history(history));
        }
        if shell.told(&text).is_break() {
            return Ok(());
        }
    }
}

/// Whether what is typed can be carried out: a command, or nothing but whole statements.
fn is_whole(text: &str) -> bool {
    let text = text.trim();
    is_command(text) || statements::split(text).1.is_empty()
}

fn is_command(text: &str) -> bool {
    let word = text.trim_end_matches(';').trim_end();
    let words = ["help", "exit", "quit"];
    text.starts_with('\\') || words.iter().any(|known| word.eq_ignore_ascii_case(known))
}

struct Shell<'q> {
    query: &'q Query,
    engine: Engine,
    database: Database,
    contents: Arc<Contents>,
}

impl Shell<'_> {
    /// Does what it is told, and tells whether that is to leave.
    fn told(&self, text: &str) -> ControlFlow<()> {
        let text = text.trim();
        if is_command(text) {
            return self.command(text.trim_end_matches(';').trim_end());
        }
        for statement in statements::split(text).0 {
            if let Err(why) = self.answer(statement) {
                crate::say(&why.0);
                break;
            }
        }
        ControlFlow::Continue(())
    }

    fn answer(&self, sql: &str) -> Result<(), Failure> {
        let answer = self.query.answer(&self.database, sql);
        let answered = self.engine.carry_out(interrupt::unless_interrupted(answer))?;
        answered.unwrap_or_else(|| Err(Failure("the query was ended".to_owned())))
    }

    fn command(&self, text: &str) -> ControlFlow<()> {
        let (command, about) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        match (command.to_ascii_lowercase().as_str(), about.trim()) {
            ("\\q" | "exit" | "quit", _) => return ControlFlow::Break(()),
            ("\\?" | "\\h" | "help", _) => print(&help()),
            ("\\d", "") => print(&self.tables()),
            ("\\d", name) => match self.columns(name) {
                Some(columns) => print(&columns),
                None => crate::say(&format!("there is no table `{name}`; \\d has all")),
            },
            _ => crate::say(&format!("`{command}` is no command; \\? has all")),
        }
        ControlFlow::Continue(())
    }

    fn tables(&self) -> String {
        let tables = &self.contents.tables;
        text([
            ("table", tables.iter().map(|table| table.name.as_str()).collect()),
            ("kind", tables.iter().map(|t| if t.is_view { "view" } else { "table" }).collect()),
        ])
    }

    fn columns(&self, name: &str) -> Option<String> {
        let columns = &self.contents.table(name)?.columns;
        Some(text([
            ("column", columns.iter().map(|column| column.name.as_str()).collect()),
            ("type", columns.iter().map(|column| column.ty).collect()),
            ("unit", columns.iter().map(|column| column.unit.as_str()).collect()),
            ("null", columns.iter().map(|c| if c.nullable { "may be" } else { "" }).collect()),
        ]))
    }
}

/// Columns of texts as a table.
fn text<const N: usize>(columns: [(&str, Vec<&str>); N]) -> String {
    let array = |texts: Vec<&str>| -> ArrayRef { Arc::new(StringArray::from(texts)) };
    let batch = RecordBatch::try_from_iter(columns.map(|(name, texts)| (name, array(texts))));
    batch.map(|batch| render::text(&batch, None)).unwrap_or_default()
}

fn help() -> String {
    let line = |(command, what): &(&str, &str)| format!("{command:<10}{what}\n");
    let commands: String = COMMANDS.iter().map(line).collect();
    format!(
        "A statement ends with a semicolon, and may have several lines. Tab completes names.\n\
         Ctrl-C drops what is typed, or ends a query that runs.\n\n{commands}"
    )
}

/// A terminal that is gone is no reason to fail.
fn print(text: &str) {
    drop(std::io::stdout().write_all(text.as_bytes()));
}
