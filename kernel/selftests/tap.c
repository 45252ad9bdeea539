// SPDX-License-Identifier: GPL-2.0
#include "tap.h"

void tap_begin(void)
{
	ksft_print_header();
}

void tap_result(bool passed, const char *name)
{
	ksft_test_result(passed, "%s\n", name);
}

void tap_skip(const char *name, const char *reason)
{
	ksft_test_result_skip("%s: %s\n", name, reason);
}

/* Modes and ways decide how many tests there are, so the plan comes last. */
void tap_end(void)
{
	ksft_set_plan(ksft_test_num());
	ksft_finished();
}
