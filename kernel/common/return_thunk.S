/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The return thunk of count_primes_core.c in a program. The kernel has its own,
 * or patches its callers to the same two instructions if it needs none.
 */
	.text
	.globl	__x86_return_thunk
	.hidden	__x86_return_thunk
	.type	__x86_return_thunk, @function
	.p2align 6
__x86_return_thunk:
	ret
	int3
	.size	__x86_return_thunk, . - __x86_return_thunk
	.section .note.GNU-stack, "", @progbits
