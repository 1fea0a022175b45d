//! PyTorch in this process: when its operators begin to be observed, and what became of that.
//!
//! A program that is linked with libtorch has it when we are loaded. One that imports PyTorch in
//! Python is seen by the audit hook ([`super::python`]), which comes here when PyTorch is there.
//! Any other, which loads libtorch later, is seen when CUDA starts or a library annotates.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use kymograph_backends::torch::{self, Outcome};
use kymograph_protos::{ColdRecorder, Kind, Record, Recorder, StrId};

use crate::config::{self, Config, PyTorch};
use crate::guard::uninterrupted;
use crate::recorder::{self, PIPELINE};
use crate::recording;

/// What became of it, for the trace.
static STATED: Mutex<Option<String>> = Mutex::new(None);
/// Why they are not observed.
static OBSTACLE: OnceLock<&str> = OnceLock::new();

/// Whether operators are to be observed, and are not yet.
static WANTED: AtomicBool = AtomicBool::new(false);
/// With what they are called with.
static SHAPES: AtomicBool = AtomicBool::new(false);

/// Whether `config` asks for operators.
pub(super) fn is_wanted(config: &Config) -> bool {
    let heard = |category: &str| config.categories.matches(category.as_bytes());
    match config.pytorch {
        PyTorch::Off => false,
        PyTorch::Auto => heard("cpu_op") || heard("user_annotation"),
        PyTorch::On | PyTorch::Shapes => true,
    }
}

/// When we are loaded: observes a libtorch that is there already.
pub(super) fn watch(config: &Config) {
    SHAPES.store(config.pytorch == PyTorch::Shapes, Ordering::Release);
    WANTED.store(is_wanted(config), Ordering::Release);
    torch::nest_annotations_apart(config.python == config::Python::Functions);
    if config.pytorch_memory {
        torch::record_memory(&PIPELINE);
    }
    attach_if_there();
}

/// Observes the libtorch of this process if it has one by now, and it is not observed yet.
pub(super) fn attach_if_there() {
    if WANTED.load(Ordering::Acquire) && torch::is_there() && !attach("") {
        // There is no other way for a program without Python.
        let _ = super::start();
        note("off".to_owned());
        tell(&format!(
            "operators of PyTorch are not recorded: {}",
            OBSTACLE.get().copied().unwrap_or_default()
        ));
    }
}

/// Tells who asked for the recording that something is missing.
fn tell(sentence: &str) {
    let site = PIPELINE.intern_or_wait(StrId::NONE, sentence.as_bytes());
    let time = PIPELINE.now();
    PIPELINE.push(Record { time, site, kind: Kind::Note as u8, ..Record::default() }, &[]);
}

/// As [`attach_if_there`], where there should be one; `also` is added to what the trace says of
/// it. Whether it is observed.
pub(super) fn attach(also: &str) -> bool {
    let mut observed = Err("it has no libtorch_cpu.so");
    uninterrupted(|| {
        observed = match torch::observe(&PIPELINE, SHAPES.load(Ordering::Acquire), || {
            super::start();
        }) {
            Outcome::Absent => return,
            Outcome::Unknown(why) => Err(why),
            Outcome::Observed { layout, no_inputs } => Ok((layout, no_inputs)),
        };
        WANTED.store(false, Ordering::Release);
    });
    match observed {
        Ok((layout, no_inputs)) => {
            let inputs = match no_inputs {
                _ if !SHAPES.load(Ordering::Acquire) => String::new(),
                None => ", with shapes".to_owned(),
                Some(why) => format!(", without shapes: {why}"),
            };
            note(format!("observed (as {layout}){inputs}{also}"));
            true
        }
        Err(why) => {
            let _ = OBSTACLE.set(why);
            false
        }
    }
}

/// Remembers what became of it.
pub(super) fn note(mut text: String) {
    if let Some(why) = OBSTACLE.get() {
        text = format!("{text}; not observed: {why}");
    }
    *STATED.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    if recording::is_running() {
        state_metadata();
    }
}

/// States in the trace what became of it. A process that records nothing states nothing.
pub(crate) fn state_metadata() {
    let Some(text) = STATED.lock().unwrap_or_else(PoisonError::into_inner).clone() else {
        return;
    };
    let key = format!("kymograph.{}.pytorch", std::process::id());
    recorder::state(&key, &text);
}
