//! Names of kernels and operators, made shorter.

/// The name without a number behind `#`, as steps have one: `ProfilerStep#16` becomes `ProfilerStep`.
pub fn unnumbered(name: &str) -> &str {
    match name.rsplit_once('#') {
        Some((head, number))
            if !head.is_empty()
                && !number.is_empty()
                && number.bytes().all(|digit| digit.is_ascii_digit()) =>
        {
            head
        }
        _ => name,
    }
}

/// The name without return type, template arguments and parameters, as HTA shortens names:
/// `void at::native::reduce_kernel<512, 1>(int)` becomes `at::native::reduce_kernel`.
pub fn shorten(name: &str) -> String {
    let memory = ["Memcpy", "Memset", "hipMemcpy", "hipMemset", "dma"];
    let opens = |byte: u8| matches!(byte, b'<' | b'(');
    if memory.iter().any(|start| name.starts_with(start)) || !name.bytes().any(opens) {
        return name.to_owned();
    }
    let mut out = String::with_capacity(name.len());
    for part in name.split("->") {
        let mut rest = part;
        while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'>' | b')')) {
            out.push_str(&rest[..at]);
            // Back to the bracket that opened, whatever lies between.
            let opened = if rest.as_bytes()[at] == b'>' { b'<' } else { b'(' };
            let before = out.bytes().rposition(|byte| byte == opened).unwrap_or(0);
            out.truncate(before);
            rest = &rest[at + 1..];
        }
        out.push_str(rest);
    }
    match out.rfind(' ') {
        Some(space) => out.split_off(space + 1),
        None => out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_a_kernel_apart_stays() {
        let short = |name| shorten(name);
        assert_eq!(
            short("void at::native::reduce_kernel<512, 1>(int)"),
            "at::native::reduce_kernel"
        );
        assert_eq!(short("Memcpy DtoD (Device -> Device)"), "Memcpy DtoD (Device -> Device)");
        assert_eq!(short("ampere sgemm"), "ampere sgemm");
        assert_eq!(short("void f<g<(a)1>>(x, y) [clone]"), "[clone]");
        assert_eq!(short("auto f(int)->g<1>::h"), "fg::h");
        assert_eq!(short("a) ö<ü>(1)"), "ö");
    }

    #[test]
    fn a_step_has_no_number() {
        assert_eq!(unnumbered("ProfilerStep#16"), "ProfilerStep");
        for name in ["Optimizer.step#SGD.step", "#16", "step#", "C#", "a#1b", "conv2d"] {
            assert_eq!(unnumbered(name), name);
        }
    }
}
