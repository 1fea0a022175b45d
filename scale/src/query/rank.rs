//! A rank in memory: its trace, and what is derived from it once for all queries.

use crate::Failure;
use crate::tables::{self, Split};
use datafusion::arrow::array::RecordBatch;
use kymograph_analysis::{Model, Reading};
use kymograph_converters::trace::{ProcessId, Trace};
use std::sync::{Arc, OnceLock};

self_cell::self_cell!(
    /// A trace, and the model that borrows it.
    struct Seen {
        owner: Arc<Trace>,
        #[covariant]
        dependent: Model,
    }
);

/// A rank in memory.
pub(super) struct Rank {
    pub rank: i64,
    seen: Seen,
    split: OnceLock<Split>,
}

impl std::fmt::Debug for Rank {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rank").field("rank", &self.rank).finish_non_exhaustive()
    }
}

impl Rank {
    pub fn new(trace: Arc<Trace>, process: Option<ProcessId>, rank: i64) -> Rank {
        let seen = Seen::new(trace, |trace| Model::new(trace, process, rank, Reading::Exact));
        Rank { rank, seen, split: OnceLock::new() }
    }

    pub fn trace(&self) -> &Trace {
        self.seen.borrow_owner()
    }

    /// The model, whose parts are made when a query first needs them.
    pub fn model(&self) -> &Model<'_> {
        self.seen.borrow_dependent()
    }

    /// The rows of a table of events by `ts`; none if the table is another one.
    pub fn rows(&self, table: &str) -> Option<&[u32]> {
        self.split.get_or_init(|| Split::of(self.model())).rows(table)
    }

    /// Wanted columns of a table, of some of its rows if it is one of events.
    ///
    /// # Errors
    ///
    /// Like those of [`tables::one`].
    pub fn table(
        &self,
        name: &str,
        rows: Option<&[u32]>,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Result<RecordBatch, Failure> {
        let model = self.model();
        Ok(match rows {
            Some(rows) => tables::of_events(model, name, rows, wanted)?,
            None => tables::one(model, self.split.get_or_init(|| Split::of(model)), name, wanted)?,
        })
    }
}
