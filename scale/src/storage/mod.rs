//! Object storage: S3, Google Cloud Storage, Azure, and traces over HTTP, by `object_store`.
//!
//! The rest of the crate waits for what it asks, so what is here waits, too: requests run on
//! threads of their own, of which there are two. What a request does in vain is repeated by
//! `object_store`, as often as [`RETRIES`] says, and then becomes one sentence ([`why`]).
//!
//! * [`address`]: `s3://bucket/key`, and the service behind it.
//! * `named`: a bucket as queries read it.
//! * [`attempt`]: how a rank is put whole where there are no locks and no renames.
//! * [`objects`]: traces as sources.

mod address;
pub(crate) mod attempt;
#[cfg(feature = "query")]
mod named;
mod objects;
mod why;

pub use address::Address;
pub use objects::Object;
#[cfg(feature = "query")]
pub(crate) use why::found;

use crate::{Failure, named};
use futures::stream::{StreamExt, TryStreamExt};
use object_store::path::Path as Key;
use object_store::{
    GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutPayload, RetryConfig,
    UpdateVersion,
};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::runtime::Runtime;

/// How often a request is repeated that fails for reasons that may pass, and for how long: a
/// restart of a server is outlived, and who waits learns within a minute that it stays away.
const RETRIES: usize = 3;
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes that are read or written by one request. A connection has to move as much in the 30
/// seconds that `object_store` gives a request.
const PIECE: u64 = 8 << 20;
/// Pieces of a large object under way at a time, which are in memory.
const PIECES: usize = 4;
/// Requests about small objects under way at a time.
const AT_ONCE: usize = 16;
/// The largest manifest or header that is read. One of a rank has about 100 bytes for each table.
const SMALL: u64 = 16 << 20;

fn retries() -> RetryConfig {
    RetryConfig { max_retries: RETRIES, retry_timeout: PATIENCE, ..RetryConfig::default() }
}

/// Begins a request; its answer comes out of the receiver.
fn begin<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<Receiver<T>, Failure> {
    static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();
    let build = || {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let builder = builder.worker_threads(2).thread_name("storage").enable_all();
        builder.build().map_err(|error| format!("there are no threads: {error}"))
    };
    let runtime = RUNTIME.get_or_init(build).as_ref().map_err(|why| Failure(why.clone()))?;
    let (answer, receiver) = channel();
    runtime.spawn(async move { drop(answer.send(work.await)) });
    Ok(receiver)
}

/// Waits for an answer. Not `block_on`: queries open data sets on a thread that runs others' work.
fn wait<T>(receiver: &Receiver<T>) -> Result<T, Failure> {
    receiver.recv().map_err(|_| Failure("a request failed: please report it".to_owned()))
}

fn carry_out<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, Failure> {
    wait(&begin(work)?)
}

/// A place in object storage: a bucket, or what is below a prefix of it.
#[derive(Clone, Debug)]
pub struct Remote {
    store: Arc<dyn ObjectStore>,
    address: Arc<Address>,
}

/// A small object that was read.
pub(crate) struct Small {
    pub(crate) bytes: bytes::Bytes,
    pub(crate) meta: ObjectMeta,
}

/// What became of an object that is put only if nobody else was first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Put {
    Done,
    OtherWasFirst,
}

/// What a list says of an object.
pub(crate) struct Listed {
    /// Its path from the root.
    pub(crate) path: String,
    pub(crate) meta: ObjectMeta,
}

impl std::fmt::Display for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.address.fmt(f)
    }
}

impl Remote {
    /// The place at an address. Credentials are those of the environment. Opens no connection.
    ///
    /// # Errors
    ///
    /// When the environment has no valid settings for it.
    pub fn open(address: Address) -> Result<Remote, Failure> {
        let store = address.service()?;
        Ok(Remote { store, address: Arc::new(address) })
    }

    /// The name of an object in sentences.
    pub(crate) fn name(&self, path: &Path) -> String {
        format!("{}/{}", self.address, path.display())
    }

    /// The bucket as queries read it.
    #[cfg(feature = "query")]
    pub(crate) fn bucket(&self) -> Arc<dyn ObjectStore> {
        let (store, address) = (self.store.clone(), self.address.clone());
        Arc::new(self::named::Named { store, address })
    }

