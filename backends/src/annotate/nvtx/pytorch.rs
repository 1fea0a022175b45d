//! Messages of PyTorch's `torch.autograd.profiler.emit_nvtx`.
//!
//! Every operator is a push whose message carries more than a name (`getNvtxStr` in
//! PyTorch's `torch/csrc/profiler/util.cpp`):
//!
//! ```text
//! aten::addmm, seq = 7, op_id = 12, sizes = [[2, 3], []], input_op_ids = [(11,0), (0,-1)]
//! └── name ─┘  └ seq─┘  └─ op_id ┘  └────── sizes ─────┘  └─────── input_op_ids ──────┘
//! ```
//! The parts come in this order and any may be missing; `op_id` makes each message unique,
//! which would fill the interner. So the parts become arguments, named as in Kineto's
//! traces where Kineto has them: `Record function id`, `Sequence number`, `Input Dims`;
//! and `input_op_ids[i]`, the operators whose outputs this one reads.
//!
//! `seq` ties an operator to its backward node: see [`super::flows`].

use kymograph_protos::record::OPERATOR;
use kymograph_protos::{ArgType, Extra, Kind, Record, StrId};

use super::super::args::Args;
use super::super::session::{NVTX, Session};
use super::super::table::Interned;
use super::super::text::Text;
use super::super::thread::Thread;
use super::flows;

static OP_ID: Interned = Interned::known(b"Record function id");
static SEQUENCE: Interned = Interned::known(b"Sequence number");
static DIMS: Interned = Interned::known(b"Input Dims");
static INPUTS: [Interned; 8] = [
    Interned::known(b"input_op_ids[0]"),
    Interned::known(b"input_op_ids[1]"),
    Interned::known(b"input_op_ids[2]"),
    Interned::known(b"input_op_ids[3]"),
    Interned::known(b"input_op_ids[4]"),
    Interned::known(b"input_op_ids[5]"),
    Interned::known(b"input_op_ids[6]"),
    Interned::known(b"input_op_ids[7]"),
];

/// What the autograd engine's range around the call of a node is called; the name of the
/// node follows.
const EVALUATE: &[u8] = b"autograd::engine::evaluate_function: ";

/// The parts of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Op<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) sequence: Option<i64>,
    pub(crate) op_id: Option<u64>,
    pub(crate) sizes: Option<&'a [u8]>,
    pub(crate) inputs: Option<&'a [u8]>,
}

/// Takes a message apart; none if it is not of this form to its last character.
pub(crate) fn parse(text: &[u8]) -> Option<Op<'_>> {
    let mut op = Op::default();
    let mut rest = text;
    // The name may contain commas itself (C++ template arguments).
    let mut at = 0;
    loop {
        at += rest.get(at..)?.iter().position(|&b| b == b',')?;
        if field(&rest[at..]).is_some() {
            break;
        }
        at += 1;
    }
    (op.name, rest) = rest.split_at(at);
    while !rest.is_empty() {
        let (key, after) = field(rest)?;
        let (value, after) = after.split_at(value_length(after)?);
        match key {
            Field::Sequence => op.sequence = Some(std::str::from_utf8(value).ok()?.parse().ok()?),
            Field::OpId => op.op_id = Some(std::str::from_utf8(value).ok()?.parse().ok()?),
            Field::Sizes => op.sizes = Some(value),
            Field::Inputs => op.inputs = Some(value),
        }
        rest = after;
    }
    Some(op)
}

#[derive(Clone, Copy)]
enum Field {
    Sequence,
    OpId,
    Sizes,
    Inputs,
}

/// The field that begins here, and what follows its `=`.
fn field(text: &[u8]) -> Option<(Field, &[u8])> {
    const FIELDS: [(&[u8], Field); 4] = [
        (b", op_id = ", Field::OpId),
        (b", seq = ", Field::Sequence),
        (b", sizes = ", Field::Sizes),
        (b", input_op_ids = ", Field::Inputs),
    ];
    FIELDS.iter().find_map(|&(key, field)| Some((field, text.strip_prefix(key)?)))
}

/// Length of the value at the start of a text: up to a comma outside all brackets.
fn value_length(text: &[u8]) -> Option<usize> {
    let mut depth = 0_u32;
    for (i, byte) in text.iter().enumerate() {
        match byte {
            b'[' | b'(' => depth += 1,
            b']' | b')' => depth = depth.checked_sub(1)?,
            b',' if depth == 0 => return Some(i),
            _ => {}
        }
    }
    (depth == 0 && !text.is_empty()).then_some(text.len())
}

/// The operators of `[(id,output), …]`; an input that no operator made has id 0.
fn input_ops(text: &[u8]) -> impl Iterator<Item = u64> {
    text.split(|&b| b == b'(').skip(1).map(|pair| {
        let digits = pair.iter().take_while(|b| b.is_ascii_digit());
        digits.fold(0_u64, |n, b| n.wrapping_mul(10).wrapping_add(u64::from(b - b'0')))
    })
}

/// Whether a node of the autograd graph, not an operator, is called like this: derived
/// names end in `Backward` and a digit.
fn is_backward_name(name: &[u8]) -> bool {
    let digits = name.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    name[..name.len() - digits].ends_with(b"Backward")
}

/// Whether a range is an operator's or the engine's, and not one of `record_function`: its
/// name has a namespace, or it is a node, or a kernel that Inductor made.
fn is_operator(name: &[u8]) -> bool {
    name.windows(2).any(|two| two == b"::")
        || is_backward_name(name)
        || name.starts_with(b"triton_")
}

