//! Made jobs, and data sets of them.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use kymograph_analysis::Metric;
use kymograph_scale::Failure;
use kymograph_scale::add::{self, Done, METRICS, Wish};
use kymograph_scale::input::Input;
use scale_generator::job::Job;
use scale_generator::template::Template;
use scale_generator::{builtin, simulate, write};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Writes the traces of a job, and says where they are.
pub fn traces(job: &Job, folder: &Path) -> Vec<PathBuf> {
    let template = Template::of(&builtin::trace()).unwrap();
    let ends = simulate::ends(&template, job);
    let one = |rank: usize| {
        let (text, _) = write::rank(&template, job, rank, &ends[rank]);
        let path = folder.join(format!("rank{rank}.json"));
        std::fs::write(&path, text).unwrap();
        path
    };
    (0..job.ranks).map(one).collect()
}

pub fn packed(path: &Path) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(&std::fs::read(path).unwrap()).unwrap();
    packer.finish().unwrap()
}

/// The same job without faults.
pub fn healthy(ranks: usize, steps: usize) -> Job {
    let mut job = Job::new(ranks, steps, 1, 4, 1);
    job.faults.clear();
    job.clocks.fill(0);
    job
}

pub fn wish(root: &Path) -> Wish {
    let metrics = METRICS.iter().map(|name| Metric::find(name).unwrap()).collect();
    Wish { root: root.into(), metrics, jobs: 2, rank: None, replace: false, damaged: false }
}

/// What was done for all traces, in any order, and what failed.
pub fn add(wish: &Wish, traces: &[PathBuf]) -> (Vec<Done>, Vec<String>) {
    let told: Mutex<Vec<Result<Vec<Done>, Failure>>> = Mutex::default();
    let traces: Vec<Input> = traces.iter().map(Input::from).collect();
    add::add(wish, &traces, |_, done| told.lock().unwrap().push(done.clone())).unwrap();
    let (mut done, mut failed) = (Vec::new(), Vec::new());
    for told in told.into_inner().unwrap() {
        match told {
            Ok(ranks) => done.extend(ranks),
            Err(why) => failed.push(why.0),
        }
    }
    (done, failed)
}

/// All files below a folder and their bytes, without hidden ones.
pub fn files(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.file_name().unwrap().to_string_lossy().starts_with('.') {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else {
                all.push((
                    path.strip_prefix(root).unwrap().to_owned(),
                    std::fs::read(&path).unwrap(),
                ));
            }
        }
    }
    all.sort();
    all
}
