//! CUDA's driver API and HIP's: the same functions, by two names.

use super::devices::{ALL_KERNELS, BLOCK, Devices, Handle, Stop, factor, kernel_name};
use super::load::{Library, call, functions};
use super::truth::Kind;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr;

/// A status; 0 is success.
type Status = c_int;

functions! {
    init = c"cuInit" | c"hipInit": fn(c_uint);
    count = c"cuDeviceGetCount" | c"hipGetDeviceCount": fn(*mut c_int);
    load = c"cuModuleLoadData" | c"hipModuleLoadData": fn(*mut Handle, *const c_void);
    function = c"cuModuleGetFunction" | c"hipModuleGetFunction":
        fn(*mut Handle, Handle, *const c_char);
    allocate = c"cuMemAlloc_v2" | c"hipMalloc": fn(*mut Handle, usize);
    host = c"cuMemHostAlloc" | c"hipHostMalloc": fn(*mut Handle, usize, c_uint);
    stream = c"cuStreamCreate" | c"hipStreamCreateWithFlags": fn(*mut Handle, c_uint);
    launch = c"cuLaunchKernel" | c"hipModuleLaunchKernel": fn(
        Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle,
        *mut *mut c_void, *mut *mut c_void
    );
    to_device = c"cuMemcpyHtoDAsync_v2" | c"hipMemcpyHtoDAsync":
        fn(Handle, Handle, usize, Handle);
    to_host = c"cuMemcpyDtoHAsync_v2" | c"hipMemcpyDtoHAsync": fn(Handle, Handle, usize, Handle);
    within = c"cuMemcpyDtoDAsync_v2" | c"hipMemcpyDtoDAsync": fn(Handle, Handle, usize, Handle);
    // The second and fourth are contexts in CUDA, and devices in HIP.
    peer = c"cuMemcpyPeerAsync" | c"hipMemcpyPeerAsync":
        fn(Handle, Handle, Handle, Handle, usize, Handle);
    set = c"cuMemsetD32Async" | c"hipMemsetD32Async": fn(Handle, c_uint, usize, Handle);
    wait = c"cuStreamSynchronize" | c"hipStreamSynchronize": fn(Handle);
    begin = c"cuStreamBeginCapture_v2" | c"hipStreamBeginCapture": fn(Handle, c_int);
    end = c"cuStreamEndCapture" | c"hipStreamEndCapture": fn(Handle, *mut Handle);
    instantiate = c"cuGraphInstantiateWithFlags" | c"hipGraphInstantiateWithFlags":
        fn(*mut Handle, Handle, u64);
    replay = c"cuGraphLaunch" | c"hipGraphLaunch": fn(Handle, Handle);
}

/// How devices are made current.
enum Current {
    /// By their primary contexts.
    Cuda(Vec<Handle>, unsafe extern "C" fn(Handle) -> Status),
    Hip(unsafe extern "C" fn(c_int) -> Status),
}

/// The interface, initialised.
pub(super) struct Gpu {
    functions: Functions,
    current: Current,
    /// What the kernels are, for modules.
    image: Vec<u8>,
    devices: u32,
    /// Whether the devices reach the memory of each other.
    peers: bool,
}

fn check(what: &str, status: Status) -> Result<(), Stop> {
    match status {
        0 => Ok(()),
        error => Err(Stop::Failed(format!("{what}: error {error}"))),
    }
}

impl Gpu {
    pub(super) fn open(hip: bool) -> Result<Gpu, Stop> {
        let names: &[&str] = match hip {
            true => &["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"],
            false => &["libcuda.so.1"],
        };
        let library = Library::load(names).map_err(Stop::Missing)?;
        let functions = Functions::find(library, usize::from(hip)).map_err(Stop::Missing)?;
        let (current, image) = (Current::Cuda(Vec::new(), never), Vec::new());
        let mut gpu = Gpu { functions, current, image, devices: 0, peers: false };
        // SAFETY: a number.
        let ready = unsafe { (gpu.functions.init)(0) };
        let mut count = 0;
        if ready != 0 || call!(gpu, count(&mut count)).is_err() || count < 1 {
            let what = if hip { "hipInit" } else { "cuInit" };
            return Err(Stop::Missing(format!("no device ({what}: {ready})")));
        }
        gpu.devices = count as u32;
        gpu.current = if hip { hip_devices(library)? } else { cuda_devices(library, count)? };
        gpu.image = if hip { compile()? } else { ptx(library)? };
        gpu.peers = gpu.connect(library).is_ok();
        Ok(gpu)
    }

    /// Lets each device write to the next: a copy to a device that is not within reach goes by
    /// the host, and is two.
    fn connect(&self, library: Library) -> Result<(), Stop> {
        type Enable = unsafe extern "C" fn(Handle, c_uint) -> Status;
        let name = match self.current {
            Current::Cuda(..) => c"cuCtxEnablePeerAccess",
            Current::Hip(_) => c"hipDeviceEnablePeerAccess",
        };
        // SAFETY: cuda.h declares it so; HIP's takes the number of a device, which has as much
        // room in a register.
        let enable = unsafe { library.function::<Enable>(name) }.map_err(Stop::Missing)?;
        for device in 0..self.devices {
            let next = (device + 1) % self.devices;
            self.select(device)?;
            if next != device {
                // SAFETY: a context that was retained, or a device's number.
                check("enable peer access", unsafe { enable(self.place(next), 0) })?;
            }
        }
        Ok(())
    }

