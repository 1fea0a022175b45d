//! `kymo record` on a program that uses HIP: the trace holds what the program's script says,
//! call by call and kernel by kernel, whatever the version of rocprofiler-sdk. The libraries
//! are fakes (`backends/fakes/rocm`), since there is no GPU here.

mod rocm;

use rocm::{Machine, VERSIONS};

const SCRIPT: &str = "\
    kernel _Z4gemmPfi.kd grid=4,2,1 block=128,2 regs=40 shared=512 dynamic=256 dur=20us\n\
    kernel reduce dur=1500\n\
    copy htod 4096 dur=3us\n\
    copy dtoh 1048576 dur=50us\n\
    set 1024 value=7 dur=700\n\
    call hipMalloc:8192\n\
    call hipGetDevice\n\
    kernel driven via=driver dur=900\n\
    sync\n";

#[test]
fn all_work_and_all_calls_with_every_rocprofiler() {
    for version in VERSIONS {
        let recorded = Machine::with(version).record(SCRIPT, &["--exit", "7"]);
        recorded.ended(7);
        recorded.trace.assert_clean();
        assert_eq!(
            recorded.device_work(),
            "name                          n  dur\n\
             Memcpy DtoH (Device -> Host)  1  50000\n\
             Memcpy HtoD (Host -> Device)  1  3000\n\
             Memset (Device)               1  700\n\
             driven                        1  900\n\
             gemm                          1  20000\n\
             reduce                        1  1500\n",
            "{version}: {:#?}",
            recorded.facts
        );
        assert_eq!(
            recorded.calls(),
            "name                   n\n\
             hipDeviceSynchronize   1\n\
             hipLaunchKernel        2\n\
             hipMalloc              1\n\
             hipMemcpyAsync         2\n\
             hipMemsetAsync         1\n\
             hipModuleLaunchKernel  1\n",
            "{version}"
        );
        recorded.every_launch_has_its_arrow();
    }
}
