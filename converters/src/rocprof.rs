//! The JSON of rocprofv3 (`--output-format json`).
//!
//! `rocprofiler-sdk-tool` is a list with an object for each process. Its `buffer_records` are
//! lists by kind: dispatches of kernels and copies are work of a device, others are slices of
//! threads. Names of operations are in `strings`, those of kernels in `kernel_symbols`, texts of
//! markers in `strings` under the number that joins all records of a call.

use std::borrow::Cow;
use std::io::Read;

use hashbrown::HashMap;

use crate::builder::{Builder, Done, Entries};
use crate::json::{self, Error, Kind, whole};
use crate::rocpd::blocks;
use crate::trace::{Api, Dim3, StrId, Trace, Value, Work};

/// The member that such files consist of.
pub(crate) const ROOT: &str = "rocprofiler-sdk-tool";

/// Reads a file.
///
/// # Errors
/// When it is not of this kind, or no JSON.
pub(crate) fn read(input: impl Read) -> Result<Trace, Error> {
    whole(input, |root| {
        let Some(tools) = root.get(ROOT) else {
            return Err(Error::NotATrace(format!("JSON without `{ROOT}`")));
        };
        let mut build = Builder::default();
        // Older versions wrote one object instead of a list.
        let one = (tools.kind() == Kind::Object).then_some(tools);
        for tool in one.into_iter().chain(tools.items()) {
            build = Tool::new(build, tool).read(tool);
        }
        Ok(build.finish("rocprofv3"))
    })?
}

/// One process.
struct Tool<'a> {
    build: Builder,
    pid: i64,
    /// Names of kinds, and of their operations.
    kinds: HashMap<i64, (Cow<'a, str>, Vec<Cow<'a, str>>)>,
    agents: HashMap<i64, i64>,
    kernels: HashMap<i64, (StrId, Entries)>,
    markers: HashMap<i64, StrId>,
}

fn int(value: json::Value<'_>, key: &str) -> Option<i64> {
    value.get(key)?.int()
}

/// The number in `{"handle": 7}`, or a number.
fn handle(value: Option<json::Value<'_>>) -> i64 {
    let value = value.and_then(|value| value.get("handle").unwrap_or(value).int());
    value.unwrap_or(0)
}

