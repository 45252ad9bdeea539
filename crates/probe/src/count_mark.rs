//! Marks between which a guest's instructions are counted.
//!
//! To a processor they are `nop`. QEMU's plugin (`crates/toll/plugin/count_blocks.c`)
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
