//! Why a metric has no table.

use std::fmt;

/// Why a metric has no table for a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The trace does not have what the metric is about; the text says what is missing.
    Nothing(String),
    /// An option that the metric cannot work with; the text says which and what it takes.
    Option(String),
    /// A table that cannot be made: more rows or text than Arrow's types hold.
    Table(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Nothing(what) | Error::Option(what) => f.write_str(what),
            Error::Table(what) => write!(f, "the table cannot be made: {what}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<arrow_schema::ArrowError> for Error {
    fn from(error: arrow_schema::ArrowError) -> Error {
        Error::Table(error.to_string())
    }
}
