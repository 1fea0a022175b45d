//! A `trace_processor_shell` binary, run once per query.
//!
//! Its answer is a line of quoted column names and then a line per row, in which strings
//! stand in quotes that are not doubled inside, and NULL is the string `[NULL]`. That cannot
//! be read back in every case; the ambiguous ones (a string that contains `","`, or a line
//! break) are not worth a protocol.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::engine::Answer;

#[derive(Debug)]
pub(crate) struct Native {
    program: PathBuf,
    trace: PathBuf,
}

impl Native {
    pub(crate) fn load(program: PathBuf, trace: &Path) -> Result<Native, String> {
        let native = Native { program, trace: trace.to_owned() };
        native.ask("SELECT 1 AS one").map(|_| native)
    }

    pub(crate) fn ask(&self, sql: &str) -> Result<Answer, String> {
        let output = Command::new(&self.program)
            .arg("--query-string")
            .arg(sql)
            .arg(&self.trace)
            .output()
            .map_err(|error| format!("cannot run {}: {error}", self.program.display()))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim_end().to_owned());
        }
        parse(&String::from_utf8_lossy(&output.stdout))
    }
}

fn parse(text: &str) -> Result<Answer, String> {
    let mut lines = text.lines().filter(|line| !line.is_empty()).map(fields);
    let columns = lines.next().unwrap_or_default();
    let columns: Vec<String> =
        columns.iter().map(|name| name.as_str().unwrap_or_default().to_owned()).collect();
    let rows: Vec<Vec<Value>> = lines.collect();
    match rows.iter().find(|row| row.len() != columns.len()) {
        Some(row) => Err(format!("not a row of {columns:?}: {row:?}")),
        None => Ok(Answer { columns, rows }),
    }
}

fn fields(line: &str) -> Vec<Value> {
    let mut fields = Vec::new();
    let mut rest = Some(line);
    while let Some(text) = rest {
        let (field, after) = match text.strip_prefix('"') {
            Some(quoted) => match quoted.find("\",") {
                Some(end) => (string(&quoted[..end]), Some(&quoted[end + 2..])),
                None => (string(quoted.strip_suffix('"').unwrap_or(quoted)), None),
            },
            None => match text.split_once(',') {
                Some((number, after)) => (self::number(number), Some(after)),
                None => (number(text), None),
            },
        };
        fields.push(field);
        rest = after;
    }
    fields
}

fn string(text: &str) -> Value {
    if text == "[NULL]" { Value::Null } else { Value::from(text) }
}

fn number(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_answer_in_the_words_of_the_shell() {
        let text = "\"name\",\"dur\",\"share\",\"parent\"\n\
                    \"say \"hi\" twice\",-1,0.500000,\"[NULL]\"\n\
                    \"\",9223372036854775807,2.000000,7\n";
        let answer = parse(text).unwrap();
        assert_eq!(answer.columns, ["name", "dur", "share", "parent"]);
        assert_eq!(answer.rows[0], [json!("say \"hi\" twice"), json!(-1), json!(0.5), json!(null)]);
        assert_eq!(answer.rows[1], [json!(""), json!(i64::MAX), json!(2.0), json!(7)]);
        assert_eq!(answer.rows.len(), 2);
    }
}
