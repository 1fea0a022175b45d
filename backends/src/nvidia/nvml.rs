//! NVML: the few functions that counters need, as nvml.h declares them.
//!
//! `libnvidia-ml.so.1` comes with the driver and stays loaded. Its functions may be called from any
//! thread; devices are handles that are valid as long as the process.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr;

use crate::load::{Library, functions};

/// The name without a version belongs to those who build against it.
const LIBRARY: &CStr = c"libnvidia-ml.so.1";

const SUCCESS: c_int = 0;

/// `NVML_TEMPERATURE_GPU`.
const TEMPERATURE_OF_GPU: c_int = 0;

/// `nvmlDevice_t` and `nvmlGpmSample_t`.
type Handle = *mut c_void;

functions! {
    /// What is called.
    Functions
    required {
        init = c"nvmlInit_v2": fn() -> c_int;
        device_by_uuid = c"nvmlDeviceGetHandleByUUID": fn(*const c_char, *mut Handle) -> c_int;
        utilization = c"nvmlDeviceGetUtilizationRates": fn(Handle, *mut Utilization) -> c_int;
        power = c"nvmlDeviceGetPowerUsage": fn(Handle, *mut c_uint) -> c_int;
        temperature = c"nvmlDeviceGetTemperature": fn(Handle, c_int, *mut c_uint) -> c_int;
        clock = c"nvmlDeviceGetClockInfo": fn(Handle, c_int, *mut c_uint) -> c_int;
    }
    optional {
        error_string = c"nvmlErrorString": fn(c_int) -> *const c_char;
        memory = c"nvmlDeviceGetMemoryInfo_v2": fn(Handle, *mut Memory) -> c_int;
        sample_alloc = c"nvmlGpmSampleAlloc": fn(*mut Handle) -> c_int;
        sample_free = c"nvmlGpmSampleFree": fn(Handle) -> c_int;
        sample_get = c"nvmlGpmSampleGet": fn(Handle, Handle) -> c_int;
        metrics_get = c"nvmlGpmMetricsGet": fn(*mut MetricsGet) -> c_int;
    }
}

/// `nvmlUtilization_t`: percent of the time.
#[derive(Clone, Copy, Default, Debug)]
#[repr(C)]
pub(crate) struct Utilization {
    pub(crate) gpu: c_uint,
    pub(crate) memory: c_uint,
}

/// `nvmlMemory_v2_t`, in bytes.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Memory {
    version: c_uint,
    total: u64,
    reserved: u64,
    free: u64,
    used: u64,
}

impl Memory {
    /// `NVML_STRUCT_VERSION(Memory, 2)`.
    const VERSION: c_uint = size_of::<Memory>() as c_uint | 2 << 24;
}

/// `nvmlClockType_t`.
#[derive(Clone, Copy, Debug)]
#[repr(i32)]
pub(crate) enum Clock {
    Sm = 1,
    Memory = 2,
}

/// Metrics of the performance monitor (`nvmlGpmMetricId_t`), all in MiB/s.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum Metric {
    PcieSent = 20,
    PcieReceived = 21,
    NvlinkReceived = 60,
    NvlinkSent = 61,
}

/// `nvmlGpmMetric_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct MetricValue {
    id: c_uint,
    result: c_int,
    value: f64,
    texts: [*const c_char; 3],
}

/// How many metrics [`MetricsGet`] has room for. The library looks at `count` of them; headers have
/// room for each metric that they know (333 in CUDA 13.0).
const METRICS: usize = 512;

/// `nvmlGpmMetricsGet_t`.
#[repr(C)]
pub(crate) struct MetricsGet {
    version: c_uint,
    count: c_uint,
    samples: [Handle; 2],
    metrics: [MetricValue; METRICS],
}

/// NVML, initialised.
#[derive(Debug)]
pub(crate) struct Nvml(Functions);

impl Nvml {
    /// Loads and initialises it; says why where that is impossible.
    pub(crate) fn load() -> Result<Nvml, String> {
        let named = LIBRARY.to_string_lossy();
        let library = Library::load(LIBRARY)
            .ok_or_else(|| format!("{named} cannot be loaded; it comes with the driver"))?;
        let functions = Functions::find(library)
            .map_err(|missing| format!("{named} has no {}", missing.to_string_lossy()))?;
        // SAFETY: as declared by nvml.h; may be called any number of times.
        match unsafe { (functions.init)() } {
            SUCCESS => Ok(Nvml(functions)),
            error => Err(format!("{named} does not start: {}", described(&functions, error))),
        }
    }

    /// The device that has this name (`GPU-…`, `MIG-…`).
    pub(crate) fn device(&'static self, uuid: &str) -> Option<Device> {
        let uuid = CString::new(uuid).ok()?;
        let mut handle = ptr::null_mut();
        // SAFETY: a C string, and a place for a handle.
        let found = unsafe { (self.0.device_by_uuid)(uuid.as_ptr(), &raw mut handle) };
        (found == SUCCESS).then_some(Device { nvml: &self.0, handle })
    }
}

