//! What a query can be about, for people: tables and views with their columns, and functions.

use super::{Database, of_query};
use crate::Failure;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::datasource::TableType;

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// Tables and views, by name.
    pub tables: Vec<Table>,
    /// The names of functions, in order.
    pub functions: Vec<String>,
}

/// A table or a view.
#[derive(Clone, Debug)]
pub struct Table {
    /// As queries say it: `kernels`, `metrics.stragglers`.
    pub name: String,
    /// Whether it is a view.
    pub is_view: bool,
    /// In the order of `SELECT *`.
    pub columns: Vec<Column>,
}

/// A column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type in SQL.
    pub ty: &'static str,
    /// The unit, such as `ns`; empty if it has none.
    pub unit: String,
    /// Whether it may be NULL.
    pub nullable: bool,
}

impl Contents {
    /// A table by its name, in letters of any case.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name.eq_ignore_ascii_case(name))
    }
}

impl Database {
    /// What is there to be asked.
    ///
    /// # Errors
    ///
    /// When what a table is cannot be read.
    pub async fn contents(&self) -> Result<Contents, Failure> {
        let state = self.context.state();
        let names = &state.config_options().catalog;
        let mut contents = Contents::default();
        let catalog = self.context.catalog(&names.default_catalog);
        for schema_name in catalog.iter().flat_map(|catalog| catalog.schema_names()) {
            let schema = catalog.as_ref().and_then(|catalog| catalog.schema(&schema_name));
            let Some(schema) = schema else { continue };
            let prefix = match schema_name == names.default_schema {
                true => String::new(),
                false => format!("{schema_name}."),
            };
            for name in schema.table_names() {
                let table = schema.table(&name).await.map_err(|error| of_query(&error))?;
                let Some(table) = table else { continue };
                contents.tables.push(Table {
                    name: format!("{prefix}{name}"),
                    is_view: table.table_type() == TableType::View,
                    columns: table.schema().fields().iter().map(|field| column(field)).collect(),
                });
            }
        }
        contents.tables.sort_by(|one, other| one.name.cmp(&other.name));
        contents.functions.extend(state.scalar_functions().keys().cloned());
        contents.functions.extend(state.aggregate_functions().keys().cloned());
        contents.functions.extend(state.window_functions().keys().cloned());
        contents.functions.sort();
        contents.functions.dedup();
        Ok(contents)
    }
}

fn column(field: &Field) -> Column {
    let ty = match field.data_type() {
        DataType::Dictionary(_, ty) => ty,
        ty => ty,
    };
    let ty = match ty {
        DataType::Boolean => "BOOLEAN",
        ty if ty.is_integer() => "BIGINT",
        ty if ty.is_floating() => "DOUBLE",
        _ => "VARCHAR",
    };
    let unit = field.metadata().get("unit").cloned().unwrap_or_default();
    Column { name: field.name().clone(), ty, unit, nullable: field.is_nullable() }
}
