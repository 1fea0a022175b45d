//! The rules of the TensorBoard plugin.

use arrow_array::RecordBatch;

use crate::compat::tensorboard::{Owner, Plugin, Work, is_collective, uses_tensor_cores};
use crate::metric::{gpu_utilization, memory, overview};
use crate::model::{Kind, whole};
use crate::table::{Cell, Cells, Rows};
use crate::{Error, Model, Options};
use kymograph_converters::trace::Value;

/// What to do, by a rule.
struct Advice {
    finding: &'static str,
    evidence: String,
    advice: &'static str,
}

pub(super) fn of_trace(
    model: &Model<'_>,
    options: &Options,
    state: Plugin,
) -> Result<RecordBatch, Error> {
    let times = (overview::METRIC.of_trace)(model, options)?;
    let devices = (gpu_utilization::METRIC.of_trace)(model, options).ok();
    let properties = Properties::of(model);
    let found = [
        data_loading(&times),
        data_parallel(model),
        without_nccl(model, &properties),
        communication(&times),
        devices.as_ref().and_then(low_utilization),
        tensor_cores(model, &properties, state),
        memory_in_use(model, &properties),
    ];
    let mut rows: Rows = super::rows();
    for advice in found.into_iter().flatten() {
        rows.push([
            model.rank.into(),
            advice.finding.into(),
            advice.evidence.as_str().into(),
            advice.advice.into(),
            Cell::Null,
        ]);
    }
    rows.finish()
}

/// The part of a step that something takes in the mean.
fn part(times: &RecordBatch, column: &str) -> f64 {
    let (cells, last) = (Cells::of(times), times.num_rows().saturating_sub(1));
    let value = |column| cells.float(column, last).unwrap_or(0.0);
    value(column) / value("total")
}

fn data_loading(times: &RecordBatch) -> Option<Advice> {
    let part = part(times, "data_loader");
    (part > 0.05).then(|| Advice {
        finding: "loading data takes long",
        evidence: format!("{:.1} % of the steps' time is in the data loader", part * 100.0),
        advice: "give DataLoader num_workers, so that other processes load data",
    })
}

fn data_parallel(model: &Model<'_>) -> Option<Advice> {
    let mut devices: Vec<i64> =
        model.device().iter().map(|row| model.events.lane(*row).pid).collect();
    devices.sort_unstable();
    devices.dedup();
    let is_used = has_operator(model, |name| name == "DataParallel.forward");
    (is_used && devices.len() > 1).then(|| Advice {
        finding: "DataParallel is used",
        evidence: format!("DataParallel.forward on {} devices", devices.len()),
        advice: "use DistributedDataParallel",
    })
}

fn without_nccl(model: &Model<'_>, properties: &[Properties]) -> Option<Advice> {
    let is_used = has_operator(model, |name| name == "DistributedDataParallel.forward");
    let nccl = |name: &str| name.starts_with("nccl:") && is_collective(name);
    let is_able = |device: &Properties| device.capability.is_some_and(|of| of >= (3, 5));
    (is_used && properties.iter().any(is_able) && !has_operator(model, nccl)).then(|| Advice {
        finding: "DistributedDataParallel does not use NCCL",
        evidence: "there are no collectives of NCCL in the trace".to_owned(),
        advice: "use the backend nccl, which is the fastest for DistributedDataParallel",
    })
}

fn has_operator(model: &Model<'_>, is: impl Fn(&str) -> bool) -> bool {
    let host = |kind| matches!(kind, Kind::Operator | Kind::Annotation | Kind::DeviceAnnotation);
    let kinds = model.events.kinds.iter().enumerate();
    kinds.filter(|(_, kind)| host(**kind)).any(|(row, _)| is(model.name(row as u32)))
}

fn communication(times: &RecordBatch) -> Option<Advice> {
    let part = part(times, "communication");
    (part > 0.1).then(|| Advice {
        finding: "communication takes long",
        evidence: format!("{:.1} % of the steps' time is communication", part * 100.0),
        advice: "compress gradients, accumulate them over several batches, or use larger batches",
    })
}

fn low_utilization(devices: &RecordBatch) -> Option<Advice> {
    let cells = Cells::of(devices);
    let low = |row: &usize| cells.float("utilization", *row).is_some_and(|part| part < 50.0);
    let of = |row: usize| {
        let (device, part) = (cells.int("device", row)?, cells.float("utilization", row)?);
        Some(format!("GPU {device} for {part:.1} % of the time"))
    };
    let low: Vec<String> = (0..devices.num_rows()).filter(low).filter_map(of).collect();
    (!low.is_empty()).then(|| Advice {
        finding: "devices are little used",
        evidence: format!("kernels run on {}", low.join(", ")),
        advice: "use larger batches; that may change how the model converges",
    })
}

fn tensor_cores(model: &Model<'_>, properties: &[Properties], state: Plugin) -> Option<Advice> {
    properties.first()?.capability.filter(|of| *of >= (7, 0))?;
    let work = Work::of(model, state);
    let (mut all, mut eligible) = (0, 0);
    for row in model.device().iter().copied() {
        if model.events.kinds[row as usize] != Kind::Kernel {
            continue;
        }
        if uses_tensor_cores(model.name(row)) {
            return None;
        }
        let time = model.events.durs[row as usize];
        if let Some(Owner::Operator(_, is)) = work.owner(model, row) {
            all += time;
            eligible += if is { time } else { 0 };
        }
    }
    (eligible > 0).then(|| Advice {
        finding: "tensor cores are not used",
        evidence: format!(
            "{:.0} % of kernels' time is in operators that could use them",
            eligible as f64 / all as f64 * 100.0
        ),
        advice: "use automatic mixed precision (torch.autocast)",
    })
}

fn memory_in_use(model: &Model<'_>, properties: &[Properties]) -> Option<Advice> {
    let peaks = memory::peaks(model);
    peaks.into_iter().find_map(|(device, peak)| {
        let whole = properties.get(usize::try_from(device).ok()?)?.memory? as f64;
        (peak as f64 > whole * 0.9).then(|| Advice {
            finding: "device memory is nearly full",
            evidence: format!(
                "GPU {device} has {:.1} % of {:.1} GB in use",
                peak as f64 / whole * 100.0,
                whole / f64::from(1 << 30)
            ),
            advice: "use gradient checkpointing or automatic mixed precision",
        })
    })
}

/// What Kineto says of a device (`deviceProperties`).
struct Properties {
    capability: Option<(i64, i64)>,
    memory: Option<i64>,
}

impl Properties {
    fn of(model: &Model<'_>) -> Vec<Properties> {
        let find = |name| model.trace.strings.find(name);
        let names = ["computeMajor", "computeMinor", "totalGlobalMem"].map(find);
        let of = |args| {
            let [major, minor, memory] = names.map(|name| {
                let value: Option<Value> = model.trace.args.find(args, name?);
                value.and_then(whole)
            });
            Properties { capability: major.zip(minor), memory }
        };
        model.trace.devices.iter().map(|(_, device)| of(device.properties)).collect()
    }
}
