//! SQLite's file format, as far as reading tables from the first row to the last needs it: what
//! nsys and ROCm's profilers export. No SQL, no index, no C.
//!
//! ```text
//! page 1: header (100 bytes), then the table of tables: name, first page, its CREATE TABLE
//! a page:  interior ─► pages with smaller row ids …, and one with greater
//!          leaf     ─► cells: length, row id, record, and the page with the rest of a long one
//! record:  length of the header, a type for each column, then the values
//! ```
//! Lengths and page numbers are only believed as far as the file goes: a damaged one gives fewer
//! rows, and says so.

use std::borrow::Cow;

/// How every file begins.
pub(crate) const MAGIC: &[u8] = b"SQLite format 3\0";

/// Columns that can be asked for at once.
pub(crate) const MAX_WANTED: usize = 24;

/// A file.
#[derive(Debug)]
pub(crate) struct Database<'a> {
    bytes: &'a [u8],
    page: usize,
    /// Bytes of a page that hold data.
    usable: usize,
    tables: Vec<Table>,
}

/// A table: its name, its columns and where it begins.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) name: String,
    columns: Vec<String>,
    /// The column that is the number of the row, and not stored.
    row_id: Option<usize>,
    root: usize,
}

/// A value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Cell<'a> {
    Null,
    Int(i64),
    Real(f64),
    Text(&'a [u8]),
}

impl<'a> Cell<'a> {
    /// As an integer; 0 if it is none.
    pub(crate) fn int(self) -> i64 {
        match self {
            Cell::Int(n) => n,
            // What is too large for either is the largest there is.
            Cell::Real(x) => x as i64,
            _ => 0,
        }
    }

    /// As text; empty if it is none.
    pub(crate) fn text(self) -> Cow<'a, str> {
        match self {
            Cell::Text(bytes) => String::from_utf8_lossy(bytes),
            _ => "".into(),
        }
    }
}

