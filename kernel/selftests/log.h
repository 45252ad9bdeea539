/* SPDX-License-Identifier: GPL-2.0 */
#ifndef TOLL_SELFTESTS_LOG_H
#define TOLL_SELFTESTS_LOG_H

#include <stddef.h>

/* Opens the kernel log from now on; negative without /dev/kmsg. */
int log_open(void);
/* Closes the log. Returns what was written to it meanwhile, to be freed. */
char *log_close(int log);
/* Returns how many times the text occurs in the log. */
size_t log_count(const char *log, const char *text);

#endif /* TOLL_SELFTESTS_LOG_H */
