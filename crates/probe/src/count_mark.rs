//! Marks between which another program counts system calls or a guest's
//! instructions.
//!
//! To a processor the marks for instructions are `nop`s. QEMU's plugin
//! (`crates/toll/plugin/count_blocks.c`) recognizes them by their bytes, which
//! therefore must be within one page.

#[cfg(target_arch = "x86_64")]
macro_rules! mark {
    ($letter:literal) => {
        // SAFETY: `nopl DISPLACEMENT(%rax)` reads and changes nothing.
        unsafe {
            core::arch::asm!(
                ".p2align 4",
                ".byte 0x0f, 0x1f, 0x80",
                concat!(".ascii \"TOL", $letter, "\""),
                options(nomem, nostack, preserves_flags)
            );
        }
    };
}

#[cfg(not(target_arch = "x86_64"))]
macro_rules! mark {
    ($letter:literal) => {};
}

/// Starts the counting of system calls, for a program that looks for this mark
/// (`crates/callcount`).
pub fn begin_calls() {
    mark_by_call(toll_wire::CALL_REGION_BEGINS);
}

/// Ends the counting of system calls.
pub fn end_calls() {
    mark_by_call(toll_wire::CALL_REGION_ENDS);
}

fn mark_by_call(number: i64) {
    // SAFETY: the kernel has no system call of this number.
    let failed = unsafe { libc::syscall(number) };
    debug_assert_eq!(failed, -1);
}

/// Starts the counting of instructions, from zero.
#[inline(never)]
pub fn begin() {
    mark!("b");
}

/// Ends the counting of instructions.
#[inline(never)]
pub fn end() {
    mark!("e");
}
