//! Collectives of all ranks, joined by process group, step and sequence.

use crate::Failure;
use crate::dataset::Dataset;
use crate::layout;
use kymograph_analysis::table::Cells;
use std::collections::{BTreeMap, HashMap};

/// A rank's part of a collective.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    pub(super) rank: i64,
    pub(super) start: i64,
    pub(super) dur: i64,
}

/// A collective over ranks.
#[derive(Clone, Debug)]
pub(super) struct Collective {
    pub(super) group: u32,
    pub(super) step: i64,
    /// What it does, and how much it moves.
    pub(super) what: (u32, Option<i64>),
    pub(super) shares: Vec<Share>,
}

impl Collective {
    /// How long the data took to move: what the rank that came last took.
    pub(super) fn transfer(&self) -> i64 {
        self.shares.iter().map(|share| share.dur).min().unwrap_or(0)
    }
}

/// All of them, and their process groups by number.
#[derive(Debug)]
pub(super) struct Collectives {
    pub(super) all: Vec<Collective>,
    pub(super) groups: Vec<String>,
}

/// A row of a rank, with numbers for texts.
struct Row {
    group: u32,
    step: i64,
    sequence: i64,
    collective: u32,
    message: Option<i64>,
    share: Share,
}

/// Texts by number.
#[derive(Default)]
struct Texts(HashMap<String, u32>);

impl Texts {
    fn number(&mut self, text: &str) -> u32 {
        match self.0.get(text) {
            Some(number) => *number,
            None => {
                let number = self.0.len() as u32;
                self.0.insert(text.to_owned(), number);
                number
            }
        }
    }
}

/// Reads those of all ranks. Those of a group and step that not all of its ranks have alike are
/// left out: a trace that begins or ends in the middle of a step counts them otherwise.
pub(super) fn read(dataset: &Dataset) -> Result<Collectives, Failure> {
    let texts = std::sync::Mutex::new((Texts::default(), Texts::default()));
    let rows = dataset.each(
        |rank| layout::table("collectives", rank),
        |manifest, batch| {
            let cells = Cells::of(&batch);
            let mut texts = texts.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            let (groups, kinds) = &mut *texts;
            let row = |row: usize| {
                Some(Row {
                    group: groups.number(cells.text("group", row)?),
                    step: cells.int("step", row)?,
                    sequence: cells.int("sequence", row)?,
                    collective: kinds.number(cells.text("collective", row).unwrap_or_default()),
                    message: cells.int("message", row),
                    share: Share {
                        rank: manifest.rank,
                        start: cells.int("ts", row)?,
                        dur: cells.int("duration", row)?,
                    },
                })
            };
            Ok((0..batch.num_rows()).filter_map(row).collect::<Vec<Row>>())
        },
    )?;
    let mut joined: BTreeMap<(u32, i64), BTreeMap<i64, Collective>> = BTreeMap::new();
    let mut counts: HashMap<(u32, i64), HashMap<i64, usize>> = HashMap::new();
    for row in rows.into_iter().flatten() {
        let key = (row.group, row.step);
        *counts.entry(key).or_default().entry(row.share.rank).or_default() += 1;
        let what = (row.collective, row.message);
        let of = joined.entry(key).or_default().entry(row.sequence).or_insert_with(|| Collective {
            group: row.group,
            step: row.step,
            what,
            shares: Vec::new(),
        });
        of.shares.push(row.share);
    }
    let alike = |key: &(u32, i64)| {
        let mut of = counts.get(key).into_iter().flat_map(HashMap::values);
        let first = of.next();
        of.all(|count| Some(count) == first)
    };
    let all = joined.into_iter().filter(|(key, _)| alike(key));
    let all = all.flat_map(|(_, of)| of.into_values()).filter(|one| one.shares.len() > 1).collect();
    let (groups, _) = texts.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut names = vec![String::new(); groups.0.len()];
    for (name, number) in groups.0 {
        names[number as usize] = name;
    }
    Ok(Collectives { all, groups: names })
}
