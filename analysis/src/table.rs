//! Tables: Arrow record batches with described columns.

use kymograph_converters::order::Order as _;
use std::collections::HashMap;
use std::sync::Arc;

pub use arrow_array::RecordBatch;
use arrow_array::builder::{Float64Builder, Int64Builder, StringBuilder};
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, StringArray};
use arrow_schema::{DataType, Field, Schema};

use crate::Error;

/// The type of a column. Any cell may be null.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    /// 64 bits with a sign.
    Int,
    /// 64 bits of floating point.
    Float,
    /// UTF-8.
    Text,
}

/// The unit of a column. It stands in the schema: the field's metadata `unit`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// A name, an identifier or a number of things.
    None,
    /// A length of time in nanoseconds.
    Duration,
    /// Nanoseconds since the first event of the first of the traces.
    Moment,
    /// Hundredths.
    Percent,
    /// A part of one.
    Ratio,
    /// Bytes.
    Bytes,
    /// 10⁹ bytes per second.
    GigabytesPerSecond,
}

impl Unit {
    /// What the schema says.
    pub fn name(self) -> &'static str {
        match self {
            Unit::None => "",
            Unit::Duration | Unit::Moment => "ns",
            Unit::Percent => "%",
            Unit::Ratio => "1",
            Unit::Bytes => "bytes",
            Unit::GigabytesPerSecond => "GB/s",
        }
    }
}

/// A column of a metric's table: the documentation is made of this.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Column {
    /// The name.
    pub name: &'static str,
    /// The type.
    pub ty: Type,
    /// The unit.
    pub unit: Unit,
    /// What a cell says.
    pub meaning: &'static str,
    /// The name in HTA's table; empty where it has no such column.
    pub hta: &'static str,
    /// The decimal places that HTA rounds to.
    pub digits: Option<u8>,
    /// What HTA has in place of null.
    pub hta_null: Option<f64>,
}

impl Column {
    const fn new(name: &'static str, ty: Type, unit: Unit, meaning: &'static str) -> Column {
        Column { name, ty, unit, meaning, hta: name, digits: None, hta_null: None }
    }

    /// A number of things, or an identifier.
    pub const fn int(name: &'static str, meaning: &'static str) -> Column {
        Column::new(name, Type::Int, Unit::None, meaning)
    }

    /// A number that need not be whole.
    pub const fn float(name: &'static str, meaning: &'static str) -> Column {
        Column::new(name, Type::Float, Unit::None, meaning)
    }

    /// A text.
    pub const fn text(name: &'static str, meaning: &'static str) -> Column {
        Column::new(name, Type::Text, Unit::None, meaning)
    }

    /// A length of time.
    pub const fn duration(name: &'static str, meaning: &'static str) -> Column {
        Column::new(name, Type::Int, Unit::Duration, meaning)
    }

    /// A length of time that was divided: a mean, a deviation.
    pub const fn mean_duration(name: &'static str, meaning: &'static str) -> Column {
        Column::new(name, Type::Float, Unit::Duration, meaning)
    }

    /// A moment.
    pub const fn moment(name: &'static str, meaning: &'static str) -> Column {
        Column::new(name, Type::Int, Unit::Moment, meaning)
    }

    /// Hundredths.
    pub const fn percent(name: &'static str, meaning: &'static str) -> Column {
        Column::new(name, Type::Float, Unit::Percent, meaning)
    }

    /// With another unit.
    pub const fn unit(self, unit: Unit) -> Column {
        Column { unit, ..self }
    }

    /// With another name in HTA's table.
    pub const fn hta(self, name: &'static str) -> Column {
        Column { hta: name, ..self }
    }

    /// Rounded to decimal places by HTA.
    pub const fn digits(self, digits: u8) -> Column {
        Column { digits: Some(digits), ..self }
    }

    /// With a number in place of null in HTA's table.
    pub const fn hta_null(self, value: f64) -> Column {
        Column { hta_null: Some(value), ..self }
    }

