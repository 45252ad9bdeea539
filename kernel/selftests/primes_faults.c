// SPDX-License-Identifier: GPL-2.0
/*
 * Every allocation and every access to the caller's memory fails once, where
 * the kernel injects faults (Documentation/fault-injection).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "primes.h"
#include "tap.h"

/* More faults than any call has places for. */
#define FAULTS_MAX 1000

static void write_setting(const char *path, const char *value)
{
	int file = open(path, O_WRONLY | O_CLOEXEC);

	if (file < 0)
		return;
	if (write(file, value, strlen(value)) < 0)
		tap_note("cannot write %s", path);
	close(file);
}

/*
 * Allocations that may wait are spared unless told otherwise, and a trace for
 * each fault would hide the traces of bugs.
 */
static int open_fail_nth(void)
{
	write_setting("/sys/kernel/debug/failslab/verbose", "0");
	write_setting("/sys/kernel/debug/fail_page_alloc/verbose", "0");
	write_setting("/sys/kernel/debug/fail_usercopy/verbose", "0");
	write_setting("/sys/kernel/debug/failslab/ignore-gfp-wait", "N");
	write_setting("/sys/kernel/debug/fail_page_alloc/ignore-gfp-wait", "N");
	write_setting("/sys/kernel/debug/fail_page_alloc/min-order", "0");
	return open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
}

/* Opens the device, if there is one, and makes a request of each allocator. */
static int one_of_each(const struct way *way)
{
	struct toll_copy copy = { .address = (uint64_t)way, .length = 1 };
	uint32_t allocation;
	int device = -1;
	int error = 0;

	if (way->device >= 0) {
		device = module_open();
		if (device < 0)
			return errno;
		if (ioctl(device, TOLL_PRIMES_COPY, &copy) < 0)
			error = errno;
	}
	for (allocation = 0; !error && allocation < 3; allocation++) {
		struct toll_primes request = seeded(3000, 1);

		request.allocation = allocation;
		error = way->call(device, &request);
	}
	if (device >= 0)
		close(device);
	return error;
}

void test_failing_places(const struct way *way)
{
	int file = open_fail_nth();
	unsigned int nth, failures = 0;
	bool passed = true;
	char name[128], text[16];

	snprintf(name, sizeof(name), "%s: every place that can fail answers for itself", way->name);
	if (file < 0) {
		tap_skip(name, "this kernel injects no faults");
		return;
	}
	for (nth = 1; passed && nth < FAULTS_MAX; nth++) {
		int error;

		snprintf(text, sizeof(text), "%u", nth);
		if (pwrite(file, text, strlen(text), 0) < 0)
			abort();
		error = one_of_each(way);
		memset(text, 0, sizeof(text));
		if (pread(file, text, sizeof(text) - 1, 0) < 0)
			abort();
		/* Still waiting for its turn: all places have had theirs. */
		if (atoi(text) > 0)
			break;
		failures += error != 0;
		passed &= TAP_CHECK(error == 0 || error == ENOMEM || error == EFAULT,
				    "fault %u: error %d", nth, error);
	}
	if (pwrite(file, "0", 1, 0) < 0)
		abort();
	close(file);
	tap_note("%s: %u faults, %u of them refused the call", way->name, nth - 1, failures);
	passed &= TAP_CHECK(failures > 0, "no fault reached the caller");
	passed &= TAP_CHECK(one_of_each(way) == 0, "it does not work any more");
	tap_result(passed, name);
}
