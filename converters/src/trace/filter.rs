//! A part of a trace.

use super::{
    Activities, Activity, Context, DeviceId, EventRef, Instants, Nanos, Process, ProcessId, Series,
    SeriesKind, Slices, Stage, StrId, Table, Thread, ThreadId, Trace, Track, TrackId, TrackKind,
};
use kymograph_protos::categories::{CategoryFilter, matches_any_case};
use std::collections::{HashMap, HashSet};

/// Which part of a trace is wanted. What is empty or none filters nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    /// What happens, at least partly, from the first time on and before the second. Nothing
    /// is clipped.
    pub times: Option<(Nanos, Nanos)>,
    /// Host events of one of these categories, device activities of one of these stages or
    /// of Kineto's categories. Those that are left out by one of their names are not wanted.
    pub categories: Option<CategoryFilter>,
    /// Processes with one of these ids or names, and what their contexts did on devices. `*`
    /// stands for any characters.
    pub processes: Vec<String>,
    /// Likewise, processes of one of these ranks.
    pub ranks: Vec<i64>,
    /// Events, activities and counters with one of these names. `*` stands for any characters.
    pub names: Vec<String>,
    /// What happens on threads with one of these ids or names, and what that launched. `*` stands
    /// for any characters.
    pub threads: Vec<String>,
    /// Of device work and device counters, those of the devices with these numbers.
    pub devices: Vec<i64>,
}

impl Filter {
    fn takes_all_processes(&self) -> bool {
        self.processes.is_empty() && self.ranks.is_empty()
    }
}

/// Whether a text is what is wanted: `*` in `wanted` stands for any characters, and upper
/// and lower case are the same.
fn fits(wanted: &str, text: &str) -> bool {
    matches_any_case(wanted.as_bytes(), text.as_bytes())
}

/// The words in brackets behind a name, by which merged traces are told apart.
fn merged_label(name: &str) -> &str {
    let label = name.strip_suffix(')').and_then(|name| name.rsplit_once(" ("));
    label.map_or("", |(_, label)| label)
}

/// Which strings are names that are wanted.
struct Named {
    /// By the number of the string; empty if all are.
    wanted: Vec<bool>,
}

impl Named {
    fn new(filter: &Filter, trace: &Trace) -> Named {
        if filter.names.is_empty() {
            return Named { wanted: Vec::new() };
        }
        let mut wanted = Vec::new();
        for (id, text) in trace.strings.iter() {
            let place = id.0 as usize;
            if wanted.len() <= place {
                wanted.resize(place + 1, false);
            }
            wanted[place] = filter.names.iter().any(|name| fits(name, text));
        }
        Named { wanted }
    }

    fn wants(&self, name: StrId) -> bool {
        self.wanted.is_empty() || self.wanted.get(name.0 as usize) == Some(&true)
    }

    fn wants_work(&self, trace: &Trace, activity: &Activity) -> bool {
        let kernel = activity.kernel.map(|kernel| trace.kernels[kernel]);
        let other = kernel.is_some_and(|kernel| self.wants(kernel.demangled));
        self.wants(activity.name) || other
    }
}

/// What becomes of the rows of a table.
type Moved<H> = Vec<Option<H>>;

/// When the first of some events begins and the last one ends.
#[derive(Default)]
struct Span(Option<(i64, i64)>);

impl Span {
    fn add(&mut self, (start, end): (i64, i64)) {
        let (first, last) = self.0.unwrap_or((start, end));
        self.0 = Some((first.min(start), last.max(end)));
    }
}

impl Trace {
    /// When the first event begins and the last one ends; `None` without events.
    pub fn time_span(&self) -> Option<(Nanos, Nanos)> {
        // What has no end counts with its beginning.
        let slices = self.slices.starts().iter().zip(self.slices.durs());
        let slices = slices.map(|(start, dur)| (*start, start.saturating_add((*dur).max(0))));
        let activities = self.activities.starts().iter().zip(self.activities.durs());
        let activities = activities.map(|(start, dur)| (*start, start.saturating_add(*dur)));
        let instants = self.instants.iter().map(|i| (i.time.0, i.time.0));
        let samples = self.counters.iter().map(|s| (s.time.0, s.time.0));
        // One after the other, which is faster than a chain of them.
        let mut span = Span::default();
        slices.for_each(|event| span.add(event));
        activities.for_each(|event| span.add(event));
        instants.chain(samples).for_each(|event| span.add(event));
        span.0.map(|(start, end)| (Nanos(start), Nanos(end)))
    }

