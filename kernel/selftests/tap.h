/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Results in TAP, the Test Anything Protocol, as the kernel's kselftest.h
 * prints them. That header is only in the kernel's source, and these programs
 * are also built where that source is missing.
 */
#ifndef TOLL_SELFTESTS_TAP_H
#define TOLL_SELFTESTS_TAP_H

#include <stdbool.h>
#include <stdio.h>

/* Remarks and figures; readers of results ignore them. */
#define tap_note(format, ...) printf("# " format "\n", ##__VA_ARGS__)

void tap_begin(void);
/* Reports one test. */
void tap_result(bool passed, const char *name);
void tap_skip(const char *name, const char *reason);
/* Prints plan and totals, and exits. */
__attribute__((noreturn)) void tap_end(void);

/* Within a test: if it fails, prints what is wrong and where, and is false. */
#define TAP_CHECK(condition, ...) \
	((condition) ? true : \
	 (tap_note("%s:%d: %s", __FILE__, __LINE__, #condition), \
	  tap_note(__VA_ARGS__), false))

#endif /* TOLL_SELFTESTS_TAP_H */
