// SPDX-License-Identifier: GPL-2.0
/* The module itself: loading, unloading and its device. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "log.h"
#include "module.h"
#include "primes.h"
#include "tap.h"

#define MODULE "toll_primes"
#define DEVICE "/dev/toll_primes"
#define PARAMETERS "/sys/module/toll_primes/parameters/"
#define LOADS 200

int module_open(void)
{
	return open(DEVICE, O_RDWR | O_CLOEXEC);
}

static long long parameter(const char *name)
{
	char path[128];
	long long value = -1;
	FILE *file;

	snprintf(path, sizeof(path), PARAMETERS "%s", name);
	file = fopen(path, "r");
	if (!file)
		return -1;
	if (fscanf(file, "%lld", &value) != 1)
		value = -1;
	fclose(file);
	return value;
}

static void test_loads(const char *path)
{
	bool passed = true;
	int load, error;

	for (load = 0; passed && load < LOADS; load++) {
		error = module_load(path, load % 2 ? "n=100" : "");
		passed = TAP_CHECK(!error, "load %d: error %d", load, error);
		if (!passed)
			break;
		/* Open and close, so that a file's state is made and freed. */
		close(module_open());
		error = module_unload(MODULE);
		passed = TAP_CHECK(!error, "unload %d: error %d", load, error) &&
			 TAP_CHECK(access(DEVICE, F_OK) < 0, "%s stayed", DEVICE);
	}
	tap_result(passed, "the module loads and unloads 200 times");
}

static void test_parameters(const char *path)
{
	bool passed;
	int error;

	error = module_load(path, "n=3");
	passed = TAP_CHECK(!error, "n=3: error %d", error) &&
		 TAP_CHECK(parameter("n") == 3, "n reads %lld", parameter("n")) &&
		 TAP_CHECK(parameter("primes") == 3, "primes reads %lld", parameter("primes")) &&
		 TAP_CHECK(parameter("duration_ns") > 0, "duration_ns does not read");
	module_unload(MODULE);
	tap_result(passed, "a load with n=3 counts three primes, because it draws only 2 and 3");
}

/* The published module printed n, the count and the time. */
static void test_printed(const char *path)
{
	const char *name = "a load prints n, the count and the microseconds";
	int log = log_open();
	char expected[64];
	long long ns;
	bool passed;
	char *text;

	if (log < 0)
		return tap_skip(name, "there is no /dev/kmsg");
	passed = TAP_CHECK(!module_load(path, "n=3"), "n=3: %s", strerror(errno));
	ns = parameter("duration_ns");
	snprintf(expected, sizeof(expected), ";toll_primes: 3 numbers took %lld.%03lld us\n",
		 ns / 1000, ns % 1000);
	module_unload(MODULE);
	text = log_close(log);
	passed &= TAP_CHECK(log_count(text, ";toll_primes: 3 numbers\n") == 1 &&
			    log_count(text, ";toll_primes: 3 primes among 3 numbers\n") == 1 &&
			    log_count(text, expected) == 1, "%s", text);
	free(text);
	tap_result(passed, name);
}

static void test_refused_parameters(const char *path)
{
	static const struct {
		const char *parameters;
		int error;
	} cases[] = {
		{ "n=1", EINVAL },	    { "n=16777217", EINVAL },
		{ "n=4294967295", EINVAL }, { "n=-1", EINVAL },
		{ "n=x", EINVAL },	    { "n=16777216", ENOMEM },
		{ "primes=5", EPERM },	    { "duration_ns=5", EPERM },
	};
	bool passed = true;
	size_t i;
	int error;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		error = module_load(path, cases[i].parameters);
		passed &= TAP_CHECK(error == cases[i].error, "%s: error %d, not %d",
				    cases[i].parameters, error, cases[i].error);
		passed &= TAP_CHECK(access(DEVICE, F_OK) < 0, "%s is there", DEVICE);
		if (!error)
			module_unload(MODULE);
	}
	tap_result(passed, "a load with parameters out of range is refused and leaves nothing");
}

static void test_in_use(int device)
{
	int error = module_unload(MODULE);

	tap_result(TAP_CHECK(error == EWOULDBLOCK, "error %d", error) &&
		   TAP_CHECK(!ioctl(device, TOLL_PRIMES_EMPTY), "error %d", errno),
		   "a module in use cannot be unloaded");
}

static int copy(int device, const void *address, uint64_t length)
{
	struct toll_copy request = { .address = (uint64_t)address, .length = length };

	return ioctl(device, TOLL_PRIMES_COPY, &request) < 0 ? errno : 0;
}

static void test_copy(int device)
{
	const size_t mapped = TOLL_COPY_LENGTH_MAX;
	/* The page after it is not mapped. */
	char *bytes = mmap(NULL, mapped + 4096, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const char *kernel = (const char *)0xffffffff81000000ull;
	bool passed = true;

	munmap(bytes + mapped, 4096);
	memset(bytes, 7, mapped);
	passed &= TAP_CHECK(!copy(device, bytes, 1), "one byte");
	passed &= TAP_CHECK(!copy(device, bytes + 3, 4097), "unaligned");
	passed &= TAP_CHECK(!copy(device, bytes, mapped), "as much as it takes");
	passed &= TAP_CHECK(copy(device, bytes, 0) == EINVAL, "no byte");
	passed &= TAP_CHECK(copy(device, bytes, mapped + 1) == EINVAL, "too much");
	passed &= TAP_CHECK(copy(device, bytes, UINT64_MAX) == EINVAL, "far too much");
	passed &= TAP_CHECK(copy(device, bytes + 1, mapped) == EFAULT, "over the mapping's end");
	passed &= TAP_CHECK(copy(device, NULL, 1) == EFAULT, "null");
	passed &= TAP_CHECK(copy(device, kernel, 64) == EFAULT, "the kernel's memory");
	munmap(bytes, mapped);
	tap_result(passed, "only the caller's own bytes are copied in");
}

static void test_commands(int device)
{
	bool passed = true;
	struct toll_primes request = seeded(10, 1);

	passed &= TAP_CHECK(!ioctl(device, TOLL_PRIMES_EMPTY, NULL), "the empty command");
	passed &= TAP_CHECK(!ioctl(device, TOLL_PRIMES_EMPTY, -1L), "it ignores its argument");
	passed &= TAP_CHECK(ioctl(device, _IO(0xE7, 3), &request) < 0 && errno == ENOTTY,
			    "an unknown number");
	passed &= TAP_CHECK(ioctl(device, _IOWR(0xE7, 1, char), &request) < 0 &&
			    errno == ENOTTY, "a wrong size");
	passed &= TAP_CHECK(ioctl(device, _IOR(0xE7, 1, struct toll_primes), &request) < 0 &&
			    errno == ENOTTY, "a wrong direction");
	tap_result(passed, "the device knows its commands and no others");
}

void test_module(const char *path)
{
	int device, error;

	test_loads(path);
	test_parameters(path);
	test_printed(path);
	test_refused_parameters(path);

	error = module_load(path, "");
	if (error) {
		tap_note("cannot load %s: %s", path, strerror(error));
		tap_result(false, "the module loads for the tests of its device");
		return;
	}
	device = module_open();
	tap_result(TAP_CHECK(device >= 0, "%s: %s", DEVICE, strerror(errno)),
		   "the module's device opens");
	test_in_use(device);
	test_copy(device);
	test_commands(device);
	close(device);
	tap_result(module_unload(MODULE) == 0, "the module unloads after its device is closed");
}
