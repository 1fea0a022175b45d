//! Whether traces are the ranks of one job, all of them, and whole.

use std::collections::BTreeSet;

use kymograph_converters::trace::{self, Trace};

/// Ranks of one job begin at most so far apart, in nanoseconds.
const APART: i64 = 600_000_000_000;

/// What a trace says of a rank's place in its job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    /// The rank.
    pub rank: i64,
    /// How many ranks the job has, if the trace says so.
    pub world_size: Option<i64>,
    /// When the rank's first event begins, in nanoseconds since 1970, if the trace says so.
    pub begins: Option<i64>,
}

impl Member {
    /// What a trace says of one of its ranks, whose first event begins at `origin` by the trace's
    /// clock.
    pub fn of(trace: &Trace, rank: i64, origin: i64) -> Member {
        let begins = trace.facts.realtime_offset().and_then(|offset| origin.checked_add(offset.0));
        Member { rank, world_size: trace::Job::of(trace).world_size, begins }
    }
}

/// A job, as far as its ranks have told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Job {
    /// How many ranks it has.
    pub world_size: Option<i64>,
    /// When a rank begins, in nanoseconds since 1970, and which.
    begins: Option<(i64, i64)>,
}

impl Job {
    /// Why a rank is not of this job: a sentence about its trace.
    ///
    /// # Errors
    ///
    /// That sentence.
    pub fn check(&self, member: &Member) -> Result<(), String> {
        let rank = member.rank;
        if let (Some(known), Some(said)) = (self.world_size, member.world_size)
            && known != said
        {
            return Err(format!(
                "rank {rank} is of a job of {said} ranks, and others are of one of {known}"
            ));
        }
        if let Some(size) = member.world_size.filter(|size| rank >= *size) {
            return Err(format!("it says that it is rank {rank} of {size}"));
        }
        if let (Some((begin, other)), Some(own)) = (self.begins, member.begins)
            && own.abs_diff(begin) > APART as u64
        {
            let minutes = own.abs_diff(begin) / 60_000_000_000;
            let side = if own > begin { "after" } else { "before" };
            return Err(format!(
                "rank {rank} begins {minutes} minutes {side} rank {other}: it is of another run, \
                 or its clock is wrong"
            ));
        }
        Ok(())
    }

    /// Takes over what a rank says.
    pub fn learn(&mut self, member: &Member) {
        self.world_size = self.world_size.or(member.world_size);
        self.begins = self.begins.or_else(|| Some((member.begins?, member.rank)));
    }

    /// The ranks of the job that are not there.
    pub fn missing(&self, there: &BTreeSet<i64>) -> Vec<i64> {
        (0..self.world_size.unwrap_or(0)).filter(|rank| !there.contains(rank)).collect()
    }
}

/// What a trace lacks; none if it is whole.
pub fn damage(trace: &Trace) -> Option<String> {
    let missing = |what: &str| {
        ["cut off", "missing at the end", "end of the file is missing", "damaged"]
            .iter()
            .any(|part| what.contains(part))
    };
    let warning = trace.facts.warnings.iter().find(|warning| missing(&warning.what))?;
    let at = warning.offset.map_or_else(String::new, |at| format!(" at byte {at}"));
    Some(format!("its end is missing or damaged ({}{at})", warning.what))
}

/// Ranks, which are in order, as the beginning of a sentence: `rank 3 is`, `ranks 3, 7–9 (4 in all)
/// are`.
pub fn list(ranks: &[i64]) -> String {
    let mut runs: Vec<(i64, i64)> = Vec::new();
    for rank in ranks {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *rank => *last = *rank,
            _ => runs.push((*rank, *rank)),
        }
    }
    let run = |(from, to): &(i64, i64)| match to - from {
        0 => from.to_string(),
        1 => format!("{from}, {to}"),
        _ => format!("{from}–{to}"),
    };
    let mut text = runs.iter().take(10).map(run).collect::<Vec<_>>().join(", ");
    if runs.len() > 10 {
        text += " and others";
    }
    match ranks {
        [_] => format!("rank {text} is"),
        _ => format!("ranks {text} ({} in all) are", ranks.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000_000_000;

    #[test]
    fn ranks_are_listed_in_runs() {
        assert_eq!(list(&[3]), "rank 3 is");
        assert_eq!(list(&[3, 7, 8, 9, 11, 12]), "ranks 3, 7–9, 11, 12 (6 in all) are");
    }

    #[test]
    fn only_ranks_of_one_job_are_taken() {
        let member = |rank, world_size, begins| Member { rank, world_size, begins };
        let mut job = Job::default();
        job.learn(&member(2, None, None));
        job.learn(&member(0, Some(4), Some(MINUTE)));
        assert_eq!(job.check(&member(3, Some(4), Some(2 * MINUTE))), Ok(()));
        assert_eq!(job.check(&member(3, None, None)), Ok(()));
        let why = |member| job.check(&member).unwrap_err();
        let size = "rank 1 is of a job of 8 ranks, and others are of one of 4";
        assert_eq!(why(member(1, Some(8), None)), size);
        assert_eq!(why(member(4, Some(4), None)), "it says that it is rank 4 of 4");
        assert!(why(member(1, Some(4), Some(90 * MINUTE))).starts_with("rank 1 begins 89 minutes"));
        assert_eq!(job.missing(&BTreeSet::from([0, 2])), [1, 3]);
    }
}
