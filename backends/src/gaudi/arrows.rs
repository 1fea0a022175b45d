//! Which launch an activity belongs to.
//!
//! Synapse has no numbers for that. A launch and what it launched bear the same recipe, and
//! perhaps a stream; a program launches a recipe again and again, and is ahead of the device.
//! What is known: a stream executes launches in their order, and an execution of a recipe
//! does the same work each time. So the executions are told apart by counting:
//!
//! * work of a kind (a name on an engine) that is there `r` times as often as launches are
//!   belongs to them `r` by `r`;
//! * where some is missing, work that is complete says when each execution began;
//! * without that, an activity has an arrow only if no more than one launch is possible.

use std::collections::HashMap;

/// What makes work that of one node of a recipe: its name, its operation, its engine.
pub(crate) type Node = (u32, u32, u32, u32);

/// A launch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Launch {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) thread: u32,
    /// 0: unsaid.
    pub(crate) stream: u64,
    pub(crate) id: u64,
}

/// Launches by recipe, and what bears one.
#[derive(Debug, Default)]
pub(crate) struct Arrows {
    launches: HashMap<u16, Vec<Launch>>,
    work: HashMap<(u16, u64), HashMap<Node, Vec<Work>>>,
}

/// An activity: when it began, and its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Work {
    start: u64,
    number: u32,
}

impl Arrows {
    pub(crate) fn launch(&mut self, recipe: u16, launch: Launch) {
        self.launches.entry(recipe).or_default().push(launch);
    }

    pub(crate) fn work(&mut self, recipe: u16, stream: u64, node: Node, start: u64, number: u32) {
        let nodes = self.work.entry((recipe, stream)).or_default();
        nodes.entry(node).or_default().push(Work { start, number });
    }

    /// Says for each activity whose launch is known which that is. Returns how many may be of
    /// several.
    pub(crate) fn each(mut self, mut found: impl FnMut(u32, u64)) -> u64 {
        self.launches.values_mut().for_each(outermost);
        let (mut all, mut known) = (0, 0);
        let mut found = |number, launch| {
            known += 1;
            found(number, launch);
        };
        for ((recipe, stream), mut nodes) in self.work {
            let Some(launches) = self.launches.get(&recipe) else { continue };
            let here =
                |launch: &&Launch| stream == 0 || launch.stream == 0 || launch.stream == stream;
            let launches: Vec<Launch> = launches.iter().filter(here).copied().collect();
            let Some(first) = launches.first() else { continue };
            for work in nodes.values_mut() {
                work.sort_unstable();
                // Of launches before the recording.
                work.retain(|work| work.start >= first.start);
            }
            let begins = executions(&launches, &nodes);
            for work in nodes.values() {
                all += work.len() as u64;
                assign(&launches, work, begins.as_deref(), &mut found);
            }
        }
        all - known
    }
}

/// Sorts launches, without those that are part of another one: the same call, reported by an
/// inner function of Synapse's as well.
fn outermost(launches: &mut Vec<Launch>) {
    launches.sort_unstable_by_key(|launch| (launch.start, u64::MAX - launch.end));
    let mut ends: HashMap<u32, u64> = HashMap::new();
    launches.retain(|launch| {
        let end = ends.entry(launch.thread).or_default();
        let inner = launch.end <= *end;
        *end = launch.end.max(*end);
        !inner
    });
}

/// When the execution of each launch began, if there is work that is complete.
fn executions(launches: &[Launch], nodes: &HashMap<Node, Vec<Work>>) -> Option<Vec<u64>> {
    let complete = nodes.values().filter_map(|work| {
        let each = repeats(launches, work)?;
        Some(work.iter().step_by(each).map(|work| work.start).collect::<Vec<_>>())
    });
    complete.min()
}

/// How often an execution does work, if none of it is missing.
fn repeats(launches: &[Launch], work: &[Work]) -> Option<usize> {
    let each = work.len() / launches.len();
    let whole = each > 0 && work.len().is_multiple_of(launches.len());
    let causal = |(at, work): (usize, &Work)| work.start >= launches[at / each].start;
    (whole && work.iter().enumerate().all(causal)).then_some(each)
}