    /// The key of a path from the root.
    pub(crate) fn key(&self, path: &Path) -> Result<Key, Failure> {
        let key = match self.address.key.as_str() {
            "" => path.to_string_lossy().into_owned(),
            root => format!("{root}/{}", path.display()),
        };
        Key::parse(key).map_err(|error| named(Path::new(&self.name(path)), &error))
    }

    fn why(&self, path: &Path, error: &object_store::Error) -> Failure {
        why::sentence(&self.name(path), error)
    }

    /// Reads a small object; `None` if it is not there.
    pub(crate) fn get(&self, path: &Path) -> Result<Option<Small>, Failure> {
        let work = get(self.store.clone(), self.key(path)?);
        match carry_out(work)? {
            Ok(small) => Ok(Some(small)),
            Err(error) if why::is_absent(&error) => Ok(None),
            Err(error) => Err(self.why(path, &error)),
        }
    }

    /// Reads a file of a table, which has to have as many bytes as it was written with.
    pub(crate) fn table(&self, path: &Path, size: u64) -> Result<bytes::Bytes, Failure> {
        let (store, key) = (self.store.clone(), self.key(path)?);
        let read = carry_out(async move {
            let given = store.get(&key).await?;
            let whole = given.meta.size == size;
            if whole { given.bytes().await.map(Some) } else { Ok(None) }
        })?;
        let changed = || named(Path::new(&self.name(path)), &"it is not as it was written");
        read.map_err(|error| self.why(path, &error))?.ok_or_else(changed)
    }

    /// Reads the small objects right below a path whose names are wanted.
    pub(crate) fn read_folder(
        &self,
        folder: &Path,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Vec<(PathBuf, Vec<u8>)>, Failure> {
        let mut listed = self.list(folder)?;
        listed.retain(|object| {
            let path = Path::new(&object.path);
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            path.parent() == Some(folder) && wanted(&name)
        });
        let store = self.store.clone();
        let reads = listed.into_iter().map(move |object| {
            let work = get(store.clone(), object.meta.location);
            async move { (object.path, work.await) }
        });
        let reads = futures::stream::iter(reads).buffer_unordered(AT_ONCE);
        let mut all = Vec::new();
        for (path, read) in carry_out(reads.collect::<Vec<_>>())? {
            match read {
                Ok(small) => all.push((PathBuf::from(self.name(Path::new(&path))), small.bytes)),
                // Somebody has just taken it away.
                Err(error) if why::is_absent(&error) => {}
                Err(error) => return Err(self.why(Path::new(&path), &error)),
            }
        }
        Ok(all.into_iter().map(|(name, bytes)| (name, bytes.into())).collect())
    }

    /// All objects below a path, the empty one for all of the data set.
    pub(crate) fn list(&self, folder: &Path) -> Result<Vec<Listed>, Failure> {
        let (store, key) = (self.store.clone(), self.key(folder)?);
        let listed = carry_out(async move {
            // The empty key is the bucket.
            let key = (!key.as_ref().is_empty()).then_some(key);
            store.list(key.as_ref()).try_collect::<Vec<ObjectMeta>>().await
        })?;
        let listed = listed.map_err(|error| self.why(folder, &error))?;
        let path = |meta: &ObjectMeta| {
            let key = meta.location.as_ref();
            let path = key.strip_prefix(self.address.key.as_str()).unwrap_or(key);
            path.trim_start_matches('/').to_owned()
        };
        Ok(listed.into_iter().map(|meta| Listed { path: path(&meta), meta }).collect())
    }

    /// Whether there is anything right below the root that is no dot file.
    pub(crate) fn is_taken(&self) -> Result<bool, Failure> {
        let (store, key) = (self.store.clone(), self.key(Path::new(""))?);
        let root = (!key.as_ref().is_empty()).then_some(key);
        let own = root.clone();
        let listed = carry_out(async move { store.list_with_delimiter(root.as_ref()).await })?;
        let listed = listed.map_err(|error| self.why(Path::new(""), &error))?;
        let keys = listed.objects.iter().map(|meta| &meta.location).chain(&listed.common_prefixes);
        let hidden = |key: &Key| key.filename().is_none_or(|name| name.starts_with('.'));
        // Consoles make folders by an object of their name.
        Ok(keys.into_iter().any(|key| Some(key) != own.as_ref() && !hidden(key)))
    }

    /// The sizes of objects; of those that are not there, `None`.
    pub(crate) fn sizes<'a>(
        &self,
        paths: impl Iterator<Item = &'a str>,
    ) -> Result<HashMap<String, u64>, Failure> {
        let mut heads = Vec::new();
        for path in paths {
            let (store, key) = (self.store.clone(), self.key(Path::new(path))?);
            let path = path.to_owned();
            heads.push(async move { (path, store.head(&key).await) });
        }
        let heads = futures::stream::iter(heads).buffer_unordered(AT_ONCE);
        let mut sizes = HashMap::new();
        for (path, head) in carry_out(heads.collect::<Vec<_>>())? {
            match head {
                Ok(meta) => drop(sizes.insert(path, meta.size)),
                Err(error) if why::is_absent(&error) => {}
                Err(error) => return Err(self.why(Path::new(&path), &error)),
            }
        }
        Ok(sizes)
    }

