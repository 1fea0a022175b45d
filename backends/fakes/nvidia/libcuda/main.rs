//! A `libcuda.so.1` without a GPU: enough of the driver API for a tracer to look around
//! in, and `fake_cuda_run`, which does what a script says and tells the fake CUPTI, if the
//! process has one. It loads `CUDA_INJECTION64_PATH` in the first `cuInit`, as the real
//! one does.
//!
//! # Scripts
//!
//! One statement a line; words are separated by spaces; `#` starts a comment.
//!
//! | statement | does |
//! |---|---|
//! | `kernel NAME [grid=X,Y,Z] [block=X,Y,Z] [regs=N] [shared=N] [dynamic=N] [priority=N]` | launches a kernel |
//! | `copy HOW BYTES` | copies asynchronously; HOW is `htod`, `dtoh`, `dtod`, `htoh`, or `peer:N` to device N |
//! | `set BYTES [value=N]` | sets memory asynchronously |
//! | `sync` | `cudaDeviceSynchronize` |
//! | `sync stream` | `cudaStreamSynchronize` |
//! | `sync event=N` | `cudaEventSynchronize` |
//! | `record event=N` | `cudaEventRecord` |
//! | `wait event=N` | `cudaStreamWaitEvent` |
//! | `call FUNCTION` | calls something of no consequence, such as `cudaGetDevice` |
//! | `overhead KIND` | reports overhead of this kind (a number of `cupti_activity.h`) that lasted `dur` |
//! | `graph N` … `end` | says what graph N consists of: kernels, copies and sets, one after another |
//! | `launch N` | launches graph N |
//! | `repeat N` … `end` | does the lines between N times |
//! | `sleep` | sleeps for `dur` |
//!
//! Every statement takes `device=N` (0), `stream=N` (7), `dur=NANOSECONDS` (1000; `us`
//! and `ms` may follow the number) and `via=runtime|driver|both`: which API is called,
//! `both` being the driver's function inside the runtime's, under one correlation id.
//!
//! Work runs in order within its stream, for exactly `dur`, not before it was launched.
//! Graph nodes have ids: graph N's first node is `N << 32 | 1`.
//!
//! # Environment
//!
//! `FAKE_CUDA_DEVICES` (1) devices; `FAKE_CUPTI_VERSION` (12.6) also is the driver's
//! version. With `no-driver` in `FAKE_CUPTI_FAULT`, `cuInit` finds no device.

#[path = "../../plant.rs"]
mod plant;
#[path = "../../seam.rs"]
mod seam;
#[path = "../../settings.rs"]
mod settings;
#[path = "../../work.rs"]
mod work;

mod api;
mod driver;
mod functions;
mod graphs;
mod run;
mod script;
mod timeline;

/// Where the settings are, for `settings`.
const VARIABLES: settings::Variables = settings::Variables::CUPTI;
