//! What the report of a self-test says that a library wrote (`kymo doctor --selftest`), byte by
//! byte: the fakes hand it over as the library did (`replay:FILE` among their faults). What lay
//! elsewhere is gone, so that names are ours; and times are moved to now.
// Each fake uses some of it.
#![allow(dead_code)]

use crate::settings;

/// How long before now the last record ended.
const AGO: u64 = 1_000_000;
/// How long each ended before the next one.
const APART: u64 = 10_000;

/// Bytes of something, and what: `record.KIND`, `agent.NUMBER`; the first ones of it are numbered.
pub(crate) struct Sample {
    pub(crate) what: String,
    pub(crate) number: String,
    pub(crate) bytes: Vec<u8>,
}

/// All of a vendor's, in the order of the report; none unless the environment names one.
pub(crate) fn samples(vendor: &str) -> Vec<Sample> {
    let Some(report) = report() else { return Vec::new() };
    let found: Vec<_> = report.lines().filter_map(|line| sample(vendor, line)).collect();
    assert!(!found.is_empty(), "no samples of {vendor} in the report");
    found
}

fn report() -> Option<String> {
    let path = settings::fault_text("replay")?;
    Some(std::fs::read_to_string(path).expect("the report to replay"))
}

/// The strings that a sample pointed to, by where their addresses lie.
pub(crate) fn texts(of: &Sample) -> Vec<(usize, String)> {
    let report = report().unwrap_or_default();
    let end = format!(".sample.texts.{}.{}", of.what, of.number);
    let found = report.lines().filter_map(|line| line.split_once(" = "));
    let text = found.filter(|(key, _)| key.ends_with(&end)).map(|(_, text)| text).next();
    let pairs = text.unwrap_or_default().split('\t').filter_map(|pair| pair.split_once('='));
    pairs.filter_map(|(at, text)| Some((at.parse().ok()?, text.to_owned()))).collect()
}

/// `VENDOR.PID.sample.WHAT.NUMBER = BYTES:HEX`, of something that is all there.
fn sample(vendor: &str, line: &str) -> Option<Sample> {
    let (key, value) = line.split_once(" = ")?;
    let (of, what) = key.split_once(".sample.")?;
    let (what, number) = what.rsplit_once('.')?;
    if of.split('.').next() != Some(vendor) {
        return None;
    }
    let (size, hex) = value.split_once(':')?;
    let byte = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
    let bytes: Vec<u8> = (0..hex.len()).step_by(2).map_while(byte).collect();
    (size.parse() == Ok(bytes.len())).then(|| Sample {
        what: what.to_owned(),
        number: number.to_owned(),
        bytes,
    })
}

impl Sample {
    pub(crate) fn is_record(&self) -> bool {
        self.what.starts_with("record.")
    }

    pub(crate) fn u32(&self, at: usize) -> u32 {
        self.bytes.get(at..at + 4).map_or(0, |part| u32::from_le_bytes(part.try_into().unwrap()))
    }

    pub(crate) fn u64(&self, at: usize) -> u64 {
        self.bytes.get(at..at + 8).map_or(0, |part| u64::from_le_bytes(part.try_into().unwrap()))
    }

    pub(crate) fn put(&mut self, at: usize, value: u64) {
        if let Some(part) = self.bytes.get_mut(at..at + 8) {
            part.copy_from_slice(&value.to_le_bytes());
        }
    }
}

/// Moves times to before `now`: those of records, which lie where `times_at` says. Those of one
/// record stay as far apart as they are; the first records of each kind may be seconds apart, and a
/// recording younger than that.
pub(crate) fn move_to(
    samples: &mut [Sample],
    now: u64,
    times_at: impl Fn(&Sample) -> &'static [usize],
) {
    for (number, sample) in (0..).zip(samples.iter_mut().rev()) {
        let latest = times_at(sample).iter().map(|at| sample.u64(*at)).max().unwrap_or(0);
        let end = now - AGO - number * APART;
        for at in times_at(sample) {
            match sample.u64(*at) {
                0 => {}
                time => sample.put(*at, end - (latest - time)),
            }
        }
    }
}
