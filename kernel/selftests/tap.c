// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>

#include "tap.h"

static unsigned int passes, failures, skips;

void tap_begin(void)
{
	/* A child must not print again what its parent has not written yet. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("TAP version 13");
}

static unsigned int count(void)
{
	return passes + failures + skips;
}

void tap_result(bool passed, const char *name)
{
	if (passed)
		passes++;
	else
		failures++;
	printf("%s %u %s\n", passed ? "ok" : "not ok", count(), name);
}

void tap_skip(const char *name, const char *reason)
{
	skips++;
	printf("ok %u # SKIP %s: %s\n", count(), name, reason);
}

/* Modes and ways decide how many tests there are, so the plan comes last. */
void tap_end(void)
{
	printf("1..%u\n# Totals: pass:%u fail:%u skip:%u\n", count(), passes, failures, skips);
	exit(failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}
