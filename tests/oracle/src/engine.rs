//! Who answers: the WebAssembly build, or a program named by the environment.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::native::Native;
use crate::node::Loaded;

/// The result of one query.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<Value>>,
}

/// A loaded trace. Tests may share one between threads, hence the lock.
#[derive(Debug)]
pub(crate) enum Engine {
    Node(Mutex<Loaded>),
    Native(Native),
}

impl Engine {
    pub(crate) fn load(trace: &Path) -> Result<Engine, String> {
        match std::env::var_os("TRACE_PROCESSOR") {
            Some(program) => Native::load(program.into(), trace).map(Engine::Native),
            None => Loaded::new(trace).map(|node| Engine::Node(Mutex::new(node))),
        }
    }

    pub(crate) fn ask(&self, sql: &str) -> Result<Answer, String> {
        match self {
            Engine::Node(node) => node.lock().unwrap_or_else(PoisonError::into_inner).ask(sql),
            Engine::Native(native) => native.ask(sql),
        }
    }
}
