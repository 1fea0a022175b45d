//! What operators have to compute and to move at least, by the shapes of their inputs.

use crate::metric::operators::{Inputs, InputsOf};

/// Floating point operations, and elements that are read or written once.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Work {
    pub(super) flops: f64,
    pub(super) elements: f64,
}

type Rule = fn(&Inputs<'_>) -> Option<Work>;

fn rule(operator: &str) -> Option<Rule> {
    Some(match operator {
        "aten::mm" | "aten::bmm" | "aten::_scaled_mm" | "aten::_int_mm" => |i| product(i, 0),
        "aten::addmm" | "aten::baddbmm" | "aten::_addmm_activation" => |i| {
            let work = product(i, 1)?;
            Some(Work { elements: work.elements + size(i, 0)?, ..work })
        },
        "aten::mv" | "aten::dot" => |i| {
            let (a, b) = (size(i, 0)?, size(i, 1)?);
            Some(Work { flops: 2.0 * a, elements: 2.0 * b + a })
        },
        "aten::conv1d" | "aten::conv2d" | "aten::conv3d" | "aten::convolution"
        | "aten::_convolution" => convolution,
        "aten::convolution_backward" => convolution_backward,
        "aten::scaled_dot_product_attention" => |i| attention(i, 0, 1.0),
        name if is_attention(name) && name.ends_with("_backward") => |i| attention(i, 1, 2.5),
        name if is_attention(name) => |i| attention(i, 0, 1.0),
        "aten::add" | "aten::sub" | "aten::mul" | "aten::div" | "aten::add_" | "aten::sub_"
        | "aten::mul_" | "aten::div_" => elementwise,
        _ => return None,
    })
}

fn is_attention(name: &str) -> bool {
    ["flash", "efficient", "cudnn"].iter().any(|kind| {
        let rest = name.strip_prefix("aten::_scaled_dot_product_");
        let rest = rest.and_then(|rest| rest.strip_prefix(kind));
        matches!(rest, Some("_attention" | "_attention_backward"))
    })
}

/// Whether there is a rule for an operator.
pub(super) fn has_rule(operator: &str) -> bool {
    rule(operator).is_some()
}

/// What an operator of a name has to do; `None` without a rule, or without the shapes that it needs.
pub(super) fn of(name: &str, inputs: &InputsOf<'_, '_>, row: u32) -> Option<Work> {
    rule(name)?(&inputs.of(row)?)
}

fn size(inputs: &Inputs<'_>, input: usize) -> Option<f64> {
    Some(inputs.dims(input)?.iter().product())
}

/// Two matrices, or batches of them.
fn product(inputs: &Inputs<'_>, first: usize) -> Option<Work> {
    let (a, b) = (inputs.dims(first)?, inputs.dims(first + 1)?);
    let (rows, columns) = (a.iter().rev().skip(1).product::<f64>(), *b.last()?);
    let inner = *a.last()?;
    let elements = rows * inner + b.iter().product::<f64>() + rows * columns;
    Some(Work { flops: 2.0 * rows * inner * columns, elements })
}

/// A convolution over any number of dimensions: each element of the output takes a product with
/// the weights of its channel.
fn convolution(inputs: &Inputs<'_>) -> Option<Work> {
    let (input, weight) = (inputs.dims(0)?, inputs.dims(1)?);
    let (batch, space) = (*input.first()?, input.get(2..)?);
    let numbers = [3, 4, 5].map(|at| inputs.numbers(at));
    let [Some(stride), Some(padding), Some(dilation)] = numbers else { return None };
    let of = |all: &[f64], at: usize| all.get(at).or(all.first()).copied();
    let mut positions = batch;
    for (at, size) in space.iter().enumerate() {
        let kernel = *weight.get(at + 2)?;
        let (stride, padding) = (of(&stride, at)?, of(&padding, at)?);
        let reach = of(&dilation, at)? * (kernel - 1.0) + 1.0;
        positions *= ((size + 2.0 * padding - reach) / stride).floor() + 1.0;
    }
    let weights: f64 = weight.iter().product();
    let output = positions * weight.first()?;
    let elements = input.iter().product::<f64>() + weights + output;
    Some(Work { flops: 2.0 * positions * weights, elements })
}

/// The gradients of input and weights each take as much as the convolution.
fn convolution_backward(inputs: &Inputs<'_>) -> Option<Work> {
    let (output, weight) = (inputs.dims(0)?, inputs.dims(2)?);
    let input = size(inputs, 1)?;
    let positions = output.first()? * output.get(2..)?.iter().product::<f64>();
    let weights: f64 = weight.iter().product();
    let wanted = inputs.text(10).unwrap_or("[True, True, True]");
    let mut wanted = wanted.trim_matches(['[', ']']).split(',').map(|one| one.trim() == "True");
    let gradients = [wanted.next(), wanted.next()].map(|one| f64::from(one == Some(true)));
    let elements = output.iter().product::<f64>()
        + input * (1.0 + gradients[0])
        + weights * (1.0 + gradients[1]);
    Some(Work { flops: 2.0 * positions * weights * (gradients[0] + gradients[1]), elements })
}

/// Queries by keys, and what comes of it by values; without regard to masks.
fn attention(inputs: &Inputs<'_>, first: usize, passes: f64) -> Option<Work> {
    let [query, key, value] = [0, 1, 2].map(|at| inputs.dims(first + at));
    let (query, key, value) = (query?, key?, value?);
    let [.., queries, width] = query[..] else { return None };
    let [.., keys, _] = key[..] else { return None };
    let heads: f64 = query[..query.len() - 2].iter().product();
    let out = *value.last()?;
    let elements = 2.0 * query.iter().product::<f64>()
        + key.iter().product::<f64>()
        + value.iter().product::<f64>();
    Some(Work { flops: passes * 2.0 * heads * queries * keys * (width + out), elements })
}

fn elementwise(inputs: &Inputs<'_>) -> Option<Work> {
    let (a, b) = (size(inputs, 0)?, size(inputs, 1).unwrap_or(1.0));
    let output = a.max(b);
    Some(Work { flops: output, elements: a + b + output })
}
