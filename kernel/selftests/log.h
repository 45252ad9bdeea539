/* SPDX-License-Identifier: GPL-2.0 */
#ifndef TOLL_SELFTESTS_LOG_H
#define TOLL_SELFTESTS_LOG_H

#include <stddef.h>

/* The kernel log from now on, or negative where there is no /dev/kmsg. */
int log_open(void);
/* Closes it. What was written to it meanwhile, to be freed. */
char *log_close(int log);
/* How many times the text is in it. */
size_t log_count(const char *log, const char *text);

#endif /* TOLL_SELFTESTS_LOG_H */
