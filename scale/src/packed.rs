//! Tables in Parquet.

use crate::store::Store;
use crate::{Failure, manifest, named};
use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::ChunkReader;
use parquet::schema::types::ColumnPath;
use std::fs::File;
use std::path::Path;

/// Rows of a row group, each of which has statistics.
const GROUP: usize = 1 << 16;

/// How a table is written: texts by dictionary, times and numbers as differences, all packed.
fn properties(table: &str, schema: &Schema) -> WriterProperties {
    let version = crate::layout::VERSION.to_string();
    let about = [("kymograph.schema", version.as_str()), ("kymograph.table", table)];
    let about = about.map(|(key, value)| KeyValue::new(key.to_owned(), value.to_owned()));
    let sorted = schema.index_of("ts").ok().and_then(|at| i32::try_from(at).ok());
    let sorted = sorted.map(|column_idx| {
        vec![SortingColumn { column_idx, descending: false, nulls_first: false }]
    });
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).unwrap_or_default()))
        .set_max_row_group_row_count(Some(GROUP))
        .set_created_by(crate::layout::made_by())
        .set_key_value_metadata(Some(about.to_vec()))
        .set_sorting_columns(sorted);
    for field in schema.fields() {
        // What hardly repeats is no dictionary's.
        let differs = matches!(field.data_type(), DataType::Int64);
        if differs && !["step", "rank"].contains(&field.name().as_str()) {
            let path = ColumnPath::from(field.name().as_str());
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    properties.build()
}

/// Writes a table, and says how many bytes the file has.
pub(crate) fn write(path: &Path, table: &str, batch: &RecordBatch) -> Result<u64, Failure> {
    let named = |error: &dyn std::fmt::Display| named(path, error);
    let file = File::create(path).map_err(|error| named(&error))?;
    let schema = batch.schema();
    let properties = Some(properties(table, &schema));
    let mut writer = ArrowWriter::try_new(file, schema, properties).map_err(|e| named(&e))?;
    writer.write(batch).map_err(|error| named(&error))?;
    let file = writer.into_inner().map_err(|error| named(&error))?;
    let about = file.metadata().map_err(|error| named(&error))?;
    Ok(about.len())
}

/// Reads a rank's file of a table.
pub(crate) fn read(store: &Store, file: &manifest::File) -> Result<RecordBatch, Failure> {
    let path = Path::new(&file.path);
    let name = store.name(path);
    match store {
        Store::Local(_) => {
            let file = File::open(&name).map_err(|error| named(&name, &error))?;
            unpacked(&name, file)
        }
        #[cfg(feature = "storage")]
        Store::Remote(remote) => unpacked(&name, remote.table(path, file.size)?),
    }
}

fn unpacked(path: &Path, file: impl ChunkReader + 'static) -> Result<RecordBatch, Failure> {
    let named = |error: &dyn std::fmt::Display| named(path, error);
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| named(&error))?;
    let schema = builder.schema().clone();
    let rows = builder.metadata().file_metadata().num_rows();
    let rows = usize::try_from(rows).map_err(|error| named(&error))?;
    let reader = builder.with_batch_size(rows.max(1)).build().map_err(|error| named(&error))?;
    let mut batches = Vec::new();
    for batch in reader {
        batches.push(batch.map_err(|error| named(&error))?);
    }
    match <[RecordBatch; 1]>::try_from(batches) {
        Ok([one]) => Ok(one),
        Err(none) if none.is_empty() => Ok(RecordBatch::new_empty(schema)),
        Err(_) => Err(named(&"its rows do not come in one piece")),
    }
}
