//! Traces in object storage, and over HTTP, as sources.

use super::{Address, PIECE, PIECES, begin, carry_out, retries, wait, why};
use crate::fingerprint::{Fingerprint, Version};
use crate::{Failure, named};
use futures::stream::StreamExt;
use kymograph_converters::folder;
use kymograph_converters::format::Format;
use object_store::http::HttpBuilder;
use object_store::path::Path as Key;
use object_store::{ClientOptions, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long a server of HTTP may send nothing in the middle of a trace.
const SILENCE: Duration = Duration::from_secs(30);

/// A trace in object storage.
#[derive(Clone, Debug)]
pub struct Object {
    store: Arc<dyn ObjectStore>,
    key: Key,
    /// Its address in sentences: without what stands behind `?`, which may be a password.
    pub(crate) name: PathBuf,
    /// Whether its server can be asked for a part of it, and says when it has changed.
    in_pieces: bool,
}

impl Object {
    /// The traces that a word stands for: those below a prefix that ends in `/`, or whose names
    /// fit a pattern, as in folders; else the object itself, which need not exist.
    ///
    /// # Errors
    ///
    /// When it is no address, or the list cannot be had or has no traces.
    pub fn all(word: &str) -> Result<Vec<Object>, Failure> {
        if word.starts_with("http://") || word.starts_with("https://") {
            return Ok(vec![Object::over_http(word)?]);
        }
        let address = Address::of(word)?;
        let store = address.service()?;
        let (folder, pattern) = match address.key.rsplit_once('/') {
            _ if address.is_folder => (address.key.as_str(), "*"),
            Some((folder, name)) if name.contains('*') => (folder, name),
            None if address.key.contains('*') => ("", address.key.as_str()),
            _ => {
                let key =
                    Key::parse(&address.key).map_err(|error| named(Path::new(word), &error))?;
                return Ok(vec![Object::at(store, key, word)]);
            }
        };
        let prefix = Key::parse(folder).map_err(|error| named(Path::new(word), &error))?;
        let lister = store.clone();
        let listed = carry_out(async move {
            let prefix = (!prefix.as_ref().is_empty()).then_some(prefix);
            lister.list_with_delimiter(prefix.as_ref()).await
        })?;
        let listed = listed.map_err(|error| why::sentence(word, &error))?;
        let mut found = Vec::new();
        for meta in listed.objects {
            let file = meta.location.filename().unwrap_or_default();
            if Format::of_file(Path::new(file)).is_some() && folder::fits(pattern, file) {
                let (bucket, key) = (&address.bucket, meta.location);
                let name = format!("{}://{bucket}/{key}", address.scheme);
                found.push(Object::at(store.clone(), key, name));
            }
        }
        // Shorter numbers first, as files of a folder.
        found.sort_by_key(|object| (object.key.as_ref().len(), object.key.clone()));
        if found.is_empty() {
            return Err(Failure(format!("{word}: no traces there, of such a name")));
        }
        Ok(found)
    }

    pub(super) fn at(store: Arc<dyn ObjectStore>, key: Key, name: impl Into<PathBuf>) -> Object {
        Object { store, key, name: name.into(), in_pieces: true }
    }

    fn over_http(word: &str) -> Result<Object, Failure> {
        // All of the address, so that it goes out as it came in; the key is empty then.
        let name = word.split(['?', '#']).next().unwrap_or(word);
        let address = url::Url::parse(word).map_err(|error| named(Path::new(name), &error))?;
        if name.ends_with('/') {
            let what = "over HTTP there is no list of files: say each trace";
            return Err(named(Path::new(name), &what));
        }
        // Of the time that all takes there is no limit, as long as something comes.
        let options = ClientOptions::new().with_allow_http(true).with_timeout_disabled();
        let service = HttpBuilder::new().with_url(address).with_retry(retries());
        let service = service.with_client_options(options).build();
        let service = service.map_err(|error| why::sentence(name, &error))?;
        let key = Key::default();
        Ok(Object { store: Arc::new(service), key, name: name.into(), in_pieces: false })
    }

    fn why(&self, error: &object_store::Error) -> Failure {
        why::sentence(&self.name.to_string_lossy(), error)
    }

    /// Which version is there now, without reading it; none over HTTP, where tags may be anything.
    pub(crate) fn version(&self) -> Result<Option<Version>, Failure> {
        if !self.in_pieces {
            return Ok(None);
        }
        Ok(self.version_of(&self.look()?))
    }

    fn version_of(&self, meta: &ObjectMeta) -> Option<Version> {
        let name = self.key.filename()?.to_owned();
        Some(Version { name, size: meta.size, e_tag: meta.e_tag.clone()? })
    }

    fn look(&self) -> Result<ObjectMeta, Failure> {
        let (store, key) = (self.store.clone(), self.key.clone());
        carry_out(async move { store.head(&key).await })?.map_err(|error| self.why(&error))
    }

    /// Reads it into a file that has no name, and says what it is. What is in memory is a few
    /// pieces.
    pub(crate) fn fetch(&self) -> Result<(File, Fingerprint), Failure> {
        let file = tempfile::tempfile().map_err(|error| {
            let folder = std::env::temp_dir();
            Failure(format!("{}: no room for a trace: {error}", folder.display()))
        })?;
        let mut to = Fetched { file, hasher: crc32fast::Hasher::new(), size: 0, name: &self.name };
        let expected = if self.in_pieces { self.pieces(&mut to) } else { self.stream(&mut to) }?;
        if to.size != expected {
            let size = to.size;
            let what = format!("only {size} of {expected} bytes came: the connection was cut");
            return Err(named(&self.name, &what));
        }
        let fingerprint = Fingerprint { size: to.size, crc: to.hasher.finalize() };
        to.file.rewind().map_err(|error| named(&self.name, &error))?;
        Ok((to.file, fingerprint))
    }

    /// A request for each piece of the version that is there now: what is cut is asked for again
    /// alone, and each has a time limit.
    fn pieces(&self, to: &mut Fetched<'_>) -> Result<u64, Failure> {
        let meta = self.look()?;
        let mut under_way = VecDeque::new();
        for from in (0..meta.size).step_by(PIECE as usize) {
            let range = GetRange::Bounded(from..meta.size.min(from + PIECE));
            let options = GetOptions { range: Some(range), ..GetOptions::default() };
            let options = options.with_if_match(meta.e_tag.clone());
            let (store, key) = (self.store.clone(), self.key.clone());
            under_way.push_back(begin(async move {
                store.get_opts(&key, options).await?.bytes().await
            })?);
            if under_way.len() == PIECES
                && let Some(oldest) = under_way.pop_front()
            {
                to.take(&wait(&oldest)?.map_err(|error| self.why(&error))?)?;
            }
        }
        for piece in under_way {
            to.take(&wait(&piece)?.map_err(|error| self.why(&error))?)?;
        }
        Ok(meta.size)
    }

    /// All in one answer: many servers know no other.
    fn stream(&self, to: &mut Fetched<'_>) -> Result<u64, Failure> {
        let (store, key) = (self.store.clone(), self.key.clone());
        let slow = || named(&self.name, &"the server is too slow: nothing came for 30 seconds");
        let given = carry_out(async move { tokio::time::timeout(SILENCE, store.get(&key)).await })?;
        let given = given.map_err(|_| slow())?.map_err(|error| self.why(&error))?;
        let size = given.meta.size;
        let (pieces, mut receiver) = tokio::sync::mpsc::channel(PIECES);
        let mut stream = given.into_stream();
        // Its end is seen in the channel.
        let _ended = begin(async move {
            loop {
                let next = tokio::time::timeout(SILENCE, stream.next()).await;
                let (last, next) = match next {
                    Ok(None) => return,
                    Ok(Some(next)) => (next.is_err(), Some(next)),
                    Err(_) => (true, None),
                };
                // Waits where the disk is slower.
                if pieces.send(next).await.is_err() || last {
                    return;
                }
            }
        })?;
        while let Some(piece) = receiver.blocking_recv() {
            let piece = piece.ok_or_else(slow)?;
            to.take(&piece.map_err(|error| self.why(&error))?)?;
        }
        Ok(size)
    }
}

/// A trace on its way into a file.
struct Fetched<'a> {
    file: File,
    hasher: crc32fast::Hasher,
    size: u64,
    name: &'a Path,
}

impl Fetched<'_> {
    fn take(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.hasher.update(bytes);
        self.size += bytes.len() as u64;
        self.file.write_all(bytes).map_err(|error| {
            let folder = std::env::temp_dir();
            let what = format!("it does not fit into {}: {error}", folder.display());
            named(self.name, &what)
        })
    }
}
