//! A part of a trace.

use super::{
    Activities, Activity, EventRef, Instants, Nanos, Process, ProcessId, SeriesKind, Slices, StrId,
    Table, Thread, ThreadId, Trace, Track, TrackId, TrackKind,
};

/// Which part of a trace is wanted. What is empty or none filters nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    /// What happens, at least partly, from the first time on and before the second. Nothing
    /// is clipped.
    pub times: Option<(Nanos, Nanos)>,
    /// Host events of one of these categories, device activities of one of these stages.
    pub categories: Vec<String>,
    /// Processes with one of these ids or names, and what their contexts did on devices.
    pub processes: Vec<String>,
}

/// What becomes of the rows of a table.
type Moved<H> = Vec<Option<H>>;

impl Trace {
    /// When the first event begins and the last one ends; `None` without events.
    pub fn time_span(&self) -> Option<(Nanos, Nanos)> {
        let slices = self.slices.iter().map(|s| (s.start, s.end().unwrap_or(s.start)));
        let instants = self.instants.iter().map(|i| (i.time, i.time));
        let activities = self.activities.iter().map(|a| (a.start, a.end()));
        let samples = self.counters.iter().map(|s| (s.time, s.time));
        slices
            .chain(instants)
            .chain(activities)
            .chain(samples)
            .reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))
    }

    /// Only what `filter` wants. Arrows are kept where their event is. Handles of the trace
    /// before mean other rows afterwards.
    pub fn filtered(mut self, filter: &Filter) -> Trace {
        let tracks = self.keep_processes(filter);
        let at = |start: Nanos, end: Nanos| {
            filter.times.is_none_or(|(from, to)| start < to && (end > from || start >= from))
        };
        let mut slices = Slices::default();
        let mut moved_slices = Moved::with_capacity(self.slices.len());
        for mut slice in self.slices.iter() {
            let end = slice.end().unwrap_or(Nanos(i64::MAX));
            let track = tracks[slice.track.index()].filter(|_| at(slice.start, end));
            moved_slices.push(track.filter(|_| self.wants(filter, slice.category)).map(|track| {
                slice.track = track;
                slices.push(slice)
            }));
        }
        let mut instants = Instants::default();
        let mut moved_instants = Moved::with_capacity(self.instants.len());
        for mut instant in self.instants.iter() {
            let track = tracks[instant.track.index()].filter(|_| at(instant.time, instant.time));
            moved_instants.push(track.filter(|_| self.wants(filter, instant.category)).map(
                |track| {
                    instant.track = track;
                    instants.push(instant)
                },
            ));
        }
        let mut activities = Activities::default();
        let mut moved_activities = Moved::with_capacity(self.activities.len());
        for activity in self.activities.iter() {
            let wanted =
                at(activity.start, activity.end()) && self.wants_activity(filter, &activity);
            moved_activities.push(wanted.then(|| activities.push(activity)));
        }
        let moved = |event: EventRef| match event {
            EventRef::Slice(id) => moved_slices[id.index()].map(EventRef::Slice),
            EventRef::Instant(id) => moved_instants[id.index()].map(EventRef::Instant),
            EventRef::Activity(id) => moved_activities[id.index()].map(EventRef::Activity),
        };
        self.flows.points.retain_mut(|point| match moved(point.event) {
            Some(event) => {
                point.event = event;
                true
            }
            None => false,
        });
        self.flows.links.retain_mut(|link| match moved(link.event) {
            Some(event) => {
                link.event = event;
                true
            }
            None => false,
        });
        self.keep_samples(&tracks, |time| at(time, time));
        (self.slices, self.instants, self.activities) = (slices, instants, activities);
        self
    }

    fn wants(&self, filter: &Filter, category: StrId) -> bool {
        let mut parts = self.strings.get(category).split(',');
        filter.categories.is_empty()
            || parts.any(|part| filter.categories.iter().any(|c| c == part))
    }

    fn wants_activity(&self, filter: &Filter, activity: &Activity) -> bool {
        let stage = activity.stage.map_or("", |stage| self.strings.get(self.stages[stage].name));
        let stage_fits = filter.categories.is_empty()
            || filter.categories.iter().any(|wanted| wanted.eq_ignore_ascii_case(stage));
        let pid = activity.context.map(|context| self.contexts[context].pid);
        let known = |pid| self.processes.iter().any(|(_, process)| process.pid == pid);
        stage_fits && (filter.processes.is_empty() || pid.is_none_or(known))
    }

    /// Drops the processes that are not wanted, with their threads and tracks. Returns what
    /// became of the tracks.
    fn keep_processes(&mut self, filter: &Filter) -> Moved<TrackId> {
        if filter.processes.is_empty() {
            return self.tracks.iter().map(|(id, _)| Some(id)).collect();
        }
        let wanted = |process: &Process| {
            let pid = process.pid.to_string();
            let name = self.strings.get(process.name);
            filter.processes.iter().any(|wanted| *wanted == pid || wanted == name)
        };
        // Tracks of no process belong to all of them.
        let mut tracks: Table<TrackId, Track> = Table::default();
        let mut moved_tracks = Moved::with_capacity(self.tracks.len());
        for (id, track) in self.tracks.iter() {
            let of = self.process_of(id);
            let keep = of.is_none_or(|process| wanted(&self.processes[process]));
            moved_tracks.push(keep.then(|| tracks.push(track.clone())));
        }
        let mut processes: Table<ProcessId, Process> = Table::default();
        let mut moved_processes = Moved::with_capacity(self.processes.len());
        for (_, process) in self.processes.iter() {
            let track = moved_tracks[process.track.index()].filter(|_| wanted(process));
            moved_processes
                .push(track.map(|track| processes.push(Process { track, ..process.clone() })));
        }
        let mut threads: Table<ThreadId, Thread> = Table::default();
        let mut moved_threads = Moved::with_capacity(self.threads.len());
        for (_, thread) in self.threads.iter() {
            let both =
                moved_processes[thread.process.index()].zip(moved_tracks[thread.track.index()]);
            moved_threads.push(
                both.map(|(process, track)| {
                    threads.push(Thread { process, track, ..thread.clone() })
                }),
            );
        }
        for (_, track) in tracks.iter_mut() {
            track.parent = track.parent.and_then(|parent| moved_tracks[parent.index()]);
            track.kind = match track.kind {
                TrackKind::Process(id) => {
                    moved_processes[id.index()].map_or(TrackKind::Other, TrackKind::Process)
                }
                TrackKind::Thread(id) => {
                    moved_threads[id.index()].map_or(TrackKind::Other, TrackKind::Thread)
                }
                kind => kind,
            };
        }
        (self.processes, self.threads, self.tracks) = (processes, threads, tracks);
        moved_tracks
    }

    fn keep_samples(&mut self, tracks: &Moved<TrackId>, at: impl Fn(Nanos) -> bool) {
        let mut dropped = vec![false; self.counters.series.len()];
        for (id, series) in self.counters.series.iter_mut() {
            if let SeriesKind::Track(track) = &mut series.kind {
                match tracks[track.index()] {
                    Some(moved) => *track = moved,
                    None => dropped[id.index()] = true,
                }
            }
        }
        let mut kept = super::Counters::default();
        kept.series = std::mem::take(&mut self.counters.series);
        for sample in self.counters.iter() {
            if at(sample.time) && !dropped[sample.series.index()] {
                kept.push(sample);
            }
        }
        self.counters = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Slice;

    fn two_processes() -> Trace {
        let mut trace = Trace::default();
        for (pid, name) in [(1, "one"), (2, "two")] {
            let process = trace.process(pid, name);
            let thread = trace.thread(process, pid * 10, "main");
            let track = trace.threads[thread].track;
            for (start, category) in [(0, "a"), (10, "b"), (20, "a,b")] {
                let category = trace.strings.intern(category);
                let slice = Slice::new(track, Nanos(start), Nanos(5));
                trace.slices.push(Slice { category, ..slice });
            }
        }
        trace
    }

    fn left(filter: Filter) -> Vec<(i64, i64)> {
        let trace = two_processes().filtered(&filter);
        let pid = |track| trace.processes[trace.process_of(track).unwrap()].pid;
        trace.slices.iter().map(|slice| (pid(slice.track), slice.start.0)).collect()
    }

    #[test]
    fn parts_of_a_trace() {
        let times =
            |from, to| Filter { times: Some((Nanos(from), Nanos(to))), ..Filter::default() };
        assert_eq!(left(times(5, 10)), []);
        assert_eq!(left(times(4, 11)), [(1, 0), (1, 10), (2, 0), (2, 10)]);
        let categories = Filter { categories: vec!["b".into()], ..Filter::default() };
        assert_eq!(left(categories), [(1, 10), (1, 20), (2, 10), (2, 20)]);
        let processes = Filter { processes: vec!["two".into()], ..Filter::default() };
        assert_eq!(left(processes), [(2, 0), (2, 10), (2, 20)]);
        assert_eq!(left(Filter::default()).len(), 6);
    }
}
