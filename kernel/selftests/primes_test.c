// SPDX-License-Identifier: GPL-2.0
/*
 * Counts primes by system call and by module, and compares with the same
 * counting in this program:
 *
 *     primes_test [--module toll_primes.ko] [--seed N] [--calls N]
 *
 * Loads and unloads the module itself, so run it in a guest.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "module.h"
#include "primes.h"
#include "tap.h"

#define THREADS 16

static void result(const struct way *way, bool passed, const char *what)
{
	char name[160];

	snprintf(name, sizeof(name), "%s: %s", way->name, what);
	tap_result(passed, name);
}

static void test_counts(const struct way *way)
{
	static const uint32_t sizes[] = { 2, 3, 10, 100, 1023, 1024, 1025, 5000, 100000 };
	static const uint64_t seeds[] = { 0, 1, 0x123456789abcdef, UINT64_MAX };
	bool passed = true;
	size_t i;

	for (i = 0; i < 9 * 4 * 3; i++) {
		uint32_t n = sizes[i % 9];
		uint64_t seed = seeds[i / 9 % 4];
		struct toll_primes request = seeded(n, seed);
		uint64_t expected = count_in_program(n, seed);
		int error;

		request.allocation = i / 36;
		error = way->call(way->device, &request);
		passed &= TAP_CHECK(!error && request.primes == expected,
				    "n %u seed %llu: error %d, %llu primes, not %llu", n,
				    (unsigned long long)seed, error,
				    (unsigned long long)request.primes,
				    (unsigned long long)expected);
		/* A guest without a stable TSC has a clock of 4 ms ticks. */
		passed &= TAP_CHECK(n < 100000 || request.count_ns > 0, "counting took no time");
	}
	result(way, passed, "a seed gives the same count as in this program");
}

static void test_random_sources(const struct way *way)
{
	bool passed = true;
	uint32_t i;

	for (i = 0; i < 6; i++) {
		struct toll_primes request = { .n = 3, .random = 1 + i % 2, .allocation = i / 2 };
		int error = way->call(way->device, &request);

		passed &= TAP_CHECK(!error && request.primes == 3, "random %u: error %d, %llu",
				    request.random, error, (unsigned long long)request.primes);
	}
	result(way, passed, "random numbers lie in 2..=n");
}

static void test_refused(const struct way *way)
{
	static const struct toll_primes cases[] = {
		{ .n = 0 },
		{ .n = 1 },
		{ .n = TOLL_PRIMES_N_MAX + 1 },
		{ .n = UINT32_MAX },
		{ .n = 10, .flags = 2 },
		{ .n = 10, .flags = 1u << 31 },
		{ .n = 10, .random = 3 },
		{ .n = 10, .allocation = 3 },
		{ .n = 10, .random = TOLL_PRIMES_BULK, .seed = 1 },
		{ .n = 10, .random = TOLL_PRIMES_EACH, .seed = 1 },
		{ .n = 10, .reserved = 1 },
	};
	struct toll_primes large = seeded(TOLL_PRIMES_N_MAX, 1);
	bool passed = true;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct toll_primes request = cases[i];
		int error = way->call(way->device, &request);

		passed &= TAP_CHECK(error == EINVAL, "case %zu: error %d", i, error);
		passed &= TAP_CHECK(!memcmp(&request, &cases[i], sizeof(request)),
				    "case %zu was written to", i);
	}
	passed &= TAP_CHECK(way->call(way->device, &large) == ENOMEM,
			    "64 MiB in one piece were given");
	result(way, passed, "requests that the header does not allow are refused");
}

static void test_addresses(const struct way *way)
{
	struct toll_primes request = seeded(10, 5);
	/* One page of the caller's, with nothing after it. */
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char unaligned[sizeof(request) + 1];
	bool passed = true;

	munmap(page + 4096, 4096);
	memcpy(unaligned + 1, &request, sizeof(request));
	passed &= TAP_CHECK(way->call(way->device, unaligned + 1) == 0, "unaligned");
	passed &= TAP_CHECK(way->call(way->device, NULL) == EFAULT, "null");
	passed &= TAP_CHECK(way->call(way->device, (void *)0xffffffff81000000ull) == EFAULT,
			    "the kernel's code");
	passed &= TAP_CHECK(way->call(way->device, (void *)0xffff888000000000ull) == EFAULT,
			    "the kernel's view of memory");
	passed &= TAP_CHECK(way->call(way->device, (void *)0x8000000000000000ull) == EFAULT,
			    "no address at all");
	memcpy(page + 4096 - sizeof(request), &request, sizeof(request));
	passed &= TAP_CHECK(way->call(way->device, page + 4096 - sizeof(request)) == 0,
			    "the last bytes of a page");
	passed &= TAP_CHECK(way->call(way->device, page + 4096 - sizeof(request) + 1) == EFAULT,
			    "cut short by the page's end");
	memcpy(page, &request, sizeof(request));
	mprotect(page, 4096, PROT_READ);
	passed &= TAP_CHECK(way->call(way->device, page) == EFAULT, "no room for the answer");
	mprotect(page, 4096, PROT_NONE);
	passed &= TAP_CHECK(way->call(way->device, page) == EFAULT, "not readable");
	munmap(page, 4096);
	result(way, passed, "only memory of the caller's own is read and written");
}

