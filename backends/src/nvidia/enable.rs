//! Enables the kinds of activities that were chosen.
//!
//! A recording of a whole program begins while the driver initialises. Unified memory is
//! asked for when the driver has finished: CUPTI (13.0, H200) is not ready for it before,
//! and refuses for ever if it is asked too soon.

use std::sync::atomic::Ordering;

use kymograph_protos::ColdRecorder;

use super::kinds::{END, Selection, kind};
use super::library::{self, describe};
use super::other;
use super::state::STATE;
use super::sys::{Code, Cupti, SUCCESS};
use crate::device::names;
use crate::device::remark;

/// All kinds that were chosen, and what belongs to them. `noise` calls its argument with the
/// functions of the runtime API that are not worth a record.
pub(crate) fn all(
    cupti: &Cupti,
    recorder: &dyn ColdRecorder,
    selection: Selection,
    driver_initialises: bool,
    noise: impl FnOnce(&mut dyn FnMut(u32)),
) {
    STATE.setup.waiting.store(0, Ordering::Release);
    for kind in selection.kinds() {
        if kind == kind::UNIFIED_MEMORY_COUNTER && driver_initialises {
            STATE.setup.waiting.fetch_or(1 << kind, Ordering::AcqRel);
        } else {
            check(cupti, recorder, kind, enable(cupti, kind));
        }
    }
    if selection.kinds().any(|kind| kind == kind::RUNTIME)
        && let Some(set) = cupti.enable_runtime_api
    {
        noise(&mut |id| {
            // SAFETY: numbers.
            unsafe { set(id, 0) };
        });
    }
}

/// The driver has finished: those that waited for it.
#[cold]
pub(crate) fn waiting(recorder: &dyn ColdRecorder) {
    let waiting = STATE.setup.waiting.swap(0, Ordering::AcqRel);
    let Some(cupti) = library::present() else { return };
    for kind in (0..END).filter(|kind| waiting >> kind & 1 != 0) {
        check(cupti, recorder, kind, enable(cupti, kind));
    }
}

/// States the kinds for which the driver was never heard to be ready.
pub(crate) fn state(recorder: &dyn ColdRecorder) {
    let waiting = STATE.setup.waiting.load(Ordering::Acquire);
    for kind in (0..END).filter(|kind| waiting >> kind & 1 != 0) {
        not_recorded(recorder, kind, "the driver was not heard to have initialised");
    }
}

fn enable(cupti: &Cupti, kind: u32) -> Code {
    // Streams that exist already are reported, if CUPTI can.
    let enable = match cupti.enable_and_dump {
        Some(dump) if matches!(kind, kind::STREAM | kind::CONTEXT) => dump,
        _ => cupti.enable,
    };
    if kind == kind::UNIFIED_MEMORY_COUNTER {
        configure_unified(cupti);
    }
    // Sooner, so that it is not disabled in between.
    other::enabled(kind);
    // SAFETY: a number.
    unsafe { enable(kind) }
}

fn check(cupti: &Cupti, recorder: &dyn ColdRecorder, kind: u32, result: Code) {
    if result != SUCCESS && !matches!(kind, kind::STREAM | kind::CONTEXT) {
        not_recorded(recorder, kind, &describe(cupti, result));
    }
}

fn not_recorded(recorder: &dyn ColdRecorder, kind: u32, why: &str) {
    let key = names::NVIDIA.of_process(format_args!("kind_not_recorded.{kind}"));
    remark::fact(recorder, &key, why);
}

/// Says what to count of unified memory, without which nothing is: bytes moved, and faults
/// of GPUs and of the host.
fn configure_unified(cupti: &Cupti) {
    /// `CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE`.
    const ONE_DEVICE: u32 = 1;
    /// Devices are not counted: the driver may be in the middle of initialising.
    const DEVICES: u32 = 16;
    let Some(configure) = cupti.configure_unified else { return };
    for device in 0..DEVICES {
        for counter in 1..=8 {
            // CUpti_ActivityUnifiedMemoryCounterConfig: scope, kind, deviceId, enable.
            let mut config = [ONE_DEVICE, counter, device, 1];
            // SAFETY: one such struct. What is not there is refused, which is no loss.
            unsafe { configure(&mut config, 1) };
        }
    }
}
