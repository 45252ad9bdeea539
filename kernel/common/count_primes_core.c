// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The same machine code in a program, in the kernel and in a module: no calls,
 * no globals, no floating point, and the same compiler flags.
 */
#include "count_primes_core.h"

void toll_draw_numbers(u32 *numbers, u32 n, u64 seed)
{
	u32 i;

	for (i = 0; i < n; i++) {
		u64 z;

		seed += 0x9e3779b97f4a7c15ull;
		z = seed;
		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
		z ^= z >> 31;
		numbers[i] = toll_number_in_range((u32)(z >> 32), n);
	}
}

static inline u32 is_prime(u32 x)
{
	u32 d;

	if (x < 2)
		return 0;
	if (x % 2 == 0)
		return x == 2;
	/* In 64 bits, since d * d passes 2^32 before it passes every x. */
	for (d = 3; (u64)d * d <= x; d += 2) {
		if (x % d == 0)
			return 0;
	}
	return 1;
}

u32 toll_count_primes(const u32 *numbers, u32 n)
{
	u32 primes = 0;
	u32 i;

	for (i = 0; i < n; i++)
		primes += is_prime(numbers[i]);
	return primes;
}
