//! Names of kernels and operators, made shorter.

/// The name without return type, template arguments and parameters, as HTA shortens names:
/// `void at::native::reduce_kernel<512, 1>(int)` becomes `at::native::reduce_kernel`.
pub fn shorten(name: &str) -> String {
    let memory = ["Memcpy", "Memset", "hipMemcpy", "hipMemset", "dma"];
    if memory.iter().any(|start| name.starts_with(start)) || !name.contains(['<', '(']) {
        return name.to_owned();
    }
    let mut out: Vec<char> = Vec::with_capacity(name.len());
    for c in name.replace("->", "").chars() {
        match c {
            // Back to the bracket that opened, whatever lies between.
            '>' | ')' => {
                let opened = if c == '>' { '<' } else { '(' };
                let at = out.iter().rposition(|c| *c == opened).unwrap_or(0);
                out.truncate(at);
            }
            c => out.push(c),
        }
    }
    let out: String = out.into_iter().collect();
    out.rsplit(' ').next().unwrap_or_default().to_owned()
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
    }
}
