//! How many floating point operations an operator takes, by the shapes of its inputs: the rules
//! of PyTorch's profiler, which has some for seven operators.

use hashbrown::HashMap;
use kymograph_converters::trace::{ListId, StrId, Trace, Value};

use crate::model::{Argument, Model, number};

pub(super) type Rule = fn(&Inputs<'_>) -> Option<f64>;

const RULES: [(&str, Rule); 7] = [
    ("aten::conv2d", conv2d),
    ("aten::mm", |inputs| inputs.product(0)),
    ("aten::bmm", |inputs| inputs.product(0)),
    ("aten::addmm", |inputs| inputs.product(1)),
    ("aten::baddbmm", |inputs| inputs.product(1)),
    ("aten::mul", |inputs| Some(inputs.dims(0)?.iter().product())),
    ("aten::add", |inputs| Some(inputs.dims(0)?.iter().product())),
];

/// The rules for the names that a trace has.
pub(super) struct Flops<'m, 'a> {
    rules: Vec<(StrId, Rule)>,
    inputs: InputsOf<'m, 'a>,
    /// What operators with certain inputs need: the name, the shapes and the values.
    known: HashMap<(StrId, ListId, Option<ListId>), f64>,
}

impl<'m, 'a> Flops<'m, 'a> {
    pub(super) fn new(model: &'m Model<'a>) -> Flops<'m, 'a> {
        let known = RULES.iter().filter_map(|(name, rule)| {
            let name = model.trace.strings.find(name)?;
            Some((name, *rule))
        });
        Flops { rules: known.collect(), inputs: InputsOf::new(model), known: HashMap::new() }
    }

    /// The rule for a name, if there is one.
    pub(super) fn rule(&self, name: StrId) -> Option<Rule> {
        self.rules.iter().find(|(own, _)| *own == name).map(|(_, rule)| *rule)
    }

    /// The operations of an event of a name by its rule; 0 where the trace does not tell.
    pub(super) fn of(&mut self, name: StrId, rule: Rule, row: u32) -> f64 {
        let Some(inputs) = self.inputs.of(row) else { return 0.0 };
        let key = (name, inputs.shapes, inputs.values.list(row));
        *self.known.entry(key).or_insert_with(|| rule(&inputs).unwrap_or(0.0))
    }
}

/// The inputs of operators of a trace.
pub(in crate::metric) struct InputsOf<'m, 'a> {
    trace: &'a Trace,
    shapes: Argument<'m, 'a>,
    values: Argument<'m, 'a>,
}

impl<'m, 'a> InputsOf<'m, 'a> {
    pub(in crate::metric) fn new(model: &'m Model<'a>) -> InputsOf<'m, 'a> {
        let (shapes, values) = (model.argument("Input Dims"), model.argument("Concrete Inputs"));
        InputsOf { trace: model.trace, shapes, values }
    }

    /// The inputs of an event; none if the trace does not say which shapes those have.
    pub(in crate::metric) fn of(&self, row: u32) -> Option<Inputs<'_>> {
        Some(Inputs {
            trace: self.trace,
            shapes: self.shapes.list(row)?,
            values: &self.values,
            row,
        })
    }
}

/// Inputs of an operator.
pub(in crate::metric) struct Inputs<'i> {
    trace: &'i Trace,
    shapes: ListId,
    values: &'i Argument<'i, 'i>,
    row: u32,
}

impl Inputs<'_> {
    /// The shape of an input.
    pub(in crate::metric) fn dims(&self, input: usize) -> Option<Vec<f64>> {
        let Value::List(dims) = self.trace.args.items(self.shapes).nth(input)? else { return None };
        self.trace.args.items(dims).map(number).collect()
    }

    /// An input that is a number or a list of numbers.
    pub(in crate::metric) fn numbers(&self, input: usize) -> Option<Vec<f64>> {
        match self.trace.args.items(self.values.list(self.row)?).nth(input)? {
            Value::Str(text) => {
                let text = self.trace.strings.get(text).trim_matches(['[', ']']);
                text.split(',').map(|number| number.trim().parse().ok()).collect()
            }
            value => Some(vec![number(value)?]),
        }
    }

    /// An input that is a text.
    pub(in crate::metric) fn text(&self, input: usize) -> Option<&str> {
        match self.trace.args.items(self.values.list(self.row)?).nth(input)? {
            Value::Str(text) => Some(self.trace.strings.get(text)),
            _ => None,
        }
    }

    /// The product of two matrices, or of batches of them.
    fn product(&self, first: usize) -> Option<f64> {
        let (a, b) = (self.dims(first)?, self.dims(first + 1)?);
        Some(2.0 * a.iter().product::<f64>() * b.last()?)
    }
}

fn conv2d(inputs: &Inputs<'_>) -> Option<f64> {
    let [batch, channels, height, width] = inputs.dims(0)?[..] else { return None };
    let [out, _, kernel_height, kernel_width] = inputs.dims(1)?[..] else { return None };
    let pair = |input| match inputs.numbers(input)?[..] {
        [both] => Some((both, both)),
        [first, second] => Some((first, second)),
        _ => None,
    };
    let (stride, padding, dilation) = (pair(3)?, pair(4)?, pair(5)?);
    let groups = *inputs.numbers(6)?.first()?;
    let size = |size: f64, kernel: f64, stride: f64, padding: f64, dilation: f64| {
        ((size + 2.0 * padding - dilation * (kernel - 1.0) - 1.0) / stride).floor() + 1.0
    };
    let out_height = size(height, kernel_height, stride.0, padding.0, dilation.0);
    let out_width = size(width, kernel_width, stride.1, padding.1, dilation.1);
    let positions = batch * out_height * out_width;
    Some(2.0 * positions * kernel_height * kernel_width * channels * out / groups)
}
