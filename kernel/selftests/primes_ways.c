// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "count_primes_core.h"
#include "primes.h"

#define NR_COUNT_PRIMES 549
#define NR_COUNT_PRIMES_WITH 550

/* Largest array that kmalloc() returns, 4 MiB with pages of 4 KiB. */
#define KMALLOC_N_MAX (1u << 20)

int count_primes(const void *n, long *primes)
{
	long result = syscall(NR_COUNT_PRIMES, n);

	if (result < 0)
		return errno;
	*primes = result;
	return 0;
}

int count_primes_with(void *request, unsigned long size)
{
	return syscall(NR_COUNT_PRIMES_WITH, request, size) < 0 ? errno : 0;
}

int way_system_call(int device, void *request)
{
	(void)device;
	return count_primes_with(request, sizeof(struct toll_primes));
}

int way_ioctl(int device, void *request)
{
	return ioctl(device, TOLL_PRIMES_COUNT, request) < 0 ? errno : 0;
}

bool has_system_calls(void)
{
	return count_primes_with(NULL, sizeof(struct toll_primes)) != ENOSYS;
}

uint64_t count_in_program(uint32_t n, uint64_t seed)
{
	uint32_t *numbers = malloc(n * sizeof(*numbers));
	uint64_t primes = 0;
	uint32_t done, chunk;

	if (!numbers)
		abort();
	toll_draw_numbers(numbers, n, seed);
	for (done = 0; done < n; done += chunk) {
		chunk = n - done;
		if (chunk > TOLL_PRIMES_CHUNK)
			chunk = TOLL_PRIMES_CHUNK;
		primes += toll_count_primes(numbers + done, chunk);
	}
	free(numbers);
	return primes;
}

struct toll_primes seeded(uint32_t n, uint64_t seed)
{
	struct toll_primes request = { .n = n, .seed = seed };

	return request;
}

/* The error that the header promises root for an accessible request. */
int expected_error(const struct toll_primes *request)
{
	if (request->n < 2 || request->n > TOLL_PRIMES_N_MAX)
		return EINVAL;
	if (request->flags & ~TOLL_PRIMES_PRINT)
		return EINVAL;
	if (request->random > TOLL_PRIMES_EACH)
		return EINVAL;
	if (request->allocation > TOLL_PRIMES_KVMALLOC)
		return EINVAL;
	if (request->random != TOLL_PRIMES_SEEDED && request->seed)
		return EINVAL;
	if (request->reserved)
		return EINVAL;
	if (request->allocation == TOLL_PRIMES_KMALLOC && request->n > KMALLOC_N_MAX)
		return ENOMEM;
	return 0;
}
