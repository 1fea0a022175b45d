//! `GPU_COUNTERS`: what NVML says of the devices that a program uses, as counters of these
//! devices.

use harness::nvidia;
use nvidia::Machine;
use nvidia::{Recorded, record, record_until_sampled};

/// Some rounds' time, if all goes well.
const SCRIPT: &str = "kernel k device=1\nsleep dur=400ms\nsync device=1\n";
const OFTEN: [&str; 2] = ["--gpu-counters", "10ms"];

/// What goes over PCIe and NVLink is known from the second round on, and the last value of
/// a counter is not to be seen ([`COUNTERS`]).
const ROUNDS: usize = 3;

fn sampled(machine: &Machine) -> Recorded {
    whole(record_until_sampled(machine, SCRIPT, &OFTEN, ROUNDS))
}

fn whole(recorded: Recorded) -> Recorded {
    recorded.ended(0);
    recorded.trace.assert_clean();
    recorded
}

/// Name, the least and the greatest value, and of which device. This trace_processor takes a
/// value for that of the time before it, whatever the trace says: the last row is 0.
const COUNTERS: &str = "
    SELECT t.name, min(c.value) AS least, max(c.value) AS most, t.gpu_id AS gpu
    FROM counter c JOIN gpu_counter_track t ON t.id = c.track_id
    WHERE t.name != 'Memory utilization' AND c.value > 0 GROUP BY 1, 4 ORDER BY 1";

#[test]
fn of_the_devices_that_are_used() {
    let recorded = sampled(&Machine::with("12.6").devices(2).nvml());
    assert_eq!(
        recorded.trace.table(COUNTERS),
        "name             least         most          gpu\n\
         GPU utilization  100.0         100.0         1\n\
         Memory clock     3201.0        3201.0        1\n\
         Memory used      2147483648.0  2147483648.0  1\n\
         NVLink received  62914560.0    62914560.0    1\n\
         NVLink sent      63963136.0    63963136.0    1\n\
         PCIe received    22020096.0    22020096.0    1\n\
         PCIe sent        20971520.0    20971520.0    1\n\
         Power            345.5         345.5         1\n\
         SM clock         1980.0        1980.0        1\n\
         Temperature      61.0          61.0          1\n"
    );
    // One track for each, however often the sequence says what they are.
    let tracks = "SELECT count(*) FROM gpu_counter_track";
    assert_eq!(recorded.trace.one_i64(tracks), 11);
    let rounds = recorded.nvml("rounds");
    let values = "SELECT count(*) FROM counter c JOIN gpu_counter_track t ON t.id = c.track_id
                  WHERE t.name = 'Memory utilization'";
    assert_eq!(recorded.trace.one_i64(values), rounds);
    assert!(rounds >= ROUNDS as i64, "{rounds} rounds");
    // In Kineto's JSON, too.
    assert!(!recorded.json_lines(&["GPU utilization", r#""ph": "C""#]).is_empty());
}

#[test]
fn of_a_program_that_is_soon_over() {
    let machine = Machine::with("12.6").nvml();
    let recorded = record(&machine, "kernel k\nsync\n", &["--", "--gpu-counters", "1h"]);
    recorded.ended(0);
    recorded.trace.assert_clean();
    let rounds = recorded.nvml("rounds");
    assert!(rounds >= 1, "{rounds} rounds");
    let names = "SELECT DISTINCT name FROM gpu_counter_track WHERE name = 'Memory used'";
    assert_eq!(recorded.trace.strings(names), ["Memory used"]);
}

#[test]
fn what_a_device_does_not_say_is_left_out() {
    let recorded = sampled(&Machine::with("12.6").devices(2).nvml().fault("nvml-old"));
    let names = "SELECT DISTINCT name FROM gpu_counter_track ORDER BY 1";
    let expected = [
        "GPU utilization",
        "Memory clock",
        "Memory used",
        "Memory utilization",
        "SM clock",
        "Temperature",
    ];
    assert_eq!(recorded.trace.strings(names), expected);
}

#[test]
fn why_there_are_none() {
    let wanted = |machine| whole(record(&machine, SCRIPT, &[&["--"], &OFTEN[..]].concat()));
    let without = wanted(Machine::with("12.6").devices(2));
    let said = without.metadata.iter().find(|(key, _)| key.ends_with("not_recorded")).unwrap().1;
    assert!(said.contains("libnvidia-ml.so.1") && said.contains("driver"), "{said}");
    let broken = wanted(Machine::with("12.6").devices(2).nvml().fault("nvml-init"));
    let said = broken.metadata.iter().find(|(key, _)| key.ends_with("not_recorded")).unwrap().1;
    assert!(said.contains("libnvidia-ml.so.1"), "{said}");
    assert_eq!((broken.kernels(), broken.nvml("rounds")), (1, 0));
}

#[test]
fn never_unless_they_are_wanted() {
    let recorded = record(&Machine::with("12.6").nvml(), SCRIPT, &[]);
    recorded.trace.assert_clean();
    assert_eq!(recorded.trace.one_i64("SELECT count(*) FROM gpu_counter_track"), 0);
}
