//! How the word before the cursor may go on.

use super::contents::{Column, Contents, Table};

/// What a shell understands besides SQL: the word, and what it does.
pub const COMMANDS: [(&str, &str); 4] = [
    ("\\d", "the tables and views"),
    ("\\d TABLE", "the columns of a table or a view"),
    ("\\?", "this help"),
    ("\\q", "leaves, as Ctrl-D does"),
];

/// The words of SQL that queries are made of.
const KEYWORDS: &[&str] = &[
    "ALL",
    "AND",
    "ANTI",
    "ANY",
    "AS",
    "ASC",
    "BETWEEN",
    "BIGINT",
    "BOOLEAN",
    "BY",
    "CASE",
    "CAST",
    "CROSS",
    "CURRENT",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "DOUBLE",
    "ELSE",
    "END",
    "EXCEPT",
    "EXISTS",
    "EXPLAIN",
    "FALSE",
    "FILTER",
    "FIRST",
    "FOLLOWING",
    "FROM",
    "FULL",
    "GROUP",
    "HAVING",
    "ILIKE",
    "IN",
    "INNER",
    "INTERSECT",
    "INTERVAL",
    "IS",
    "JOIN",
    "LAST",
    "LATERAL",
    "LEFT",
    "LIKE",
    "LIMIT",
    "NATURAL",
    "NOT",
    "NULL",
    "NULLS",
    "OFFSET",
    "ON",
    "OR",
    "ORDER",
    "OUTER",
    "OVER",
    "PARTITION",
    "PRECEDING",
    "QUALIFY",
    "RANGE",
    "RECURSIVE",
    "RIGHT",
    "ROWS",
    "SELECT",
    "SEMI",
    "SHOW",
    "TABLES",
    "THEN",
    "TRUE",
    "UNBOUNDED",
    "UNION",
    "USING",
    "VALUES",
    "WHEN",
    "WHERE",
    "WITH",
];

/// Where the word begins that ends at `cursor`, a place in bytes between two characters, and what
/// may stand there instead, the likeliest first: columns of tables that the text names, tables,
/// functions, and words of SQL.
pub fn complete(contents: &Contents, text: &str, cursor: usize) -> (usize, Vec<String>) {
    let before = text.get(..cursor).unwrap_or(text);
    if let Some(command) = before.trim_start().strip_prefix('\\') {
        return of_command(contents, before, command);
    }
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let start = before.trim_end_matches(is_part).len();
    let word = &before[start..];
    // Texts are no names.
    if before[..start].matches('\'').count() % 2 == 1 {
        return (start, Vec::new());
    }
    let named = named(contents, text);
    if let Some((of, part)) = word.rsplit_once('.') {
        let table = contents.table(of);
        if table.is_none() && contents.tables.iter().any(|t| begins(&t.name, word)) {
            return (start, beginning(names(&contents.tables), word));
        }
        // Any other word in front of a dot is an alias of one of the tables.
        let tables = table.map_or(named, |table| vec![table]);
        return (start + of.len() + 1, beginning(columns(&tables), part));
    }
    let last = before[..start].split_whitespace().next_back().unwrap_or_default();
    if ["FROM", "JOIN", "DESCRIBE"].iter().any(|keyword| last.eq_ignore_ascii_case(keyword)) {
        return (start, beginning(names(&contents.tables), word));
    }
    let known = if named.is_empty() { contents.tables.iter().collect() } else { named };
    let mut all = columns(&known);
    all.extend(names(&contents.tables));
    if !word.is_empty() {
        all.extend(contents.functions.iter().map(|name| format!("{name}(")));
        let lower = word.chars().all(|c| !c.is_uppercase());
        let cased = |keyword: &&str| match lower {
            true => keyword.to_lowercase(),
            false => (*keyword).to_owned(),
        };
        all.extend(KEYWORDS.iter().map(cased));
    }
    (start, beginning(all, word))
}

fn of_command(contents: &Contents, before: &str, command: &str) -> (usize, Vec<String>) {
    if let Some(table) = command.strip_prefix("d ") {
        let word = table.trim_start();
        return (before.len() - word.len(), beginning(names(&contents.tables), word));
    }
    let words = COMMANDS.iter().map(|(word, _)| *word).filter(|word| !word.contains(' '));
    let start = before.len() - command.len() - 1;
    (start, beginning(words.map(str::to_owned).collect(), &before[start..]))
}

