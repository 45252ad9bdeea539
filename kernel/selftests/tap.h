/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Results in the Test Anything Protocol, as the kernel's own selftests print
 * them: a line a test, `ok` or `not ok`, and `# SKIP reason` where the kernel
 * lacks what is to be tested.
 */
#ifndef TOLL_SELFTESTS_TAP_H
#define TOLL_SELFTESTS_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

static unsigned int tap_tests;
static unsigned int tap_failures;

/* Remarks and figures, which no reader of results has to understand. */
__attribute__((format(printf, 1, 2)))
static inline void tap_note(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	printf("# ");
	vprintf(format, arguments);
	printf("\n");
	va_end(arguments);
	fflush(stdout);
}

/* One test ends. */
static inline void tap_result(bool passed, const char *name)
{
	tap_tests++;
	if (!passed)
		tap_failures++;
	printf("%s %u %s\n", passed ? "ok" : "not ok", tap_tests, name);
	fflush(stdout);
}

static inline void tap_skip(const char *name, const char *reason)
{
	tap_tests++;
	printf("ok %u %s # SKIP %s\n", tap_tests, name, reason);
	fflush(stdout);
}

/* Prints the plan, which may come last, and gives the exit status. */
static inline int tap_end(void)
{
	printf("1..%u\n", tap_tests);
	tap_note("%u tests, %u failed", tap_tests, tap_failures);
	return tap_failures ? 1 : 0;
}

/* Within a test: says what is wrong and where, and is false then. */
#define TAP_CHECK(condition, ...) \
	((condition) ? true : \
	 (tap_note("%s:%d: %s", __FILE__, __LINE__, #condition), \
	  tap_note(__VA_ARGS__), false))

#endif /* TOLL_SELFTESTS_TAP_H */
