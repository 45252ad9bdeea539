// SPDX-License-Identifier: GPL-2.0
/*
 * Every allocation and every access to the caller's memory fails once, if the
 * kernel injects faults (Documentation/fault-injection).
 */
#include <errno.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "faults.h"
#include "primes.h"
#include "tap.h"

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
	int file = faults_open();
	unsigned int nth, failures = 0;
	bool passed = true;
	char name[128];

	snprintf(name, sizeof(name), "%s: each point of failure returns an error", way->name);
	if (file < 0) {
		tap_skip(name, "this kernel injects no faults");
		return;
	}
	for (nth = 1; passed && nth < FAULTS_MAX; nth++) {
		int error;

		faults_set(file, nth);
		error = one_of_each(way);
		/* Each point has failed once. */
		if (faults_are_over(file))
			break;
		failures += error != 0;
		passed &= TAP_CHECK(error == 0 || error == ENOMEM || error == EFAULT,
				    "fault %u: error %d", nth, error);
	}
	faults_set(file, 0);
	close(file);
	tap_note("%s: %u faults, %u of them refused the call", way->name, nth - 1, failures);
	passed &= TAP_CHECK(failures > 0, "no fault reached the caller");
	passed &= TAP_CHECK(one_of_each(way) == 0, "it no longer works");
	tap_result(passed, name);
}
