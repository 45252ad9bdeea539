/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Counting primes among drawn numbers: the one piece of work that a program,
 * a system call and a module all do, so that only the way to it differs.
 *
 * All three compile the two functions with the same flags, which each Makefile
 * sets for this object, so that they get the same machine code.
 */
#ifndef TOLL_COUNT_PRIMES_CORE_H
#define TOLL_COUNT_PRIMES_CORE_H

#include <linux/types.h>

#ifndef __KERNEL__
typedef __u32 u32;
typedef __u64 u64;
#endif

/*
 * Every caller counts this many numbers at a time (the last time fewer). The
 * kernel has to look for signals and other tasks in between; a program does
 * the same calls so that their price is no part of the difference.
 */
#define TOLL_PRIMES_CHUNK 1024u

/**
 * toll_number_in_range() - Map a random word to a number in 2..=@n
 * @random: Uniform in 0..=U32_MAX.
 * @n: Largest number, at least 2.
 *
 * Multiplying and taking the high half (Lemire, "Fast Random Integer
 * Generation in an Interval", 2019, without its rejection) needs no division:
 * divisions are what counting is timed for. The bias is below n / 2^32.
 *
 * Return: A number in 2..=@n.
 */
static inline u32 toll_number_in_range(u32 random, u32 n)
{
	return 2 + (u32)(((u64)random * (n - 1)) >> 32);
}

/**
 * toll_draw_numbers() - Draw the same numbers from the same seed everywhere
 * @numbers: Filled with @n numbers, each in 2..=@n.
 * @n: How many, and the largest; at least 2.
 * @seed: Any value.
 *
 * Number i is toll_number_in_range() of the high half of output i of
 * SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
 * Generators", 2014) started at @seed.
 */
void toll_draw_numbers(u32 *numbers, u32 n, u64 seed);

/**
 * toll_count_primes() - Count the primes by trial division
 * @numbers: Any values.
 * @n: How many.
 *
 * Divides by 2 and then by every odd number up to the square root.
 *
 * Return: How many of @numbers are prime.
 */
u32 toll_count_primes(const u32 *numbers, u32 n);

#endif /* TOLL_COUNT_PRIMES_CORE_H */