impl<'a> Database<'a> {
    /// Opens a file.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Database<'a>, &'static str> {
        let header = bytes.first_chunk::<100>().ok_or("an SQLite database that is cut off")?;
        let page = match u16::from_be_bytes([header[16], header[17]]) {
            1 => 1 << 16,
            page => usize::from(page),
        };
        if !page.is_power_of_two() || page < 512 {
            return Err("an SQLite database with a damaged header");
        }
        // 0: there is nothing in it yet.
        if !matches!(header[56..60], [0, 0, 0, 0 | 1]) {
            return Err("an SQLite database whose texts are UTF-16: `PRAGMA encoding` tells");
        }
        let usable = page - usize::from(header[20]);
        let mut database = Database { bytes, page, usable: usable.max(480), tables: Vec::new() };
        let master = Table {
            name: String::new(),
            columns: ["type", "name", "rootpage", "sql"].map(str::to_owned).into(),
            row_id: None,
            root: 1,
        };
        // Columns of that table: type, name, tbl_name, rootpage, sql.
        let master = Table { columns: with(master.columns, 2, "tbl_name"), ..master };
        let mut tables = Vec::new();
        database.each(&master, &["type", "name", "rootpage", "sql"], |cells| {
            let [kind, name, root, sql] = *cells else { return };
            if kind.text() == "table" && root.int() > 0 {
                let (columns, row_id) = columns(&sql.text());
                let (name, root) = (name.text().into_owned(), root.int() as usize);
                tables.push(Table { name, columns, row_id, root });
            }
        });
        database.tables = tables;
        Ok(database)
    }

    /// The table of this name.
    pub(crate) fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }

    /// All tables.
    pub(crate) fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Calls `row` with the wanted columns of each row, at most [`MAX_WANTED`]; those that the table has not are null.
    /// Says whether all rows could be read.
    pub(crate) fn each(
        &self,
        table: &Table,
        wanted: &[&str],
        mut row: impl FnMut(&[Cell<'_>]),
    ) -> bool {
        let place = |name: &&str| table.columns.iter().position(|column| column == *name);
        let places: Vec<Option<usize>> = wanted.iter().map(place).collect();
        let mut values = Vec::new();
        let mut whole = true;
        let mut pages = vec![table.root];
        // A page that leads back to one above it would never end.
        let mut left = self.bytes.len() / self.page + 1;
        // Nor do two rows share what is beyond their pages: all of it is in the file once.
        let mut room = self.bytes.len();
        while let Some(number) = pages.pop() {
            let Some(page) = self.page(number).filter(|_| left > 0) else {
                whole = false;
                continue;
            };
            left -= 1;
            let start = if number == 1 { 100 } else { 0 };
            let Some(head) = page.get(start..start + 12) else { return false };
            let count = usize::from(u16::from_be_bytes([head[3], head[4]]));
            let (leaf, first) = match head[0] {
                13 => (true, start + 8),
                5 => (false, start + 12),
                _ => {
                    whole = false;
                    continue;
                }
            };
            let cell = |at: usize| {
                let place = page.get(first + at * 2..)?.first_chunk::<2>()?;
                page.get(usize::from(u16::from_be_bytes(*place))..)
            };
            if !leaf {
                pages.push(number_at(&head[8..]));
                // The smallest last, which is taken first.
                for at in (0..count).rev() {
                    match cell(at) {
                        Some(cell) if cell.len() >= 4 => pages.push(number_at(cell)),
                        _ => whole = false,
                    }
                }
                continue;
            }
            for at in 0..count {
                let Some((id, record)) = cell(at).and_then(|cell| self.record(cell, &mut room))
                else {
                    whole = false;
                    continue;
                };
                values.clear();
                if split(&record, &mut values).is_none() {
                    whole = false;
                }
                let mut cells = [Cell::Null; MAX_WANTED];
                for (cell, place) in cells.iter_mut().zip(&places) {
                    let stored = place.and_then(|place| values.get(place));
                    *cell = match stored {
                        _ if place.is_some() && *place == table.row_id => Cell::Int(id),
                        Some(&(kind, at)) => value(&record, kind, at),
                        None => Cell::Null,
                    };
                }
                row(&cells[..wanted.len().min(MAX_WANTED)]);
            }
        }
        whole
    }

    fn page(&self, number: usize) -> Option<&'a [u8]> {
        let start = number.checked_sub(1)?.checked_mul(self.page)?;
        self.bytes.get(start..start.checked_add(self.page)?)
    }

    /// The row id and the record of a leaf's cell.
    fn record(&self, mut cell: &'a [u8], room: &mut usize) -> Option<(i64, Cow<'a, [u8]>)> {
        let len = usize::try_from(varint(&mut cell)?).ok().filter(|n| *n <= self.bytes.len())?;
        let id = varint(&mut cell)? as i64;
        let most = self.usable - 35;
        if len <= most {
            return Some((id, Cow::Borrowed(cell.get(..len)?)));
        }
        // So much of a long record is here, by SQLite's rule; the rest is on pages of its own.
        let least = (self.usable - 12) * 32 / 255 - 23;
        let here = least + (len - least) % (self.usable - 4);
        let here = if here <= most { here } else { least };
        *room = room.checked_sub(len)?;
        let mut whole = cell.get(..here)?.to_vec();
        let mut next = number_at(cell.get(here..here + 4)?);
        while whole.len() < len {
            let page = self.page(next)?;
            next = number_at(page);
            let part = (len - whole.len()).min(self.usable - 4);
            whole.extend_from_slice(page.get(4..4 + part)?);
        }
        Some((id, Cow::Owned(whole)))
    }
}

fn with(mut columns: Vec<String>, at: usize, name: &str) -> Vec<String> {
    columns.insert(at, name.to_owned());
    columns
}

fn number_at(bytes: &[u8]) -> usize {
    bytes.first_chunk::<4>().map_or(0, |bytes| u32::from_be_bytes(*bytes) as usize)
}

/// Seven bits a byte, the highest first; the ninth byte has eight.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for at in 0..9 {
        let byte = *bytes.get(at)?;
        if at == 8 {
            *bytes = &bytes[9..];
            return Some(value << 8 | u64::from(byte));
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte < 0x80 {
            *bytes = &bytes[at + 1..];
            return Some(value);
        }
    }
    None
}

