//! How far the clocks of ranks are apart, by collectives.
//!
//! A collective ends on all of its ranks at the same time. So what its end is later on one rank's
//! clock than on another's is how far the one clock is ahead; the median over all collectives of a
//! process group is good to a microsecond or so. Ranks that are in no common group are compared
//! over those between them.

use super::{collectives, deviation, median};
use crate::Failure;
use crate::dataset::Dataset;
use crate::labels::Labels;
use arrow_array::RecordBatch;
use kymograph_analysis::Column;
use kymograph_analysis::table::Rows;
use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BinaryHeap};

/// See the module.
pub const CLOCKS: super::Question = super::Question {
    name: "clock_offsets",
    answers: "how far the clock of each rank is ahead, by the ends of collectives",
    columns: COLUMNS,
    table,
};

const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::text("host", "its machine; null if it is not known"),
    Column::duration(
        "offset",
        "how far its clock is ahead of the first rank's; null if no group joins them",
    ),
    Column::duration("spread", "the deviation of what single collectives say"),
    Column::int("collectives", "how many say so"),
    Column::text("verdict", "same, ahead or behind: by more than 50 microseconds"),
];

/// What is no difference: collectives do not end at quite the same time.
const SAME: i64 = 50_000;

/// How far a rank is from the middle of a group.
#[derive(Clone, Copy)]
struct Apart {
    offset: i64,
    spread: f64,
    count: usize,
}

fn table(dataset: &Dataset, labels: &Labels) -> Result<RecordBatch, Failure> {
    let collectives = collectives::read(dataset)?;
    // Of each group and rank, how much later its collectives end than in the middle.
    let mut later: BTreeMap<u32, BTreeMap<i64, Vec<i64>>> = BTreeMap::new();
    for one in &collectives.all {
        let mut ends: Vec<i64> = one.shares.iter().map(|share| share.start + share.dur).collect();
        let middle = median(&mut ends);
        let of = later.entry(one.group).or_default();
        for share in &one.shares {
            of.entry(share.rank).or_default().push(share.start + share.dur - middle);
        }
    }
    if later.is_empty() {
        let what = "no collective is in the traces of several ranks, so no clocks can be compared";
        return Err(Failure(what.to_owned()));
    }
    let mut groups: Vec<BTreeMap<i64, Apart>> = Vec::new();
    let mut of_rank: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for ranks in later.into_values() {
        let apart = |mut all: Vec<i64>| {
            let offset = median(&mut all);
            Apart { offset, spread: deviation(&all, offset), count: all.len() }
        };
        let group: BTreeMap<i64, Apart> =
            ranks.into_iter().map(|(rank, all)| (rank, apart(all))).collect();
        for rank in group.keys() {
            of_rank.entry(*rank).or_default().push(groups.len());
        }
        groups.push(group);
    }
    let found = spread_out(&groups, &of_rank);
    let mut rows = Rows::new(COLUMNS);
    for manifest in &dataset.ranks {
        let own = found.get(&manifest.rank);
        let verdict = own.map(|own| match own.offset {
            offset if offset > SAME => "ahead",
            offset if offset < -SAME => "behind",
            _ => "same",
        });
        rows.push([
            manifest.rank.into(),
            labels.get("host", manifest.rank).into(),
            own.map(|own| own.offset).into(),
            own.map(|own| own.spread as i64).into(),
            own.map_or(0, |own| own.count).into(),
            verdict.into(),
        ]);
    }
    Ok(rows.finish()?)
}

/// From the first rank over groups to all that they join, over those first that have the most
/// collectives.
fn spread_out(
    groups: &[BTreeMap<i64, Apart>],
    of_rank: &BTreeMap<i64, Vec<usize>>,
) -> BTreeMap<i64, Apart> {
    let mut found: BTreeMap<i64, Apart> = BTreeMap::new();
    let Some(first) = of_rank.keys().next().copied() else { return found };
    found.insert(first, Apart { offset: 0, spread: 0.0, count: 0 });
    // Groups that a rank is in whose offset is known: how many collectives, which, the rank.
    let mut next: BinaryHeap<(usize, Reverse<usize>, Reverse<i64>)> = BinaryHeap::new();
    let reach = |rank: i64, next: &mut BinaryHeap<_>| {
        let of = of_rank.get(&rank).into_iter().flatten();
        next.extend(of.map(|at| (groups[*at][&rank].count, Reverse(*at), Reverse(rank))));
    };
    reach(first, &mut next);
    while let Some((_, Reverse(at), Reverse(rank))) = next.pop() {
        let (known, own) = (found[&rank], groups[at][&rank]);
        for (other, apart) in &groups[at] {
            if let Entry::Vacant(entry) = found.entry(*other) {
                entry.insert(Apart {
                    offset: known.offset + apart.offset - own.offset,
                    spread: known.spread.max(apart.spread),
                    count: apart.count,
                });
                reach(*other, &mut next);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_joined_over_the_groups_with_the_most_collectives() {
        let apart = |offset, count| Apart { offset, spread: 0.0, count };
        let groups = [
            BTreeMap::from([(0, apart(5, 1)), (1, apart(900, 1)), (2, apart(0, 1))]),
            BTreeMap::from([(0, apart(10, 50)), (1, apart(30, 50))]),
            BTreeMap::from([(3, apart(0, 9)), (4, apart(1, 9))]),
        ];
        let of_rank = BTreeMap::from([
            (0, vec![0, 1]),
            (1, vec![0, 1]),
            (2, vec![0]),
            (3, vec![2]),
            (4, vec![2]),
        ]);
        let found = spread_out(&groups, &of_rank);
        let offset = |rank| found.get(&rank).map(|apart| apart.offset);
        assert_eq!([0, 1, 2, 3].map(offset), [Some(0), Some(20), Some(-5), None]);
    }
}
