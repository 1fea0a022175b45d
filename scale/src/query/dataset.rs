//! The tables of a data set. Only files of ranks that are whole are read.

use super::of_query;
use crate::dataset::Dataset;
use crate::layout;
use crate::store::Store;
use crate::{Failure, named, tables};
use datafusion::catalog::{MemorySchemaProvider, SchemaProvider};
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::prelude::SessionContext;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The schema of metrics' tables: `metrics.stragglers`.
const METRICS: &str = "metrics";

/// Registers tables of events, and those that metrics gave for each rank.
pub(super) async fn register(context: &SessionContext, set: &Dataset) -> Result<(), Failure> {
    for name in tables::NAMES {
        let table = table(context, set, |rank| layout::table(name, rank)).await?;
        if let Some(table) = table {
            context.register_table(name, table).map_err(|error| of_query(&error))?;
        }
    }
    let metrics = MemorySchemaProvider::new();
    for name in stored(set) {
        let table = table(context, set, |rank| layout::metric(&name, rank)).await?;
        if let Some(table) = table {
            metrics.register_table(name, table).map_err(|error| of_query(&error))?;
        }
    }
    let catalog = context.catalog(&context.state().config_options().catalog.default_catalog);
    if let Some(catalog) = catalog {
        let registered = catalog.register_schema(METRICS, Arc::new(metrics));
        registered.map_err(|error| of_query(&error))?;
    }
    Ok(())
}

/// The metrics of which any rank has a table.
fn stored(set: &Dataset) -> BTreeSet<String> {
    let files = set.ranks.iter().flat_map(|manifest| &manifest.files);
    let metric = |path: &Path| {
        let name = path.strip_prefix(layout::METRICS).ok()?.components().next()?;
        Some(name.as_os_str().to_string_lossy().into_owned())
    };
    files.filter_map(|file| metric(Path::new(&file.path))).collect()
}

async fn table(
    context: &SessionContext,
    set: &Dataset,
    path: impl Fn(i64) -> PathBuf,
) -> Result<Option<Arc<ListingTable>>, Failure> {
    let root = match &set.root {
        Store::Local(root) => root.canonicalize().map_err(|error| named(root, &error))?,
    };
    let mut urls = Vec::new();
    for manifest in &set.ranks {
        let path = path(manifest.rank);
        if manifest.has(&path) {
            let path = root.join(path);
            let url = url::Url::from_file_path(&path);
            let url = url.map_err(|()| named(&path, &"this path has no address"))?;
            let url = ListingTableUrl::try_new(url, None);
            urls.push(url.map_err(|error| named(&path, &error))?);
        }
    }
    let (Some(first), Some(last)) = (urls.first(), urls.last()) else { return Ok(None) };
    let state = context.state();
    let options = ListingOptions::new(Arc::new(ParquetFormat::default().with_skip_metadata(false)))
        .with_session_config_options(state.config())
        .with_file_extension(".parquet")
        .with_collect_stat(true);
    // A rank that a newer kymo has added may have more columns; they stand behind the others.
    let mut schemas = Vec::new();
    for url in [first, last] {
        let schema = options.infer_schema(&state, url).await;
        schemas.push(schema.map_err(|error| of_query(&error))?);
    }
    let schema = schemas.into_iter().max_by_key(|schema| schema.fields().len());
    let Some(schema) = schema else { return Ok(None) };
    let config = ListingTableConfig::new_with_multi_paths(urls);
    let config = config.with_listing_options(options).with_schema(schema);
    Ok(Some(Arc::new(ListingTable::try_new(config).map_err(|error| of_query(&error))?)))
}
