//! Addresses in object storage, and the services behind them.

use super::{retries, why};
use crate::Failure;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::{ObjectStore, path::Path as Key};
use std::sync::Arc;

/// The services.
const SCHEMES: [&str; 3] = ["s3", "gs", "az"];

/// `s3://bucket/key`: the key is as it stands there, as `aws s3` and `gcloud storage` have it, and
/// not encoded as in addresses of the web.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Address {
    /// `s3`, `gs`, `az`.
    pub scheme: String,
    /// The bucket, which Azure calls a container.
    pub bucket: String,
    /// The key or the prefix, without slashes around it.
    pub key: String,
    /// Whether a slash stood behind the key, as behind a folder.
    pub is_folder: bool,
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}", self.scheme, self.bucket)?;
        if self.key.is_empty() { Ok(()) } else { write!(f, "/{}", self.key) }
    }
}

impl Address {
    /// Takes an address apart.
    ///
    /// # Errors
    ///
    /// When it is of another service, has no bucket, or a key that no object has.
    pub fn of(word: &str) -> Result<Address, Failure> {
        let wrong = |what: &str| Failure(format!("{word}: {what}"));
        let parts = word.split_once("://").filter(|(scheme, _)| SCHEMES.contains(scheme));
        let (scheme, rest) =
            parts.ok_or_else(|| wrong("what is known are folders, and s3://, gs:// and az://"))?;
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        if bucket.is_empty() || !bucket.chars().all(plain) {
            return Err(wrong("a bucket has to stand behind ://, of letters, digits, - . and _"));
        }
        let is_folder = key.is_empty() || key.ends_with('/');
        let key = key.trim_end_matches('/');
        Key::parse(key)
            .ok()
            .filter(|parsed| parsed.as_ref() == key)
            .ok_or_else(|| wrong("its parts may not be empty, `.`, `..` or control characters"))?;
        let (scheme, bucket, key) = (scheme.to_owned(), bucket.to_owned(), key.to_owned());
        Ok(Address { scheme, bucket, key, is_folder })
    }

    /// The service, with what the environment says of it. Opens no connection.
    pub(super) fn service(&self) -> Result<Arc<dyn ObjectStore>, Failure> {
        let bucket = self.bucket.as_str();
        let made: Result<Arc<dyn ObjectStore>, _> = match self.scheme.as_str() {
            "s3" => {
                let service = AmazonS3Builder::from_env().with_bucket_name(bucket);
                service.with_retry(retries()).build().map(|service| Arc::new(service) as _)
            }
            "gs" => {
                let service = GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket);
                service.with_retry(retries()).build().map(|service| Arc::new(service) as _)
            }
            _ => {
                let service = MicrosoftAzureBuilder::from_env().with_container_name(bucket);
                service.with_retry(retries()).build().map(|service| Arc::new(service) as _)
            }
        };
        made.map_err(|error| why::sentence(&self.to_string(), &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        let address = Address::of("s3://bucket/a b/ö%20/set").unwrap();
        assert_eq!((address.bucket.as_str(), address.key.as_str()), ("bucket", "a b/ö%20/set"));
        assert_eq!(address.to_string(), "s3://bucket/a b/ö%20/set");
        assert!(!address.is_folder);
        assert!(Address::of("gs://bucket").unwrap().is_folder);
        assert_eq!(Address::of("az://container/run/").unwrap().key, "run");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        let why = |word: &str| Address::of(word).unwrap_err().0;
        assert!(why("s3:///key").contains("a bucket"));
        assert!(why("s3://us er@x/key").contains("a bucket"));
        assert!(why("s3://bucket/a//b").contains("may not be empty"));
        assert!(why("s3://bucket/../b").contains("may not be empty"));
        assert!(why("hdfs://host/b").contains("s3://, gs:// and az://"));
    }
}
