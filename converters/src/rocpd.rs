//! rocpd: the SQLite database of rocprofv3 and rocprof-sys.
//!
//! Its tables end with the id of the run (`rocpd_string_0000…`); one file may hold several runs.
//!
//! | table | hub |
//! |---|---|
//! | `rocpd_kernel_dispatch`, `rocpd_memory_copy` | work on a stream of a device |
//! | `rocpd_region` | slices of threads; those of the HIP and HSA APIs are calls, which launched what has the stack id of their event |
//! | `rocpd_memory_allocate` | slices of threads |
//! | `rocpd_info_agent`, `…_process`, `…_thread`, `…_node` | names |
//!
//! There are two layouts: with times and threads in each row, and with numbers of rows of
//! `rocpd_timestamp` and `rocpd_track`. Both are read.

use hashbrown::HashMap;

use crate::builder::{Builder, Done, Entries};
use crate::sqlite::{Cell, Database};
use crate::trace::{Api, Dim3, StrId, Trace, Value, Work};

/// Whether the database is of this kind.
pub(crate) fn is_rocpd(database: &Database<'_>) -> bool {
    database.tables().iter().any(|table| table.name.starts_with("rocpd_string"))
}

/// Reads a database: all runs in it.
pub(crate) fn read(database: &Database<'_>) -> Trace {
    let mut build = Builder::default();
    let tables = database.tables().iter();
    let runs: Vec<&str> =
        tables.filter_map(|table| table.name.strip_prefix("rocpd_string")).collect();
    for run in runs {
        let mut reader = Run { database, run, build, ..Run::new(database, run) };
        reader.names();
        reader.kernels();
        reader.copies();
        reader.regions();
        build = reader.build;
    }
    build.finish("rocprofv3")
}

/// One run.
struct Run<'a> {
    database: &'a Database<'a>,
    run: &'a str,
    build: Builder,
    strings: HashMap<i64, StrId>,
    /// Process and thread ids of the kernel, by the rows' own.
    processes: HashMap<i64, i64>,
    threads: HashMap<i64, (i64, i64)>,
    /// Numbers of devices.
    agents: HashMap<i64, i64>,
    times: HashMap<i64, i64>,
    tracks: HashMap<i64, Place>,
    /// Category, and what joins a call with its work.
    events: HashMap<i64, (StrId, u64)>,
    kernels: HashMap<i64, (StrId, Entries)>,
}

/// Where an event is, by numbers of rows.
#[derive(Clone, Copy, Default)]
struct Place {
    pid: i64,
    tid: i64,
    agent: i64,
    stream: i64,
}

/// What all tables of events have in common.
const COMMON: [&str; 10] = [
    "start",
    "end",
    "start_id",
    "end_id",
    "pid",
    "tid",
    "agent_id",
    "stream_id",
    "track_id",
    "event_id",
];

impl<'a> Run<'a> {
    fn new(database: &'a Database<'a>, run: &'a str) -> Run<'a> {
        Run {
            database,
            run,
            build: Builder::default(),
            strings: HashMap::new(),
            processes: HashMap::new(),
            threads: HashMap::new(),
            agents: HashMap::new(),
            times: HashMap::new(),
            tracks: HashMap::new(),
            events: HashMap::new(),
            kernels: HashMap::new(),
        }
    }

    fn each(
        &mut self,
        table: &str,
        columns: &[&str],
        mut row: impl FnMut(&mut Run<'a>, &[Cell<'_>]),
    ) {
        let database = self.database;
        let Some(table) = database.table(&format!("{table}{}", self.run)) else { return };
        if !database.each(table, columns, |cells| row(self, cells)) {
            let what = format!("damaged pages of the table {}, left out", table.name);
            self.build.trace.facts.warn(what, None);
        }
    }

