//! What a packet sequence has said: tables of interned data, defaults.

use hashbrown::HashMap;
use kymograph_protos::fields::{
    callstack, frame, interned_data, interned_string, source_location, trace_packet_defaults,
    track_event_defaults,
};

use super::annotation::Seen;
use crate::perfetto::wire::{Field, Fields};
use crate::trace::{Context, KernelId, LaunchId, QueueId, Stage, StageId, StrId, StringTable};

/// The state of a sequence.
#[derive(Debug, Default)]
pub struct Sequence {
    /// Its id.
    pub id: u32,
    /// Whether the tables hold everything that its packets may refer to.
    pub valid: bool,
    /// Whether it ever was.
    pub was_valid: bool,
    /// The clock of packets that name none.
    pub clock: u32,
    /// The track of events that name none.
    pub track: u64,
    /// The tracks of extra counter values, whole and fractional.
    pub extra_counters: Vec<u64>,
    pub extra_doubles: Vec<u64>,
    /// The process and thread of events of old traces that name no track.
    pub thread: Option<(i64, i64)>,
    /// Values so far of counters that are written as differences.
    pub totals: HashMap<u64, i64>,
    /// Its tables.
    pub tables: Tables,
    /// Values that its events had.
    pub seen: Seen,
}

/// The tables of a sequence.
#[derive(Debug, Default)]
pub struct Tables {
    pub categories: Table<StrId>,
    pub names: Table<StrId>,
    pub arg_names: Table<StrId>,
    pub strings: Table<StrId>,
    pub correlations: Table<StrId>,
    pub functions: Table<StrId>,
    pub source_paths: Table<StrId>,
    pub log_bodies: Table<StrId>,
    pub compute_args: Table<StrId>,
    pub sources: Table<Source>,
    pub frames: Table<Frame>,
    pub callstacks: Table<Box<[u64]>>,
    pub contexts: Table<Context>,
    pub stages: Table<Stage>,
    /// The stage of ranges beside queues.
    pub annotation: Option<u64>,
    /// Rows of the hub that were made of entries.
    pub kernels: Table<(KernelId, Option<LaunchId>)>,
    pub stage_rows: Table<StageId>,
    pub queue_rows: HashMap<(i64, u64), QueueId>,
    /// Perfetto's counter ids, by descriptor.
    pub counters: Table<Vec<(u64, crate::trace::SeriesId)>>,
}

/// A line of source text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Source {
    pub file: StrId,
    pub function: StrId,
    pub line: u64,
}

/// A frame of a stack.
#[derive(Clone, Copy, Debug, Default)]
pub struct Frame {
    pub function: u64,
    pub source: u64,
    pub line: u64,
}

impl Sequence {
    /// Forgets what the sequence has said.
    pub fn clear(&mut self) {
        let Sequence { id, thread, .. } = std::mem::take(self);
        *self = Sequence { id, thread, valid: true, was_valid: true, ..Sequence::default() };
    }

