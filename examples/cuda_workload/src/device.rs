//! What the workload does with a device. Plain asynchronous calls: cudarc's own slices
//! would add events and waits that nobody counted.

use std::error::Error;
use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::sys::{CUdeviceptr, CUevent_flags, CUgraphInstantiate_flags};
use cudarc::driver::sys::{CUstreamCaptureMode, is_culib_present};
use cudarc::driver::{CudaContext, CudaEvent, CudaFunction, CudaGraph, CudaStream};
use cudarc::driver::{LaunchConfig, PushKernelArg, result};
use cudarc::nvrtc::compile_ptx;

pub type Tried<T> = Result<T, Box<dyn Error + Send + Sync>>;

const KERNELS: &str = r#"
extern "C" __global__ void scale(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 1.5f;
}
extern "C" __global__ void add(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += 1.0f;
}
extern "C" __global__ void fill(float *x, int n) {
    __shared__ float value;
    if (threadIdx.x == 0) value = 2.0f;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = value;
}
extern "C" __global__ void spin(float *x, int n) {
    long long start = clock64();
    while (clock64() - start < 1500000) { }
    if (n < 0) x[0] = 0.0f;
}
"#;

/// Elements of every buffer, and bytes of every copy and set.
const ELEMENTS: i32 = 16 * 256;
pub const BYTES: usize = ELEMENTS as usize * size_of::<f32>();
pub const GRAPH_KERNELS: u64 = 8;

pub struct Device {
    context: Arc<CudaContext>,
    kernels: Arc<[CudaFunction; 4]>,
}

/// The kernels, in the order of their functions.
#[derive(Clone, Copy)]
pub enum Kernel {
    Scale,
    Add,
    Fill,
    Spin,
}

impl Kernel {
    pub const ALL: [Kernel; 4] = [Kernel::Scale, Kernel::Add, Kernel::Fill, Kernel::Spin];

    pub fn name(self) -> &'static str {
        ["scale", "add", "fill", "spin"][self as usize]
    }
}

/// A stream with memory of its own.
pub struct Lane {
    stream: Arc<CudaStream>,
    kernels: Arc<[CudaFunction; 4]>,
    memory: [CUdeviceptr; 2],
    host: *mut c_void,
}

impl Device {
    /// The first device.
    pub fn new() -> Tried<Device> {
        // SAFETY: loading the driver is what the program is for.
        if !unsafe { is_culib_present() } {
            return Err("there is no libcuda.so.1 here".into());
        }
        let context = CudaContext::new(0)?;
        let module = context.load_module(compile_ptx(KERNELS)?)?;
        let [scale, add, fill, spin] = Kernel::ALL.map(|k| module.load_function(k.name()));
        Ok(Device { context, kernels: Arc::new([scale?, add?, fill?, spin?]) })
    }

    pub fn name(&self) -> Tried<String> {
        Ok(self.context.name()?)
    }

    pub fn synchronize(&self) -> Tried<()> {
        Ok(self.context.synchronize()?)
    }

    pub fn lane(&self) -> Tried<Lane> {
        let stream = self.context.new_stream()?;
        // SAFETY: a context is bound to this thread; what is in the memory does not matter,
        // and it is never freed.
        let (memory, host) = unsafe {
            (
                [result::malloc_sync(BYTES)?, result::malloc_sync(BYTES)?],
                result::malloc_host(BYTES, 0)?,
            )
        };
        Ok(Lane { stream, kernels: Arc::clone(&self.kernels), memory, host })
    }

    /// Kernels, one copy and one set, one after another. Their functions must have run
    /// before: loading one may not be captured.
    pub fn capture(&self) -> Tried<CudaGraph> {
        let lane = self.lane()?;
        lane.stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)?;
        for _ in 0..GRAPH_KERNELS {
            lane.launch(Kernel::Scale)?;
        }
        lane.copy_within_device()?;
        lane.set()?;
        let none = CUgraphInstantiate_flags(0);
        lane.stream.end_capture(none)?.ok_or_else(|| "the graph is empty".into())
    }
}

impl Lane {
    pub fn launch(&self, kernel: Kernel) -> Tried<()> {
        let shape =
            LaunchConfig { grid_dim: (16, 1, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 };
        let mut launch = self.stream.launch_builder(&self.kernels[kernel as usize]);
        launch.arg(&self.memory[0]).arg(&ELEMENTS);
        // SAFETY: all kernels take a pointer and a length, which are those of the memory.
        unsafe { launch.launch(shape)? };
        Ok(())
    }

    fn bytes(&self) -> &'static mut [u8] {
        // SAFETY: this much was allocated, it is never freed, and nobody looks at it.
        unsafe { std::slice::from_raw_parts_mut(self.host.cast(), BYTES) }
    }

    pub fn copy_to_device(&self) -> Tried<()> {
        // SAFETY: both are this long and are never freed.
        unsafe {
            result::memcpy_htod_async(self.memory[0], self.bytes(), self.stream.cu_stream())?
        };
        Ok(())
    }

    pub fn copy_from_device(&self) -> Tried<()> {
        // SAFETY: as above.
        unsafe {
            result::memcpy_dtoh_async(self.bytes(), self.memory[0], self.stream.cu_stream())?
        };
        Ok(())
    }

    pub fn copy_within_device(&self) -> Tried<()> {
        let [from, to] = self.memory;
        // SAFETY: as above.
        unsafe { result::memcpy_dtod_async(to, from, BYTES, self.stream.cu_stream())? };
        Ok(())
    }

    pub fn set(&self) -> Tried<()> {
        // SAFETY: as above.
        unsafe { result::memset_d8_async(self.memory[1], 7, BYTES, self.stream.cu_stream())? };
        Ok(())
    }

    pub fn record(&self) -> Tried<CudaEvent> {
        Ok(self.stream.record_event(None)?)
    }

    pub fn wait(&self, event: &CudaEvent) -> Tried<()> {
        Ok(self.stream.wait(event)?)
    }

    pub fn synchronize(&self) -> Tried<()> {
        Ok(self.stream.synchronize()?)
    }

    /// Launches a kernel between two events; milliseconds between them.
    pub fn time(&self, kernel: Kernel) -> Tried<f32> {
        let flags = Some(CUevent_flags::CU_EVENT_DEFAULT);
        let before = self.stream.record_event(flags)?;
        self.launch(kernel)?;
        let after = self.stream.record_event(flags)?;
        Ok(before.elapsed_ms(&after)?)
    }
}
