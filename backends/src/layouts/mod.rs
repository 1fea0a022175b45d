//! What is read of vendors' structs, and by which numbers, for `tests/headers`, which compares it
//! with the vendors' headers.
//!
//! ```text
//! struct VENDOR NAME LEAST MOST FIELD=OFFSET …     bytes of a struct that is read so
//! enum VENDOR NAME VALUE
//! ```
//! A name may have alternatives (`a|b`: the first that there is); a `*` at its end stands for the
//! highest number that there is. A struct may have several lines: one must fit.

mod amd;
mod gaudi;
mod intel;
mod nvidia;

use std::fmt::Write as _;

/// A struct's fields.
type Fields<'a> = &'a [(&'a str, usize)];

struct Table(String);

impl Table {
    fn add(&mut self, vendor: &str, name: &str, least: usize, most: usize, fields: Fields<'_>) {
        let _ = write!(self.0, "struct {vendor} {name} {least} {most}");
        for (field, at) in fields {
            let _ = write!(self.0, " {field}={at}");
        }
        self.0.push('\n');
    }

    fn number(&mut self, vendor: &str, name: &str, value: u64) {
        let _ = writeln!(self.0, "enum {vendor} {name} {value}");
    }
}

/// All lines.
pub fn expected() -> String {
    let mut table = Table(String::new());
    amd::add(&mut table);
    intel::add(&mut table);
    gaudi::add(&mut table);
    nvidia::add(&mut table);
    table.0
}

const ANY: usize = usize::MAX;
