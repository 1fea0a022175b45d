//! Ranks put together into runs, and runs compared with each other.

use kymograph_analysis::{Metric, Part, run};
use kymograph_converters::order::Order as _;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use crate::block::{self, Level};
use crate::columns::Table;
use crate::rank::Given;
use crate::{Rank, Settings, metrics, page, parallel};

/// Runs that are compared, each with each.
const COMPARED: usize = 6;

/// All that a page shows.
#[derive(Debug, Default)]
pub struct Report {
    pub(crate) runs: Vec<Run>,
    pub(crate) comparisons: Vec<Comparison>,
    /// Whether the TensorBoard plugin's rules are followed.
    pub(crate) plugin: bool,
}

/// The ranks of a job.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) name: String,
    pub(crate) ranks: Vec<Rank>,
    pub(crate) tables: Tables,
}

/// Two runs, by their places.
#[derive(Debug)]
pub(crate) struct Comparison {
    pub(crate) base: usize,
    pub(crate) test: usize,
    pub(crate) tables: Tables,
}

/// Tables, packed, by metric; and why there are no others.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub(crate) packed: BTreeMap<&'static str, String>,
    pub(crate) missing: BTreeMap<&'static str, String>,
}

/// What ranks gave for a metric, or why none of them gave anything.
type Asked = (&'static Metric, Vec<Part>, Option<String>);

impl Tables {
    /// The tables of all ranks.
    fn of(asked: Vec<Asked>, settings: &Settings) -> Tables {
        // Each is taken out by the one thread that works on it.
        let asked: Vec<_> = asked.into_iter().map(|asked| Mutex::new(Some(asked))).collect();
        let made = parallel::each(asked.len(), parallel::cores(), |number| {
            let asked = asked[number].lock().unwrap_or_else(PoisonError::into_inner).take()?;
            Some((asked.0.name, packed(asked, settings)))
        });
        let mut tables = Tables::default();
        for (name, table) in made.into_iter().flatten() {
            match table {
                Ok(block) => tables.packed.insert(name, block),
                Err(why) => tables.missing.insert(name, why),
            };
        }
        tables
    }
}

/// The block of a table, or why there is none.
fn packed((metric, parts, why): Asked, settings: &Settings) -> Result<String, String> {
    // What was left out of a rank is of the ranks' table, too: those have the rows of both.
    let left_out: usize =
        parts.iter().map(|part| metrics::count(part) - part.batch.num_rows()).sum();
    let table = run::over_ranks(metric, parts, &settings.options(metric.name));
    let cut = table.and_then(|batch| {
        let of = batch.num_rows() + left_out;
        Ok((of, metrics::cut(metric.name, batch, of)?))
    });
    let (of, cut) = cut.map_err(|error| why.unwrap_or_else(|| error.to_string()))?;
    let table = Table {
        metric: metric.name,
        answers: metric.answers,
        batch: &cut.batch,
        of,
        cut: cut.which.as_deref(),
    };
    Ok(block::pack(&table.to_json(), Level::Fast))
}

impl Report {
    /// Puts ranks together. Those with one name are a run; where a rank comes again in it, another
    /// run begins, which is called after its file, too.
    pub fn new(ranks: Vec<(String, Rank)>, settings: &Settings) -> Report {
        let mut runs: Vec<(String, Vec<Rank>)> = Vec::new();
        for (name, rank) in ranks {
            let fits = |(own, ranks): &&mut (String, Vec<Rank>)| {
                *own == name && ranks.iter().all(|other| other.rank != rank.rank)
            };
            match runs.iter_mut().find(fits) {
                Some((_, ranks)) => ranks.push(rank),
                None => runs.push((name, vec![rank])),
            }
        }
        let names: Vec<String> = runs.iter().map(|(name, _)| name.clone()).collect();
        for (name, ranks) in &mut runs {
            ranks.order_by_key(|rank| rank.rank);
            if names.iter().filter(|own| *own == name).count() > 1 {
                let file = ranks.first().map_or("", |rank| rank.file.as_str());
                *name = if name.is_empty() { file.to_owned() } else { format!("{name} · {file}") };
            }
        }
        let mut sides: Vec<BTreeMap<&'static str, Vec<Part>>> = Vec::new();
        let mut all = Vec::new();
        for (name, mut ranks) in runs {
            let (tables, side) = tables(&mut ranks, settings);
            sides.push(side);
            all.push(Run { name, ranks, tables });
        }
        Report {
            comparisons: comparisons(&sides, settings),
            runs: all,
            plugin: settings.plugin.is_some(),
        }
    }

    /// How many runs there are.
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    /// The rank with a number of the page's: `id` in its index.
    pub fn rank(&self, id: usize) -> Option<&Rank> {
        self.runs.iter().flat_map(|run| &run.ranks).nth(id)
    }

    /// How many events are on the timelines.
    pub fn events(&self) -> usize {
        self.runs.iter().flat_map(|run| &run.ranks).map(|rank| rank.events).sum()
    }

    /// Writes the page.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        page::write(self, None, out)
    }

    /// Writes a page that asks for its data, see [`page::write`].
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write_live(&self, version: u64, out: &mut impl Write) -> io::Result<()> {
        page::write(self, Some(version), out)
    }

    /// A block of data of such a page.
    pub fn block(&self, number: usize) -> Option<&str> {
        page::block(self, number)
    }
}

/// The tables of a run, and what it is compared with others by.
fn tables(ranks: &mut [Rank], settings: &Settings) -> (Tables, BTreeMap<&'static str, Vec<Part>>) {
    let mut asked: Vec<Asked> = Vec::new();
    let mut side: BTreeMap<&'static str, Vec<Part>> = BTreeMap::new();
    let mut given: Vec<std::vec::IntoIter<Given>> =
        ranks.iter_mut().map(|rank| std::mem::take(&mut rank.parts).into_iter()).collect();
    loop {
        let next: Vec<Given> = given.iter_mut().filter_map(Iterator::next).collect();
        let Some(metric) = next.first().map(|(metric, _)| *metric) else { break };
        let mut parts = Vec::new();
        let mut why = None;
        for (_, part) in next {
            match part {
                Ok(part) => parts.push(part),
                Err(error) => why = why.or(Some(error)),
            }
        }
        if metric.compares() {
            side.insert(metric.name, parts);
        } else {
            asked.push((metric, parts, why));
        }
    }
    (Tables::of(asked, settings), side)
}

/// Each run with each, while there are few; else the first with the others.
fn comparisons(
    sides: &[BTreeMap<&'static str, Vec<Part>>],
    settings: &Settings,
) -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    for (base, first) in sides.iter().enumerate() {
        for (test, second) in sides.iter().enumerate().skip(base + 1) {
            if base > 0 && sides.len() > COMPARED {
                continue;
            }
            let mut asked = Vec::new();
            for metric in metrics::find(&metrics::OF_TWO) {
                let mut parts = Vec::new();
                for (rank, side) in [(0, first), (1, second)] {
                    let of = side.get(metric.name).map_or(&[][..], Vec::as_slice);
                    // A tree is of one rank.
                    let most = if metric.name == "diff_tree" { 1 } else { of.len() };
                    parts.extend(of.iter().take(most).map(|part| Part { rank, ..part.clone() }));
                }
                asked.push((metric, parts, None));
            }
            comparisons.push(Comparison { base, test, tables: Tables::of(asked, settings) });
        }
    }
    comparisons
}
