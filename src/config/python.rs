//! What is recorded of Python and of PyTorch: `PYTHON` and `PYTORCH`.

use std::ffi::OsStr;

use super::value;

/// Whether a Python program that imports PyTorch is made to tell of its operators.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PyTorch {
    /// If `CATEGORIES` includes the ranges of PyTorch's operators.
    Auto,
    /// Yes, and in its daemon threads too, of which PyTorch may complain on stderr when the
    /// program ends.
    On,
    /// As `On`, with the shapes of their inputs, which costs more.
    Shapes,
    /// No: the program is left alone.
    Off,
}

/// What is recorded of the calls of Python functions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Python {
    /// Nothing.
    Off,
    /// A slice for each call.
    Functions,
    /// A slice for each call of a `torch.nn.Module`, and for each step of an optimizer.
    Modules,
    /// The stacks of all threads, this many times a second.
    Sampled(u32),
}

/// Samples per second, if nothing else is said; and at most.
const HERTZ: u32 = 100;
const MAX_HERTZ: u32 = 1000;

pub(super) fn python(value: &OsStr) -> Result<Python, String> {
    const WORDS: [(&str, Python); 4] = [
        ("off", Python::Off),
        ("functions", Python::Functions),
        ("modules", Python::Modules),
        ("sampled", Python::Sampled(HERTZ)),
    ];
    let text = value::text(value)?;
    let rate = text.split_once('=').filter(|(word, _)| word.eq_ignore_ascii_case("sampled"));
    let Some((_, rate)) = rate else {
        return value::choice(value, &WORDS).map_err(|expected| format!("{expected}=HZ"));
    };
    let rate = rate.parse().ok().filter(|rate| (1..=MAX_HERTZ).contains(rate));
    let expected = || format!("expected sampled=HZ with 1 to {MAX_HERTZ} samples per second");
    rate.map(Python::Sampled).ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_may_follow() {
        let parse = |text: &str| python(text.as_ref());
        assert_eq!(parse("Modules"), Ok(Python::Modules));
        assert_eq!(parse("sampled"), Ok(Python::Sampled(100)));
        assert_eq!(parse("sampled=250"), Ok(Python::Sampled(250)));
        for wrong in ["sampled=0", "sampled=1001", "sampled=", "sampled=fast"] {
            assert!(parse(wrong).unwrap_err().contains("1 to 1000"), "{wrong}");
        }
        let expected = "expected off or functions or modules or sampled=HZ";
        assert_eq!(parse("functions=3"), Err(expected.to_owned()));
    }
}
