//! What is known about a rank that is there: written last, so that what has one is whole.

use crate::fingerprint::Fingerprint;
use crate::layout::{self, VERSION};
use crate::store::Store;
use crate::{Failure, named};
use kymograph_analysis::job::Member;
use serde_json::{Map, Value, json};
use std::path::Path;

/// A file of a rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct File {
    /// Its path from the root of the data set.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// Rows.
    pub rows: u64,
}

/// See the module.
#[derive(Clone, PartialEq, Debug)]
pub struct Manifest {
    /// The rank.
    pub rank: i64,
    /// How many ranks the job has, if the trace says so.
    pub world_size: Option<i64>,
    /// The machine; empty if the trace does not say.
    pub host: String,
    /// The file that it was made of.
    pub source: String,
    /// That file.
    pub fingerprint: Fingerprint,
    /// The tag of its version in object storage, if it was there.
    pub source_e_tag: Option<String>,
    /// How many ranks that file has; 0 if the data set is from before this was said.
    pub source_ranks: u64,
    /// How many events there are in all tables of events.
    pub events: u64,
    /// When the first event begins, in nanoseconds of the trace's clock.
    pub origin: i64,
    /// When the last one ends.
    pub end: i64,
    /// What makes nanoseconds since 1970 of the trace's times; none if the trace does not say.
    pub realtime_offset: Option<i64>,
    /// What is wrong with the trace: that its end is missing.
    pub damage: Option<String>,
    /// Metrics that gave nothing, and why.
    pub nothing: Vec<(String, String)>,
    /// All other files of the rank.
    pub files: Vec<File>,
}

impl Manifest {
    /// The rank's place in its job.
    pub fn member(&self) -> Member {
        let begins = self.realtime_offset.and_then(|offset| self.origin.checked_add(offset));
        Member { rank: self.rank, world_size: self.world_size, begins }
    }

    /// As it is written.
    pub fn to_json(&self) -> Value {
        let file = |file: &File| json!({"path": file.path, "size": file.size, "rows": file.rows});
        let nothing: Map<String, Value> =
            self.nothing.iter().map(|(metric, why)| (metric.clone(), json!(why))).collect();
        let mut json = json!({
            "version": VERSION,
            "made_by": layout::made_by(),
            "rank": self.rank,
            "world_size": self.world_size,
            "host": self.host,
            "source": self.source,
            "source_size": self.fingerprint.size,
            "source_crc32": self.fingerprint.crc,
            "source_ranks": self.source_ranks,
            "events": self.events,
            "origin_ns": self.origin,
            "end_ns": self.end,
            "realtime_offset_ns": self.realtime_offset,
            "damage": self.damage,
            "no_table": nothing,
            "files": self.files.iter().map(file).collect::<Vec<_>>(),
        });
        if let Some(e_tag) = &self.source_e_tag {
            json["source_e_tag"] = json!(e_tag);
        }
        json
    }

    fn from_json(json: &Value) -> Option<Manifest> {
        let int = |key: &str| json.get(key)?.as_i64();
        let text = |key: &str| json.get(key)?.as_str().map(str::to_owned);
        let file = |file: &Value| {
            Some(File {
                path: file.get("path")?.as_str()?.to_owned(),
                size: file.get("size")?.as_u64()?,
                rows: file.get("rows")?.as_u64()?,
            })
        };
        let nothing = json.get("no_table")?.as_object()?;
        Some(Manifest {
            rank: int("rank")?,
            world_size: int("world_size"),
            host: text("host")?,
            source: text("source")?,
            fingerprint: Fingerprint {
                size: json.get("source_size")?.as_u64()?,
                crc: u32::try_from(json.get("source_crc32")?.as_u64()?).ok()?,
            },
            source_e_tag: text("source_e_tag"),
            source_ranks: json.get("source_ranks").and_then(Value::as_u64).unwrap_or(0),
            events: json.get("events")?.as_u64()?,
            origin: int("origin_ns")?,
            end: int("end_ns")?,
            realtime_offset: int("realtime_offset_ns"),
            damage: text("damage"),
            nothing: nothing
                .iter()
                .map(|(metric, why)| (metric.clone(), why.as_str().unwrap_or_default().to_owned()))
                .collect(),
            files: json.get("files")?.as_array()?.iter().map(file).collect::<Option<_>>()?,
        })
    }