    fn names(&mut self) {
        self.each("rocpd_string", &["id", "string"], |run, cells| {
            let text = run.build.text(&cells[1].text());
            run.strings.insert(cells[0].int(), text);
        });
        self.each("rocpd_info_node", &["hostname"], |run, cells| {
            let (key, host) = (run.build.text("host_name"), run.build.string(&cells[0].text()));
            run.build.trace.facts.metadata.push((key, host));
        });
        self.each("rocpd_info_process", &["id", "pid", "name", "command"], |run, cells| {
            let pid = cells[1].int();
            run.processes.insert(cells[0].int(), pid);
            let (name, command) = (cells[2].text(), cells[3].text());
            let program = command.split(' ').next().unwrap_or_default();
            let program = program.rsplit('/').next().unwrap_or_default();
            run.build.name_process(pid, if name.is_empty() { program } else { &name });
        });
        self.each("rocpd_info_thread", &["id", "pid", "tid", "name"], |run, cells| {
            let pid = run.processes.get(&cells[1].int()).copied().unwrap_or(0);
            let tid = cells[2].int();
            run.threads.insert(cells[0].int(), (pid, tid));
            run.build.name_thread(pid, tid, &cells[3].text());
        });
        let columns =
            ["id", "type", "logical_index", "product_name", "name", "vendor_name", "type_index"];
        self.each("rocpd_info_agent", &columns, |run, cells| {
            if cells[1].text() != "GPU" {
                return;
            }
            // As programs count them: the first GPU is 0.
            let number = if cells[6] == Cell::Null { cells[2].int() } else { cells[6].int() };
            run.agents.insert(cells[0].int(), number);
            let device = run.build.device(number);
            let [name, model, vendor] = [3, 4, 5].map(|at| run.build.text(&cells[at].text()));
            let device = &mut run.build.trace.devices[device];
            (device.name, device.architecture, device.vendor) = (name, model, vendor);
        });
        self.each("rocpd_timestamp", &["id", "value"], |run, cells| {
            run.times.insert(cells[0].int(), cells[1].int());
        });
        let columns = ["id", "pid", "tid", "agent_id", "stream_id"];
        self.each("rocpd_track", &columns, |run, cells| {
            let [pid, tid, agent, stream] = [1, 2, 3, 4].map(|at| cells[at].int());
            run.tracks.insert(cells[0].int(), Place { pid, tid, agent, stream });
        });
        let columns = ["id", "category_id", "stack_id", "correlation_id"];
        self.each("rocpd_event", &columns, |run, cells| {
            let category = run.strings.get(&cells[1].int()).copied().unwrap_or(StrId::NONE);
            // Calls and what they launched have one stack id; correlation ids may be the user's.
            let number = if cells[2].int() != 0 { cells[2].int() } else { cells[3].int() };
            let number = u64::try_from(number).unwrap_or(0);
            run.events.insert(cells[0].int(), (category, number));
        });
        let columns = ["id", "display_name", "kernel_name", "arch_vgpr_count", "sgpr_count"];
        let [vector, scalar] =
            ["registers per thread", "scalar registers"].map(|key| self.build.text(key));
        self.each("rocpd_info_kernel_symbol", &columns, |run, cells| {
            let name = if cells[1].text().is_empty() { cells[2].text() } else { cells[1].text() };
            let name = run.build.text(&name);
            let own =
                vec![(vector, Value::I64(cells[3].int())), (scalar, Value::I64(cells[4].int()))];
            run.kernels.insert(cells[0].int(), (name, own));
        });
    }

