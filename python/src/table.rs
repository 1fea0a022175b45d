//! Results of metrics: an Arrow table that any library of tables takes without a copy.

use std::ffi::CStr;
use std::io::Cursor;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator,
    RecordBatchOptions, StringArray,
};
use arrow_ipc::reader::FileReader;
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use kymograph_analysis::{Type, render};
use pyo3::exceptions::{PyIndexError, PyKeyError, PyOverflowError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList};

use crate::Error;
use crate::background::{Course, wait};
use crate::options::in_python;

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
    batch: OnceLock<RecordBatch>,
    later: Option<Make>,
    making: Mutex<()>,
}

/// Makes a table when it is first looked at. Needs no interpreter.
#[derive(Clone)]
pub struct Make(pub Arc<dyn Fn() -> PyResult<RecordBatch> + Send + Sync>);

impl std::fmt::Debug for Make {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("Make")
    }
}

fn failed(error: &ArrowError) -> PyErr {
    Error::new_err(error.to_string())
}

impl Table {
    pub fn new(name: &str, batch: RecordBatch) -> Table {
        Table::with(name, OnceLock::from(batch), None)
    }

    /// A table that is made when it is first looked at.
    pub fn later(name: &str, make: Make) -> Table {
        Table::with(name, OnceLock::new(), Some(make))
    }

    fn with(name: &str, batch: OnceLock<RecordBatch>, later: Option<Make>) -> Table {
        Table { name: name.to_owned(), batch, later, making: Mutex::new(()) }
    }

    fn batch(&self, py: Python<'_>) -> PyResult<&RecordBatch> {
        if let Some(batch) = self.batch.get() {
            return Ok(batch);
        }
        // One thread makes it; others wait here without the interpreter's lock.
        let _making = self.making.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        if let (None, Some(Make(make))) = (self.batch.get(), self.later.clone()) {
            let made = wait(py, &Arc::new(Course::default()), None, move || make())??;
            return Ok(self.batch.get_or_init(|| made));
        }
        self.batch.get().ok_or_else(|| Error::new_err("this table has nothing in it"))
    }

    fn find(&self, py: Python<'_>, name: &str) -> PyResult<&ArrayRef> {
        let batch = self.batch(py)?;
        let unknown = || {
            let names = names(batch).join(", ");
            PyKeyError::new_err(format!("there is no column `{name}`; there are {names}"))
        };
        batch.column_by_name(name).ok_or_else(unknown)
    }
}

#[pymethods]
impl Table {
    /// Makes a table of one with other rows; for subclasses.
    #[new]
    fn of(table: &Bound<'_, Table>) -> Table {
        let table = table.get();
        Table::with(&table.name, table.batch.clone(), table.later.clone())
    }

    /// The metric that it is the result of.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// How many rows and columns there are.
    #[getter]
    fn shape(&self, py: Python<'_>) -> PyResult<(usize, usize)> {
        let batch = self.batch(py)?;
        Ok((batch.num_rows(), batch.num_columns()))
    }

    /// The columns' names, in their order.
    #[getter]
    fn column_names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(names(self.batch(py)?))
    }

    /// Of each column its name, type (`int`, `float` or `str`), unit (`ns`, `%`, `bytes` and so
    /// on, or empty) and meaning.
    #[getter]
    fn about(&self, py: Python<'_>) -> PyResult<Vec<About>> {
        let of = |field: &std::sync::Arc<arrow_schema::Field>| {
            let said = |key| field.metadata().get(key).cloned().unwrap_or_default();
            let ty = match field.data_type() {
                DataType::Int64 => "int",
                DataType::Float64 => "float",
                _ => "str",
            };
            (field.name().clone(), ty, said("unit"), in_python(&said("meaning")))
        };
        Ok(self.batch(py)?.schema().fields().iter().map(of).collect())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.batch(py)?.num_rows())
    }

    /// A column as a list; null is None.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        list(py, self.find(py, name)?)
    }

    /// All columns as lists, by name.
    fn to_pydict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        let batch = self.batch(py)?;
        for (name, array) in names(batch).iter().zip(batch.columns()) {
            dict.set_item(name, list(py, array)?)?;
        }
        Ok(dict)
    }

    /// A column of numbers as its bytes, eight for each row, and which rows are null, a byte for
    /// each, or None if none is. Of texts, None.
    fn raw<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Raw<'py>>> {
        let array = self.find(py, name)?;
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
    fn slice(&self, py: Python<'_>, start: usize, length: usize) -> PyResult<Table> {
        let batch = self.batch(py)?;
        let rows = batch.num_rows();
        if start > rows {
            return Err(PyIndexError::new_err(format!("there are {rows} rows, not {start}")));
        }
        Ok(Table::new(&self.name, batch.slice(start, length.min(rows - start))))
    }

    /// The table as text, times in microseconds, cut after `limit` rows.
    #[pyo3(signature = (limit=None))]
    fn text(&self, py: Python<'_>, limit: Option<usize>) -> PyResult<String> {
        let batch = self.batch(py)?;
        Ok(py.detach(|| render::text(batch, limit)))
    }

    /// Arrow's PyCapsule interface: the schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.batch(py)?.schema().as_ref());
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
        let batch = self.batch(py)?;
        let batches = vec![Ok(batch.clone())].into_iter();
        let reader = RecordBatchIterator::new(batches, batch.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), STREAM)
    }
}

