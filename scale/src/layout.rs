//! Which files a data set has. docs/DATASET.md is the documentation of this.

use crate::store::Store;
use crate::{Failure, named};
use serde_json::{Value, json};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The version of the schema that is written, and the newest that is read.
pub const VERSION: i64 = 1;
/// The file that makes a folder a data set.
pub const HEADER: &str = "kymograph-dataset.json";
/// Ranks of one partition.
pub const RANKS_PER_PARTITION: i64 = 64;
/// What the header calls itself.
const FORMAT: &str = "kymograph-dataset";

/// The folder of the ranks' manifests.
pub const RANKS: &str = "ranks";
/// The folder of metrics' tables.
pub const METRICS: &str = "metrics";
/// The folder of what is not whole yet. Engines pass over names that begin with a dot.
const PARTIAL: &str = ".partial";

/// Makes a folder, or a place in object storage, a data set if it is none yet.
///
/// # Errors
///
/// When it cannot be made, has other files, or is a data set that this version cannot write.
pub fn create(store: &Store) -> Result<(), Failure> {
    let is_made = || store.read(Path::new(HEADER)).map(|header| header.is_some());
    if is_made()? {
        return check(store).and_then(|()| knows_turns(store));
    }
    let full = match store {
        Store::Local(root) => root.read_dir().is_ok_and(|mut entries| {
            entries.any(|e| e.is_ok_and(|e| !e.file_name().to_string_lossy().starts_with('.')))
        }),
        #[cfg(feature = "storage")]
        Store::Remote(remote) => remote.is_taken()?,
    };
    // Another task may just have made it.
    if full && !is_made()? {
        let what = "is a folder with other files, and no data set: say a new one";
        return Err(Failure(format!("{store} {what}")));
    }
    let header = json!({"format": FORMAT, "version": VERSION, "made_by": made_by()});
    let header = format!("{header:#}\n");
    match store {
        Store::Local(root) => {
            std::fs::create_dir_all(root).map_err(|error| named(root, &error))?;
            whole(&root.join(HEADER), header.as_bytes())?;
        }
        // Of several tasks the first one's stays.
        #[cfg(feature = "storage")]
        Store::Remote(remote) => {
            remote.put_if(Path::new(HEADER), header.into_bytes(), None)?;
        }
    }
    check(store)?;
    knows_turns(store)
}

/// Refuses object storage that takes no notice of conditions: there, tasks that add the same rank
/// could not tell. It says so of a header that is to be put where there is one.
fn knows_turns(store: &Store) -> Result<(), Failure> {
    #[cfg(feature = "storage")]
    if let Store::Remote(remote) = store
        && let Some(header) = store.read(Path::new(HEADER))?
        && remote.put_if(Path::new(HEADER), header, None)? == crate::storage::Put::Done
    {
        let what = "this storage takes no notice of `If-None-Match`, so tasks that add the same \
                    rank would spoil each other's files: add to a folder, and copy that";
        return Err(Failure(format!("{store}: {what}")));
    }
    let _ = store;
    Ok(())
}

/// What wrote a file.
pub(crate) fn made_by() -> String {
    concat!("kymograph ", env!("CARGO_PKG_VERSION")).to_owned()
}

/// Tells whether there is a data set that this version can read.
///
/// # Errors
///
/// When there is none, or one of a newer schema.
pub fn check(store: &Store) -> Result<(), Failure> {
    let path = store.name(Path::new(HEADER));
    let Some(text) = store.read(Path::new(HEADER))? else {
        let what = "is no data set: `kymo dataset add` makes one";
        return Err(Failure(format!("{store} {what}")));
    };
    let header: Value = serde_json::from_slice(&text).map_err(|error| named(&path, &error))?;
    let version = header.get("version").and_then(Value::as_i64);
    match (header.get("format").and_then(Value::as_str), version) {
        (Some(FORMAT), Some(version)) if version > VERSION => Err(Failure(format!(
            "{store} has schema {version}, and this kymo knows schemas up to {VERSION}: use a \
             newer kymo"
        ))),
        (Some(FORMAT), Some(_)) => Ok(()),
        _ => Err(named(&path, &"this is not the header of a data set")),
    }
}

/// The name of a rank's files, without what tells their kind.
pub fn rank_name(rank: i64) -> String {
    format!("rank-{rank:06}")
}

/// The rank of a table's file, or of what a task in object storage has said.
pub(crate) fn rank_of(path: &Path) -> Option<i64> {
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default().to_str();
    let named = [path.file_stem()?.to_str(), folder];
    let rank = |name: &str| name.strip_prefix("rank-")?.split('-').next()?.parse().ok();
    named.into_iter().flatten().find_map(rank)
}