    /// Takes note of a `TracePacketDefaults`.
    pub fn defaults(&mut self, bytes: &[u8]) {
        for (number, field) in Fields::new(bytes) {
            match number {
                trace_packet_defaults::TIMESTAMP_CLOCK_ID => self.clock = field.uint() as u32,
                trace_packet_defaults::TRACK_EVENT_DEFAULTS => {
                    self.extra_counters.clear();
                    self.extra_doubles.clear();
                    for (number, field) in field.fields() {
                        match number {
                            track_event_defaults::TRACK_UUID => self.track = field.uint(),
                            track_event_defaults::EXTRA_COUNTER_TRACK_UUIDS => {
                                self.extra_counters.extend(field.numbers())
                            }
                            track_event_defaults::EXTRA_DOUBLE_COUNTER_TRACK_UUIDS => {
                                self.extra_doubles.extend(field.numbers())
                            }
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Takes note of an entry of `InternedData` that refers to no other table; returns
    /// false if it is of another kind.
    pub fn intern(&mut self, number: u32, field: Field<'_>, strings: &mut StringTable) -> bool {
        let tables = &mut self.tables;
        let table = match number {
            interned_data::EVENT_CATEGORIES => &mut tables.categories,
            interned_data::EVENT_NAMES => &mut tables.names,
            interned_data::DEBUG_ANNOTATION_NAMES => &mut tables.arg_names,
            interned_data::FUNCTION_NAMES => &mut tables.functions,
            interned_data::SOURCE_PATHS => &mut tables.source_paths,
            interned_data::LOG_MESSAGE_BODY => &mut tables.log_bodies,
            interned_data::DEBUG_ANNOTATION_STRING_VALUES => &mut tables.strings,
            interned_data::CORRELATION_ID_STR => &mut tables.correlations,
            interned_data::COMPUTE_ARG_NAMES => &mut tables.compute_args,
            interned_data::SOURCE_LOCATIONS => {
                let (iid, source) = source_location(field, strings);
                tables.sources.insert(iid, source);
                return true;
            }
            interned_data::FRAMES => {
                let (iid, frame) = frame(field);
                tables.frames.insert(iid, frame);
                return true;
            }
            interned_data::CALLSTACKS => {
                let ids = field
                    .fields()
                    .filter(|(n, _)| *n == callstack::FRAME_IDS)
                    .flat_map(|(_, f)| f.numbers());
                tables.callstacks.insert(iid(field), ids.collect());
                return true;
            }
            _ => return false,
        };
        let text = field
            .fields()
            .find(|(n, _)| *n == interned_string::STR)
            .map_or(&[][..], |(_, f)| f.bytes());
        let text = intern_text(strings, text);
        table.insert(iid(field), text);
        true
    }
}

/// The first field of every interned entry.
pub fn iid(field: Field<'_>) -> u64 {
    field
        .fields()
        .find(|(number, _)| *number == interned_string::IID)
        .map_or(0, |(_, field)| field.uint())
}

/// Interns bytes that should be UTF-8; those that are not become U+FFFD.
pub fn intern_text(strings: &mut StringTable, bytes: &[u8]) -> StrId {
    match std::str::from_utf8(bytes) {
        Ok(text) => strings.intern(text),
        Err(_) => strings.intern(&String::from_utf8_lossy(bytes)),
    }
}

/// A `SourceLocation` and its iid.
pub fn source_location(field: Field<'_>, strings: &mut StringTable) -> (u64, Source) {
    let (mut iid, mut source) = (0, Source::default());
    for (number, field) in field.fields() {
        match number {
            source_location::IID => iid = field.uint(),
            source_location::FILE_NAME => source.file = intern_text(strings, field.bytes()),
            source_location::FUNCTION_NAME => source.function = intern_text(strings, field.bytes()),
            source_location::LINE_NUMBER => source.line = field.uint(),
            _ => {}
        }
    }
    (iid, source)
}

fn frame(field: Field<'_>) -> (u64, Frame) {
    let (mut iid, mut frame) = (0, Frame::default());
    for (number, field) in field.fields() {
        match number {
            frame::IID => iid = field.uint(),
            frame::FUNCTION_NAME_ID => frame.function = field.uint(),
            frame::SOURCE_PATH_IID => frame.source = field.uint(),
            frame::LINE_NUMBER => frame.line = field.uint(),
            _ => {}
        }
    }
    (iid, frame)
}

/// Entries by iid. Those of most producers are dense from 1, those of some are hashes.
#[derive(Debug)]
pub struct Table<T> {
    dense: Vec<Option<T>>,
    sparse: HashMap<u64, T>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table { dense: Vec::new(), sparse: HashMap::new() }
    }
}

impl<T> Table<T> {
    /// The entry.
    #[inline]
    pub fn get(&self, iid: u64) -> Option<&T> {
        match self.dense.get(iid as usize) {
            Some(entry) if iid <= u64::from(u32::MAX) => entry.as_ref(),
            _ => self.sparse.get(&iid),
        }
    }

    /// Adds an entry; one that is there already stays.
    pub fn insert(&mut self, iid: u64, entry: T) {
        // Not much larger than it needs to be for what was inserted so far.
        let dense = self.dense.len();
        if iid < dense as u64 {
            self.dense[iid as usize].get_or_insert(entry);
        } else if iid < (dense as u64 + 16) * 2 && !self.sparse.contains_key(&iid) {
            self.dense.resize_with(iid as usize + 1, || None);
            self.dense[iid as usize] = Some(entry);
            for iid in dense..self.dense.len() {
                if let Some(entry) = self.sparse.remove(&(iid as u64)) {
                    self.dense[iid] = Some(entry);
                }
            }
        } else {
            self.sparse.entry(iid).or_insert(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_whatever_their_numbers() {
        let mut table = Table::default();
        let iids = [1, 2, 5, 60, 40, u64::MAX, 1 << 40, 130, 200, 0];
        for iid in iids {
            table.insert(iid, iid);
            table.insert(iid, 7);
        }
        assert!(iids.iter().all(|iid| table.get(*iid) == Some(iid)));
        assert!([3, 59, 61, 1 << 33, 201].iter().all(|iid| table.get(*iid).is_none()));
        assert!(table.dense.len() < 300);
    }
}
