// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "faults.h"
#include "tap.h"

static void write_setting(const char *path, const char *value)
{
	int file = open(path, O_WRONLY | O_CLOEXEC);

	if (file < 0)
		return;
	if (write(file, value, strlen(value)) < 0)
		tap_note("cannot write %s", path);
	close(file);
}

/*
 * Allocations that may wait are spared by default. A trace for each fault would
 * hide the traces of bugs.
 */
int faults_open(void)
{
	write_setting("/sys/kernel/debug/failslab/verbose", "0");
	write_setting("/sys/kernel/debug/fail_page_alloc/verbose", "0");
	write_setting("/sys/kernel/debug/fail_usercopy/verbose", "0");
	write_setting("/sys/kernel/debug/failslab/ignore-gfp-wait", "N");
	write_setting("/sys/kernel/debug/fail_page_alloc/ignore-gfp-wait", "N");
	write_setting("/sys/kernel/debug/fail_page_alloc/min-order", "0");
	return open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
}

/*
 * Reading and writing the count are accesses to the caller's memory, too, and
 * may take the fault that was meant for the call. It is used up then.
 */
void faults_set(int file, unsigned int nth)
{
	char text[16];
	int tries;

	snprintf(text, sizeof(text), "%u", nth);
	for (tries = 0; tries < 2; tries++) {
		if (pwrite(file, text, strlen(text), 0) > 0)
			return;
	}
	perror("cannot write fail-nth");
	exit(1);
}

bool faults_are_over(int file)
{
	char text[16] = "";

	if (pread(file, text, sizeof(text) - 1, 0) < 0)
		return true;
	return atoi(text) > 0;
}

/* Writing a setting can fail itself; user pages are spared. */
void faults_everywhere(unsigned int percent)
{
	char text[16];
	int tries;

	snprintf(text, sizeof(text), "%u", percent);
	for (tries = 0; tries < 10; tries++) {
		write_setting("/sys/kernel/debug/failslab/times", "-1");
		write_setting("/sys/kernel/debug/fail_page_alloc/times", "-1");
		write_setting("/sys/kernel/debug/failslab/probability", text);
		write_setting("/sys/kernel/debug/fail_page_alloc/probability", text);
	}
}

static void set_both(const char *name, const char *value)
{
	static const char *const kinds[] = { "failslab", "fail_page_alloc" };
	char path[96];
	int i;

	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s/%s", kinds[i], name);
		write_setting(path, value);
	}
}

int faults_of_thread_open(void)
{
	int file = open("/proc/thread-self/make-it-fail", O_RDWR | O_CLOEXEC);

	if (file >= 0) {
		set_both("task-filter", "Y");
		set_both("times", "-1");
		set_both("probability", "100");
	}
	return file;
}

void faults_of_thread(int file, bool fail)
{
	if (pwrite(file, fail ? "1" : "0", 1, 0) != 1)
		perror("cannot write make-it-fail");
	if (!fail) {
		set_both("probability", "0");
		set_both("task-filter", "N");
	}
}