    /// How copies name a device.
    fn place(&self, device: u32) -> Handle {
        match &self.current {
            Current::Cuda(contexts, _) => contexts[device as usize],
            Current::Hip(_) => device.into(),
        }
    }
}

impl Devices for Gpu {
    fn count(&self) -> u32 {
        self.devices
    }

    fn has_peers(&self) -> bool {
        self.peers
    }

    fn select(&self, device: u32) -> Result<(), Stop> {
        // SAFETY: a context that was retained, or a device's number.
        let status = unsafe {
            match &self.current {
                Current::Cuda(contexts, set) => set(contexts[device as usize]),
                Current::Hip(set) => set(device as c_int),
            }
        };
        check("set device", status)
    }

    fn kernels(&self, _device: u32) -> Result<Vec<Handle>, Stop> {
        let mut module = 0;
        call!(self, load(&mut module, self.image.as_ptr().cast()))?;
        let find = |number| {
            let name = CString::new(kernel_name(number)).unwrap_or_default();
            let mut function = 0;
            call!(self, function(&mut function, module, name.as_ptr()))?;
            Ok(function)
        };
        (0..ALL_KERNELS).map(find).collect()
    }

    fn memory(&self, _device: u32, bytes: usize) -> Result<Handle, Stop> {
        let mut address = 0;
        call!(self, allocate(&mut address, bytes))?;
        Ok(address)
    }

    fn host(&self, _device: u32, bytes: usize) -> Result<&'static mut [u32], Stop> {
        let mut address = 0;
        call!(self, host(&mut address, bytes, 0))?;
        // SAFETY: it was just made, of this size, and stays; it is only used here.
        Ok(unsafe { std::slice::from_raw_parts_mut(address as usize as *mut u32, bytes / 4) })
    }

    /// A stream that does not wait for the null stream.
    fn stream(&self, _device: u32) -> Result<Handle, Stop> {
        const NON_BLOCKING: c_uint = 1;
        let mut stream = 0;
        call!(self, stream(&mut stream, NON_BLOCKING))?;
        Ok(stream)
    }

    fn launch(
        &self,
        kernel: Handle,
        blocks: u32,
        stream: Handle,
        (mut to, mut count, mut value): (Handle, u32, u32),
    ) -> Result<(), Stop> {
        let mut params: [*mut c_void; 3] =
            [(&raw mut to).cast(), (&raw mut count).cast(), (&raw mut value).cast()];
        let (params, extra) = (params.as_mut_ptr(), ptr::null_mut());
        call!(self, launch(kernel, blocks, 1, 1, BLOCK, 1, 1, 0, stream, params, extra))
    }

    fn copy(
        &self,
        kind: Kind,
        (to, to_device): (Handle, u32),
        (from, from_device): (Handle, u32),
        bytes: usize,
        stream: Handle,
    ) -> Result<(), Stop> {
        match kind {
            Kind::ToDevice => call!(self, to_device(to, from, bytes, stream)),
            Kind::ToHost => call!(self, to_host(to, from, bytes, stream)),
            Kind::Peer => {
                let places = (self.place(to_device), self.place(from_device));
                call!(self, peer(to, places.0, from, places.1, bytes, stream))
            }
            _ => call!(self, within(to, from, bytes, stream)),
        }
    }

    fn set(&self, to: Handle, value: u32, words: usize, stream: Handle) -> Result<(), Stop> {
        call!(self, set(to, value, words, stream))
    }

    fn wait(&self, stream: Handle) -> Result<(), Stop> {
        call!(self, wait(stream))
    }

    fn capture(
        &self,
        stream: Handle,
        body: &mut dyn FnMut() -> Result<(), Stop>,
    ) -> Result<Option<Handle>, Stop> {
        const THREAD_LOCAL: c_int = 1;
        let (mut graph, mut executable) = (0, 0);
        call!(self, begin(stream, THREAD_LOCAL))?;
        body()?;
        call!(self, end(stream, &mut graph))?;
        call!(self, instantiate(&mut executable, graph, 0))?;
        Ok(Some(executable))
    }

    fn replay(&self, graph: Handle, stream: Handle) -> Result<(), Stop> {
        call!(self, replay(graph, stream))
    }
}

unsafe extern "C" fn never(_: Handle) -> Status {
    -1
}

fn hip_devices(library: Library) -> Result<Current, Stop> {
    // SAFETY: hip_runtime_api.h declares it so.
    let set = unsafe { library.function(c"hipSetDevice") };
    set.map(Current::Hip).map_err(Stop::Missing)
}

