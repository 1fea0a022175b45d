//! CUPTI is asked about the driver's launches only while the program may make some itself:
//! what it does about each of them costs as much as the launch that is wanted.

use harness::nvidia;
use nvidia::Machine;
use nvidia::{Recorded, record};

fn recorded(script: &str) -> Recorded {
    let recorded = record(&Machine::with("13.0"), script, &[]);
    recorded.ended(0);
    recorded.trace.assert_clean();
    recorded
}

fn since(recorded: &Recorded) -> &str {
    recorded.cuda("driver_launches_since").unwrap()
}

#[test]
fn not_of_a_program_that_has_nothing_to_launch() {
    let recorded = recorded("repeat 20\nkernel k via=both\nend\nsync\n");
    assert_eq!(since(&recorded), "not watched: the program asks for nothing to launch");
    recorded.every_launch_has_its_arrow();
}

#[test]
fn from_the_call_that_gives_it_something() {
    let recorded = recorded("kernel k\nkernel d via=driver\nkernel d via=driver\nsync\n");
    assert_eq!(since(&recorded), "cuModuleGetFunction");
    assert!(recorded.calls().contains("cuLaunchKernel         2\n"), "{}", recorded.calls());
    recorded.every_launch_has_its_arrow();
}

#[test]
fn from_the_calls_of_several_threads_at_once() {
    let machine = Machine::with("13.0").fault("slow-enable");
    let part = "call cuModuleGetFunction\nkernel d via=driver\nsync\n";
    let script = format!("kernel k\nsync\nthread\n{}", [part; 4].join("thread\n"));
    let recorded = record(&machine, &script, &[]);
    recorded.ended(0);
    recorded.trace.assert_clean();
    assert!(recorded.calls().contains("cuLaunchKernel         4\n"), "{}", recorded.calls());
    recorded.every_launch_has_its_arrow();
}

#[test]
fn not_for_ever_if_it_launches_by_the_runtime() {
    let many = "call cuModuleGetFunction\nrepeat 10020\nkernel k via=both\nend\nsync\n";
    let recorded = recorded(many);
    assert_eq!(
        since(&recorded),
        "cuModuleGetFunction, until 10000 launches in a row came from the runtime"
    );
    assert_eq!((recorded.kernels(), recorded.number("cuda", "kernels_without_call")), (10_020, 0));
    recorded.every_launch_has_its_arrow();
}

#[test]
fn again_when_it_gets_something_else() {
    let script = "call cuModuleGetFunction\nrepeat 10020\nkernel k via=both\nend\n\
                  call cuModuleGetFunction\nkernel d via=driver\nsync\n";
    let recorded = recorded(script);
    assert_eq!(since(&recorded), "cuModuleGetFunction");
    assert!(recorded.calls().contains("cuLaunchKernel         1\n"), "{}", recorded.calls());
    recorded.every_launch_has_its_arrow();
}

#[test]
fn from_a_kernel_on_that_no_call_asked_for() {
    // It uses very late what it got: until the first kernels are read, nobody watches.
    let script = "call cuModuleGetFunction\nrepeat 10020\nkernel k via=both\nend\n\
                  repeat 150\nkernel d via=driver\nsleep dur=50ms\nend\nsync\n";
    let recorded = record(&Machine::with("13.0"), script, &[]);
    recorded.trace.assert_clean();
    assert_eq!((recorded.kernels(), recorded.number("cuda", "lost")), (10_170, 0));
    let missed = recorded.number("cuda", "kernels_without_call");
    assert!((1..150).contains(&missed), "{missed}");
    let said =
        format!("SELECT COUNT(*) FROM slice WHERE name GLOB '{missed} kernels have no arrow*'");
    assert_eq!(recorded.trace.one_i64(&said), 1);
    let arrows = "SELECT COUNT(*) FROM flow JOIN gpu_slice g ON g.id = slice_in";
    assert_eq!(recorded.trace.one_i64(arrows), 10_170 - missed);
    // Those that have none came first.
    let first = "SELECT COUNT(*) FROM gpu_slice WHERE name = 'd' AND ts < (
        SELECT MIN(g.ts) FROM gpu_slice g JOIN flow ON g.id = slice_in WHERE g.name = 'd')";
    assert_eq!(recorded.trace.one_i64(first), missed);
}