fn assign(
    launches: &[Launch],
    work: &[Work],
    begins: Option<&[u64]>,
    found: &mut impl FnMut(u32, u64),
) {
    if let Some(each) = repeats(launches, work) {
        for (at, work) in work.iter().enumerate() {
            found(work.number, launches[at / each].id);
        }
        return;
    }
    // How many of them there may be before one that are missing, if one execution does it once.
    let missing = launches.len().checked_sub(work.len());
    for (at, work) in work.iter().enumerate() {
        let before = launches.partition_point(|launch| launch.start <= work.start);
        let launch = match (begins, missing) {
            (Some(begins), _) => begins.partition_point(|begin| *begin <= work.start),
            (None, Some(missing)) if before == at + 1 || missing == 0 => at + 1,
            (None, Some(_) | None) if before == 1 => 1,
            _ => 0,
        };
        // One that began before its launch belongs to none that is known.
        if (1..=before).contains(&launch) {
            found(work.number, launches[launch - 1].id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: Node = (1, 1, 2, 0);

    /// Launches of one recipe at these times, numbered from 1, and work of nodes at those.
    fn arrows(launches: &[u64], nodes: &[&[u64]]) -> Vec<(u32, u64)> {
        let mut arrows = Arrows::default();
        for (id, start) in (1..).zip(launches) {
            arrows.launch(9, Launch { start: *start, end: *start, id, ..Launch::default() });
        }
        let mut number = 0;
        for (node, work) in (0..).zip(nodes) {
            for start in *work {
                arrows.work(9, 0, (node, 0, 2, 0), *start, number);
                number += 1;
            }
        }
        let mut all = Vec::new();
        arrows.each(|number, id| all.push((number, id)));
        all.sort_unstable();
        all
    }

    #[test]
    fn executions_are_those_of_launches_in_order() {
        // All were launched before the second ran.
        assert_eq!(arrows(&[1, 2, 3], &[&[10, 20, 30]]), [(0, 1), (1, 2), (2, 3)]);
        // One that is done twice in each.
        let twice = arrows(&[1, 2], &[&[10, 11, 20, 21]]);
        assert_eq!(twice, [(0, 1), (1, 1), (2, 2), (3, 2)]);
    }

    #[test]
    fn complete_work_tells_of_incomplete() {
        let both = arrows(&[1, 2, 3], &[&[10, 20, 30], &[12, 32]]);
        assert_eq!(both, [(0, 1), (1, 2), (2, 3), (3, 1), (4, 3)]);
    }

    #[test]
    fn what_may_be_of_several_launches_has_no_arrow() {
        assert_eq!(arrows(&[1, 2, 3], &[&[10, 20]]), []);
        // Not ahead: each was done before the next was asked for.
        assert_eq!(arrows(&[1, 15, 25], &[&[10, 20]]), [(0, 1), (1, 2)]);
        assert_eq!(arrows(&[5], &[&[1]]), [], "before its launch");
    }

    #[test]
    fn a_call_within_a_call_is_the_same_launch() {
        let mut launches: Vec<_> = [(1, 9, 1), (2, 8, 1), (3, 5, 2), (10, 12, 1)]
            .map(|(start, end, thread)| Launch { start, end, thread, ..Launch::default() })
            .into();
        launches.reverse();
        outermost(&mut launches);
        let starts: Vec<_> = launches.iter().map(|launch| launch.start).collect();
        assert_eq!(starts, [1, 3, 10]);
    }

    #[test]
    fn streams_are_counted_apart() {
        let mut arrows = Arrows::default();
        for (id, stream) in [(1, 7), (2, 8), (3, 7)] {
            arrows.launch(9, Launch { start: id, end: id, stream, id, ..Launch::default() });
        }
        for (number, stream, start) in [(0, 7, 10), (1, 8, 12), (2, 7, 20)] {
            arrows.work(9, stream, NODE, start, number);
        }
        let mut all = Vec::new();
        arrows.each(|number, id| all.push((number, id)));
        all.sort_unstable();
        assert_eq!(all, [(0, 1), (1, 2), (2, 3)]);
    }
}
