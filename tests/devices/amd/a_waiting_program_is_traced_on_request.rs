//! `kymo record --wait` on a program that uses HIP, and `kymo trigger` from elsewhere: the
//! library is set up when HIP is first used, long before anybody asks.

use harness::{amd, control, fakes, kymo};
use std::time::{Duration, Instant};

use amd::Machine;
use control::Place;
use oracle::Trace;

/// All that the program does there.
const WORK: [&str; 2] = ["Memcpy HtoD (Host -> Device)", "k"];

/// Asks for a trace, until the program can be asked.
fn ask(place: &Place, name: &str, deadline: Instant) -> Trace {
    loop {
        let said = place.run(&["trigger", "--duration", "300ms", "-o", name]);
        if said.good {
            return said.trace();
        }
        assert!(Instant::now() < deadline, "{said:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Whether all kinds of work are in the trace.
fn has_all(trace: &Trace, version: &str) -> bool {
    // All but what was asked for before the window has its arrow.
    let count = |query: &str| trace.one_i64(query);
    let arrows = count("SELECT count(*) FROM flow");
    let work = count("SELECT count(*) FROM gpu_slice");
    assert!((work - 2..=work).contains(&arrows), "{version}: {arrows} of {work}");
    let names = trace.strings("SELECT name FROM gpu_slice GROUP BY name ORDER BY name");
    assert!(names.iter().all(|name| WORK.contains(&name.as_str())), "{version}: {names:?}");
    names.len() == WORK.len()
}

#[test]
fn twice() {
    for version in ["0.5", "1.3"] {
        let (place, machine) = (Place::new(), Machine::with(version));
        // It works until it is told to end.
        let script = "repeat 1000000\nkernel k dur=2us\ncopy htod 64\nsleep dur=1ms\nend\n";
        let mut command = place.kymo(&["record", "--wait", "--"]);
        machine.prepare(&mut command);
        command.arg(fakes::example("fake_cuda_program")).arg("--hip");
        command.arg(machine.script(script));
        let mut kymo = kymo::Guarded::start(&mut command);
        let deadline = Instant::now() + Duration::from_secs(60);
        for name in ["first.pftrace", "second.pftrace"] {
            // On a busy machine the program need not have run while it was recorded.
            while !has_all(&ask(&place, name, deadline), version) {
                assert!(Instant::now() < deadline, "{version}: {name} lacks work");
            }
        }
        // SAFETY: no pointers; `kymo` has not been waited for, and passes the signal on.
        unsafe { libc::kill(kymo.id() as libc::pid_t, libc::SIGTERM) };
        kymo.wait().unwrap();
    }
}
