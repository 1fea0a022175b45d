//! A bucket as DataFusion reads it: what fails has the sentences of [`super::why`], which have the
//! address, and nothing can be changed.

use super::{Address, why};
use crate::Failure;
use async_trait::async_trait;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) address: Arc<Address>,
}

impl std::fmt::Display for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.address.fmt(f)
    }
}

impl Named {
    /// The error with a sentence in it, for one of an object.
    fn why(&self, key: Option<&Path>) -> impl Fn(Error) -> Error + Send + 'static {
        let (address, key) = (self.address.clone(), key.cloned());
        move |error| {
            let Address { scheme, bucket, .. } = address.as_ref();
            let name = match &key {
                Some(key) => format!("{scheme}://{bucket}/{key}"),
                None => address.to_string(),
            };
            let source: Box<Failure> = Box::new(why::sentence(&name, &error));
            Error::Generic { store: "kymo", source }
        }
    }
}

fn refused<T>(operation: &str) -> Result<T> {
    let (operation, implementer) = (operation.to_owned(), "kymo query".to_owned());
    Err(Error::NotImplemented { operation, implementer })
}

#[async_trait]
impl ObjectStore for Named {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let given = self.store.get_opts(location, options).await;
        let mut given = given.map_err(self.why(Some(location)))?;
        given.payload = match given.payload {
            GetResultPayload::Stream(bytes) => {
                GetResultPayload::Stream(bytes.map_err(self.why(Some(location))).boxed())
            }
            file @ GetResultPayload::File(..) => file,
        };
        Ok(given)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.store.list(prefix).map_err(self.why(prefix)).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.store.list_with_delimiter(prefix).await.map_err(self.why(prefix))
    }

    async fn put_opts(&self, _: &Path, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        refused("put")
    }

    async fn put_multipart_opts(
        &self,
        _: &Path,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        refused("put")
    }

    fn delete_stream(
        &self,
        _: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        stream::once(async { refused("delete") }).boxed()
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        refused("copy")
    }
}
