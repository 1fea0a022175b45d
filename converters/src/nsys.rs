//! Nsight Systems' SQLite export (`nsys export --type sqlite`).
//!
//! | table | hub |
//! |---|---|
//! | `CUPTI_ACTIVITY_KIND_KERNEL`, `…_MEMCPY`, `…_MEMSET` | work on a stream of a device |
//! | `CUPTI_ACTIVITY_KIND_RUNTIME` | calls, which launched what has their correlation number |
//! | `CUPTI_ACTIVITY_KIND_SYNCHRONIZATION` | slices beside the process |
//! | `NVTX_EVENTS` | slices of threads, moments, and ranges beside the process |
//! | `OSRT_API`, `CUDNN_EVENTS`, `CUBLAS_EVENTS` | slices of threads |
//! | `ThreadNames`, `PROCESSES`, `TARGET_INFO_GPU` | names |
//! | `TARGET_INFO_SESSION_START_TIME` | the time of day |
//!
//! Tables are there when something was recorded for them, and columns differ between versions;
//! what is not there is left out.

use hashbrown::HashMap;

use crate::builder::{Builder, Done, Entries};
use crate::sqlite::{Cell, Database};
use crate::trace::{Api, ClockReading, Dim3, Nanos, StrId, Trace, Value, Work};

/// The columns that all work of devices begins with.
const WORK: [&str; 7] =
    ["start", "end", "deviceId", "streamId", "contextId", "correlationId", "globalPid"];

/// Whether the database is such an export.
pub(crate) fn is_nsys(database: &Database<'_>) -> bool {
    let has = |name| database.table(name).is_some();
    has("StringIds")
        && (has("TARGET_INFO_SESSION_START_TIME")
            || has("META_DATA_EXPORT")
            || has("META_DATA_CAPTURE")
            || has("NVTX_EVENTS")
            || has("CUPTI_ACTIVITY_KIND_RUNTIME")
            || has("CUPTI_ACTIVITY_KIND_KERNEL"))
}

/// Reads an export.
pub(crate) fn read(database: &Database<'_>) -> Trace {
    let mut reader = Reader { database, build: Builder::default(), strings: HashMap::new() };
    reader.each("StringIds", &["id", "value"], |reader, cells| {
        let text = reader.build.text(&cells[1].text());
        reader.strings.insert(cells[0].int(), text);
    });
    reader.names();
    reader.devices();
    reader.calls("CUPTI_ACTIVITY_KIND_RUNTIME", "cuda_runtime");
    for (table, category) in [
        ("OSRT_API", "osrt"),
        ("CUDNN_EVENTS", "cudnn"),
        ("CUBLAS_EVENTS", "cublas"),
        ("MPI_P2P_EVENTS", "mpi"),
        ("MPI_COLLECTIVES_EVENTS", "mpi"),
    ] {
        reader.calls(table, category);
    }
    reader.kernels();
    reader.copies();
    reader.waits();
    reader.ranges();
    reader.build.finish("Nsight Systems")
}

struct Reader<'a> {
    database: &'a Database<'a>,
    build: Builder,
    strings: HashMap<i64, StrId>,
}

/// Process and thread of a global number: each has 24 bits.
fn ids(global: i64) -> (i64, i64) {
    (global >> 24 & 0xff_ffff, global & 0xff_ffff)
}

