/* SPDX-License-Identifier: GPL-2.0 */
/* The ways to count primes, and what they must answer. */
#ifndef TOLL_SELFTESTS_PRIMES_H
#define TOLL_SELFTESTS_PRIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "toll_primes.h"

/* A way that takes a struct toll_primes. */
struct way {
	const char *name;
	/* 0 or the error; device is the device's descriptor, if it has one. */
	int (*call)(int device, void *request);
	int device;
};

/* From primes_ways.c */
int way_system_call(int device, void *request);
int way_ioctl(int device, void *request);
int count_primes(const void *n, long *primes);
int count_primes_with(void *request, unsigned long size);
uint64_t count_in_program(uint32_t n, uint64_t seed);
int expected_error(const struct toll_primes *request);
struct toll_primes seeded(uint32_t n, uint64_t seed);
bool has_system_calls(void);

/* From primes_module.c */
int module_open(void);
void test_module(const char *path);

/* From primes_faults.c */
void test_failing_places(const struct way *way);

/* From primes_fuzz.c */
void test_random_calls(const struct way *way, uint64_t seed, unsigned long calls);

#endif /* TOLL_SELFTESTS_PRIMES_H */