/// What NVML calls an error.
fn described(functions: &Functions, error: c_int) -> String {
    // SAFETY: NVML gives a static C string for each number.
    let text = functions.error_string.map(|describe| unsafe { describe(error) });
    let text = text.filter(|text| !text.is_null());
    // SAFETY: as above.
    let text = text.map(|text| unsafe { CStr::from_ptr(text) }.to_string_lossy());
    text.map_or_else(|| format!("error {error}"), |text| format!("{text} (error {error})"))
}

/// A device. What it, or its driver, does not report is none.
#[derive(Debug)]
pub(crate) struct Device {
    nvml: &'static Functions,
    handle: Handle,
}

// SAFETY: NVML's functions may be called from any thread with any handle.
unsafe impl Send for Device {}

impl Device {
    pub(crate) fn utilization(&self) -> Option<Utilization> {
        // SAFETY: a device, and a place for what it reports.
        self.ask(|handle, to| unsafe { (self.nvml.utilization)(handle, to) })
    }

    /// Memory in use, in bytes, without what the driver reserves.
    pub(crate) fn memory_used(&self) -> Option<u64> {
        let memory = self.nvml.memory?;
        let mut info = Memory { version: Memory::VERSION, ..Memory::default() };
        // SAFETY: a structure of the version that it states.
        let result = unsafe { memory(self.handle, &raw mut info) };
        (result == SUCCESS).then_some(info.used)
    }

    /// In milliwatts.
    pub(crate) fn power(&self) -> Option<u32> {
        // SAFETY: a device, and a place for what it reports.
        self.ask(|handle, to| unsafe { (self.nvml.power)(handle, to) })
    }

    /// In degrees Celsius.
    pub(crate) fn temperature(&self) -> Option<u32> {
        // SAFETY: a device, and a place for what it reports.
        self.ask(|handle, to| unsafe { (self.nvml.temperature)(handle, TEMPERATURE_OF_GPU, to) })
    }

    /// In megahertz.
    pub(crate) fn clock(&self, clock: Clock) -> Option<u32> {
        // SAFETY: a device, and a place for what it reports.
        self.ask(|handle, to| unsafe { (self.nvml.clock)(handle, clock as c_int, to) })
    }

    fn ask<T: Default>(&self, function: impl FnOnce(Handle, *mut T) -> c_int) -> Option<T> {
        let mut value = T::default();
        (function(self.handle, &raw mut value) == SUCCESS).then_some(value)
    }

    /// What the performance monitor has counted until now; Hopper and later have one.
    pub(crate) fn sample(&self) -> Option<Sample> {
        let (alloc, get) = (self.nvml.sample_alloc?, self.nvml.sample_get?);
        let free = self.nvml.sample_free?;
        let mut handle = ptr::null_mut();
        // SAFETY: a place for a handle.
        if unsafe { alloc(&raw mut handle) } != SUCCESS {
            return None;
        }
        let sample = Sample { handle, free };
        // SAFETY: handles of NVML's.
        (unsafe { get(self.handle, sample.handle) } == SUCCESS).then_some(sample)
    }

    /// Metrics of the time between two samples; none for one that the device does not have.
    pub(crate) fn between<const N: usize>(
        &self,
        before: &Sample,
        after: &Sample,
        wanted: [Metric; N],
    ) -> [Option<f64>; N] {
        const { assert!(N <= METRICS) };
        let Some(get) = self.nvml.metrics_get else { return [None; N] };
        let nothing = MetricValue { id: 0, result: 0, value: 0.0, texts: [ptr::null(); 3] };
        let mut metrics = Box::new(MetricsGet {
            version: 1,
            count: N as c_uint,
            samples: [before.handle, after.handle],
            metrics: [nothing; METRICS],
        });
        for (metric, wanted) in metrics.metrics.iter_mut().zip(wanted) {
            metric.id = wanted as c_uint;
        }
        // SAFETY: a structure of version 1, and two samples that live.
        if unsafe { get(&raw mut *metrics) } != SUCCESS {
            return [None; N];
        }
        std::array::from_fn(|at| {
            let metric = metrics.metrics[at];
            (metric.result == SUCCESS).then_some(metric.value)
        })
    }
}

/// A sample of the performance monitor.
#[derive(Debug)]
pub(crate) struct Sample {
    handle: Handle,
    free: unsafe extern "C" fn(Handle) -> c_int,
}

// SAFETY: NVML does not tie samples to threads; one is used by one thread at a time.
unsafe impl Send for Sample {}

impl Drop for Sample {
    fn drop(&mut self) {
        // SAFETY: a sample of NVML's, which is not used afterwards.
        unsafe { (self.free)(self.handle) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_sizes_of_nvml_h() {
        assert_eq!(size_of::<Memory>(), 40);
        assert_eq!(Memory::VERSION, 0x0200_0028);
        assert_eq!(size_of::<MetricValue>(), 40);
        assert_eq!(std::mem::offset_of!(MetricsGet, metrics), 24);
    }
}
