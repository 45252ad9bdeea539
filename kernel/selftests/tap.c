// SPDX-License-Identifier: GPL-2.0
#include <stdarg.h>
#include <stdio.h>

#include "tap.h"

static unsigned int tests;
static unsigned int failures;

void tap_note(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	printf("# ");
	vprintf(format, arguments);
	printf("\n");
	va_end(arguments);
	fflush(stdout);
}

void tap_result(bool passed, const char *name)
{
	tests++;
	if (!passed)
		failures++;
	printf("%s %u %s\n", passed ? "ok" : "not ok", tests, name);
	fflush(stdout);
}

void tap_skip(const char *name, const char *reason)
{
	tests++;
	printf("ok %u %s # SKIP %s\n", tests, name, reason);
	fflush(stdout);
}

int tap_end(void)
{
	printf("1..%u\n", tests);
	tap_note("%u tests, %u failed", tests, failures);
	return failures ? 1 : 0;
}
