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
use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, StreamExt, TryStreamExt};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Tables of which the schema is asked at a time.
const AT_ONCE: usize = 16;
/// The schema of metrics' tables: `metrics.stragglers`.
const METRICS: &str = "metrics";

/// Registers tables of events, and those that metrics gave for each rank.
pub(super) async fn register(context: &SessionContext, set: &Dataset) -> Result<(), Failure> {
    #[cfg(feature = "storage")]
    if let (Store::Remote(remote), Some(address)) = (&set.root, bucket()) {
        context.register_object_store(&address, remote.bucket());
    }
    let mut works = Vec::new();
    for name in tables::NAMES {
        let path = move |rank| layout::table(name, rank);
        works.push(async move { Ok((name, table(context, set, path).await?)) }.boxed());
    }
    for (name, table) in some_at_a_time(works).await? {
        if let Some(table) = table {
            context.register_table(name, table).map_err(|error| of_query(&error))?;
        }
    }
    let metrics = MemorySchemaProvider::new();
    let mut works = Vec::new();
    for name in stored(set) {
        let work = async move {
            let table = table(context, set, |rank| layout::metric(&name, rank)).await?;
            Ok((name, table))
        };
        works.push(work.boxed());
    }
    for (name, table) in some_at_a_time(works).await? {
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

/// What all of them give, in their order. In object storage each waits for a few answers.
async fn some_at_a_time<T>(
    works: Vec<BoxFuture<'_, Result<T, Failure>>>,
) -> Result<Vec<T>, Failure> {
    stream::iter(works).buffered(AT_ONCE).try_collect().await
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
    path: impl Fn(i64) -> PathBuf + Send,
) -> Result<Option<Arc<ListingTable>>, Failure> {
    let root = root(set)?;
    let mut urls = Vec::new();
    for manifest in &set.ranks {
        if let Some(file) = manifest.file(&path(manifest.rank)) {
            let name = set.root.name(Path::new(&file.path));
            let url = root
                .address(&file.path)
                .ok_or_else(|| named(&name, &"this path has no address"))?;
            let url = ListingTableUrl::try_new(url, None);
            urls.push(url.map_err(|error| named(&name, &error))?);
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

/// Where DataFusion finds the files.
enum Root {
    Folder(PathBuf),
    #[cfg(feature = "storage")]
    Remote(crate::storage::Remote),
}

fn root(set: &Dataset) -> Result<Root, Failure> {
    match &set.root {
        Store::Local(root) => {
            let root = root.canonicalize().map_err(|error| named(root, &error))?;
            Ok(Root::Folder(root))
        }
        #[cfg(feature = "storage")]
        Store::Remote(remote) => Ok(Root::Remote(remote.clone())),
    }
}

/// What DataFusion calls the bucket. One is asked at a time.
#[cfg(feature = "storage")]
fn bucket() -> Option<url::Url> {
    url::Url::parse("kymograph://bucket").ok()
}

impl Root {
    fn address(&self, path: &str) -> Option<url::Url> {
        match self {
            Root::Folder(root) => url::Url::from_file_path(root.join(path)).ok(),
            #[cfg(feature = "storage")]
            Root::Remote(remote) => {
                let key = remote.key(Path::new(path)).ok()?;
                let mut url = bucket()?;
                url.path_segments_mut().ok()?.extend(key.as_ref().split('/'));
                Some(url)
            }
        }
    }
}
