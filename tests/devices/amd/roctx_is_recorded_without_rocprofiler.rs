//! ROCTX ranges of a program whose calls nobody reports: the preloaded library stands in front
//! of them. The program gets what it would get without us.

use amd::{Machine, Recorded};
use harness::amd;

fn ranges(recorded: &Recorded) -> String {
    recorded.trace.table(
        "SELECT s.name, p.name AS parent, count(*) AS n, s.dur > 0 AS lasted
         FROM slice s LEFT JOIN slice p ON p.id = s.parent_id
         WHERE s.category = 'roctx' GROUP BY 1, 2, 4 ORDER BY 1",
    )
}

#[test]
fn ranges_marks_and_free_ranges() {
    let expected = "\
        name   parent  n  lasted\n\
        free   NULL    1  1\n\
        inner  outer   1  1\n\
        mark   inner   1  0\n\
        outer  NULL    1  1\n";
    // With rocprofiler-sdk too: the program's ROCTX is not one that registers with it.
    for machine in [Machine::without_rocprofiler(), Machine::with("1.0")] {
        let recorded = machine.record("sleep dur=1ms\n", &["--roctx", "outer", "--exit", "2"]);
        recorded.ended(2);
        recorded.trace.clean_except(&[]);
        assert_eq!(recorded.printed(), "levels 0 1 1 0\n");
        assert_eq!(ranges(&recorded), expected);
    }
}

#[test]
fn a_category_that_is_off() {
    let options = ["--roctx", "outer", "--", "--category", "-roctx"];
    let recorded = Machine::without_rocprofiler().record("sleep dur=1ms\n", &options);
    recorded.ended(0);
    assert_eq!(recorded.printed(), "levels 0 1 1 0\n");
    assert_eq!(ranges(&recorded), "name  parent  n  lasted\n");
}
