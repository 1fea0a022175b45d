//! SIGKILL in the middle of CUDA work: what devices did until then is in the file, with the
//! calls that asked for it.

use harness::nvidia;
use std::os::unix::process::ExitStatusExt as _;

use nvidia::Machine;
use nvidia::record_until_killed;

#[test]
fn each_piece_of_work_with_its_call() {
    // Would take hours.
    let script = "repeat 100000000\nkernel k dur=10us\ncopy htod 64 dur=1us\nsync stream\nend\n";
    // Calls are there at once, what devices did after a quarter of a second.
    for (version, bytes, some) in [("11.8", 1 << 10, 0), ("12.9", 1 << 20, 0), ("13.1", 8 << 20, 1)]
    {
        let recorded = record_until_killed(&Machine::with(version), script, bytes);
        assert_eq!(recorded.output.status.signal(), Some(libc::SIGKILL), "{version}");
        recorded.trace.assert_clean();
        recorded.every_launch_has_its_arrow();
        let work = recorded.trace.one_i64("SELECT count(*) FROM gpu_slice");
        let calls =
            "SELECT count(*) FROM slice WHERE name IN ('cudaLaunchKernel', 'cudaMemcpyAsync')";
        assert!((some..=recorded.trace.one_i64(calls)).contains(&work), "{version}: {work}");
    }
}

#[test]
fn a_program_whose_kymo_was_killed_is_left_by_cupti() {
    let script = "repeat 100000000\nkernel k dur=10us\nsync stream\nend\n";
    assert!(nvidia::is_left_when_kymo_is_killed(&Machine::with("12.9"), script, 1 << 10));
}
