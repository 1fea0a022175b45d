//! What work was done: written by the process that does it, a line for each piece.

use super::Vendor;

/// What kind of work it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Kind {
    Kernel,
    ToDevice,
    ToHost,
    Within,
    Peer,
    Set,
}

impl Kind {
    pub(super) const ALL: [Kind; 6] =
        [Kind::Kernel, Kind::ToDevice, Kind::ToHost, Kind::Within, Kind::Peer, Kind::Set];

    /// As traces name it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Kernel => "kernel",
            Kind::ToDevice => "HtoD",
            Kind::ToHost => "DtoH",
            Kind::Within => "DtoD",
            Kind::Peer => "PtoP",
            Kind::Set => "set",
        }
    }
}

/// A piece of work, and when it was asked for and known to be done, by `CLOCK_BOOTTIME`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Op {
    pub(super) kind: Kind,
    pub(super) device: u32,
    pub(super) stream: u32,
    /// The kernel's thread of the system that asked for it.
    pub(super) thread: u64,
    /// Of a kernel.
    pub(super) name: String,
    /// Blocks of a kernel, or bytes: no other work of its device and kind has this number,
    /// except what a graph does again.
    pub(super) size: u64,
    pub(super) asked: (u64, u64),
    pub(super) done: u64,
}

/// A range around some of it, and when it was begun and ended, by `CLOCK_BOOTTIME`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Range {
    pub(super) name: String,
    /// As that of a piece of work.
    pub(super) thread: u64,
    pub(super) begun: (u64, u64),
    pub(super) ended: (u64, u64),
}

/// What a line begins with that reports one.
const RANGE: &str = "range ";

/// All of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Truth {
    pub(super) devices: u32,
    /// Of all results.
    pub(super) hash: u64,
    /// Kernels that the program's own profiler reported, if it had one.
    pub(super) reported: Option<u64>,
    pub(super) ops: Vec<Op>,
    /// Annotations: each has a name of its own.
    pub(super) ranges: Vec<Range>,
}

impl Truth {
    /// Whether the program profiled itself (or its profiler is none that says what it got).
    pub(super) fn was_shared(&self, vendor: Vendor) -> bool {
        self.reported.is_some() || vendor == Vendor::Hip
    }

    pub(super) fn to_text(&self) -> String {
        let reported = self.reported.map_or(-1, |count| count as i64);
        let mut text = format!("{} {} {reported}\n", self.devices, self.hash);
        for op in &self.ops {
            let Op { device, stream, thread, size, done, asked: (from, to), .. } = op;
            let (kind, name) = (op.kind.name(), if op.name.is_empty() { "-" } else { &op.name });
            text +=
                &format!("{kind} {device} {stream} {thread} {name} {size} {from} {to} {done}\n");
        }
        for Range { name, thread, begun, ended } in &self.ranges {
            let ((b0, b1), (e0, e1)) = (begun, ended);
            text += &format!("{RANGE}{name} {thread} {b0} {b1} {e0} {e1}\n");
        }
        text
    }

    pub(super) fn parse(text: &str) -> Option<Truth> {
        let mut lines = text.lines();
        let mut head = lines.next()?.split(' ');
        let devices = head.next()?.parse().ok()?;
        let hash = head.next()?.parse().ok()?;
        let reported = head.next()?.parse::<i64>().ok()?;
        let (ranges, ops): (Vec<_>, Vec<_>) = lines.partition(|line| line.starts_with(RANGE));
        let ops = ops.into_iter().map(op).collect::<Option<Vec<_>>>()?;
        let ranges = ranges.into_iter().map(range).collect::<Option<Vec<_>>>()?;
        Some(Truth { devices, hash, reported: u64::try_from(reported).ok(), ops, ranges })
    }
}

fn range(line: &str) -> Option<Range> {
    let mut words = line.strip_prefix(RANGE)?.split(' ');
    let name = words.next()?.to_owned();
    let mut number = || words.next()?.parse::<u64>().ok();
    let thread = number()?;
    let (begun, ended) = ((number()?, number()?), (number()?, number()?));
    Some(Range { name, thread, begun, ended })
}

fn op(line: &str) -> Option<Op> {
    let mut words = line.split(' ');
    let kind = words.next()?;
    let kind = Kind::ALL.into_iter().find(|known| known.name() == kind)?;
    let mut number = || words.next()?.parse::<u64>().ok();
    let (device, stream, thread) = (number()? as u32, number()? as u32, number()?);
    let name = words.next()?.to_owned();
    let mut number = || words.next()?.parse::<u64>().ok();
    let (size, asked, done) = (number()?, (number()?, number()?), number()?);
    Some(Op { kind, device, stream, thread, name, size, asked, done })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let name = "kymo_selftest_3".to_owned();
        let kernel = Op {
            kind: Kind::Kernel,
            device: 1,
            stream: 2,
            thread: 77,
            name,
            size: 9,
            asked: (5, 6),
            done: 8,
        };
        let set = Op { kind: Kind::Set, name: "-".to_owned(), ..kernel.clone() };
        let name = "kymo_selftest_lane_0_1".to_owned();
        let range = Range { name, thread: 77, begun: (1, 2), ended: (3, 4) };
        let (ops, ranges) = (vec![kernel, set], vec![range]);
        let truth = Truth { devices: 2, hash: 11, reported: Some(1), ops, ranges };
        assert_eq!(Truth::parse(&truth.to_text()), Some(truth));
        assert_eq!(Truth::parse("1 2"), None);
    }
}