fn begins(name: &str, word: &str) -> bool {
    let name = name.trim_start_matches('"');
    name.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

/// Those that begin with a word, each once.
fn beginning(all: Vec<String>, word: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for name in all {
        if begins(&name, word) && !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

fn names(tables: &[Table]) -> Vec<String> {
    tables.iter().map(|table| table.name.clone()).collect()
}

fn columns(tables: &[&Table]) -> Vec<String> {
    tables.iter().flat_map(|table| &table.columns).map(quoted).collect()
}

/// The name of a column as a query has to say it.
fn quoted(column: &Column) -> String {
    let name = &column.name;
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let is_keyword = KEYWORDS.contains(&name.to_uppercase().as_str());
    let is_plain = name.chars().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit());
    if is_plain && !is_keyword { name.clone() } else { format!("\"{name}\"") }
}

/// The tables that a text names.
fn named<'a>(contents: &'a Contents, text: &str) -> Vec<&'a Table> {
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '.').collect();
    let is_named = |table: &&Table| words.iter().any(|word| word.eq_ignore_ascii_case(&table.name));
    contents.tables.iter().filter(is_named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents() -> Contents {
        let column = |name: &&str| Column {
            name: (*name).to_owned(),
            ty: "BIGINT",
            unit: String::new(),
            nullable: false,
        };
        let table = |(name, columns): (&str, &[&str])| Table {
            name: name.to_owned(),
            is_view: false,
            columns: columns.iter().map(column).collect(),
        };
        let tables: [(&str, &[&str]); 4] = [
            ("collectives", &["rank", "group"]),
            ("kernels", &["rank", "name", "class"]),
            ("metrics.stragglers", &["rank", "late (ns)"]),
            ("steps", &["rank", "step"]),
        ];
        let functions = ["count", "kernel_class"].map(str::to_owned).into();
        Contents { tables: tables.map(table).into(), functions }
    }

    /// The completions at the `|` of a text.
    fn at(text: &str) -> (usize, Vec<String>) {
        let cursor = text.find('|').unwrap();
        complete(&contents(), &text.replace('|', ""), cursor)
    }

    fn words(text: &str) -> Vec<String> {
        at(text).1
    }

    #[test]
    fn tables_stand_behind_from_and_join() {
        assert_eq!(at("SELECT 1 FROM k|"), (14, vec!["kernels".to_owned()]));
        assert_eq!(words("SELECT 1 FROM |").len(), 4);
        assert_eq!(words("SELECT 1 FROM steps join met|"), ["metrics.stragglers"]);
        assert_eq!(words("SELECT 1 FROM metrics.|"), ["metrics.stragglers"]);
        assert_eq!(words("describe ST|"), ["steps"]);
        assert_eq!(words("SELECT 1 FROM x|"), Vec::<String>::new());
    }

    #[test]
    fn columns_are_those_of_the_tables_that_are_named() {
        assert_eq!(words("SELECT na| FROM kernels"), ["name", "natural"]);
        assert_eq!(words("SELECT na| FROM steps"), ["natural"]);
        assert_eq!(words("SELECT k.| FROM kernels k"), ["rank", "name", "class"]);
        assert_eq!(at("SELECT kernels.c|"), (15, vec!["class".to_owned()]));
        assert_eq!(words("SELECT metrics.stragglers.l|"), ["\"late (ns)\""]);
        assert_eq!(words("SELECT gr| FROM collectives"), ["\"group\"", "group"]);
        assert_eq!(words("SELECT ste|"), ["step", "steps"]);
    }

    #[test]
    fn functions_and_words_of_sql_come_in_the_case_that_is_typed() {
        assert_eq!(words("SEL|"), ["SELECT"]);
        assert_eq!(words("sel|"), ["select"]);
        assert_eq!(words("SELECT cou|"), ["count("]);
        assert_eq!(words("SELECT ker|"), ["kernels", "kernel_class("]);
        assert_eq!(words("SELECT 'ker|"), Vec::<String>::new());
        assert_eq!(words("SELECT 'it''s', ker|").len(), 2);
        assert_eq!(words("SELECT 'größe', ker|").len(), 2);
    }

    #[test]
    fn commands_go_on_with_tables() {
        assert_eq!(at("\\|"), (0, ["\\d", "\\?", "\\q"].map(str::to_owned).into()));
        assert_eq!(at("\\d ke|"), (3, vec!["kernels".to_owned()]));
        assert_eq!(words("\\d |").len(), 4);
    }
}