fn dim(cells: &[Cell<'_>]) -> Option<Dim3> {
    let number = |at: usize| u32::try_from(cells.get(at)?.int()).ok();
    Some(Dim3 { x: number(0)?, y: number(1)?, z: number(2)? }).filter(|dim| dim.x > 0)
}

impl<'a> Reader<'a> {
    fn each(
        &mut self,
        table: &str,
        columns: &[&str],
        mut row: impl FnMut(&mut Reader<'a>, &[Cell<'_>]),
    ) {
        let database = self.database;
        let Some(table) = database.table(table) else { return };
        if !database.each(table, columns, |cells| row(self, cells)) {
            let what = format!("damaged pages of the table {}, left out", table.name);
            self.build.trace.facts.warn(what, None);
        }
    }

    fn string(&self, cell: Cell<'_>) -> StrId {
        self.strings.get(&cell.int()).copied().unwrap_or(StrId::NONE)
    }

    fn names(&mut self) {
        self.each("PROCESSES", &["globalPid", "pid", "name"], |reader, cells| {
            let (pid, _) = ids(cells[0].int());
            reader.build.name_process(pid, &cells[2].text());
        });
        self.each("ThreadNames", &["globalTid", "nameId"], |reader, cells| {
            let (pid, tid) = ids(cells[0].int());
            let name = reader.string(cells[1]);
            let name = reader.build.trace.strings.get(name).to_owned();
            reader.build.name_thread(pid, tid, &name);
        });
        self.each("TARGET_INFO_SESSION_START_TIME", &["utcEpochNs"], |reader, cells| {
            let realtime = Some(Nanos(cells[0].int())).filter(|time| time.0 > 0);
            let reading = ClockReading { trace: Nanos(0), realtime, monotonic: None };
            reader.build.trace.facts.readings.push(reading);
        });
    }

    fn devices(&mut self) {
        let columns = ["cuDevice", "id", "name", "busLocation", "totalMemory", "smCount"];
        self.each("TARGET_INFO_GPU", &columns, |reader, cells| {
            let number = if cells[0] == Cell::Null { cells[1].int() } else { cells[0].int() };
            let device = reader.build.device(number);
            let name = reader.build.text(&cells[2].text());
            let vendor = reader.build.text("NVIDIA");
            let pci = reader.build.text(&cells[3].text());
            let mut properties = Entries::new();
            for (cell, key) in [(cells[4], "totalGlobalMem"), (cells[5], "numSms")] {
                if cell != Cell::Null {
                    properties.push((reader.build.text(key), Value::I64(cell.int())));
                }
            }
            let properties = reader.build.trace.args.add(&properties);
            let device = &mut reader.build.trace.devices[device];
            (device.name, device.vendor, device.pci) = (name, vendor, pci);
            device.properties = properties;
        });
    }

    fn calls(&mut self, table: &str, category: &str) {
        let columns =
            ["start", "end", "globalTid", "nameId", "correlationId", "returnValue", "textId"];
        let category = self.build.text(category);
        let [correlation, result] = ["correlation", "return value"].map(|key| self.build.text(key));
        self.each(table, &columns, |reader, cells| {
            let (pid, tid) = ids(cells[2].int());
            let track = reader.build.thread(pid, tid);
            let name = reader.string(if cells[3] == Cell::Null { cells[6] } else { cells[3] });
            let number = u64::try_from(cells[4].int()).unwrap_or(0);
            let mut args = Entries::new();
            if number != 0 {
                args.push((correlation, Value::I64(number as i64)));
            }
            if cells[5].int() != 0 {
                args.push((result, Value::I64(cells[5].int())));
            }
            let times = (cells[0].int(), cells[1].int());
            let slice = reader.build.slice(track, times, name, category, &args);
            reader.build.call(slice, number, Api::Cuda);
        });
    }

    fn work(
        &mut self,
        work: Work,
        name: StrId,
        cells: &[Cell<'_>],
        args: &Entries,
        kernel: Entries,
    ) {
        let (device, stream) = (cells[2].int(), cells[3].int());
        let queue = self.build.stream(device, stream);
        let (pid, _) = ids(cells[6].int());
        let context = u64::try_from(cells[4].int()).ok();
        let context = context.map(|number| self.build.context(number, pid, Api::Cuda));
        let dims = if work == Work::Kernel {
            (dim(&cells[7..10]), dim(&cells[10..13]))
        } else {
            (None, None)
        };
        let done = Done {
            work,
            queue,
            start: cells[0].int(),
            end: cells[1].int(),
            name,
            correlation: u64::try_from(cells[5].int()).unwrap_or(0),
            context,
            grid: dims.0,
            block: dims.1,
            kernel,
        };
        self.build.work(done, args);
    }

    fn kernels(&mut self) {
        let more = [
            "gridX",
            "gridY",
            "gridZ",
            "blockX",
            "blockY",
            "blockZ",
            "demangledName",
            "shortName",
            "registersPerThread",
            "staticSharedMemory",
            "dynamicSharedMemory",
            "graphNodeId",
        ];
        let columns = [&WORK[..], &more].concat();
        let [registers, shared, node] = ["registers per thread", "shared memory", "graph node id"]
            .map(|key| self.build.text(key));
        self.each("CUPTI_ACTIVITY_KIND_KERNEL", &columns, |reader, cells| {
            let name = reader.string(cells[13]);
            let name = if name == StrId::NONE { reader.string(cells[14]) } else { name };
            let memory = cells[16].int().saturating_add(cells[17].int());
            let kernel =
                vec![(registers, Value::I64(cells[15].int())), (shared, Value::I64(memory))];
            let mut args = Entries::new();
            if cells[18].int() != 0 {
                args.push((node, Value::I64(cells[18].int())));
            }
            reader.work(Work::Kernel, name, cells, &args, kernel);
        });
    }

    fn copies(&mut self) {
        let more = ["bytes", "copyKind", "srcKind", "dstKind", "value"];
        let columns = [&WORK[..], &more].concat();
        let [bytes, value] = ["bytes", "value"].map(|key| self.build.text(key));
        let set = self.build.text("Memset (Device)");
        self.each("CUPTI_ACTIVITY_KIND_MEMCPY", &columns, |reader, cells| {
            let name = match cells[8].int() {
                1 => "Memcpy HtoD",
                2 => "Memcpy DtoH",
                3 => "Memcpy HtoA",
                4 => "Memcpy AtoH",
                5 => "Memcpy AtoA",
                6 => "Memcpy AtoD",
                7 => "Memcpy DtoA",
                8 => "Memcpy DtoD",
                9 => "Memcpy HtoH",
                10 => "Memcpy PtoP",
                _ => "Memcpy",
            };
            let name = reader.build.text(name);
            let args = vec![(bytes, Value::I64(cells[7].int()))];
            reader.work(Work::Copy, name, cells, &args, Entries::new());
        });
        self.each("CUPTI_ACTIVITY_KIND_MEMSET", &columns, |reader, cells| {
            let args =
                vec![(bytes, Value::I64(cells[7].int())), (value, Value::I64(cells[11].int()))];
            reader.work(Work::Set, set, cells, &args, Entries::new());
        });
    }

    fn waits(&mut self) {
        let columns = ["start", "end", "globalPid", "streamId", "syncType"];
        let category = self.build.text("cuda_sync");
        let stream = self.build.text("stream");
        let mut tracks = HashMap::new();
        self.each("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", &columns, |reader, cells| {
            let name = match cells[4].int() {
                1 => "Event Synchronize",
                2 => "Stream Wait Event",
                3 => "Stream Synchronize",
                4 => "Context Synchronize",
                _ => "Synchronize",
            };
            let name = reader.build.text(name);
            let (pid, _) = ids(cells[2].int());
            let parent = reader.build.process_track(pid);
            let trace = &mut reader.build.trace;
            let track = *tracks
                .entry(pid)
                .or_insert_with(|| trace.track(Some(parent), "CUDA synchronization"));
            let args = [(stream, Value::I64(cells[3].int()))];
            let times = (cells[0].int(), cells[1].int());
            reader.build.slice(track, times, name, category, &args);
        });
    }

    fn ranges(&mut self) {
        let columns =
            ["start", "end", "eventType", "text", "textId", "globalTid", "domainId", "rangeId"];
        let category = self.build.text("nvtx");
        let mut tracks = HashMap::new();
        self.each("NVTX_EVENTS", &columns, |reader, cells| {
            let written = cells[3].text();
            let name = match cells[3] {
                Cell::Text(_) => reader.build.text(&written),
                _ => reader.string(cells[4]),
            };
            let (pid, tid) = ids(cells[5].int());
            let (start, end) = (cells[0].int(), cells[1].int());
            let end = if cells[1] == Cell::Null { start.saturating_sub(1) } else { end };
            match cells[2].int() {
                34 => {
                    let track = reader.build.thread(pid, tid);
                    reader.build.instant(track, start, name, category, &[]);
                }
                59 | 70 => {
                    let track = reader.build.thread(pid, tid);
                    reader.build.slice(track, (start, end), name, category, &[]);
                }
                // A range from one thread to another.
                60 | 71 => {
                    let parent = reader.build.process_track(pid);
                    let trace = &mut reader.build.trace;
                    let track = *tracks
                        .entry(pid)
                        .or_insert_with(|| trace.track(Some(parent), "NVTX ranges"));
                    reader.build.slice(track, (start, end), name, category, &[]);
                }
                // Names of domains and categories.
                _ => {}
            }
        });
    }
}
