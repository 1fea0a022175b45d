//! Results of metrics: an Arrow table that any library of tables takes without a copy.

use std::ffi::CStr;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType};
use kymograph_analysis::render;
use pyo3::exceptions::{PyIndexError, PyKeyError, PyOverflowError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList};

use crate::Error;

const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";

/// Of a column: name, type, unit and meaning.
type About = (String, &'static str, String, String);

/// The bytes of a column's numbers, and which are null.
type Raw<'py> = (Bound<'py, PyBytes>, Option<Bound<'py, PyBytes>>);

/// A table: columns of whole numbers, floats or texts, each of which may have nulls. Immutable:
/// any thread may use it.
#[pyclass(frozen, subclass, module = "kymograph._kymograph")]
#[derive(Debug)]
pub struct Table {
    name: String,
    batch: RecordBatch,
}

fn failed(error: &ArrowError) -> PyErr {
    Error::new_err(error.to_string())
}

impl Table {
    pub fn new(name: &str, batch: RecordBatch) -> Table {
        Table { name: name.to_owned(), batch }
    }

    fn find(&self, name: &str) -> PyResult<&ArrayRef> {
        let unknown = || {
            let names = self.column_names().join(", ");
            PyKeyError::new_err(format!("there is no column `{name}`; there are {names}"))
        };
        self.batch.column_by_name(name).ok_or_else(unknown)
    }
}

#[pymethods]
impl Table {
    /// Makes a table of one with other rows; for subclasses.
    #[new]
    fn of(table: &Bound<'_, Table>) -> Table {
        let table = table.get();
        Table { name: table.name.clone(), batch: table.batch.clone() }
    }

    /// The metric that it is the result of.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// How many rows and columns there are.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.batch.num_rows(), self.batch.num_columns())
    }

    /// The columns' names, in their order.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Of each column its name, type (`int`, `float` or `str`), unit (`ns`, `%`, `bytes` and so
    /// on, or empty) and meaning.
    #[getter]
    fn about(&self) -> Vec<About> {
        let of = |field: &std::sync::Arc<arrow_schema::Field>| {
            let said = |key| field.metadata().get(key).cloned().unwrap_or_default();
            let ty = match field.data_type() {
                DataType::Int64 => "int",
                DataType::Float64 => "float",
                _ => "str",
            };
            (field.name().clone(), ty, said("unit"), said("meaning"))
        };
        self.batch.schema().fields().iter().map(of).collect()
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// A column as a list; null is None.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        list(py, self.find(name)?)
    }

    /// All columns as lists, by name.
    fn to_pydict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, array) in self.column_names().iter().zip(self.batch.columns()) {
            dict.set_item(name, list(py, array)?)?;
        }
        Ok(dict)
    }

    /// A column of numbers as its bytes, eight for each row, and which rows are null, a byte for
    /// each, or None if none is. Of texts, None.
    fn raw<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Raw<'py>>> {
        let array = self.find(name)?;
        let bytes: Vec<u8> = match array.data_type() {
            DataType::Int64 => {
                let values = array.as_primitive::<Int64Type>().values();
                values.iter().flat_map(|value| value.to_ne_bytes()).collect()
            }
            DataType::Float64 => {
                let values = array.as_primitive::<Float64Type>().values();
                values.iter().flat_map(|value| value.to_ne_bytes()).collect()
            }
            _ => return Ok(None),
        };
        let nulls = (array.null_count() > 0).then(|| {
            let nulls: Vec<u8> = (0..array.len()).map(|row| array.is_null(row).into()).collect();
            PyBytes::new(py, &nulls)
        });
        Ok(Some((PyBytes::new(py, &bytes), nulls)))
    }

    /// Rows from `start` on, at most `length` of them, without a copy.
    fn slice(&self, start: usize, length: usize) -> PyResult<Table> {
        let rows = self.batch.num_rows();
        if start > rows {
            return Err(PyIndexError::new_err(format!("there are {rows} rows, not {start}")));
        }
        let batch = self.batch.slice(start, length.min(rows - start));
        Ok(Table { name: self.name.clone(), batch })
    }

    /// The table as text, times in microseconds, cut after `limit` rows.
    #[pyo3(signature = (limit=None))]
    fn text(&self, py: Python<'_>, limit: Option<usize>) -> String {
        py.detach(|| render::text(&self.batch, limit))
    }

    /// Arrow's PyCapsule interface: the schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.batch.schema().as_ref());
        PyCapsule::new_with_value(py, schema.map_err(|e| failed(&e))?, SCHEMA)
    }

    /// Arrow's PyCapsule interface: a stream of one batch. A wish for another schema is passed
    /// over, as the interface allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = vec![Ok(self.batch.clone())].into_iter();
        let reader = RecordBatchIterator::new(batches, self.batch.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), STREAM)
    }
}

fn list<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyList>> {
    match array.data_type() {
        DataType::Int64 => PyList::new(py, array.as_primitive::<Int64Type>().iter()),
        DataType::Float64 => PyList::new(py, array.as_primitive::<Float64Type>().iter()),
        DataType::Utf8 => PyList::new(py, array.as_string::<i32>().iter()),
        other => Err(PyOverflowError::new_err(format!("no metric has columns of {other}"))),
    }
}
