/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Counting primes in the kernel: system call 550 and /dev/toll_primes.
 *
 * Reserved fields and unknown flags must be 0, so that they can get a meaning.
 */
#ifndef _UAPI_LINUX_TOLL_PRIMES_H
#define _UAPI_LINUX_TOLL_PRIMES_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Maximum number of numbers of one request: 64 MiB, at most seconds of counting. */
#define TOLL_PRIMES_N_MAX (1u << 24)

/* Maximum size of one copy, in bytes. */
#define TOLL_COPY_LENGTH_MAX (1u << 20)

/* flags: print the count to the kernel log within the timed counting */
#define TOLL_PRIMES_PRINT (1u << 0)

/* random: where the numbers come from */
#define TOLL_PRIMES_SEEDED 0 /* toll_draw_numbers() from seed */
#define TOLL_PRIMES_BULK 1 /* one get_random_bytes() for all */
#define TOLL_PRIMES_EACH 2 /* one get_random_u32() a number */

/* allocation: where the numbers lie */
#define TOLL_PRIMES_KMALLOC 0 /* physically contiguous, at most 4 MiB */
#define TOLL_PRIMES_VMALLOC 1 /* single pages, mapped */
#define TOLL_PRIMES_KVMALLOC 2 /* the first where it can, else the second */

/**
 * struct toll_primes - Draw n numbers in 2..=n and count the primes
 * @n: How many numbers, and the largest; 2 to TOLL_PRIMES_N_MAX.
 * @flags: TOLL_PRIMES_PRINT, which needs CAP_SYSLOG, or 0.
 * @random: TOLL_PRIMES_SEEDED, _BULK or _EACH.
 * @allocation: TOLL_PRIMES_KMALLOC, _VMALLOC or _KVMALLOC.
 * @seed: With TOLL_PRIMES_SEEDED any value, otherwise 0.
 * @primes: Out: how many are prime.
 * @allocate_ns: Out: getting the memory, monotonic clock.
 * @draw_ns: Out: drawing the numbers.
 * @count_ns: Out: counting, with printing where asked for.
 * @reserved: 0.
 */
struct toll_primes {
	__u32 n;
	__u32 flags;
	__u32 random;
	__u32 allocation;
	__u64 seed;
	__u64 primes;
	__u64 allocate_ns;
	__u64 draw_ns;
	__u64 count_ns;
	__u64 reserved;
};

/* Size of the first published struct toll_primes. */
#define TOLL_PRIMES_SIZE_VER0 64

/**
 * struct toll_copy - Copy bytes into the kernel and do nothing with them
 * @address: Where they lie in the caller's memory.
 * @length: How many bytes, 1 to TOLL_COPY_LENGTH_MAX.
 */
struct toll_copy {
	__u64 address;
	__u64 length;
};

#define TOLL_PRIMES_MAGIC 0xE7

/* Nothing at all: the price of the crossing. */
#define TOLL_PRIMES_EMPTY _IO(TOLL_PRIMES_MAGIC, 0)
#define TOLL_PRIMES_COUNT _IOWR(TOLL_PRIMES_MAGIC, 1, struct toll_primes)
#define TOLL_PRIMES_COPY _IOW(TOLL_PRIMES_MAGIC, 2, struct toll_copy)

#endif /* _UAPI_LINUX_TOLL_PRIMES_H */