/// A table of columns, each with its name, its type (`int`, `float` or `str`) and a list.
#[pyfunction]
pub fn table_of(name: &str, columns: Vec<(String, String, Bound<'_, PyList>)>) -> PyResult<Table> {
    let mut fields = Vec::new();
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for (name, ty, values) in columns {
        let array: ArrayRef = match ty.as_str() {
            "int" => Arc::new(Int64Array::from(values.extract::<Vec<Option<i64>>>()?)),
            "float" => Arc::new(Float64Array::from(values.extract::<Vec<Option<f64>>>()?)),
            _ => Arc::new(StringArray::from(values.extract::<Vec<Option<String>>>()?)),
        };
        fields.push(Field::new(name, array.data_type().clone(), true));
        arrays.push(array);
    }
    let rows = RecordBatchOptions::new().with_row_count(arrays.first().map(|a| a.len()));
    let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &rows);
    Ok(Table::new(name, batch.map_err(|error| failed(&error))?))
}

/// A table out of the bytes of a file of Arrow's whose columns are whole numbers of 64 bits, floats
/// or texts.
#[pyfunction]
pub fn table_of_file(py: Python<'_>, name: &str, file: PyBackedBytes) -> PyResult<Table> {
    let batch = py.detach(|| of_file(&file)).map_err(|error| failed(&error))?;
    Ok(Table::new(name, batch))
}

fn of_file(file: &[u8]) -> Result<RecordBatch, ArrowError> {
    let reader = FileReader::try_new(Cursor::new(file), None)?;
    let schema = reader.schema();
    let batches: Vec<RecordBatch> = reader.collect::<Result<_, _>>()?;
    let column = |(at, field): (usize, &Arc<Field>)| -> Result<ArrayRef, ArrowError> {
        let parts = batches.iter().map(|batch| batch.column(at));
        Ok(match field.data_type() {
            DataType::Int64 => {
                let parts = parts.flat_map(|part| part.as_primitive::<Int64Type>());
                Arc::new(parts.collect::<Int64Array>())
            }
            DataType::Float64 => {
                let parts = parts.flat_map(|part| part.as_primitive::<Float64Type>());
                Arc::new(parts.collect::<Float64Array>())
            }
            DataType::Utf8 => {
                let bytes = parts.clone().map(|part| part.as_string::<i32>().value_data().len());
                if bytes.sum::<usize>() > i32::MAX as usize {
                    let what = format!("column {} has more than 2 GiB of text", field.name());
                    return Err(ArrowError::ComputeError(what));
                }
                Arc::new(parts.flat_map(|part| part.as_string::<i32>()).collect::<StringArray>())
            }
            ty => {
                let what = format!("column {} is {ty}", field.name());
                return Err(ArrowError::SchemaError(what));
            }
        })
    };
    let columns = schema.fields().iter().enumerate().map(column).collect::<Result<_, _>>()?;
    let rows = batches.iter().map(RecordBatch::num_rows).sum();
    let rows = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema, columns, &rows)
}

/// What Python calls the type of a column.
pub fn type_name(ty: Type) -> &'static str {
    match ty {
        Type::Int => "int",
        Type::Float => "float",
        Type::Text => "str",
    }
}

fn names(batch: &RecordBatch) -> Vec<String> {
    batch.schema().fields().iter().map(|field| field.name().clone()).collect()
}

fn list<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyList>> {
    match array.data_type() {
        DataType::Int64 => PyList::new(py, array.as_primitive::<Int64Type>().iter()),
        DataType::Float64 => PyList::new(py, array.as_primitive::<Float64Type>().iter()),
        DataType::Utf8 => PyList::new(py, array.as_string::<i32>().iter()),
        other => Err(PyOverflowError::new_err(format!("no metric has columns of {other}"))),
    }
}
