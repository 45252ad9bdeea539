/* SPDX-License-Identifier: GPL-2.0 */
/* Any call with any arguments, on one of several files. */
#ifndef TOLL_SELFTESTS_DEVICE_CALLS_H
#define TOLL_SELFTESTS_DEVICE_CALLS_H

#include <stdbool.h>
#include <stdint.h>

/* Sets so many descriptors up; some of them get joined by the calls. */
#define FILES 8

struct caller {
	uint64_t random;
	/* Nonblocking, masters and slaves by turns. Shared by all threads. */
	int *files;
	/* A mapped page, and one that is not, behind it. */
	char *page;
	/* What this thread has mapped of the devices, and how much. */
	char *mapped;
	size_t mapped_bytes;
};

/* The error, which is 0 or one that the header allows, or the test failed. */
bool random_call(struct caller *caller);
int open_file(int index);

#endif /* TOLL_SELFTESTS_DEVICE_CALLS_H */
