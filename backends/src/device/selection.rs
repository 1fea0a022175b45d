//! `ACTIVITY_TYPES`: what to record, by Kineto's names (include/ActivityType.h). One list
//! serves all vendors; each takes what it knows.

/// Whether a list such as `kernel,gpu_memcpy,cuda_runtime`, in any case, asks for an
/// activity, which may have several names. An empty list is the default.
pub(crate) fn wants(list: &str, names: &[&str], by_default: bool) -> bool {
    let mut words = list.split(',').map(str::trim).filter(|word| !word.is_empty()).peekable();
    if words.peek().is_none() {
        return by_default;
    }
    words.any(|word| names.iter().any(|name| word.eq_ignore_ascii_case(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_be_in_any_case_and_mean_nothing() {
        assert!(wants("", &["kernel"], true) && !wants(" , ", &["memory"], false));
        assert!(wants("cpu_op, KERNEL", &["concurrent_kernel", "kernel"], false));
        assert!(!wants("cpu_op", &["kernel"], true));
    }
}
