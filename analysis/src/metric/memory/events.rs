//! Allocations and when they were released.

use arrow_array::RecordBatch;
use hashbrown::HashMap;

use super::categories::{Category, Phases};
use super::places::Places;
use super::records::{Record, records, within};
use crate::table::Rows;
use crate::{Column, Error, Model, Options, Unit};

pub(super) const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::text("device", "whose memory it is: CPU, GPU0, …"),
    Column::text("operator", "the operator that allocated it; null if there is none"),
    Column::text("caller", "the operator around that; null if there is none"),
    Column::text(
        "category",
        "what it is for, as `memory_timeline` says; null by the plugin's rules",
    ),
    Column::int("size", "how much").unit(Unit::Bytes),
    Column::moment("allocation_ts", "when it was allocated; null if before the trace"),
    Column::moment("release_ts", "when it was freed; null if after the trace"),
    Column::duration("duration", "how long it was held; null if that is not known"),
];

/// The numbers of the records of an allocation and of its release.
type Pair = (Option<usize>, Option<usize>);

pub(super) fn of_trace(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    let plugin = options.tensorboard;
    let mut records = records(model, plugin)?;
    within(&mut records, model, options);
    let places = Places::of(model, plugin, &records);
    let mut pairs = pairs(&records, plugin.is_some());
    if plugin.is_none() {
        let first = |(from, to): &Pair| from.or(*to);
        pairs.sort_by_key(first);
    }
    let phases = plugin.is_none().then(|| Phases::of(model, &records));
    let mut rows = Rows::new(COLUMNS);
    for (from, to) in pairs {
        let Some(own) = from.or(to) else { continue };
        let names: Vec<&str> =
            places.around[own].iter().take(2).map(|row| model.name(*row)).collect();
        let name = from.and_then(|_| names.first().copied());
        let caller = from.and_then(|_| names.get(1).copied());
        let (name, caller) = match plugin {
            None => (name.map(str::to_owned), caller),
            Some(_) => (Some(named(name, places.callers[own])), None),
        };
        let time = |at: Option<usize>| at.map(|at| records[at].time);
        let category = phases.as_ref().map(|phases| match from {
            Some(from) => phases.category(from, records[from].time, time(to)),
            None => Category::BeforeTrace,
        });
        rows.push([
            model.rank.into(),
            records[own].device().as_str().into(),
            name.as_deref().into(),
            caller.into(),
            category.map(Category::name).into(),
            records[to.unwrap_or(own)].bytes.saturating_abs().into(),
            time(from).into(),
            time(to).into(),
            time(to).zip(time(from)).map(|(to, from)| to.saturating_sub(from)).into(),
        ]);
    }
    rows.finish()
}

/// What the plugin calls an allocation.
fn named(operator: Option<&str>, caller: Option<&str>) -> String {
    match (operator, caller) {
        (None, _) => "<unknown>".to_owned(),
        (Some(name), Some(caller)) if name.starts_with("aten::empty") => {
            format!("{caller} ({name})")
        }
        (Some(name), _) => name.to_owned(),
    }
}

/// Allocations with their releases, in the order of those; then what is never freed, then what
/// was allocated before. The plugin keeps the last release of each address of the latter.
pub(super) fn pairs(records: &[Record], of_plugin: bool) -> Vec<Pair> {
    let key = |record: &Record| (record.address, (!of_plugin).then(|| record.device()));
    let mut held: HashMap<_, usize> = HashMap::new();
    let mut freed: HashMap<_, usize> = HashMap::new();
    let mut pairs: Vec<Pair> = Vec::new();
    let mut lone: Vec<Pair> = Vec::new();
    for (at, record) in records.iter().enumerate() {
        let allocates = record.bytes > 0;
        if record.address.is_none() {
            if of_plugin {
                continue;
            }
            lone.push(if allocates { (Some(at), None) } else { (None, Some(at)) });
        } else if allocates {
            // What is still held there was freed unseen. The plugin forgets it.
            let before = held.insert(key(record), at).filter(|_| !of_plugin);
            lone.extend(before.map(|before| (Some(before), None)));
        } else {
            match held.remove(&key(record)) {
                Some(from) => pairs.push((Some(from), Some(at))),
                None if of_plugin => drop(freed.insert(key(record), at)),
                None => lone.push((None, Some(at))),
            }
        }
    }
    let mut left: Vec<usize> = held.into_values().collect();
    left.sort_unstable();
    pairs.extend(left.into_iter().map(|at| (Some(at), None)));
    let mut freed: Vec<usize> = freed.into_values().collect();
    freed.sort_unstable();
    pairs.extend(freed.into_iter().map(|at| (None, Some(at))));
    pairs.extend(lone);
    pairs
}