/// The partition of a rank: `ranks=000000-000063`, which engines read as a column.
fn partition(rank: i64) -> String {
    let from = rank.div_euclid(RANKS_PER_PARTITION) * RANKS_PER_PARTITION;
    format!("ranks={from:06}-{:06}", from + RANKS_PER_PARTITION - 1)
}

/// A rank's file of a table, from the root.
pub fn table(table: &str, rank: i64) -> PathBuf {
    [table, &partition(rank), &format!("{}.parquet", rank_name(rank))].iter().collect()
}

/// A rank's file of a metric, from the root.
pub fn metric(metric: &str, rank: i64) -> PathBuf {
    Path::new(METRICS).join(table(metric, rank))
}

/// A rank's manifest, from the root.
pub fn manifest(rank: i64) -> PathBuf {
    Path::new(RANKS).join(format!("{}.json", rank_name(rank)))
}

/// What tasks that add the same rank hold in turn, from the root.
pub(crate) fn lock(rank: i64) -> PathBuf {
    Path::new(RANKS).join(format!(".{}.lock", rank_name(rank)))
}

/// Where tasks of a rank say what they are going to put into object storage, from the root.
#[cfg(feature = "storage")]
pub(crate) fn intents(rank: i64) -> PathBuf {
    Path::new(PARTIAL).join(rank_name(rank))
}

/// The folder of what tasks have not finished.
pub(crate) fn partials(root: &Path) -> PathBuf {
    root.join(PARTIAL)
}

/// How names begin that tasks of a rank give what is not whole yet.
pub(crate) fn partial_prefix(rank: i64) -> String {
    format!("{}-", rank_name(rank))
}

/// Makes a folder for what a task has not finished. No two tasks get the same, though they run on
/// several machines, or are threads of one process.
pub(crate) fn partial(root: &Path, rank: i64) -> Result<TempDir, Failure> {
    let folder = partials(root);
    let made = std::fs::create_dir_all(&folder)
        .and_then(|()| tempfile::Builder::new().prefix(&partial_prefix(rank)).tempdir_in(&folder));
    made.map_err(|error| named(&folder, &error))
}

/// How names begin of a small file that is not whole yet. Engines, and [`create`], pass over them.
pub(crate) fn whole_prefix(path: &Path) -> String {
    format!(".{}.", path.file_name().unwrap_or_default().to_string_lossy())
}

/// Writes a small file, which has its name when it is whole. Of several tasks that write the same
/// file, one is the last.
pub(crate) fn whole(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let write = || {
        let readable = std::fs::Permissions::from_mode(0o666);
        let mut partial = tempfile::Builder::new()
            .prefix(&whole_prefix(path))
            .suffix(".partial")
            .permissions(readable)
            .tempfile_in(path.parent().unwrap_or(path))?;
        partial.write_all(bytes)?;
        partial.persist(path).map(drop).map_err(io::Error::from)
    };
    write().map_err(|error| named(path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_have_partitions() {
        let path = |rank| table("kernels", rank).to_string_lossy().into_owned();
        assert_eq!(path(0), "kernels/ranks=000000-000063/rank-000000.parquet");
        assert_eq!(path(63), "kernels/ranks=000000-000063/rank-000063.parquet");
        assert_eq!(path(4095), "kernels/ranks=004032-004095/rank-004095.parquet");
    }

    #[test]
    fn tasks_that_begin_at_once_make_one_data_set() {
        for _ in 0..100 {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().join("set");
            let barrier = std::sync::Barrier::new(4);
            std::thread::scope(|scope| {
                let tasks: Vec<_> = (0..4)
                    .map(|_| {
                        scope.spawn(|| {
                            barrier.wait();
                            create(&Store::from(&root))
                        })
                    })
                    .collect();
                for task in tasks {
                    task.join().unwrap().unwrap();
                }
            });
            let left = root.read_dir().unwrap().map(|entry| entry.unwrap().file_name());
            assert_eq!(left.collect::<Vec<_>>(), [HEADER]);
        }
    }

    #[test]
    fn only_data_sets_are_read() {
        let root = tempfile::tempdir().unwrap();
        let why = |root: &Path| check(&root.into()).unwrap_err().0;
        assert!(why(root.path()).ends_with("is no data set: `kymo dataset add` makes one"));
        create(&root.path().into()).unwrap();
        create(&root.path().into()).unwrap();
        let newer = r#"{"format": "kymograph-dataset", "version": 2}"#;
        std::fs::write(root.path().join(HEADER), newer).unwrap();
        assert!(why(root.path()).contains("has schema 2"), "{}", why(root.path()));
        std::fs::write(root.path().join(HEADER), "{").unwrap();
        assert!(why(root.path()).contains(HEADER));
    }

    #[test]
    fn a_folder_of_something_else_stays_as_it_is() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("thesis.tex"), "").unwrap();
        assert!(create(&root.path().into()).unwrap_err().0.contains("other files"));
        assert!(!root.path().join(HEADER).exists());
    }
}
