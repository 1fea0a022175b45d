//! Tables of both formats.

use crate::json::{Kind, Value};

/// A column: its values, row by row.
pub(super) type Column<'a> = Vec<Option<Value<'a>>>;

/// The column of this name: of a list of rows whose schema says where it is, or a list itself.
/// What is not a list holds for all rows; none gives none.
pub(super) fn column<'a>(table: Option<Value<'a>>, name: &str) -> Column<'a> {
    let Some(table) = table else { return Column::new() };
    let Some(schema) = table.get("schema") else {
        return table.get(name).into_iter().flat_map(Value::items).map(Some).collect();
    };
    let Some(place) = schema.get(name).and_then(Value::index) else { return Column::new() };
    let rows = table.get("data").into_iter().flat_map(Value::items);
    rows.map(|row| row.items().nth(place)).collect()
}

/// A column of numbers of rows.
pub(super) fn indices(table: Option<Value<'_>>, name: &str) -> Vec<Option<usize>> {
    column(table, name).into_iter().map(|value| value?.index()).collect()
}

/// The cell of a row.
pub(super) fn cell<'a>(column: &Column<'a>, row: usize) -> Option<Value<'a>> {
    column.get(row).copied().flatten().filter(|value| value.kind() != Kind::Null)
}