    /// Puts a small object in the place of `old`, or where there is none.
    pub(crate) fn put_if(
        &self,
        path: &Path,
        bytes: Vec<u8>,
        old: Option<UpdateVersion>,
    ) -> Result<Put, Failure> {
        use object_store::Error::{AlreadyExists, NotImplemented, NotSupported, Precondition};
        let (store, key) = (self.store.clone(), self.key(path)?);
        let mode = old.map_or(PutMode::Create, PutMode::Update);
        let put = async move { store.put_opts(&key, bytes.into(), mode.into()).await };
        match carry_out(put)? {
            Ok(_) => Ok(Put::Done),
            Err(AlreadyExists { .. } | Precondition { .. }) => Ok(Put::OtherWasFirst),
            Err(NotImplemented { .. } | NotSupported { .. }) => {
                let what = "this storage has no conditional writes, so tasks cannot take turns \
                            there; add to a folder, and copy that";
                Err(named(Path::new(&self.name(path)), &what))
            }
            Err(error) => Err(self.why(path, &error)),
        }
    }

    /// Puts a small object.
    pub(crate) fn put(&self, path: &Path, bytes: Vec<u8>) -> Result<(), Failure> {
        let (store, key) = (self.store.clone(), self.key(path)?);
        let put = carry_out(async move { store.put(&key, bytes.into()).await })?;
        put.map(drop).map_err(|error| self.why(path, &error))
    }

    /// Puts files, several at a time; each of them from its path here.
    pub(crate) fn upload(&self, files: &[(PathBuf, PathBuf)]) -> Result<(), Failure> {
        let mut small = Vec::new();
        for (from, to) in files {
            let size = from.metadata().map_err(|error| named(from, &error))?.len();
            if size > PIECE {
                self.upload_large(from, to)?;
            } else {
                small.push((from, to));
            }
        }
        for files in small.chunks(AT_ONCE) {
            let mut puts = Vec::new();
            for (from, to) in files {
                let bytes = std::fs::read(from).map_err(|error| named(from, &error))?;
                let (store, key) = (self.store.clone(), self.key(to)?);
                puts.push((to, begin(async move { store.put(&key, bytes.into()).await })?));
            }
            for (to, put) in puts {
                wait(&put)?.map_err(|error| self.why(to, &error))?;
            }
        }
        Ok(())
    }

