//! `benches/scale/generate RANKS STEPS SEED --output FOLDER`.

use scale_generator::job::Job;
use scale_generator::template::Template;
use scale_generator::{builtin, simulate, write};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const HELP: &str = "\
benches/scale/generate RANKS STEPS SEED --output FOLDER [OPTIONS]

Writes traces/rank0.json.gz, traces/rank1.json.gz, … as PyTorch's profiler writes them, labels.csv
with the host and the switch of each rank, and truth.json with the faults that are planted in them.

  --output FOLDER        where; it is made if it is not there
  --template TRACE       a trace of PyTorch's profiler (.json or .json.gz) whose step is repeated;
                         a small made one without it
  --repeat N             how often a step repeats it (1)
  --ranks-per-host N     (8)
  --only A..B            only write these ranks, of a job of RANKS
";

struct Asked {
    job: Job,
    template: Option<PathBuf>,
    output: PathBuf,
    only: std::ops::Range<usize>,
}

fn asked() -> Result<Asked, String> {
    let mut numbers = Vec::new();
    let (mut template, mut output, mut only) = (None, None, None);
    let (mut repeat, mut per_host) = (1, 8);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        let number = |text: String| {
            text.parse::<usize>()
                .ok()
                .filter(|n| *n > 0)
                .ok_or(format!("{text}: no number above 0"))
        };
        match word.as_str() {
            "--output" | "-o" => output = Some(PathBuf::from(value()?)),
            "--template" => template = Some(PathBuf::from(value()?)),
            "--repeat" => repeat = number(value()?)?,
            "--ranks-per-host" => per_host = number(value()?)?,
            "--only" => {
                let text = value()?;
                let range = text
                    .split_once("..")
                    .and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
                only = Some(range.ok_or(format!("{text}: a range such as 0..128"))?);
            }
            "--help" | "-h" => return Err(HELP.to_owned()),
            _ => numbers.push(
                word.parse::<u64>().map_err(|_| format!("{word}: not understood; see --help"))?,
            ),
        }
    }
    let [ranks, steps, seed] = numbers[..] else { return Err(HELP.to_owned()) };
    if ranks == 0 || steps == 0 {
        return Err("there is nothing to write".to_owned());
    }
    let job = Job::new(ranks as usize, steps as usize, seed, per_host, repeat);
    let (from, to) = only.unwrap_or((0, job.ranks));
    let only = from..to.min(job.ranks);
    Ok(Asked { job, template, output: output.ok_or("say --output FOLDER")?, only })
}

fn template(path: Option<&Path>) -> Result<Template, String> {
    let Some(path) = path else { return Template::of(&builtin::trace()) };
    let named = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let mut bytes = std::fs::read(path).map_err(|error| named(&error))?;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut text = Vec::new();
        let read = flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut text);
        read.map_err(|error| named(&error))?;
        bytes = text;
    }
    let json = serde_json::from_slice(&bytes).map_err(|error| named(&error))?;
    Template::of(&json).map_err(|error| named(&error))
}

fn run() -> Result<String, String> {
    let Asked { job, template: path, output, only } = asked()?;
    let template = template(path.as_deref())?;
    let put = |name: &str, bytes: &[u8]| {
        let path = output.join(name);
        std::fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))
    };
    let traces = output.join("traces");
    std::fs::create_dir_all(&traces).map_err(|error| format!("{}: {error}", traces.display()))?;
    put("truth.json", format!("{:#}\n", job.truth()).as_bytes())?;
    put("labels.csv", job.labels().as_bytes())?;
    let ends = simulate::ends(&template, &job);
    let next = AtomicUsize::new(only.start);
    let (entries, size) = (AtomicU64::new(0), AtomicU64::new(0));
    let work = || -> Result<(), String> {
        let level = libdeflater::CompressionLvl::new(1).unwrap_or_default();
        let mut deflate = libdeflater::Compressor::new(level);
        loop {
            let rank = next.fetch_add(1, Ordering::Relaxed);
            if !only.contains(&rank) {
                return Ok(());
            }
            let (text, count) = write::rank(&template, &job, rank, &ends[rank]);
            let mut packed = vec![0; deflate.gzip_compress_bound(text.len())];
            let length = deflate.gzip_compress(&text, &mut packed);
            packed.truncate(length.map_err(|error| error.to_string())?);
            put(&format!("traces/rank{rank}.json.gz"), &packed)?;
            entries.fetch_add(count, Ordering::Relaxed);
            size.fetch_add(packed.len() as u64, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err("a thread failed".to_owned()))
        })
    })?;
    Ok(format!("{} entries in {} bytes\n", entries.into_inner(), size.into_inner()))
}

fn main() -> ExitCode {
    match run() {
        Ok(done) => {
            print!("{done}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprint!("{why}");
            ExitCode::from(2)
        }
    }
}
