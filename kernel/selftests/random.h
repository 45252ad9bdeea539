/* SPDX-License-Identifier: GPL-2.0 */
#ifndef TOLL_SELFTESTS_RANDOM_H
#define TOLL_SELFTESTS_RANDOM_H

#include <stdint.h>

/* SplitMix64: the seed repeats a run. */
static inline uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static inline uint64_t random_below(uint64_t *state, uint64_t bound)
{
	return random_next(state) % bound;
}

#endif /* TOLL_SELFTESTS_RANDOM_H */