    /// When and where, of the columns that all have in common.
    fn common(&self, cells: &[Cell<'_>]) -> (i64, i64, Place, (StrId, u64)) {
        let time = |inline: Cell<'_>, row: Cell<'_>| match inline {
            Cell::Null => self.times.get(&row.int()).copied().unwrap_or(0),
            time => time.int(),
        };
        let own = Place {
            pid: cells[4].int(),
            tid: cells[5].int(),
            agent: cells[6].int(),
            stream: cells[7].int(),
        };
        let place = match cells[8] {
            Cell::Null => own,
            track => self.tracks.get(&track.int()).copied().unwrap_or(own),
        };
        let event = self.events.get(&cells[9].int()).copied().unwrap_or((StrId::NONE, 0));
        (time(cells[0], cells[2]), time(cells[1], cells[3]), place, event)
    }

    fn process(&self, place: Place) -> i64 {
        self.processes.get(&place.pid).copied().unwrap_or(place.pid)
    }

    fn thread(&self, place: Place) -> (i64, i64) {
        let unknown = (self.process(place), place.tid);
        self.threads.get(&place.tid).copied().unwrap_or(unknown)
    }

    fn kernels(&mut self) {
        let own = [
            "kernel_id",
            "workgroup_size_x",
            "workgroup_size_y",
            "workgroup_size_z",
            "grid_size_x",
            "grid_size_y",
            "grid_size_z",
            "group_segment_size",
            "private_segment_size",
        ];
        let columns = [&COMMON[..], &own].concat();
        let [group, private] = ["shared memory", "private memory"].map(|key| self.build.text(key));
        self.each("rocpd_kernel_dispatch", &columns, |run, cells| {
            let (start, end, place, (_, correlation)) = run.common(cells);
            let own = &cells[COMMON.len()..];
            let unnamed = (StrId::NONE, Entries::new());
            let (name, mut kernel) = run.kernels.get(&own[0].int()).cloned().unwrap_or(unnamed);
            kernel.push((group, Value::I64(own[7].int())));
            kernel.push((private, Value::I64(own[8].int())));
            let block = dim(&own[1..4]);
            // Their grid counts work items; ours, and everybody else's, counts blocks.
            let grid = dim(&own[4..7]).zip(block).map(|(grid, block)| blocks(grid, block));
            let device = run.agents.get(&place.agent).copied().unwrap_or(place.agent);
            let queue = run.build.stream(device, place.stream);
            let pid = run.process(place);
            let context = Some(run.build.context(0, pid, Api::Hip));
            let work = Work::Kernel;
            let done =
                Done { work, queue, start, end, name, correlation, context, grid, block, kernel };
            run.build.work(done, &[]);
        });
    }

    fn copies(&mut self) {
        let own = ["name_id", "size", "dst_agent_id", "src_agent_id"];
        let columns = [&COMMON[..], &own].concat();
        let bytes = self.build.text("bytes");
        self.each("rocpd_memory_copy", &columns, |run, cells| {
            let (start, end, place, (_, correlation)) = run.common(cells);
            let own = &cells[COMMON.len()..];
            let name = run.strings.get(&own[0].int()).copied().unwrap_or(StrId::NONE);
            // A copy is on the device that it goes to, or else on the one it comes from.
            let device = [own[2], own[3]].iter().find_map(|agent| run.agents.get(&agent.int()));
            let device = device.copied().unwrap_or(0);
            let queue = run.build.stream(device, place.stream);
            let pid = run.process(place);
            let context = Some(run.build.context(0, pid, Api::Hip));
            let (work, kernel) = (Work::Copy, Entries::new());
            let (grid, block) = (None, None);
            let done =
                Done { work, queue, start, end, name, correlation, context, grid, block, kernel };
            run.build.work(done, &[(bytes, Value::I64(own[1].int()))]);
        });
    }

    fn regions(&mut self) {
        let columns = [&COMMON[..], &["name_id"]].concat();
        let calls = self.build.text("cuda_runtime");
        self.each("rocpd_region", &columns, |run, cells| {
            let (start, end, place, (category, correlation)) = run.common(cells);
            let name = run.strings.get(&cells[COMMON.len()].int()).copied().unwrap_or(StrId::NONE);
            let (pid, tid) = run.thread(place);
            let track = run.build.thread(pid, tid);
            let text = run.build.trace.strings.get(category);
            let is_call = text.starts_with("HIP") || text.starts_with("HSA");
            let category = if text.starts_with("HIP_RUNTIME") { calls } else { category };
            let slice = run.build.slice(track, (start, end), name, category, &[]);
            if is_call {
                run.build.call(slice, correlation, Api::Hip);
            }
        });
        let columns = [&COMMON[..], &["name_id", "type", "size"]].concat();
        let [category, bytes] = ["memory", "bytes"].map(|key| self.build.text(key));
        self.each("rocpd_memory_allocate", &columns, |run, cells| {
            let (start, end, place, _) = run.common(cells);
            let own = &cells[COMMON.len()..];
            let name = run.strings.get(&own[0].int()).copied();
            let name = name.unwrap_or_else(|| run.build.text(&own[1].text()));
            let (pid, tid) = run.thread(place);
            let track = run.build.thread(pid, tid);
            let args = [(bytes, Value::I64(own[2].int()))];
            run.build.slice(track, (start, end), name, category, &args);
        });
    }
}

fn dim(cells: &[Cell<'_>]) -> Option<Dim3> {
    let number = |at: usize| u32::try_from(cells.get(at)?.int()).ok();
    Some(Dim3 { x: number(0)?, y: number(1)?, z: number(2)? }).filter(|dim| dim.x > 0)
}

/// How many blocks so many work items are.
pub(crate) fn blocks(items: Dim3, block: Dim3) -> Dim3 {
    let of = |items: u32, block: u32| items.div_ceil(block.max(1));
    Dim3 { x: of(items.x, block.x), y: of(items.y, block.y), z: of(items.z, block.z) }
}
