//! Marks between which somebody counts from outside: system calls, or a guest's
//! instructions.
//!
//! To a processor those for instructions are `nop`. QEMU's plugin (`crates/toll/plugin/count_blocks.c`)
//! knows them by their bytes, which therefore lie within one page.

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

/// From here on system calls count, for who looks for this mark (`crates/callcount`).
pub fn begin_calls() {
    mark_by_call(toll_wire::CALL_REGION_BEGINS);
}

/// Up to here system calls count.
pub fn end_calls() {
    mark_by_call(toll_wire::CALL_REGION_ENDS);
}

fn mark_by_call(number: i64) {
    // SAFETY: the kernel has no call of this number.
    let failed = unsafe { libc::syscall(number) };
    debug_assert_eq!(failed, -1);
}

/// From here on instructions count, from zero.
#[inline(never)]
pub fn begin() {
    mark!("b");
}

/// Up to here instructions count.
#[inline(never)]
pub fn end() {
    mark!("e");
}