    fn field(&self) -> Field {
        let ty = match self.ty {
            Type::Int => DataType::Int64,
            Type::Float => DataType::Float64,
            Type::Text => DataType::Utf8,
        };
        let mut about = HashMap::from([("meaning".to_owned(), self.meaning.to_owned())]);
        if !self.unit.name().is_empty() {
            about.insert("unit".to_owned(), self.unit.name().to_owned());
        }
        if self.unit == Unit::Moment {
            about.insert("since".to_owned(), "the first event of the first trace".to_owned());
        }
        Field::new(self.name, ty, true).with_metadata(about)
    }
}

/// A value of a row that is added to a table.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Cell<'a> {
    /// Nothing.
    Null,
    /// For [`Type::Int`].
    Int(i64),
    /// For [`Type::Float`]; NaN becomes null.
    Float(f64),
    /// For [`Type::Text`].
    Text(&'a str),
}

impl From<i64> for Cell<'_> {
    fn from(value: i64) -> Self {
        Cell::Int(value)
    }
}

impl From<u64> for Cell<'_> {
    fn from(value: u64) -> Self {
        Cell::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<usize> for Cell<'_> {
    fn from(value: usize) -> Self {
        Cell::from(value as u64)
    }
}

impl From<f64> for Cell<'_> {
    fn from(value: f64) -> Self {
        if value.is_nan() { Cell::Null } else { Cell::Float(value) }
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(value: &'a str) -> Self {
        Cell::Text(value)
    }
}

impl<'a, T: Into<Cell<'a>>> From<Option<T>> for Cell<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Null, Into::into)
    }
}

enum Builder {
    Int(Int64Builder),
    Float(Float64Builder),
    Text(StringBuilder),
}

/// A table in the making.
#[allow(missing_debug_implementations, reason = "of no use, and some builders have none")]
pub struct Rows {
    columns: &'static [Column],
    builders: Vec<Builder>,
}

impl Rows {
    /// A table without rows.
    pub fn new(columns: &'static [Column]) -> Rows {
        let builder = |column: &Column| match column.ty {
            Type::Int => Builder::Int(Int64Builder::new()),
            Type::Float => Builder::Float(Float64Builder::new()),
            Type::Text => Builder::Text(StringBuilder::new()),
        };
        Rows { columns, builders: columns.iter().map(builder).collect() }
    }

    /// Adds a row: a cell for each column, in their order. A cell of another type than its
    /// column's is null, but for whole numbers in a column of [`Type::Float`].
    pub fn push<const N: usize>(&mut self, cells: [Cell<'_>; N]) {
        debug_assert_eq!(N, self.columns.len(), "a cell for each column");
        for (builder, cell) in self.builders.iter_mut().zip(cells) {
            match (builder, cell) {
                (Builder::Int(to), Cell::Int(value)) => to.append_value(value),
                (Builder::Int(to), _) => to.append_null(),
                (Builder::Float(to), Cell::Float(value)) => to.append_value(value),
                (Builder::Float(to), Cell::Int(value)) => to.append_value(value as f64),
                (Builder::Float(to), _) => to.append_null(),
                (Builder::Text(to), Cell::Text(value)) => to.append_value(value),
                (Builder::Text(to), _) => to.append_null(),
            }
        }
    }

    /// The table.
    ///
    /// # Errors
    ///
    /// When it is too large for Arrow.
    pub fn finish(self) -> Result<RecordBatch, Error> {
        let array = |builder: Builder| -> ArrayRef {
            match builder {
                Builder::Int(mut from) => Arc::new(from.finish()),
                Builder::Float(mut from) => Arc::new(from.finish()),
                Builder::Text(mut from) => Arc::new(from.finish()),
            }
        };
        columns(self.columns, self.builders.into_iter().map(array).collect())
    }

    /// The table, of which `of` rows would be all: its schema says so where some are left out.
    ///
    /// # Errors
    ///
    /// When it is too large for Arrow.
    pub fn finish_of(self, of: usize) -> Result<RecordBatch, Error> {
        let batch = self.finish()?;
        if batch.num_rows() == of {
            return Ok(batch);
        }
        let schema = batch.schema().as_ref().clone();
        let schema = schema.with_metadata([(OF.to_owned(), of.to_string())].into());
        Ok(batch.with_schema(Arc::new(schema))?)
    }
}

/// The key in the metadata of a table's schema for how many rows there are with those that
/// [`Options::most_rows`](crate::Options::most_rows) leaves out.
pub const OF: &str = "of";

/// The table of whole columns, in their order.
///
/// # Errors
///
/// When they are not of one length, or not of the columns' types.
pub fn columns(columns: &'static [Column], arrays: Vec<ArrayRef>) -> Result<RecordBatch, Error> {
    let fields: Vec<Field> = columns.iter().map(Column::field).collect();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
}

/// Cells of a table, for those who read one. What is not there, or of another type, is null.
#[derive(Clone, Copy, Debug)]
pub struct Cells<'a>(&'a RecordBatch);