/// An operator of which nothing is told but its number: all for which no gradient is
/// computed, unless shapes are asked for. `comma` is where the first one lies. In few instructions:
/// after all the code that a program runs for an operator, each line of ours comes from far.
#[inline(always)]
pub(crate) fn plain(text: &[u8], comma: usize) -> Option<(&[u8], u64)> {
    let (name, rest) = text.split_at(comma);
    let digits = rest.strip_prefix(b", op_id = ")?;
    let mut id = 0_u64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        id = id.wrapping_mul(10).wrapping_add(digit.into());
    }
    let colon = name.iter().position(|byte| *byte == b':')?;
    // The engine's own range means more than an operator's.
    let is_operator = name[colon..].starts_with(b"::") && !name.starts_with(b"autograd::");
    (is_operator && (1..20).contains(&digits.len())).then_some((name, id))
}

/// Records a push of an operator that has a name and a number.
#[inline(always)]
pub(crate) fn push_plain(session: &Session, category: StrId, (name, id): (&[u8], u64)) -> bool {
    let (key, site) = (session.key(&OP_ID), session.intern(category, name));
    if key.is_none() || site.is_none() {
        let mut args = Args::new();
        args.unsigned(key, id);
        let head = Record { kind: Kind::Push as u8, tag: OPERATOR, ..Record::default() };
        return session.send_head(head, category, &Text::Borrowed(name), &mut args, None);
    }
    let (kind, tag) = (Kind::Push as u8, OPERATOR);
    let head = Record { time: session.now(), site, kind, tag, ..Record::default() };
    session.push(head, &[Extra::new(key, ArgType::U64, id)])
}

/// Records a push with a message of PyTorch's; none if it is not one.
#[inline(never)]
pub(crate) fn push(
    session: &Session,
    thread: &Thread,
    category: StrId,
    level: u32,
    text: &[u8],
) -> Option<bool> {
    let op = parse(text)?;
    let mut args = Args::new();
    if let Some(id) = op.op_id {
        args.unsigned(session.key(&OP_ID), id);
    }
    if let Some(sequence) = op.sequence {
        args.signed(session.key(&SEQUENCE), sequence);
    }
    if let Some(sizes) = op.sizes {
        args.string(session, session.key(&DIMS), sizes);
    }
    for (key, id) in INPUTS.iter().zip(op.inputs.into_iter().flat_map(input_ops)) {
        if id != 0 {
            args.unsigned(session.key(key), id);
        }
    }
    // The engine calls the node right inside of its own range.
    let node = level > 0 && thread.evaluating.get() == level || is_backward_name(op.name);
    let mut forward = None;
    if let Some(sequence) = op.sequence {
        if node {
            if let Some(flow) = flows::take(sequence) {
                args.add_flow(ArgType::FlowEnd, flow);
            }
        } else {
            let candidate = flows::Candidate::new(thread, sequence);
            args.add_flow(ArgType::Flow, candidate.flow());
            forward = Some(candidate);
        }
    }
    let tag = if is_operator(op.name) { OPERATOR } else { 0 };
    let head = Record { kind: Kind::Push as u8, tag, ..Record::default() };
    let recorded = session.send_head(head, category, &Text::Borrowed(op.name), &mut args, None);
    if recorded && let Some(candidate) = forward {
        candidate.publish();
    }
    if op.name.starts_with(EVALUATE) {
        thread.evaluating.set(level + 1);
    }
    Some(recorded)
}

/// A range of the default domain ended: if it was the one that `evaluating` means, the
/// next push is not inside of it.
#[cold]
pub(crate) fn popped(thread: &Thread, session: &Session, category: StrId, level: u32) {
    if category == session.key(&NVTX) && thread.evaluating.get() > level {
        thread.evaluating.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(name: &str) -> Op<'_> {
        Op { name: name.as_bytes(), ..Op::default() }
    }

    #[test]
    fn messages_of_emit_nvtx() {
        let full = b"aten::addmm, seq = 7, op_id = 12, sizes = [[2, 3], []], input_op_ids = [(11,0), (0,-1)]";
        let expected = Op {
            sequence: Some(7),
            op_id: Some(12),
            sizes: Some(b"[[2, 3], []]"),
            inputs: Some(b"[(11,0), (0,-1)]"),
            ..op("aten::addmm")
        };
        assert_eq!(parse(full), Some(expected));
        assert_eq!(input_ops(expected.inputs.unwrap()).collect::<Vec<_>>(), [11, 0]);
        let engine = "autograd::engine::evaluate_function: AddmmBackward0";
        let message = format!("{engine}, op_id = 31");
        assert_eq!(parse(message.as_bytes()), Some(Op { op_id: Some(31), ..op(engine) }));
        assert_eq!(
            parse(b"Node<A, B>, seq = -2, op_id = 1"),
            Some(Op { sequence: Some(-2), op_id: Some(1), ..op("Node<A, B>") })
        );
    }

    #[test]
    fn other_names_with_commas_are_left_alone() {
        for text in [
            "step, 7",
            "a, seq = ",
            "a, seq = x",
            "a, seq = 1, 2",
            "a, op_id = -3",
            "a, op_id = 99999999999999999999",
            "a, sizes = [[1]",
            "a, sizes = ]",
            ",",
            "",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn nodes_are_told_from_operators() {
        for name in ["AddmmBackward0", "MyFunctionBackward", "torch::autograd::FooBackward12"] {
            assert!(is_backward_name(name.as_bytes()), "{name}");
        }
        for name in ["aten::add", "aten::native_layer_norm_backward", "Backward pass", "7", ""] {
            assert!(!is_backward_name(name.as_bytes()), "{name}");
        }
    }
}