    fn upload_large(&self, from: &Path, to: &Path) -> Result<(), Failure> {
        use std::io::Read;
        let (store, key) = (self.store.clone(), self.key(to)?);
        let upload = carry_out(async move { store.put_multipart(&key).await })?;
        let mut upload = upload.map_err(|error| self.why(to, &error))?;
        let mut pieces = || -> Result<(), Failure> {
            let mut file = std::fs::File::open(from).map_err(|error| named(from, &error))?;
            let mut under_way = std::collections::VecDeque::new();
            loop {
                let mut piece = Vec::new();
                let read = file.by_ref().take(PIECE).read_to_end(&mut piece);
                let read = read.map_err(|error| named(from, &error))?;
                if read > 0 {
                    under_way.push_back(begin(upload.put_part(PutPayload::from(piece)))?);
                }
                while under_way.len() >= if read > 0 { PIECES } else { 1 } {
                    let Some(oldest) = under_way.pop_front() else { break };
                    wait(&oldest)?.map_err(|error| self.why(to, &error))?;
                }
                if read == 0 {
                    return Ok(());
                }
            }
        };
        let put = pieces();
        let ended = carry_out(async move {
            match put {
                Ok(()) => Ok(upload.complete().await),
                // Otherwise the service keeps the pieces, and has them paid for.
                Err(why) => Err((why, upload.abort().await.is_ok()).0),
            }
        })?;
        ended?.map(drop).map_err(|error| self.why(to, &error))
    }

    /// Takes objects away. What fails is left to whoever adds the rank next.
    pub(crate) fn forget(&self, paths: &[String]) {
        let keys: Vec<_> =
            paths.iter().filter_map(|path| self.key(Path::new(path)).ok().map(Ok)).collect();
        if !keys.is_empty() {
            let gone = self.store.delete_stream(futures::stream::iter(keys).boxed());
            let _ = carry_out(gone.for_each(|_| async {}));
        }
    }
}

async fn get(store: Arc<dyn ObjectStore>, key: Key) -> Result<Small, object_store::Error> {
    let given = store.get_opts(&key, GetOptions::default()).await?;
    let meta = given.meta.clone();
    if meta.size > SMALL {
        let source = format!("it has {} bytes, which no file of this kind has", meta.size).into();
        return Err(object_store::Error::Generic { store: "kymo", source });
    }
    Ok(Small { bytes: given.bytes().await?, meta })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprint::Fingerprint;
    use object_store::memory::InMemory;
    use std::io::Read;

    fn memory() -> Remote {
        let address = Arc::new(Address::of("s3://bucket/job 1/set").unwrap());
        Remote { store: Arc::new(InMemory::new()), address }
    }

    #[test]
    fn large_files_go_and_come_in_pieces() {
        let folder = tempfile::tempdir().unwrap();
        let remote = memory();
        for size in [0, 1, PIECE as usize, 5 * PIECE as usize + 7] {
            let (from, to) = (folder.path().join("table"), PathBuf::from("kernels/x.parquet"));
            let bytes: Vec<u8> = (0..size).map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8).collect();
            std::fs::write(&from, &bytes).unwrap();
            remote.upload(&[(from.clone(), to.clone())]).unwrap();
            let store = remote.store.clone();
            let object = Object::at(store, remote.key(&to).unwrap(), remote.name(&to));
            let (mut file, fingerprint) = object.fetch().unwrap();
            assert_eq!(fingerprint, Fingerprint::of(&from).unwrap());
            let mut read = Vec::new();
            file.read_to_end(&mut read).unwrap();
            assert!(read == bytes, "{size}");
            assert!(remote.table(&to, size as u64).unwrap() == bytes);
            let why = remote.table(&to, size as u64 + 1).unwrap_err().0;
            assert_eq!(why, "s3://bucket/job 1/set/kernels/x.parquet: it is not as it was written");
        }
    }

    #[test]
    fn what_is_put_on_a_condition_is_put_once() {
        let remote = memory();
        let path = Path::new("ranks/rank-000000.json");
        let put = |text: &str, old| remote.put_if(path, text.as_bytes().to_vec(), old).unwrap();
        assert_eq!(put("one", None), Put::Done);
        assert_eq!(put("two", None), Put::OtherWasFirst);
        let read = remote.get(path).unwrap().unwrap();
        let old = UpdateVersion { e_tag: read.meta.e_tag, version: read.meta.version };
        assert_eq!(put("three", Some(old.clone())), Put::Done);
        assert_eq!(put("four", Some(old)), Put::OtherWasFirst);
        assert_eq!(&remote.get(path).unwrap().unwrap().bytes[..], b"three");
        remote.forget(&[path.to_string_lossy().into_owned()]);
        assert!(remote.get(path).unwrap().is_none() && !remote.is_taken().unwrap());
    }
}