/// The type of each column, and where its value begins.
fn split(record: &[u8], values: &mut Vec<(u64, usize)>) -> Option<()> {
    let mut rest = record;
    let header = usize::try_from(varint(&mut rest)?).ok()?;
    let mut types = record.get(record.len() - rest.len()..header)?;
    let mut at = header;
    while !types.is_empty() {
        let kind = varint(&mut types)?;
        values.push((kind, at));
        let len = match kind {
            0 | 8 | 9 => 0,
            1..=4 => kind as usize,
            5 => 6,
            6 | 7 => 8,
            10 | 11 => return None,
            _ => usize::try_from((kind - 12) / 2).ok()?,
        };
        at = at.checked_add(len).filter(|at| *at <= record.len())?;
    }
    Some(())
}

fn value(record: &[u8], kind: u64, at: usize) -> Cell<'_> {
    let bytes = record.get(at..).unwrap_or_default();
    let int = |len: usize| {
        let Some(bytes) = bytes.get(..len) else { return Cell::Null };
        let sign = if bytes.first().is_some_and(|byte| *byte >= 0x80) { -1 } else { 0 };
        Cell::Int(bytes.iter().fold(sign, |sum: i64, byte| sum << 8 | i64::from(*byte)))
    };
    match kind {
        1..=4 => int(kind as usize),
        5 => int(6),
        6 => int(8),
        7 => bytes.first_chunk().map_or(Cell::Null, |bits| Cell::Real(f64::from_be_bytes(*bits))),
        8 => Cell::Int(0),
        9 => Cell::Int(1),
        13.. if kind & 1 == 1 => {
            bytes.get(..((kind - 13) / 2) as usize).map_or(Cell::Null, Cell::Text)
        }
        _ => Cell::Null,
    }
}

/// The columns of a `CREATE TABLE`, and which of them is the number of the row.
fn columns(sql: &str) -> (Vec<String>, Option<usize>) {
    let (mut columns, mut row_id) = (Vec::new(), None);
    let Some((_, body)) = sql.split_once('(') else { return (columns, None) };
    let (mut depth, mut quote, mut start) = (0, None, 0);
    let mut parts = Vec::new();
    for (at, c) in body.char_indices() {
        match (quote, c) {
            (Some(end), _) if c == end => quote = None,
            (Some(_), _) => {}
            (None, '"' | '`' | '\'') => quote = Some(c),
            (None, '[') => quote = Some(']'),
            (None, '(') => depth += 1,
            (None, ')') if depth > 0 => depth -= 1,
            (None, ',' | ')') if depth == 0 => {
                parts.push(&body[start..at]);
                start = at + 1;
                if c == ')' {
                    break;
                }
            }
            _ => {}
        }
    }
    const CONSTRAINTS: [&str; 5] = ["CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"];
    for part in parts.iter().map(|part| without_comments(part)) {
        let part = part.trim();
        let quoted = [('"', '"'), ('`', '`'), ('\'', '\''), ('[', ']')];
        let quote = quoted.iter().find(|(open, _)| part.starts_with(*open));
        let (name, rest) = match quote {
            Some((_, close)) => part[1..].split_once(*close).unwrap_or((part, "")),
            None => part.split_once(char::is_whitespace).unwrap_or((part, "")),
        };
        if quote.is_none() && CONSTRAINTS.iter().any(|word| name.eq_ignore_ascii_case(word)) {
            continue;
        }
        let rest = rest.to_ascii_uppercase();
        let mut words = rest.split_ascii_whitespace();
        if words.next() == Some("INTEGER") && rest.contains("PRIMARY KEY") {
            row_id = Some(columns.len());
        }
        columns.push(name.to_owned());
    }
    (columns, row_id)
}

/// `-- text` to the end of a line, and what stands between `/*` and `*/`, taken out.
fn without_comments(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("--").into_iter().chain(rest.find("/*")).min() {
        out.push_str(&rest[..at]);
        let end = if rest[at..].starts_with("--") { "\n" } else { "*/" };
        rest = rest[at..].find(end).map_or("", |len| &rest[at + len + end.len()..]);
        out.push(' ');
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_all_spellings() {
        let sql = "CREATE TABLE `t` (\"id\" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- the id\n\
                   [a b] DECIMAL(10, 2), c, text TEXT DEFAULT ')', FOREIGN KEY (c) REFERENCES u (id))";
        let (names, row_id) = columns(sql);
        assert_eq!(names, ["id", "a b", "c", "text"]);
        assert_eq!(row_id, Some(0));
    }
}
