//! A stack for what needs more than a thread of the host may have: a set-up takes tens of
//! kilobytes, and the first event of a process may come from a thread with 16.

#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
mod switch {
    use std::ffi::c_void;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::ptr;

    const SIZE: usize = 512 << 10;
    /// Below it, so that a stack that is too small after all ends in a fault.
    const GUARD: usize = 64 << 10;

    /// Memory with a guard below it.
    struct Stack(*mut c_void);

    impl Stack {
        fn new() -> Option<Stack> {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            // SAFETY: a new mapping, which overlaps nothing, and a part of it.
            unsafe {
                let access = libc::PROT_READ | libc::PROT_WRITE;
                let memory = libc::mmap(ptr::null_mut(), GUARD + SIZE, access, flags, -1, 0);
                if memory == libc::MAP_FAILED {
                    return None;
                }
                let stack = Stack(memory);
                (libc::mprotect(memory, GUARD, libc::PROT_NONE) == 0).then_some(stack)
            }
        }

        fn top(&self) -> *mut c_void {
            // SAFETY: one past the end of the mapping, which is aligned to pages.
            unsafe { self.0.byte_add(GUARD + SIZE) }
        }
    }

    impl Drop for Stack {
        fn drop(&mut self) {
            // SAFETY: ours, and nothing runs on it any more.
            unsafe { libc::munmap(self.0, GUARD + SIZE) };
        }
    }

    type Body<'b> = dyn FnMut() + 'b;

    /// Runs on the new stack. Does not unwind.
    unsafe extern "C" fn enter(body: *mut c_void) {
        // SAFETY: `on_own_stack` passes the address of a reference that outlives the call.
        let body = unsafe { &mut *body.cast::<&mut Body<'_>>() };
        body();
    }

    type Enter = unsafe extern "C" fn(*mut c_void);

    /// Calls `enter(body)` with the stack pointer at `top`. The frame pointer keeps the old
    /// one, also for debuggers and backtraces.
    #[cfg(target_arch = "x86_64")]
    #[unsafe(naked)]
    unsafe extern "C" fn call(body: *mut c_void, enter: Enter, top: *mut c_void) {
        std::arch::naked_asm!(
            ".cfi_startproc",
            "push rbp",
            ".cfi_def_cfa rsp, 16",
            ".cfi_offset rbp, -16",
            "mov rbp, rsp",
            ".cfi_def_cfa_register rbp",
            "mov rsp, rdx",
            "call rsi",
            "mov rsp, rbp",
            "pop rbp",
            ".cfi_def_cfa rsp, 8",
            "ret",
            ".cfi_endproc",
        )
    }

    /// As above.
    #[cfg(target_arch = "aarch64")]
    #[unsafe(naked)]
    unsafe extern "C" fn call(body: *mut c_void, enter: Enter, top: *mut c_void) {
        std::arch::naked_asm!(
            ".cfi_startproc",
            "stp x29, x30, [sp, #-16]!",
            ".cfi_def_cfa sp, 16",
            ".cfi_offset x30, -8",
            ".cfi_offset x29, -16",
            "mov x29, sp",
            ".cfi_def_cfa_register x29",
            "mov sp, x2",
            "blr x1",
            "mov sp, x29",
            "ldp x29, x30, [sp], #16",
            ".cfi_def_cfa sp, 0",
            "ret",
            ".cfi_endproc",
        )
    }

    /// Stays out of line: inlined, the frame of `body` would become part of the frame of
    /// `on_own_stack`, and the caller's stack would have to hold it in every call.
    #[cold]
    #[inline(never)]
    fn on_callers_stack<T>(body: impl FnOnce() -> T) -> T {
        body()
    }

    /// Runs `body` on a stack of its own, or on the caller's where there is no memory.
    pub(crate) fn on_own_stack<T>(body: impl FnOnce() -> T) -> T {
        let Some(stack) = Stack::new() else {
            return on_callers_stack(body);
        };
        let (mut body, mut result) = (Some(body), None);
        let mut once = || {
            let body = body.take();
            result = body.map(|body| catch_unwind(AssertUnwindSafe(body)));
        };
        let mut once: &mut Body<'_> = &mut once;
        let argument = (&raw mut once).cast::<c_void>();
        // SAFETY: the stack is aligned, large enough and not used otherwise, and `argument` is
        // what `enter` expects.
        unsafe { call(argument, enter, stack.top()) };
        drop(stack);
        match result {
            Some(Ok(result)) => result,
            Some(Err(panic)) => resume_unwind(panic),
            None => unreachable!("`enter` calls it"),
        }
    }
}

#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
pub(crate) use switch::on_own_stack;

/// Where no way is known to change stacks.
#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
pub(crate) fn on_own_stack<T>(body: impl FnOnce() -> T) -> T {
    body()
}

#[cfg(test)]
mod tests {
    use super::on_own_stack;

    #[test]
    fn it_is_large_and_gives_results_and_panics_back() {
        let large = |n: u8| {
            let local = [n; 90 << 10];
            let local = std::hint::black_box(&local);
            u64::from(local[0]) + u64::from(local[local.len() - 1])
        };
        let small = std::thread::Builder::new().stack_size(64 << 10);
        let thread = small.spawn(move || on_own_stack(|| large(21))).unwrap();
        assert_eq!(thread.join().unwrap(), 42);
        let panic = std::panic::catch_unwind(|| on_own_stack(|| panic!("on purpose")));
        assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"on purpose"));
    }
}
