//! By what a piece of work is known, in the truth and in a trace.

use super::Vendor;
use super::truth::{Kind, Op, Truth};
use kymograph_converters::trace::{Activity, Trace, Value};

/// Kind, name, size.
pub(super) type Key = (Kind, String, u64);

impl Vendor {
    /// Whether the vendor's records say how large the launch of a kernel was.
    fn tells_grids(self) -> bool {
        matches!(self, Vendor::Cuda | Vendor::Hip)
    }

    /// Whether several engines of a device may do a piece of work together, each with a record.
    pub(super) fn splits_work(self) -> bool {
        self == Vendor::Hpu
    }

    /// Whether what did the work says which call asked for it, whatever it was.
    pub(super) fn always_has_arrows(self) -> bool {
        self != Vendor::Hpu
    }
}

/// Of each piece of work of the truth; `found` are those of the trace.
pub(super) fn done(vendor: Vendor, truth: &Truth, found: &[Key]) -> Vec<Key> {
    let sized = |kind: Kind| found.iter().any(|(known, _, size)| *known == kind && *size > 0);
    let key = |op: &Op| {
        let name = if op.name == "-" { String::new() } else { op.name.clone() };
        let kind = if vendor == Vendor::Hpu { synapses(op.kind) } else { op.kind };
        let told = match op.kind {
            Kind::Kernel => vendor.tells_grids(),
            _ => vendor != Vendor::Hpu || sized(kind),
        };
        (kind, name, if told { op.size } else { 0 })
    };
    truth.ops.iter().map(key).collect()
}

/// Synapse does not say which way a copy went.
fn synapses(kind: Kind) -> Kind {
    match kind {
        Kind::ToDevice | Kind::ToHost | Kind::Peer => Kind::Within,
        other => other,
    }
}

/// Of an activity; none if it is none of the work: a runtime may have kernels of its own.
pub(super) fn of(vendor: Vendor, trace: &Trace, activity: &Activity) -> Option<Key> {
    let name = trace.strings.get(activity.name);
    if vendor == Vendor::Hpu {
        return recipes(trace, activity, name);
    }
    let kinds = [
        ("HtoD", Kind::ToDevice),
        ("DtoH", Kind::ToHost),
        ("PtoP", Kind::Peer),
        ("DtoD", Kind::Within),
        // As PTI writes them; memory that the driver does not know is "M".
        ("H2D", Kind::ToDevice),
        ("M2D", Kind::ToDevice),
        ("D2H", Kind::ToHost),
        ("D2M", Kind::ToHost),
        ("D2D", Kind::Within),
        ("Memset", Kind::Set),
    ];
    let kind = kinds.into_iter().find(|(part, _)| name.starts_with("Mem") && name.contains(part));
    match kind {
        Some((_, kind)) => Some((kind, String::new(), number(trace, activity, "bytes")?)),
        None => {
            let name = name.strip_prefix("kymo_selftest_")?;
            let grid = activity.launch.and_then(|launch| trace.launches[launch].grid);
            let size = grid.map_or(0, |grid| u64::from(grid.x));
            Some((Kind::Kernel, format!("kymo_selftest_{name}"), size))
        }
    }
}

/// Of what Gaudi did: kernels are known by their recipes, and the rest by what Synapse calls it.
fn recipes(trace: &Trace, activity: &Activity, name: &str) -> Option<Key> {
    if let Some(recipe) = text(trace, activity, "recipeName")
        && recipe.starts_with("kymo_selftest_")
    {
        return Some((Kind::Kernel, recipe.to_owned(), 0));
    }
    let kind = match name.to_ascii_lowercase() {
        name if name.contains("memset") => Kind::Set,
        name if name.contains("memcpy") || name.contains("dma") => Kind::Within,
        _ => return None,
    };
    Some((kind, String::new(), number(trace, activity, "bytes").unwrap_or(0)))
}

fn argument(trace: &Trace, activity: &Activity, key: &str) -> Option<Value> {
    trace.args.find(activity.args, trace.strings.find(key)?)
}

pub(super) fn number(trace: &Trace, activity: &Activity, key: &str) -> Option<u64> {
    match argument(trace, activity, key)? {
        Value::U64(number) => Some(number),
        Value::I64(number) => u64::try_from(number).ok(),
        _ => None,
    }
}

pub(super) fn text<'a>(trace: &'a Trace, activity: &Activity, key: &str) -> Option<&'a str> {
    match argument(trace, activity, key)? {
        Value::Str(text) => Some(trace.strings.get(text)),
        _ => None,
    }
}