fn cuda_devices(library: Library, count: c_int) -> Result<Current, Stop> {
    type Retain = unsafe extern "C" fn(*mut Handle, c_int) -> Status;
    // SAFETY: cuda.h declares them so.
    let (retain, set) = unsafe {
        let retain = library.function::<Retain>(c"cuDevicePrimaryCtxRetain");
        let set = library.function(c"cuCtxSetCurrent");
        (retain.map_err(Stop::Missing)?, set.map_err(Stop::Missing)?)
    };
    let mut contexts = Vec::new();
    for device in 0..count {
        let mut context = 0;
        // SAFETY: a place for the context; devices are numbers from 0.
        check("cuDevicePrimaryCtxRetain", unsafe { retain(&mut context, device) })?;
        contexts.push(context);
    }
    Ok(Current::Cuda(contexts, set))
}

/// The kernels in CUDA's intermediate language, for the architecture that the driver knows.
fn ptx(library: Library) -> Result<Vec<u8>, Stop> {
    const CAPABILITY_MAJOR: c_int = 75;
    const CAPABILITY_MINOR: c_int = 76;
    type Attribute = unsafe extern "C" fn(*mut c_int, c_int, c_int) -> Status;
    // SAFETY: cuda.h declares it so.
    let attribute = unsafe { library.function::<Attribute>(c"cuDeviceGetAttribute") };
    let attribute = attribute.map_err(Stop::Missing)?;
    let get = |which| {
        let mut value = 0;
        // SAFETY: a place for the number, of the first device.
        check("cuDeviceGetAttribute", unsafe { attribute(&mut value, which, 0) })?;
        Ok(value)
    };
    let capability = get(CAPABILITY_MAJOR)? * 10 + get(CAPABILITY_MINOR)?;
    let head = if capability >= 75 {
        ".version 6.3\n.target sm_75\n"
    } else {
        ".version 6.0\n.target sm_50\n"
    };
    let kernels = (0..ALL_KERNELS).map(|number| {
        let (name, factor) = (kernel_name(number), factor(number));
        format!(
            ".visible .entry {name}(.param .u64 to, .param .u32 count, .param .u32 value)\n{{\n\
             .reg .pred %p;\n.reg .b32 %r<8>;\n.reg .b64 %d<4>;\n\
             ld.param.u64 %d1, [to];\nld.param.u32 %r1, [count];\nld.param.u32 %r2, [value];\n\
             mov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\nmov.u32 %r5, %tid.x;\n\
             mad.lo.u32 %r6, %r3, %r4, %r5;\nsetp.ge.u32 %p, %r6, %r1;\n@%p ret;\n\
             mad.lo.u32 %r7, %r6, {factor}, %r2;\n\
             cvta.to.global.u64 %d1, %d1;\nmul.wide.u32 %d2, %r6, 4;\nadd.u64 %d3, %d1, %d2;\n\
             st.global.u32 [%d3], %r7;\nret;\n}}\n"
        )
    });
    let text = format!("{head}.address_size 64\n{}\0", kernels.collect::<String>());
    Ok(text.into_bytes())
}

/// The kernels for HIP, compiled by its runtime compiler for the first device.
fn compile() -> Result<Vec<u8>, Stop> {
    let names = ["libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so", "libamdhip64.so.6"];
    let library = Library::load(&names).map_err(Stop::Missing)?;
    let kernel = |number: u32| {
        let (name, factor) = (kernel_name(number), factor(number));
        format!(
            "extern \"C\" __global__ void {name}(unsigned* to, unsigned count, unsigned value) {{\n\
             unsigned at = blockIdx.x * blockDim.x + threadIdx.x;\n\
             if (at < count) to[at] = at * {factor}u + value;\n}}\n"
        )
    };
    let source = CString::new((0..ALL_KERNELS).map(kernel).collect::<String>()).unwrap_or_default();
    type Texts = *const *const c_char;
    type Create = unsafe extern "C" fn(
        *mut Handle,
        *const c_char,
        *const c_char,
        c_int,
        Texts,
        Texts,
    ) -> Status;
    type Compile = unsafe extern "C" fn(Handle, c_int, Texts) -> Status;
    type Size = unsafe extern "C" fn(Handle, *mut usize) -> Status;
    type Code = unsafe extern "C" fn(Handle, *mut u8) -> Status;
    let missing = Stop::Missing;
    // SAFETY: hiprtc.h declares them so; each is given places that live for the call, and a
    // program that the first one made.
    unsafe {
        let create = library.function::<Create>(c"hiprtcCreateProgram").map_err(missing)?;
        let compile = library.function::<Compile>(c"hiprtcCompileProgram").map_err(missing)?;
        let size = library.function::<Size>(c"hiprtcGetCodeSize").map_err(missing)?;
        let code = library.function::<Code>(c"hiprtcGetCode").map_err(missing)?;
        let (mut program, null) = (0, ptr::null());
        let name: &CStr = c"kymo_selftest.hip";
        let made = create(&mut program, source.as_ptr(), name.as_ptr(), 0, null, null);
        check("hiprtcCreateProgram", made)?;
        check("hiprtcCompileProgram", compile(program, 0, null))?;
        let mut bytes = 0;
        check("hiprtcGetCodeSize", size(program, &mut bytes))?;
        let mut image = vec![0_u8; bytes];
        check("hiprtcGetCode", code(program, image.as_mut_ptr()))?;
        Ok(image)
    }
}
