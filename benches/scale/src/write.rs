//! A rank's trace, as PyTorch's profiler writes it.

use crate::job::{FIRST_STEP, Job};
use crate::template::{Piece, Role, Template};
use crate::walk::{Times, Walk};
use serde_json::json;

/// When the job begins, in nanoseconds of the traces' clock.
const BEGIN: i64 = 4_471_779_000_000_000;
/// What of a long list of ranks PyTorch writes.
const MOST_RANKS: usize = 30;

/// The process groups of a rank, as its trace names them: within the host, over the rail.
struct Groups([(String, String, String); 2]);

impl Groups {
    fn of(job: &Job, rank: usize) -> Groups {
        let groups = job.groups();
        Groups([false, true].map(|over_rail| {
            let name = match over_rail {
                true => format!("\"rail{}\"", job.rail(rank)),
                false => format!("\"host{}\"", job.host(rank)),
            };
            let members = &groups[job.group(rank, over_rail)];
            let list =
                |all: &[usize]| all.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
            let ranks = match members.split_last() {
                Some((last, _)) if members.len() > MOST_RANKS => {
                    format!("\"[{}, ..., {last}]\"", list(&members[..MOST_RANKS - 1]))
                }
                _ => format!("\"[{}]\"", list(members)),
            };
            (name, ranks, members.len().to_string())
        }))
    }
}

/// The text of a rank's trace, and how many entries it has.
pub fn rank(template: &Template, job: &Job, rank: usize, ends: &[i64]) -> (Vec<u8>, u64) {
    let mut out = Out { bytes: Vec::new(), groups: Groups::of(job, rank), device: job.rail(rank) };
    out.head(template, job, rank);
    let ahead = BEGIN + job.clocks[job.host(rank)];
    let mut walk = Walk::new(template, job, rank);
    walk.keep();
    let mut ends = ends.iter();
    let mut entries = template.metadata.len() as u64;
    for step in 0..job.steps {
        let start = walk.now();
        for repetition in 0..job.repeat {
            walk.begin(step, repetition);
            while walk.advance().is_some() {
                walk.resolve(ends.next().copied().unwrap_or_default());
            }
            let ids = (step * job.repeat + repetition) as u64 * template.ids;
            if let Some(times) = walk.times() {
                out.repetition(template, times, ahead, ids);
            }
            entries += template.entries as u64;
        }
        out.step(template, FIRST_STEP + step, (start + ahead, walk.now() - start));
        entries += 1;
    }
    // Without the comma behind the last one.
    out.bytes.truncate(out.bytes.len() - 2);
    out.text(b"\n]}\n");
    (out.bytes, entries)
}

struct Out {
    bytes: Vec<u8>,
    groups: Groups,
    device: usize,
}

impl Out {
    fn text(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
    }

    fn head(&mut self, template: &Template, job: &Job, rank: usize) {
        let info = json!({"backend": "nccl", "rank": rank, "world_size": job.ranks});
        let host = json!(Job::host_name(job.host(rank)));
        let devices = if template.devices.is_empty() { "[]" } else { &template.devices };
        let head = format!(
            "{{\"schemaVersion\":1,\"deviceProperties\":{devices},\"distributedInfo\":{info},\
             \"host_name\":{host},\"displayTimeUnit\":\"ms\",\
             \"baseTimeNanoseconds\":1790857026000000000,\"traceEvents\":[\n"
        );
        self.text(head.as_bytes());
        for line in &template.metadata {
            self.text(line.as_bytes());
            self.text(b",\n");
        }
    }

    fn repetition(&mut self, template: &Template, times: &Times, ahead: i64, ids: u64) {
        for (event, (start, end)) in template.events.iter().zip(&times.events) {
            self.pieces(&event.pieces, start + ahead, end - start, ids, 0);
            if let Role::Launch(number) = event.role {
                let (work, (start, end)) = (&template.works[number], times.works[number]);
                let group = usize::from(work.collective.unwrap_or_default());
                self.pieces(&work.pieces, start + ahead, end - start, ids, group);
            }
        }
    }

    fn pieces(&mut self, pieces: &[Piece], start: i64, dur: i64, ids: u64, group: usize) {
        for piece in pieces {
            match piece {
                Piece::Text(text) => self.bytes.extend_from_slice(text),
                Piece::Start => self.micros(start),
                Piece::Dur => self.micros(dur),
                Piece::Id(id) => self.number(id + ids),
                Piece::Device => self.number(self.device as u64),
                Piece::GroupName => self.bytes.extend_from_slice(self.groups.0[group].0.as_bytes()),
                Piece::GroupRanks => {
                    self.bytes.extend_from_slice(self.groups.0[group].1.as_bytes())
                }
                Piece::GroupSize => self.bytes.extend_from_slice(self.groups.0[group].2.as_bytes()),
            }
        }
    }

    fn step(&mut self, template: &Template, number: usize, (start, dur): (i64, i64)) {
        let (pid, tid) = template.main;
        let name = format!(
            "{{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#{number}\",\
             \"pid\":{pid},\"tid\":{tid},\"ts\":"
        );
        self.text(name.as_bytes());
        self.micros(start);
        self.text(b",\"dur\":");
        self.micros(dur);
        self.text(b",\"args\":{}},\n");
    }

    /// Nanoseconds as microseconds with three digits.
    fn micros(&mut self, nanos: i64) {
        let nanos = nanos.max(0) as u64;
        self.number(nanos / 1000);
        let rest = nanos % 1000;
        let digit = |by: u64| b'0' + (rest / by % 10) as u8;
        self.text(&[b'.', digit(100), digit(10), digit(1)]);
    }

    fn number(&mut self, mut n: u64) {
        let mut digits = [0u8; 20];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (n % 10) as u8;
            n /= 10;
            if n == 0 {
                break;
            }
        }
        self.text(&digits[at..]);
    }
}
