// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"

/* A record and its prefix, see Documentation/ABI/testing/dev-kmsg. */
#define RECORD_MAX 8192

int log_open(void)
{
	int log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (log >= 0)
		lseek(log, 0, SEEK_END);
	return log;
}

char *log_close(int log)
{
	size_t used = 0;
	char *text = malloc(RECORD_MAX);

	while (text) {
		ssize_t got = read(log, text + used, RECORD_MAX - 1);

		/* EPIPE: the log is a ring, and the next record was overwritten. */
		if (got < 0 && errno == EPIPE)
			continue;
		if (got <= 0)
			break;
		used += got;
		text = realloc(text, used + RECORD_MAX);
	}
	close(log);
	if (text)
		text[used] = '\0';
	return text;
}

size_t log_count(const char *log, const char *text)
{
	size_t count = 0;

	while (log && (log = strstr(log, text))) {
		log += strlen(text);
		count++;
	}
	return count;
}
