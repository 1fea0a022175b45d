//! PyTorch's `emit_nvtx`: names, arguments and forward → backward arrows.

mod lines;
mod nvtx_copy;

use lines::{REFUSE, take};
use nvtx_copy::{attach, mark, pop, push};

/// Pushes and pops nested messages: deeper ones are indented.
fn run(messages: &[&str]) -> Vec<String> {
    let mut depth = 0;
    for message in messages {
        let name = message.trim_start();
        let level = message.len() - name.len();
        (level..depth).for_each(|_| assert!(pop() >= 0));
        push(name);
        depth = level + 1;
    }
    (0..depth).for_each(|_| assert!(pop() >= 0));
    take().into_iter().filter(|line| line != "pop nvtx").collect()
}

/// The flow that a line begins or ends.
fn flow<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.split(' ').find_map(|word| word.strip_prefix(key))
}

#[test]
fn an_operator_has_typed_arguments() {
    let lines = run(&[
        "aten::addmm, seq = 70, op_id = 12, sizes = [[2, 3], []], input_op_ids = [(11,0), (0,-1)]",
    ]);
    assert_eq!(
        lines[0].split(" flow=").next().unwrap(),
        "push nvtx \"aten::addmm\" Record function id=12u Sequence number=70 \
         Input Dims=\"[[2, 3], []]\" input_op_ids[0]=11u"
    );
    assert_eq!(run(&["epoch 1, batch 2"]), ["push nvtx \"epoch 1, batch 2\""]);
}

#[test]
fn an_arrow_leads_from_the_owner_of_the_number_to_its_node() {
    let lines = run(&[
        "aten::linear, seq = 7, op_id = 1",
        " aten::t, seq = 7, op_id = 2",
        "  aten::transpose, op_id = 3",
        " aten::addmm, seq = 8, op_id = 4",
        "autograd::engine::evaluate_function: AddmmBackward0, op_id = 5",
        " AddmmBackward0, seq = 8, op_id = 6",
        "  aten::mm, op_id = 7",
        "autograd::engine::evaluate_function: Custom, op_id = 8",
        " Custom, seq = 7, op_id = 9",
        "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad, op_id = 10",
        " torch::autograd::AccumulateGrad, op_id = 11",
    ]);
    let begins: Vec<_> = lines.iter().map(|line| flow(line, "flow=")).collect();
    let ends: Vec<_> = lines.iter().map(|line| flow(line, "flow_end=")).collect();
    assert_eq!(begins.iter().flatten().count(), 3, "{lines:#?}");
    assert_eq!(ends.iter().flatten().count(), 2, "{lines:#?}");
    assert!(ends[5].is_some() && ends[5] == begins[3], "addmm → AddmmBackward0: {lines:#?}");
    assert!(ends[8].is_some() && ends[8] == begins[1], "t → Custom: {lines:#?}");
    assert!(!lines.iter().any(|line| line.contains(", op_id")), "{lines:#?}");
}

#[test]
fn no_arrow_without_a_beginning() {
    let ends = |lines: Vec<String>| lines.iter().filter(|l| l.contains("flow_end")).count();
    // A node whose operator ran before us.
    assert_eq!(ends(run(&["MulBackward0, seq = 1000, op_id = 1"])), 0);
    // The operator's record was lost.
    attach();
    REFUSE.set(1);
    run(&["aten::mul, seq = 1001, op_id = 2"]);
    assert_eq!(ends(run(&["MulBackward0, seq = 1001, op_id = 3"])), 0);
    // The graph is kept and runs twice: the arrow was drawn.
    run(&["aten::mul, seq = 1002, op_id = 4"]);
    assert_eq!(ends(run(&["MulBackward0, seq = 1002, op_id = 5"])), 1);
    assert_eq!(ends(run(&["MulBackward0, seq = 1002, op_id = 6"])), 0);
    // Two threads: whose?
    run(&["aten::mul, seq = 1003, op_id = 7"]);
    std::thread::spawn(|| run(&["aten::mul, seq = 1003, op_id = 8"])).join().unwrap();
    assert_eq!(ends(run(&["MulBackward0, seq = 1003, op_id = 9"])), 0);
}

#[test]
fn what_follows_an_evaluation_is_no_node() {
    let lines = run(&[
        "autograd::engine::evaluate_function: A, op_id = 1",
        "outer",
        " aten::mul, seq = 2000, op_id = 2",
    ]);
    assert!(lines[2].contains(" flow="), "{lines:#?}");
    mark("aten::mul, seq = 1");
    assert_eq!(take(), ["instant nvtx \"aten::mul, seq = 1\""]);
}