static void *count_repeatedly(void *argument)
{
	const struct way *way = argument;
	bool passed = true;
	uint64_t i;

	for (i = 0; i < 20; i++) {
		struct toll_primes request = seeded(2000, i);

		request.allocation = i % 3;
		passed &= way->call(way->device, &request) == 0 &&
			  request.primes == count_in_program(2000, i);
	}
	return passed ? argument : NULL;
}

static void test_threads(const struct way *way)
{
	pthread_t threads[THREADS];
	bool passed = true;
	int i;

	for (i = 0; i < THREADS; i++) {
		if (pthread_create(&threads[i], NULL, count_repeatedly, (void *)way))
			abort();
	}
	for (i = 0; i < THREADS; i++) {
		void *answer;

		pthread_join(threads[i], &answer);
		passed &= TAP_CHECK(answer, "thread %d got a wrong count", i);
	}
	result(way, passed, "16 threads at once get right counts");
}

/* Processor time of a child that counts once, killed after @wait_ms if > 0. */
static double child_seconds(const struct way *way, long wait_ms, int *status)
{
	struct rusage usage;
	pid_t child = fork();

	if (child == 0) {
		struct toll_primes request = seeded(1u << 22, 9);

		request.allocation = TOLL_PRIMES_VMALLOC;
		_exit(way->call(way->device, &request) ? 1 : 0);
	}
	if (wait_ms > 0) {
		usleep(wait_ms * 1000);
		kill(child, SIGKILL);
	}
	if (wait4(child, status, 0, &usage) != child)
		abort();
	return (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec / 1e6;
}

static void test_killed(const struct way *way)
{
	int status;
	double whole = child_seconds(way, 0, &status);
	bool passed = TAP_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0,
				"the long count failed: status %#x", status);
	long wait_ms;

	/* Processor time, not wall time: a busy machine changes nothing. */
	for (wait_ms = 1; wait_ms <= 64 && passed; wait_ms *= 4) {
		double killed = child_seconds(way, wait_ms, &status);

		passed &= TAP_CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
				    "not killed: status %#x", status);
		passed &= TAP_CHECK(killed < whole / 2, "%.3f s of %.3f s were counted on",
				    killed, whole);
	}
	result(way, passed, "a caller can be killed half-way");
}

/* Drawn from 2..=3, all numbers are prime. */
static void test_published(void)
{
	const char *name = "system call 549 prints n, and only for callers that may print";
	int log = log_open();
	int status, n = 3;
	long primes = 0;
	bool passed;
	pid_t child;
	char *text;

	if (log < 0)
		return tap_skip(name, "there is no /dev/kmsg");
	passed = TAP_CHECK(!count_primes(&n, &primes) && primes == 3, "%ld primes", primes);
	child = fork();
	if (child == 0)
		_exit(setuid(65534) ? 255 : count_primes(&n, &primes));
	if (waitpid(child, &status, 0) != child)
		abort();
	passed &= TAP_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == EPERM,
			    "without CAP_SYSLOG: status %#x", status);
	text = log_close(log);
	passed &= TAP_CHECK(log_count(text, ";toll_primes: 3 numbers\n") == 1, "%s", text);
	free(text);
	tap_result(passed, name);
}

static void test_way(const struct way *way, uint64_t seed, unsigned long calls)
{
	test_counts(way);
	test_random_sources(way);
	test_refused(way);
	test_addresses(way);
	test_threads(way);
	test_killed(way);
	test_failing_places(way);
	test_random_calls(way, seed, calls);
}

static void test_device(const char *module, uint64_t seed, unsigned long calls)
{
	struct way way = { .name = "ioctl", .call = way_ioctl };
	int error = module_load(module, "");

	way.device = error ? -1 : module_open();
	if (way.device < 0) {
		tap_note("cannot use %s: %s", module, strerror(error ? error : errno));
		tap_result(false, "ioctl: the device is there");
		return;
	}
	test_way(&way, seed, calls);
	close(way.device);
	module_unload("toll_primes");
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "module", required_argument, NULL, 'm' },
		{ "seed", required_argument, NULL, 's' },
		{ "calls", required_argument, NULL, 'c' },
		{ 0 },
	};
	const struct way system_call = { "system call 550", way_system_call, -1 };
	uint64_t seed = (uint64_t)time(NULL);
	unsigned long calls = 1000000;
	const char *module = NULL;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'm':
			module = optarg;
			break;
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'c':
			calls = strtoul(optarg, NULL, 0);
			break;
		default:
			fprintf(stderr, "usage: %s [--module KO] [--seed N] [--calls N]\n",
				argv[0]);
			return 2;
		}
	}
	tap_begin();
	if (has_system_calls()) {
		test_published();
		test_way(&system_call, seed, calls);
	} else {
		tap_skip("system calls 549 and 550", "this kernel is without the patches");
	}
	if (module) {
		test_module(module);
		test_device(module, seed, calls);
	} else {
		tap_skip("module toll_primes", "no --module is named");
	}
	tap_end();
}
