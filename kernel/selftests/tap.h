/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel's kselftest.h for programs of several files: it keeps its counters
 * per file, so one file, tap.c, reports all results.
 */
#ifndef TOLL_SELFTESTS_TAP_H
#define TOLL_SELFTESTS_TAP_H

#include <stdbool.h>

#include "kselftest.h"

/* Remarks and figures; readers of results ignore them. */
#define tap_note(format, ...) ksft_print_msg(format "\n", ##__VA_ARGS__)

void tap_begin(void);
/* Reports one test. */
void tap_result(bool passed, const char *name);
void tap_skip(const char *name, const char *reason);
/* Prints plan and totals, and exits. */
__noreturn void tap_end(void);

/* Within a test: says what is wrong and where; false then. */
#define TAP_CHECK(condition, ...) \
	((condition) ? true : \
	 (tap_note("%s:%d: %s", __FILE__, __LINE__, #condition), \
	  tap_note(__VA_ARGS__), false))

#endif /* TOLL_SELFTESTS_TAP_H */