impl<'a> Tool<'a> {
    fn new(build: Builder, tool: json::Value<'a>) -> Tool<'a> {
        let pid = tool.get("metadata").and_then(|metadata| int(metadata, "pid")).unwrap_or(1);
        let (kinds, agents) = (HashMap::new(), HashMap::new());
        let (kernels, markers) = (HashMap::new(), HashMap::new());
        Tool { build, pid, kinds, agents, kernels, markers }
    }

    fn read(mut self, tool: json::Value<'a>) -> Builder {
        self.names(tool);
        for records in ["buffer_records", "callback_records"] {
            let Some(records) = tool.get(records) else { continue };
            for (kind, list) in records.fields() {
                let kind = kind.text();
                for record in list.items() {
                    self.record(&kind, record);
                }
            }
        }
        self.build
    }

    fn names(&mut self, tool: json::Value<'a>) {
        let metadata = tool.get("metadata");
        let command = metadata.and_then(|metadata| metadata.get("command"));
        let program = command.and_then(|command| command.items().next());
        let program = program.and_then(json::Value::as_str).map(|text| text.text());
        let program = program.as_deref().and_then(|path| path.rsplit('/').next());
        self.build.name_process(self.pid, program.unwrap_or_default());
        let mut gpus = 0;
        for agent in tool.get("agents").into_iter().flat_map(json::Value::items) {
            // 1 is a processor, 2 a GPU.
            if int(agent, "type") != Some(2) {
                continue;
            }
            let number = int(agent, "logical_node_type_id").unwrap_or(gpus);
            gpus += 1;
            self.agents.insert(handle(agent.get("id")), number);
            let device = self.build.device(number);
            let mut text = |key| self.build.text(&agent.text(key).unwrap_or_default());
            let (name, model, vendor) = (text("product_name"), text("name"), text("vendor_name"));
            let device = &mut self.build.trace.devices[device];
            (device.name, device.architecture, device.vendor) = (name, model, vendor);
        }
        for symbol in tool.get("kernel_symbols").into_iter().flat_map(json::Value::items) {
            let names = ["formatted_kernel_name", "demangled_kernel_name", "kernel_name"];
            let name =
                names.iter().find_map(|key| symbol.text(key).filter(|text| !text.is_empty()));
            let name = self.build.text(&name.unwrap_or_default());
            let mut own = Entries::new();
            for (key, name) in
                [("arch_vgpr_count", "registers per thread"), ("sgpr_count", "scalar registers")]
            {
                own.extend(int(symbol, key).map(|n| (self.build.text(name), Value::I64(n))));
            }
            self.kernels.insert(int(symbol, "kernel_id").unwrap_or(0), (name, own));
        }
        let Some(strings) = tool.get("strings") else { return };
        let kinds = strings.get("buffer_records").into_iter().flat_map(json::Value::items);
        for (row, kind) in kinds.enumerate().filter(|(_, kind)| kind.kind() == Kind::Object) {
            let operations = kind.get("operations").into_iter().flat_map(json::Value::items);
            let name = |value: json::Value<'a>| value.as_str().map(|text| text.text());
            let operations = operations.map(|value| name(value).unwrap_or_default()).collect();
            let name = kind.text("kind").unwrap_or_default();
            self.kinds.insert(row as i64, (name, operations));
        }
        for marker in strings.get("marker_api").into_iter().flat_map(json::Value::items) {
            let text = self.build.text(&marker.text("value").unwrap_or_default());
            self.markers.insert(int(marker, "key").unwrap_or(0), text);
        }
    }

    fn record(&mut self, list: &str, record: json::Value<'a>) {
        let (Some(start), Some(end)) =
            (int(record, "start_timestamp"), int(record, "end_timestamp"))
        else {
            // Samples of counters and code have no place in time of their own.
            let what = format!("{list} record without a time, left out");
            return self.build.trace.facts.warn(what, None);
        };
        let correlation = record.get("correlation_id");
        let internal = correlation.map(|id| id.get("internal").unwrap_or(id));
        let number = internal.and_then(json::Value::int).unwrap_or(0);
        let kind = self.kinds.get(&int(record, "kind").unwrap_or(-1));
        let operation = int(record, "operation").and_then(|n| usize::try_from(n).ok());
        let operation = kind.zip(operation).and_then(|((_, names), at)| names.get(at));
        let operation = operation.map(|name| name.clone().into_owned()).unwrap_or_default();
        let times = (start, end);
        match list {
            "kernel_dispatch" => self.dispatch(record, times, number),
            "memory_copy" => self.copy(record, times, number, &operation),
            _ => self.call(list, record, times, number, &operation),
        }
    }

    fn dispatch(&mut self, record: json::Value<'_>, (start, end): (i64, i64), number: i64) {
        let info = record.get("dispatch_info").unwrap_or(record);
        let agent = handle(info.get("agent_id"));
        let device = self.agents.get(&agent).copied().unwrap_or(agent);
        // Streams are HIP's; without them queues are the hardware's.
        let stream = record.get("stream_id").or_else(|| info.get("queue_id"));
        let queue = self.build.stream(device, handle(stream));
        let unnamed = (StrId::NONE, Entries::new());
        let known = self.kernels.get(&int(info, "kernel_id").unwrap_or(0));
        let (name, mut kernel) = known.cloned().unwrap_or(unnamed);
        for (key, name) in
            [("group_segment_size", "shared memory"), ("private_segment_size", "private memory")]
        {
            kernel.extend(int(info, key).map(|n| (self.build.text(name), Value::I64(n))));
        }
        let dim = |key: &str| {
            let size = info.get(key)?;
            let one = |axis| u32::try_from(int(size, axis)?).ok();
            Some(Dim3 { x: one("x")?, y: one("y")?, z: one("z")? })
        };
        let block = dim("workgroup_size");
        // Their grid counts work items; ours counts blocks.
        let grid = dim("grid_size").zip(block).map(|(grid, block)| blocks(grid, block));
        let context = Some(self.build.context(0, self.pid, Api::Hip));
        let (work, correlation) = (Work::Kernel, u64::try_from(number).unwrap_or(0));
        let done =
            Done { work, queue, start, end, name, correlation, context, grid, block, kernel };
        self.build.work(done, &[]);
    }

    fn copy(
        &mut self,
        record: json::Value<'_>,
        (start, end): (i64, i64),
        number: i64,
        operation: &str,
    ) {
        let agents = ["dst_agent_id", "src_agent_id"].map(|key| handle(record.get(key)));
        let device = agents.iter().find_map(|agent| self.agents.get(agent)).copied().unwrap_or(0);
        let queue = self.build.stream(device, handle(record.get("stream_id")));
        let name = self.build.text(if operation.is_empty() { "MEMORY_COPY" } else { operation });
        let args = int(record, "bytes").map(|n| (self.build.text("bytes"), Value::I64(n)));
        let context = Some(self.build.context(0, self.pid, Api::Hip));
        let (work, correlation) = (Work::Copy, u64::try_from(number).unwrap_or(0));
        let (grid, block, kernel) = (None, None, Entries::new());
        let done =
            Done { work, queue, start, end, name, correlation, context, grid, block, kernel };
        self.build.work(done, args.as_slice());
    }

    fn call(
        &mut self,
        list: &str,
        record: json::Value<'_>,
        times: (i64, i64),
        number: i64,
        operation: &str,
    ) {
        let track = self.build.thread(self.pid, int(record, "thread_id").unwrap_or(self.pid));
        let marker = self.markers.get(&number).filter(|_| list.starts_with("marker"));
        let name = match marker {
            Some(text) => *text,
            None => self.build.text(if operation.is_empty() { list } else { operation }),
        };
        let is_call = list.starts_with("hip") || list.starts_with("hsa");
        let category = self.build.text(if list == "hip_api" { "cuda_runtime" } else { list });
        let mut args = Entries::new();
        if number != 0 && is_call {
            args.push((self.build.text("correlation"), Value::I64(number)));
        }
        let slice = self.build.slice(track, times, name, category, &args);
        if is_call {
            self.build.call(slice, u64::try_from(number).unwrap_or(0), Api::Hip);
        }
    }
}
