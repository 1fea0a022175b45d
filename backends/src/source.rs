//! The seam through which the pipeline tells a backend when to record.

use std::path::PathBuf;
use std::time::Duration;

use kymograph_protos::ColdRecorder;

/// Where activities come from that no thread of the program reports by itself: devices.
///
/// A source is a static: it outlives every recording and is started and stopped with
/// each. All methods may be called from any thread; none blocks for longer than it is
/// told to, and none panics.
pub trait Source: Sync {
    /// What it is called in messages.
    fn name(&self) -> &'static str;

    /// Starts to record if there is something to record in this process at the moment.
    /// Does nothing if it records already.
    fn start(&self, recorder: &'static dyn ColdRecorder, settings: &Settings);

    /// Pushes everything that is finished. Returns whether that was done within `timeout`.
    fn flush(&self, timeout: Duration) -> bool;

    /// Stops recording: everything that happened so far is pushed, then nothing more.
    /// Returns whether that was done within `timeout`; it goes on if not, so ask again.
    fn stop(&self, timeout: Duration) -> bool;
}

/// What a user chose that concerns sources.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    /// What to record, by Kineto's names of activities, separated by commas; empty for
    /// the default.
    pub activity_types: String,
    /// CUPTI, or the folder it is in, if it is not where it usually is.
    pub cupti_path: Option<PathBuf>,
    /// Whether CUPTI leaves the process after a recording.
    pub cupti_finalize: bool,
    /// Intel's PTI, or the folder it is in, if it is not where it usually is.
    pub pti_path: Option<PathBuf>,
    /// How often counters of devices are sampled; none: never.
    pub gpu_counters: Option<Duration>,
    /// Whether device activities get arguments that follow from others: those that fill
    /// Kineto's traces.
    pub all_args: bool,
    /// Whether the first records of each kind are kept among the trace's facts.
    pub samples: bool,
}
