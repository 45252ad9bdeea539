/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Results in the Test Anything Protocol, as the kernel's own selftests print
 * them: a line a test, `ok` or `not ok`, and `# SKIP reason` where the kernel
 * lacks what is to be tested.
 */
#ifndef TOLL_SELFTESTS_TAP_H
#define TOLL_SELFTESTS_TAP_H

#include <stdbool.h>

/* Remarks and figures, which no reader of results has to understand. */
__attribute__((format(printf, 1, 2))) void tap_note(const char *format, ...);

/* One test ends. */
void tap_result(bool passed, const char *name);
void tap_skip(const char *name, const char *reason);

/* Prints the plan, which may come last, and gives the exit status. */
int tap_end(void);

/* Within a test: says what is wrong and where, and is false then. */
#define TAP_CHECK(condition, ...) \
	((condition) ? true : \
	 (tap_note("%s:%d: %s", __FILE__, __LINE__, #condition), \
	  tap_note(__VA_ARGS__), false))

#endif /* TOLL_SELFTESTS_TAP_H */