    /// Reads one; `None` if it is not there.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or is of a newer schema.
    pub fn read(store: &Store, rank: i64) -> Result<Option<Manifest>, Failure> {
        let path = layout::manifest(rank);
        let text = store.read(&path)?;
        text.map(|text| Manifest::parse(&store.name(&path), &text)).transpose()
    }

    pub(crate) fn parse(path: &Path, text: &[u8]) -> Result<Manifest, Failure> {
        let json: Value = serde_json::from_slice(text).map_err(|error| named(path, &error))?;
        let version = json.get("version").and_then(Value::as_i64).unwrap_or(0);
        if version > VERSION {
            let why = format!("schema {version} is newer than {VERSION}: use a newer kymo");
            return Err(named(path, &why));
        }
        Manifest::from_json(&json).ok_or_else(|| named(path, &"this is no manifest of a rank"))
    }

    /// All of a data set, by rank.
    ///
    /// # Errors
    ///
    /// When one cannot be read, or is of a newer schema.
    pub fn all(store: &Store) -> Result<Vec<Manifest>, Failure> {
        let is_manifest = |name: &str| !name.starts_with('.') && name.ends_with(".json");
        let texts = store.read_folder(Path::new(layout::RANKS), is_manifest)?;
        let all = texts.iter().map(|(path, text)| Manifest::parse(path, text));
        let mut all = all.collect::<Result<Vec<Manifest>, Failure>>()?;
        all.sort_by_key(|manifest| manifest.rank);
        Ok(all)
    }

    /// What of the rank's files is not as it was written; `None` if all are.
    ///
    /// # Errors
    ///
    /// When object storage does not say.
    pub fn lacks(&self, store: &Store) -> Result<Option<String>, Failure> {
        match store {
            Store::Local(root) => Ok(self.files.iter().find_map(|file| {
                let path = root.join(&file.path);
                match path.metadata() {
                    Ok(about) if about.len() == file.size => None,
                    Ok(_) => Some(format!("{} is not as it was written", path.display())),
                    Err(error) => Some(format!("{}: {error}", path.display())),
                }
            })),
            #[cfg(feature = "storage")]
            Store::Remote(remote) => {
                let sizes = remote.sizes(self.files.iter().map(|file| file.path.as_str()))?;
                Ok(self.lacks_of(store, &sizes))
            }
        }
    }

    /// Likewise, of what a list has.
    #[cfg(feature = "storage")]
    pub(crate) fn lacks_of(
        &self,
        store: &Store,
        sizes: &std::collections::HashMap<String, u64>,
    ) -> Option<String> {
        self.files.iter().find_map(|file| {
            let name = store.name(Path::new(&file.path));
            match sizes.get(&file.path) {
                Some(size) if *size == file.size => None,
                Some(_) => Some(format!("{} is not as it was written", name.display())),
                None => Some(format!("{} is not there", name.display())),
            }
        })
    }

    /// The version of its trace in object storage.
    #[cfg(feature = "storage")]
    pub(crate) fn version(&self) -> Option<crate::fingerprint::Version> {
        let (name, size) = (self.source.clone(), self.fingerprint.size);
        Some(crate::fingerprint::Version { name, size, e_tag: self.source_e_tag.clone()? })
    }

    /// The rank's file of a table: of the name that [`layout`] says or, as in object storage, of
    /// one with something of its own behind the rank.
    pub fn file(&self, path: &Path) -> Option<&File> {
        let stem = path.file_stem()?.to_str()?;
        self.files.iter().find(|file| {
            let own = Path::new(&file.path);
            let behind = own.file_stem().and_then(|own| own.to_str()?.strip_prefix(stem));
            own.parent() == path.parent()
                && behind.is_some_and(|behind| behind.is_empty() || behind.starts_with('-'))
        })
    }

    /// Whether the rank has such a file.
    pub fn has(&self, path: &Path) -> bool {
        self.file(path).is_some()
    }

    /// Whether it names a file.
    pub(crate) fn names(&self, path: &str) -> bool {
        self.files.iter().any(|file| file.path == path)
    }
}
