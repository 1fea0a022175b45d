//! One rank's way through a step: when each event of the template takes place on it.

use crate::job::{Job, Random};
use crate::template::{Role, Template};

/// From a call to the work that it launches, at least.
const LAUNCH: i64 = 4_000;

/// When the events and the works of a repetition take place.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// Beginnings and ends of events.
    pub events: Vec<(i64, i64)>,
    /// Beginnings and ends of works.
    pub works: Vec<(i64, i64)>,
}

/// See the module.
#[derive(Debug)]
pub struct Walk<'a> {
    template: &'a Template,
    job: &'a Job,
    rank: usize,
    random: Random,
    /// What the host takes, of the template's times.
    factor: f64,
    stall: i64,
    cursor: usize,
    /// The template's time at the cursor, and the rank's.
    at: i64,
    now: i64,
    /// When the wait ends that the host is in.
    waits: Option<i64>,
    /// When streams are free.
    streams: Vec<(i64, i64)>,
    /// When all kernels, and all collectives, are done that were launched so far.
    kernels_end: i64,
    collectives_end: i64,
    /// The collective that has begun and not ended.
    pending: Option<(usize, i64)>,
    last_collective: Option<usize>,
    times: Option<Times>,
}

impl<'a> Walk<'a> {
    /// A rank before its first step.
    pub fn new(template: &'a Template, job: &'a Job, rank: usize) -> Walk<'a> {
        Walk {
            template,
            job,
            rank,
            random: Random::of(&[]),
            factor: 1.0,
            stall: 0,
            cursor: 0,
            at: 0,
            now: 1_000_000,
            waits: None,
            streams: Vec::new(),
            kernels_end: 0,
            collectives_end: 0,
            pending: None,
            last_collective: template.works.iter().rposition(|work| work.collective.is_some()),
            times: None,
        }
    }

    /// The rank's time.
    pub fn now(&self) -> i64 {
        self.now
    }

    /// Keeps the times of what follows.
    pub fn keep(&mut self) {
        let events = vec![(0, 0); self.template.events.len()];
        let works = vec![(0, 0); self.template.works.len()];
        self.times = Some(Times { events, works });
    }

    /// What was kept.
    pub fn times(&self) -> Option<&Times> {
        self.times.as_ref()
    }

    /// Begins a repetition of the template.
    pub fn begin(&mut self, step: usize, repetition: usize) {
        let keys = [self.job.seed, 2, self.rank as u64, step as u64, repetition as u64];
        self.random = Random::of(&keys);
        self.factor = self.job.host_factor(self.rank) * self.random.between(0.97, 1.03);
        let usual = 1.15 * (self.template.length() * self.job.repeat as i64) as f64;
        let stall = if repetition == 0 { self.job.stall(self.rank, step) } else { 0.0 };
        self.stall = (stall * usual) as i64;
        (self.cursor, self.at) = (0, 0);
    }

    /// Goes on to the next collective, and says when this rank begins it; `None` at the end of the
    /// repetition.
    pub fn advance(&mut self) -> Option<(usize, i64)> {
        let template = self.template;
        while let Some((at, number, ends)) = template.moments.get(self.cursor).copied() {
            self.cursor += 1;
            if self.waits.is_none() {
                self.now += ((at - self.at) as f64 * self.factor) as i64;
            }
            self.at = at;
            let event = &template.events[number as usize];
            match (event.role, ends) {
                (Role::Sync, false) => {
                    self.waits = Some(self.kernels_end.max(self.collectives_end));
                }
                (Role::Sync, true) => {
                    let until = self.waits.take().unwrap_or(0);
                    self.now = (self.now + 1_000).max(until);
                }
                (Role::Loader, true) => self.now += std::mem::take(&mut self.stall),
                _ => {}
            }
            if let Some(times) = &mut self.times {
                let (start, end) = &mut times.events[number as usize];
                *if ends { end } else { start } = self.now;
            }
            if let (Role::Launch(work), false) = (event.role, ends)
                && let Some(begun) = self.launch(work)
            {
                return Some(begun);
            }
        }
        None
    }

    /// Launches work; says when it begins if it is a collective.
    fn launch(&mut self, number: usize) -> Option<(usize, i64)> {
        let work = &self.template.works[number];
        let free = self.streams.iter().find(|(stream, _)| *stream == work.stream);
        let mut start = (self.now + LAUNCH).max(free.map_or(0, |(_, end)| *end + 800));
        if work.collective.is_some() {
            // It needs what was computed before.
            start = start.max(self.kernels_end);
            self.pending = Some((number, start));
            return self.pending;
        }
        if self.last_collective.is_some_and(|last| number > last) {
            start = start.max(self.collectives_end);
        }
        let factor = self.job.gpu_factor(self.rank) * self.random.between(0.98, 1.02);
        let end = start + ((work.dur as f64 * factor) as i64).max(500);
        self.kernels_end = self.kernels_end.max(end);
        self.done(number, start, end);
        None
    }

    /// Says when the collective ends that has begun.
    pub fn resolve(&mut self, end: i64) {
        if let Some((number, start)) = self.pending.take() {
            self.collectives_end = self.collectives_end.max(end);
            self.done(number, start, end);
        }
    }

    fn done(&mut self, number: usize, start: i64, end: i64) {
        let stream = self.template.works[number].stream;
        match self.streams.iter_mut().find(|(of, _)| *of == stream) {
            Some((_, free)) => *free = end,
            None => self.streams.push((stream, end)),
        }
        if let Some(times) = &mut self.times {
            times.works[number] = (start, end);
        }
    }
}
