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

/*
 * Reading and writing the count are accesses to the caller's memory, too, and
 * may have the fault that was meant for the call. It is spent then.
 */
static void set_fail_nth(int file, unsigned int nth)
{
	char text[16];
	int tries;

	snprintf(text, sizeof(text), "%u", nth);
	for (tries = 0; tries < 2; tries++) {
		if (pwrite(file, text, strlen(text), 0) > 0)
			return;
	}
	perror("cannot write fail-nth");
	exit(1);
}

/* Whether the fault still waits for its turn, or came after the call. */
static bool is_call_over(int file)
{
	char text[16] = "";

	if (pread(file, text, sizeof(text) - 1, 0) < 0)
		return true;
	return atoi(text) > 0;
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
	char name[128];

	snprintf(name, sizeof(name), "%s: every place that can fail answers for itself", way->name);
	if (file < 0) {
		tap_skip(name, "this kernel injects no faults");
		return;
	}
	for (nth = 1; passed && nth < FAULTS_MAX; nth++) {
		int error;

		set_fail_nth(file, nth);
		error = one_of_each(way);
		/* All places have had their turn. */
		if (is_call_over(file))
			break;
		failures += error != 0;
		passed &= TAP_CHECK(error == 0 || error == ENOMEM || error == EFAULT,
				    "fault %u: error %d", nth, error);
	}
	set_fail_nth(file, 0);
	close(file);
	tap_note("%s: %u faults, %u of them refused the call", way->name, nth - 1, failures);
	passed &= TAP_CHECK(failures > 0, "no fault reached the caller");
	passed &= TAP_CHECK(one_of_each(way) == 0, "it does not work any more");
	tap_result(passed, name);
}
