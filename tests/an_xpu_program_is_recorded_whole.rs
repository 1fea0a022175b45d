//! `kymo record` on a program that uses an Intel GPU: the trace holds what the program's
//! script says, call by call and kernel by kernel, whatever the version of PTI. The
//! libraries are fakes (`backends/fakes`), since there is no GPU here.

mod xpu;

use xpu::Machine;

const VERSIONS: [&str; 4] = ["0.12", "0.17", "1.0", "1.2"];

#[test]
fn all_work_and_all_calls_with_every_pti() {
    let script = "\
        kernel _Z4gemmPfi grid=4,2,1 block=128,2 dur=20us\n\
        kernel reduce dur=1500\n\
        kernel _ZTSN2at6native3AddE dur=600\n\
        copy htod 4096 dur=3us\n\
        copy dtoh 1048576 dur=50us\n\
        set 1024 value=7 dur=700\n\
        call cudaMalloc\n\
        call cudaGetDevice\n\
        kernel driven via=driver dur=900\n\
        kernel wrapped via=both dur=800\n\
        sync\n";
    for (version, sycl) in VERSIONS.into_iter().flat_map(|v| [(v, false), (v, true)]) {
        let machine = Machine::with(version);
        let machine = if sycl { machine.sycl() } else { machine };
        let recorded = machine.record(script, &["--exit", "7"]);
        recorded.ended(7);
        recorded.trace.assert_clean();
        assert_eq!(
            recorded.device_work(),
            "name                         n  dur\n\
             Memcpy D2H (Device -> Host)  1  50000\n\
             Memcpy H2D (Host -> Device)  1  3000\n\
             Memset (Device)              1  700\n\
             at::native::Add              1  600\n\
             driven                       1  900\n\
             gemm                         1  20000\n\
             reduce                       1  1500\n\
             wrapped                      1  800\n",
            "{version}"
        );
        // Only the classes that ask for work: neither urDeviceGet nor urQueueFinish.
        assert_eq!(
            recorded.calls(),
            "name                             n\n\
             urEnqueueKernelLaunch            4\n\
             urEnqueueUSMFill                 1\n\
             urEnqueueUSMMemcpy               2\n\
             urUSMDeviceAlloc                 1\n\
             zeCommandListAppendLaunchKernel  2\n",
            "{version}"
        );
        recorded.every_launch_has_its_arrow();
        assert_eq!(recorded.fact("xpu", "lost.never_reported"), Some("0"));
    }
}
