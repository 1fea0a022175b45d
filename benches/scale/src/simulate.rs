//! All ranks at once, to learn when collectives end.

use crate::job::{Job, Random};
use crate::template::Template;
use crate::walk::Walk;

/// When collectives end on each rank, in the order in which the rank comes to them.
pub fn ends(template: &Template, job: &Job) -> Vec<Vec<i64>> {
    let mut walks: Vec<Walk<'_>> =
        (0..job.ranks).map(|rank| Walk::new(template, job, rank)).collect();
    let mut ends: Vec<Vec<i64>> = vec![Vec::new(); job.ranks];
    let mut last = vec![0i64; job.groups().len()];
    let mut random = Random::of(&[job.seed, 3]);
    for step in 0..job.steps {
        for repetition in 0..job.repeat {
            walks.iter_mut().for_each(|walk| walk.begin(step, repetition));
            loop {
                let begun: Vec<Option<(usize, i64)>> =
                    walks.iter_mut().map(Walk::advance).collect();
                // All ranks have the same template, and so the same collectives.
                let Some((number, _)) = begun.first().copied().flatten() else { break };
                let work = &template.works[number];
                let over_rail = work.collective.unwrap_or_default();
                last.fill(0);
                for (rank, start) in begun.iter().enumerate() {
                    let group = job.group(rank, over_rail);
                    last[group] = last[group].max(start.map_or(0, |(_, start)| start));
                }
                for (group, last) in last.iter_mut().enumerate().filter(|(_, last)| **last > 0) {
                    let factor = job.link_factor(group) * random.between(0.95, 1.05);
                    *last += (work.dur as f64 * factor) as i64;
                }
                for (rank, walk) in walks.iter_mut().enumerate() {
                    let noise = random.below(1_500) as i64;
                    let end = last[job.group(rank, over_rail)] + noise;
                    walk.resolve(end);
                    ends[rank].push(end);
                }
            }
        }
    }
    ends
}