impl<'a> Cells<'a> {
    /// Those of a table.
    pub fn of(batch: &'a RecordBatch) -> Cells<'a> {
        Cells(batch)
    }

    /// A column, which is looked up once for all of its cells.
    pub fn column(self, name: &str) -> ColumnCells<'a> {
        let Some(array) = self.0.column_by_name(name) else { return ColumnCells::None };
        let any = array.as_any();
        let int = || any.downcast_ref().map(ColumnCells::Int);
        let float = || any.downcast_ref().map(ColumnCells::Float);
        let text = || any.downcast_ref().map(ColumnCells::Text);
        int().or_else(float).or_else(text).unwrap_or(ColumnCells::None)
    }

    /// A whole number.
    pub fn int(self, column: &str, row: usize) -> Option<i64> {
        self.column(column).int(row)
    }

    /// A number.
    pub fn float(self, column: &str, row: usize) -> Option<f64> {
        self.column(column).float(row)
    }

    /// A text.
    pub fn text(self, column: &str, row: usize) -> Option<&'a str> {
        self.column(column).text(row)
    }
}

/// The cells of a column. What is not there, or of another type, is null.
#[derive(Clone, Copy, Debug)]
pub enum ColumnCells<'a> {
    /// There is no such column, or it has other values.
    None,
    /// Whole numbers.
    Int(&'a Int64Array),
    /// Numbers.
    Float(&'a Float64Array),
    /// Texts.
    Text(&'a StringArray),
}

impl<'a> ColumnCells<'a> {
    /// A whole number.
    #[inline]
    pub fn int(self, row: usize) -> Option<i64> {
        let ColumnCells::Int(array) = self else { return None };
        (row < array.len() && array.is_valid(row)).then(|| array.value(row))
    }

    /// A number.
    #[inline]
    pub fn float(self, row: usize) -> Option<f64> {
        match self {
            ColumnCells::Float(array) => {
                (row < array.len() && array.is_valid(row)).then(|| array.value(row))
            }
            other => other.int(row).map(|value| value as f64),
        }
    }

    /// A text.
    #[inline]
    pub fn text(self, row: usize) -> Option<&'a str> {
        let ColumnCells::Text(array) = self else { return None };
        (row < array.len() && array.is_valid(row)).then(|| array.value(row))
    }
}

/// The rows of several tables of one schema, one behind the other.
///
/// # Errors
///
/// When the result is too large for Arrow.
pub fn concat(columns: &'static [Column], batches: &[&RecordBatch]) -> Result<RecordBatch, Error> {
    if let [one] = batches {
        return Ok((*one).clone());
    }
    let arrays = columns.iter().map(|column| joined(column, batches));
    let arrays = arrays.collect::<Result<Vec<_>, Error>>()?;
    self::columns(columns, arrays)
}

/// The cells of one column of several tables.
fn joined(column: &Column, batches: &[&RecordBatch]) -> Result<ArrayRef, Error> {
    let of =
        || batches.iter().map(|batch| (Cells::of(batch).column(column.name), batch.num_rows()));
    let rows = of().map(|(_, rows)| rows).sum();
    Ok(match column.ty {
        Type::Int => {
            let mut all = Int64Builder::with_capacity(rows);
            of().for_each(|(cells, rows)| match cells {
                ColumnCells::Int(own) => all.append_array(own),
                _ => all.append_nulls(rows),
            });
            Arc::new(all.finish())
        }
        Type::Float => {
            let mut all = Float64Builder::with_capacity(rows);
            of().for_each(|(cells, rows)| match cells {
                ColumnCells::Float(own) => all.append_array(own),
                cells => (0..rows).for_each(|row| all.append_option(cells.float(row))),
            });
            Arc::new(all.finish())
        }
        Type::Text => {
            let mut all = StringBuilder::new();
            for (cells, rows) in of() {
                match cells {
                    ColumnCells::Text(own) => all.append_array(own)?,
                    _ => (0..rows).for_each(|_| all.append_null()),
                }
            }
            Arc::new(all.finish())
        }
    })
}

/// The rows of several tables, in an order of their own: number of the table, row.
///
/// # Errors
///
/// When the result is too large for Arrow.
pub fn pick(
    columns: &'static [Column],
    batches: &[&RecordBatch],
    order: impl Iterator<Item = (usize, usize)> + Clone,
) -> Result<RecordBatch, Error> {
    let mut arrays: Vec<ArrayRef> = Vec::with_capacity(columns.len());
    for column in columns {
        let of: Vec<_> = batches.iter().map(|batch| Cells::of(batch).column(column.name)).collect();
        let cells = order.clone().map(|(n, row)| (of[n], row));
        arrays.push(picked(column.ty, cells));
    }
    let fields: Vec<Field> = columns.iter().map(Column::field).collect();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
}

/// Some rows of a table, in an order of their own.
///
/// # Errors
///
/// When the result is too large for Arrow.
pub fn take(batch: &RecordBatch, rows: &[usize]) -> Result<RecordBatch, Error> {
    let schema = batch.schema();
    let array = |field: &Arc<Field>| -> ArrayRef {
        let column = Cells::of(batch).column(field.name());
        let ty = match field.data_type() {
            DataType::Int64 => Type::Int,
            DataType::Float64 => Type::Float,
            _ => Type::Text,
        };
        picked(ty, rows.iter().map(|row| (column, *row)))
    };
    let arrays = schema.fields().iter().map(array).collect();
    Ok(RecordBatch::try_new(Arc::clone(&schema), arrays)?)
}

/// An array of cells.
fn picked<'a>(ty: Type, cells: impl Iterator<Item = (ColumnCells<'a>, usize)>) -> ArrayRef {
    match ty {
        Type::Int => Arc::new(cells.map(|(of, row)| of.int(row)).collect::<Int64Array>()),
        Type::Float => Arc::new(cells.map(|(of, row)| of.float(row)).collect::<Float64Array>()),
        Type::Text => Arc::new(cells.map(|(of, row)| of.text(row)).collect::<StringArray>()),
    }
}

/// The table in the order of a column; numbers descend and texts ascend, nulls come last. Rows
/// that are equal there stay in their order.
///
/// # Errors
///
/// When there is no such column.
pub fn sort(batch: &RecordBatch, column: &str) -> Result<RecordBatch, Error> {
    let schema = batch.schema();
    let Ok(field) = schema.field_with_name(column) else {
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let names = names.join(", ");
        return Err(Error::Option(format!("there is no column `{column}` to sort by: {names}")));
    };
    let cells = Cells::of(batch).column(column);
    let mut rows: Vec<usize> = (0..batch.num_rows()).collect();
    match field.data_type() {
        DataType::Utf8 => rows.order_by_key(|row| {
            let text = cells.text(*row);
            (text.is_none(), text)
        }),
        _ => rows.order_by(|a, b| {
            let number = |row: &usize| cells.float(*row).unwrap_or(f64::NEG_INFINITY);
            number(b).total_cmp(&number(a))
        }),
    }
    take(batch, &rows)
}