    /// Only what `filter` wants. Arrows are kept where their event is. Handles of the trace
    /// before mean other rows afterwards.
    pub fn filtered(mut self, filter: &Filter) -> Trace {
        if *filter != Filter::default() {
            // What they are about is not known.
            self.leftovers.clear();
        }
        let tracks = self.keep_processes(filter);
        let (tracks, launched) = self.keep_threads(filter, tracks);
        let at = |start: Nanos, end: Nanos| {
            filter.times.is_none_or(|(from, to)| start < to && (end > from || start >= from))
        };
        let mut known: HashMap<StrId, bool> = HashMap::new();
        let mut wants = |category| {
            *known.entry(category).or_insert_with(|| self.wants_category(filter, category))
        };
        let named = Named::new(filter, &self);
        let any_process = filter.takes_all_processes() || !self.processes.is_empty();
        let mut slices = Slices::default();
        let mut moved_slices = Moved::with_capacity(self.slices.len());
        for id in self.slices.ids() {
            let mut slice = self.slices.get(id);
            let end = slice.end().unwrap_or(Nanos(i64::MAX));
            let track = tracks[slice.track.index()].filter(|_| at(slice.start, end));
            let track = track.filter(|_| named.wants(slice.name));
            moved_slices.push(track.filter(|_| wants(slice.category)).map(|track| {
                slice.track = track;
                let new = slices.push(slice);
                slices.set_position(new, self.slices.position(id));
                slices.set_end_position(new, self.slices.end_position(id));
                new
            }));
        }
        let mut instants = Instants::default();
        let mut moved_instants = Moved::with_capacity(self.instants.len());
        for id in self.instants.ids() {
            let mut instant = self.instants.get(id);
            let track = tracks[instant.track.index()].filter(|_| at(instant.time, instant.time));
            let track = track.filter(|_| named.wants(instant.name));
            moved_instants.push(track.filter(|_| wants(instant.category)).map(|track| {
                instant.track = track;
                let new = instants.push(instant);
                instants.set_position(new, self.instants.position(id));
                new
            }));
        }
        let stages: Vec<bool> =
            self.stages.iter().map(|(_, stage)| self.wants_stage(filter, Some(stage))).collect();
        let without_stage = self.wants_stage(filter, None);
        let contexts: Vec<bool> =
            self.contexts.iter().map(|(_, context)| self.wants_context(filter, context)).collect();
        let mut activities = Activities::default();
        let mut moved_activities = Moved::with_capacity(self.activities.len());
        for id in self.activities.ids() {
            let activity = self.activities.get(id);
            let wanted = at(activity.start, activity.end())
                && self.wants_device(filter, self.queues[activity.queue].device)
                && launched.as_ref().is_none_or(|numbers| numbers.contains(&activity.correlation))
                && named.wants_work(&self, &activity)
                && activity.stage.map_or(without_stage, |stage| stages[stage.index()])
                && activity.context.map_or(any_process, |context| contexts[context.index()]);
            moved_activities.push(wanted.then(|| {
                let new = activities.push(activity);
                activities.set_position(new, self.activities.position(id));
                new
            }));
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
        let series: Vec<bool> = self
            .counters
            .series
            .iter()
            .map(|(_, series)| self.wants_series(filter, &named, series, &tracks))
            .collect();
        self.keep_samples(&tracks, &series, |time| at(time, time));
        (self.slices, self.instants, self.activities) = (slices, instants, activities);
        self
    }

    fn wants_category(&self, filter: &Filter, category: StrId) -> bool {
        let parts = self.strings.get(category).split(',');
        filter.categories.as_ref().is_none_or(|wanted| wanted.takes(parts.map(str::as_bytes)))
    }

    fn wants_stage(&self, filter: &Filter, stage: Option<&Stage>) -> bool {
        let category = super::work_category(self, stage);
        let name = stage.map_or("", |stage| self.strings.get(stage.name));
        let names = [name, category].map(str::as_bytes);
        filter.categories.as_ref().is_none_or(|wanted| wanted.takes(names))
    }

    /// Processes that are not wanted are gone by then.
    fn wants_context(&self, filter: &Filter, context: &Context) -> bool {
        let known = self.processes.iter().any(|(_, process)| process.pid == context.pid);
        filter.takes_all_processes() || known
    }

    fn wants_device(&self, filter: &Filter, device: DeviceId) -> bool {
        filter.devices.is_empty() || filter.devices.contains(&self.devices[device].number)
    }

    /// `tracks` is what became of those that series have.
    fn wants_series(
        &self,
        filter: &Filter,
        named: &Named,
        series: &Series,
        tracks: &Moved<TrackId>,
    ) -> bool {
        let (device, track) = match series.kind {
            SeriesKind::Track(track) => match tracks[track.index()] {
                Some(track) => (None, Some(track)),
                None => return false,
            },
            SeriesKind::Device { device, .. }
            | SeriesKind::DeviceMemory { device, .. }
            | SeriesKind::DeviceFrequency { device } => (Some(device), None),
        };
        // Of an event with several values each is a series below the name.
        let group = track.and_then(|track| self.tracks[track].parent);
        let group = group.map_or(StrId::NONE, |group| self.tracks[group].name);
        let of_thread =
            track.is_none_or(|track| filter.threads.is_empty() || self.thread_of(track).is_some());
        of_thread
            && device.is_none_or(|device| self.wants_device(filter, device))
            && (named.wants(series.name) || named.wants(group))
    }

    /// Leaves out the tracks of other threads. Returns what is left, and the correlation numbers
    /// of what the threads launched; none if they do not matter.
    fn keep_threads(
        &self,
        filter: &Filter,
        mut tracks: Moved<TrackId>,
    ) -> (Moved<TrackId>, Option<HashSet<u64>>) {
        if filter.threads.is_empty() {
            return (tracks, None);
        }
        let wanted = |id: ThreadId| {
            let thread = &self.threads[id];
            let (tid, name) = (thread.tid.to_string(), self.strings.get(thread.name));
            filter.threads.iter().any(|wanted| *wanted == tid || fits(wanted, name))
        };
        // Handles of the tracks that are left are those of the table by now.
        let kept: Vec<bool> =
            self.tracks.iter().map(|(id, _)| self.thread_of(id).is_some_and(&wanted)).collect();
        for track in &mut tracks {
            *track = track.filter(|track| kept[track.index()]);
        }
        let slices = self.flows.links.iter().filter_map(|link| match link.event {
            EventRef::Slice(id) => Some((self.slices.get(id).track, link.correlation)),
            _ => None,
        });
        let launched = slices.filter(|(track, _)| tracks[track.index()].is_some());
        let launched = launched.map(|(_, correlation)| correlation).collect();
        (tracks, Some(launched))
    }

    fn wants_process(&self, filter: &Filter, id: ProcessId) -> bool {
        let process = &self.processes[id];
        let (pid, name) = (process.pid.to_string(), self.strings.get(process.name));
        let named = |wanted: &String| *wanted == pid || fits(wanted, name);
        (filter.processes.is_empty() || filter.processes.iter().any(named))
            && (filter.ranks.is_empty()
                || self.rank(id).is_some_and(|rank| filter.ranks.contains(&rank)))
    }

    /// Drops the processes that are not wanted, with their threads and tracks. Returns what
    /// became of the tracks.
    fn keep_processes(&mut self, filter: &Filter) -> Moved<TrackId> {
        if filter.takes_all_processes() {
            return self.tracks.iter().map(|(id, _)| Some(id)).collect();
        }
        let all = self.processes.iter();
        let wanted: Vec<bool> = all.map(|(id, _)| self.wants_process(filter, id)).collect();
        let wanted = |process: ProcessId| wanted[process.index()];
        // Tracks of no process belong to all of them; in a merged trace, to those with its label.
        let label = |trace: &Trace, track| {
            let root = trace.ancestors(track).last().map_or(StrId::NONE, |(_, root)| root.name);
            merged_label(trace.strings.get(root)).to_owned()
        };
        let own = self.processes.iter().filter(|(id, _)| wanted(*id));
        let own = own.map(|(_, process)| self.strings.get(process.name));
        let own: HashSet<String> = own.map(|name| merged_label(name).to_owned()).collect();
        // What has no label belongs to all there is.
        let is_own = |label: &String| own.contains(label) || (label.is_empty() && !own.is_empty());
        let mut tracks: Table<TrackId, Track> = Table::default();
        let mut moved_tracks = Moved::with_capacity(self.tracks.len());
        for (id, track) in self.tracks.iter() {
            let of = self.process_of(id);
            let keep = of.map_or_else(|| is_own(&label(self, id)), wanted);
            moved_tracks.push(keep.then(|| tracks.push(track.clone())));
        }
        let mut processes: Table<ProcessId, Process> = Table::default();
        let mut moved_processes = Moved::with_capacity(self.processes.len());
        for (id, process) in self.processes.iter() {
            let track = moved_tracks[process.track.index()].filter(|_| wanted(id));
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

    fn keep_samples(
        &mut self,
        tracks: &Moved<TrackId>,
        wanted: &[bool],
        at: impl Fn(Nanos) -> bool,
    ) {
        let mut dropped: Vec<bool> = wanted.iter().map(|wanted| !wanted).collect();
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
        for (row, sample) in self.counters.iter().enumerate() {
            if at(sample.time) && !dropped[sample.series.index()] {
                kept.push(sample);
                kept.set_last_position(self.counters.position(row));
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
                let name = trace.strings.intern(&format!("slice {category}"));
                let category = trace.strings.intern(category);
                let slice = Slice::new(track, Nanos(start), Nanos(5));
                trace.slices.push(Slice { name, category, ..slice });
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
        let categories =
            Filter { categories: CategoryFilter::parse("B").ok(), ..Filter::default() };
        assert_eq!(left(categories), [(1, 10), (1, 20), (2, 10), (2, 20)]);
        for name in ["two", "2", "t*", "*W*", "*"] {
            let processes = Filter { processes: vec![name.into()], ..Filter::default() };
            let ones = if name == "*" { vec![(1, 0), (1, 10), (1, 20)] } else { vec![] };
            assert_eq!(left(processes), [ones, vec![(2, 0), (2, 10), (2, 20)]].concat(), "{name}");
        }
        assert_eq!(left(Filter::default()).len(), 6);
        let threads = Filter { threads: vec!["20".into()], ..Filter::default() };
        assert_eq!(left(threads), [(2, 0), (2, 10), (2, 20)]);
        let names = Filter { names: vec!["s*e b".into()], ..Filter::default() };
        assert_eq!(left(names), [(1, 10), (2, 10)]);
    }
}
