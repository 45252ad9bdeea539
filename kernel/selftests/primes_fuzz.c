// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "primes.h"
#include "random.h"
#include "tap.h"

/* Returns edge cases and small values far more often than chance would. */
static uint32_t edge32(uint64_t *state)
{
	static const uint32_t edges[] = {
		0, 1, 2, 3, 4, 0x7fffffff, 0x80000000, 0xffffffff,
		TOLL_PRIMES_N_MAX + 1, 1u << 31,
	};

	switch (random_below(state, 4)) {
	case 0:
		return edges[random_below(state, sizeof(edges) / sizeof(*edges))];
	case 1:
		return TOLL_PRIMES_N_MAX + 1 + (uint32_t)random_below(state, 1u << 31);
	default:
		return (uint32_t)random_below(state, 300);
	}
}

static struct toll_primes random_request(uint64_t *state)
{
	struct toll_primes request;
	unsigned int wild = (unsigned int)random_below(state, 64);

	memset(&request, 0, sizeof(request));
	request.n = edge32(state);
	request.random = (uint32_t)random_below(state, 3);
	request.allocation = (uint32_t)random_below(state, 3);
	if (request.random == TOLL_PRIMES_SEEDED)
		request.seed = random_next(state);
	/* Out fields may hold anything. */
	request.primes = random_next(state);
	request.count_ns = random_next(state);
	if (wild == 0)
		request.random = edge32(state);
	if (wild == 1)
		request.allocation = edge32(state);
	if (wild == 2)
		request.seed = random_next(state);
	if (wild == 3)
		request.reserved = random_next(state);
	if (wild == 4)
		request.flags = edge32(state) & ~TOLL_PRIMES_PRINT;
	/* Rare, since the console takes longer than all other calls. */
	if (random_below(state, 4096) == 0)
		request.flags |= TOLL_PRIMES_PRINT;
	return request;
}

/* A large and valid count, for which there may be memory or not. */
static struct toll_primes large_request(uint64_t *state)
{
	uint32_t n = 1u << (12 + random_below(state, 9));
	struct toll_primes request = seeded(n, random_next(state));

	request.allocation = (uint32_t)random_below(state, 3);
	return request;
}

static bool call_with_struct(const struct way *way, uint64_t *state)
{
	struct toll_primes request = random_below(state, 16384) ? random_request(state) :
							   large_request(state);
	struct toll_primes before = request;
	int expected = expected_error(&before);
	int error = way->call(way->device, &request);
	bool passed = TAP_CHECK(error == expected || error == ENOMEM,
				"n %u flags %u random %u allocation %u: error %d, not %d",
				before.n, before.flags, before.random,
				before.allocation, error, expected);

	if (error)
		return passed && TAP_CHECK(!memcmp(&request, &before, sizeof(request)),
					   "a refused request was changed");
	return passed && TAP_CHECK(request.primes <= request.n, "more primes than numbers");
}

/* Any address, including the kernel's and unmapped ones. */
static uint64_t random_address(uint64_t *state, uint64_t mapped)
{
	switch (random_below(state, 6)) {
	case 0:
		return 0;
	case 1:
		return 0xffffffff81000000ull + random_below(state, 1u << 24);
	case 2:
		return 0xffff888000000000ull + random_below(state, 1u << 24);
	case 3:
		return random_next(state);
	case 4:
		return 0x7ffffffff000ull - random_below(state, 64);
	default:
		return mapped + random_below(state, 2 * 4096);
	}
}

/* Any command, half of them close to those that the device knows. */
static unsigned long random_command(uint64_t *state)
{
	if (random_below(state, 2))
		return (uint32_t)random_next(state);
	return _IOC(random_below(state, 4), TOLL_PRIMES_MAGIC, random_below(state, 4),
		    random_below(state, 80));
}

static bool call_with_address(const struct way *way, uint64_t *state, uint64_t mapped)
{
	uint64_t address = random_address(state, mapped);
	struct toll_copy copy = {
		.address = address,
		.length = random_below(state, 2) ? random_below(state, 8192) : random_next(state),
	};
	long primes;
	int error;

	switch (random_below(state, 4)) {
	case 0:
		error = way->call(way->device, (void *)address);
		break;
	case 1:
		if (way->device < 0) {
			error = count_primes((void *)address, &primes);
			break;
		}
		error = ioctl(way->device, TOLL_PRIMES_COPY, &copy) < 0 ? errno : 0;
		break;
	case 2:
		if (way->device < 0) {
			error = count_primes_with((void *)address, random_below(state, 8192));
			break;
		}
		error = ioctl(way->device, random_command(state), address) < 0 ? errno : 0;
		break;
	default:
		if (way->device < 0)
			return true;
		error = ioctl(way->device, TOLL_PRIMES_COPY, address) < 0 ? errno : 0;
	}
	return TAP_CHECK(error == 0 || error == EFAULT || error == EINVAL ||
			 error == E2BIG || error == ENOMEM || error == ENOTTY,
			 "address %#llx: error %d", (unsigned long long)address, error);
}

void test_random_calls(const struct way *way, uint64_t seed, unsigned long calls)
{
	char name[128];
	uint64_t state = seed;
	unsigned long call;
	bool passed = true;
	/* One mapped page, followed by an unmapped one. */
	char *mapped = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(mapped + 4096, 4096);
	tap_note("%s: %lu random calls, --seed %llu", way->name, calls,
		 (unsigned long long)seed);
	for (call = 0; passed && call < calls; call++) {
		/* A page of zeros gives n = 0, which is refused: never a long count. */
		if (random_below(&state, 3) == 0)
			passed = call_with_address(way, &state, (uint64_t)mapped);
		else
			passed = call_with_struct(way, &state);
	}
	if (!passed)
		tap_note("call %lu failed", call - 1);
	munmap(mapped, 4096);
	snprintf(name, sizeof(name), "%s answers random calls as the header says", way->name);
	tap_result(passed, name);
}
