//! A `libze_loader.so.1` without a GPU: enough of Level Zero for a tracer to look around in
//! and for known work (see `work`), and `fake_cuda_run`, which does what a script says and tells the fake PTI, if the process
//! has one. Scripts are those of the fake CUDA driver, whose interpreter this is: the same
//! script does the same work here, by functions of SYCL (`via=runtime`) or of Level Zero.
//!
//! # Environment
//!
//! `FAKE_XPU_DEVICES` (1) devices. `FAKE_PTI_FAULT` may name, separated by commas:
//!
//! | fault | makes |
//! |---|---|
//! | `no-driver` | `zeInit` find no driver |
//! | `no-device` | the driver have no device |
//! | `no-sub-devices` | `zeDeviceGetSubDevices` fail, as the loader's null driver does |

#[path = "../../plant.rs"]
mod plant;
#[path = "../../seam.rs"]
mod seam;
#[path = "../../settings.rs"]
mod settings;

mod api;
mod driver;
mod functions;
#[path = "../../nvidia/libcuda/graphs.rs"]
mod graphs;
#[path = "../../nvidia/libcuda/run.rs"]
mod run;
#[path = "../../nvidia/libcuda/script.rs"]
mod script;
#[path = "../../nvidia/libcuda/timeline.rs"]
#[allow(dead_code, reason = "CUDA has contexts to ask for")]
mod timeline;
#[path = "../../work.rs"]
mod work;

/// Where the settings are, for `settings`.
const VARIABLES: settings::Variables = settings::Variables::PTI;
