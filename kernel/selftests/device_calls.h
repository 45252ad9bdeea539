/* SPDX-License-Identifier: GPL-2.0 */
/* Any call with any arguments, on one of several files. */
#ifndef TOLL_SELFTESTS_DEVICE_CALLS_H
#define TOLL_SELFTESTS_DEVICE_CALLS_H

#include <stdbool.h>
#include <stdint.h>

/* Number of descriptors; the calls connect some of them. */
#define FILES 8

struct caller {
	uint64_t random;
	/* Nonblocking, masters and slaves in turn. Shared by all threads. */
	int *files;
	/* A mapped page, followed by an unmapped one. */
	char *page;
	/* What this thread has mapped of the devices, and its size. */
	char *mapped;
	size_t mapped_bytes;
};

/* Whether the error is 0 or one that the header allows. */
bool random_call(struct caller *caller);
int open_file(int index);

#endif /* TOLL_SELFTESTS_DEVICE_CALLS_H */
