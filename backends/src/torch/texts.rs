//! The texts of [`super::inputs`], in Kineto's words.

use std::fmt::{self, Write as _};

use super::inputs::{Input, Inputs, LONG};
use super::values::{Tensor, dtype_name};

/// Bytes of a text at most.
const MAX_BYTES: usize = 1 << 16;

/// A text for which there may be no memory, or not enough.
#[derive(Default)]
pub(super) struct Text(pub(super) Vec<u8>);

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > MAX_BYTES {
            return Err(fmt::Error);
        }
        self.0.try_reserve(text.len()).map_err(|_| fmt::Error)?;
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// One for each of [`super::inputs::NAMES`].
#[derive(Default)]
pub(super) struct Texts {
    dims: Text,
    strides: Text,
    types: Text,
    values: Text,
}

impl Texts {
    /// None if there is no memory for them, or they are too long.
    pub(super) fn of(inputs: Inputs<'_>) -> Option<Texts> {
        let mut texts = Texts::default();
        texts.write(inputs).ok()?;
        Some(texts)
    }

    pub(super) fn all(&self) -> [&[u8]; 4] {
        [&self.dims, &self.strides, &self.types, &self.values].map(|text| text.0.as_slice())
    }

    fn write(&mut self, inputs: Inputs<'_>) -> fmt::Result {
        self.each(|text| text.write_str("["))?;
        for (index, input) in inputs.iter().enumerate() {
            if index > 0 {
                self.each(|text| text.write_str(", "))?;
            }
            self.input(&input)?;
        }
        self.each(|text| text.write_str("]"))
    }

    fn each(&mut self, write: impl Fn(&mut Text) -> fmt::Result) -> fmt::Result {
        [&mut self.dims, &mut self.strides, &mut self.types, &mut self.values]
            .into_iter()
            .try_for_each(write)
    }

    fn input(&mut self, input: &Input<'_>) -> fmt::Result {
        let mut value = Text::default();
        let name = match input {
            Input::Tensor(tensor) => {
                // SAFETY: it lives as long as the input.
                let name = dtype_name(unsafe { tensor.dtype() });
                let (sizes, strides) = match shape(*tensor) {
                    // The tensor that stands for none.
                    ([0], _) if name.is_empty() => (&[][..], &[][..]),
                    shape => shape,
                };
                numbers(&mut self.dims, sizes)?;
                numbers(&mut self.strides, strides)?;
                name
            }
            Input::Tensors(list) => {
                self.tensors(*list)?;
                "TensorList"
            }
            Input::List(list) if list.len() <= LONG && list.iter().all(|item| is_scalar(&item)) => {
                value.write_str("[")?;
                for (index, item) in list.iter().enumerate() {
                    value.write_str(if index > 0 { ", " } else { "" })?;
                    scalar(&mut value, &item)?;
                }
                value.write_str("]")?;
                "ScalarList"
            }
            input if is_scalar(input) => {
                scalar(&mut value, input)?;
                "Scalar"
            }
            _ => "",
        };
        if !matches!(input, Input::Tensor(_) | Input::Tensors(_)) {
            self.dims.write_str("[]")?;
            self.strides.write_str("[]")?;
        }
        write!(self.types, "\"{name}\"")?;
        self.values.write_str("\"")?;
        self.values.write_str(std::str::from_utf8(&value.0).unwrap_or(""))?;
        self.values.write_str("\"")
    }

    fn tensors(&mut self, list: Inputs<'_>) -> fmt::Result {
        self.dims.write_str("[")?;
        self.strides.write_str("[")?;
        let tensors = list.iter().filter_map(|item| match item {
            Input::Tensor(tensor) => Some(tensor),
            _ => None,
        });
        for (index, tensor) in tensors.enumerate() {
            let between = if index > 0 { ", " } else { "" };
            let (sizes, strides) = shape(tensor);
            self.dims.write_str(between)?;
            numbers(&mut self.dims, sizes)?;
            self.strides.write_str(between)?;
            numbers(&mut self.strides, strides)?;
        }
        self.dims.write_str("]")?;
        self.strides.write_str("]")
    }
}

/// Sizes and strides.
fn shape<'a>(tensor: Tensor) -> (&'a [i64], &'a [i64]) {
    // SAFETY: it lives as long as the input that it is.
    unsafe { tensor.shape() }.unwrap_or((&[], &[]))
}

fn numbers(to: &mut Text, numbers: &[i64]) -> fmt::Result {
    to.write_str("[")?;
    for (index, number) in numbers.iter().enumerate() {
        write!(to, "{}{number}", if index > 0 { ", " } else { "" })?;
    }
    to.write_str("]")
}

fn is_scalar(input: &Input<'_>) -> bool {
    matches!(input, Input::Int(_) | Input::Double(_) | Input::Bool(_))
}

fn scalar(to: &mut Text, input: &Input<'_>) -> fmt::Result {
    match input {
        Input::Int(n) => write!(to, "{n}"),
        Input::Bool(true) => to.write_str("True"),
        Input::Bool(false) => to.write_str("False"),
        Input::Double(x) => double(to, *x),
        _ => Ok(()),
    }
}

/// As PyTorch prints them: whole numbers with a point behind them, others with 17 digits that
/// count (`%.17g`).
fn double(to: &mut Text, x: f64) -> fmt::Result {
    if x.is_nan() {
        return to.write_str("nan");
    }
    if x.is_infinite() {
        return to.write_str(if x > 0.0 { "inf" } else { "-inf" });
    }
    if (x.is_normal() || x == 0.0) && x.abs() < 1e10 && x.trunc() == x {
        return write!(to, "{x:.0}.");
    }
    let exact = text(format_args!("{x:.16e}"))?;
    let (digits, exponent) = exact.split_once('e').unwrap_or((&exact, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..17).contains(&exponent) {
        let fixed = text(format_args!("{x:.*}", usize::try_from(16 - exponent).unwrap_or(0)))?;
        let fixed = if fixed.contains('.') { fixed.trim_end_matches('0') } else { &fixed };
        return to.write_str(fixed.trim_end_matches('.'));
    }
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    let sign = if exponent < 0 { '-' } else { '+' };
    write!(to, "{digits}e{sign}{:02}", exponent.abs())
}

/// What is formatted, if there is memory for it.
fn text(format: fmt::Arguments<'_>) -> Result<String, fmt::Error> {
    let mut text = Text::default();
    text.write_fmt(format)?;
    String::from_utf8(text.0).map_err(|_| fmt::Error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_printed_as_pytorch_prints_them() {
        let cases = [
            (2.0, "2."),
            (-0.0, "-0."),
            (0.1, "0.10000000000000001"),
            (1e-5, "1.0000000000000001e-05"),
            (0.5, "0.5"),
            (-123.25, "-123.25"),
            (1e10, "10000000000"),
            (1e22, "1e+22"),
            (f64::INFINITY, "inf"),
        ];
        for (x, expected) in cases {
            let mut text = Text::default();
            double(&mut text, x).unwrap();
            assert_eq!(String::from_utf8(text.0).unwrap(), expected);
        }
    }
}
