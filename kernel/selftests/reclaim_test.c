// SPDX-License-Identifier: GPL-2.0
/*
 * The switch vm.reclaim_second_chance and the counters of what reclaim decides.
 * Takes all memory of the machine and lets the kernel kill, so it belongs into
 * a guest. Needs swap for all that puts memory under pressure.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

#define SWITCH "/proc/sys/vm/reclaim_second_chance"
#define PAGE 4096ul
#define SHARERS 3
#define HOT_TURNS 8

static const char *const counters[] = {
	"reclaim_decision_reclaim",  "reclaim_decision_reclaim_clean",
	"reclaim_decision_keep",     "reclaim_decision_activate",
	"reclaim_activate_overruled",
};

enum { RECLAIM, RECLAIM_CLEAN, KEEP, ACTIVATE, OVERRULED, COUNTERS };

/* A value of a file of names and numbers, or -1. */
static long long value_of(const char *path, const char *name)
{
	char word[64];
	long long value;
	FILE *file = fopen(path, "r");

	if (!file)
		return -1;
	while (fscanf(file, "%63s %lld%*[^\n]", word, &value) == 2) {
		if (!strcmp(word, name)) {
			fclose(file);
			return value;
		}
	}
	fclose(file);
	return -1;
}

static int write_file(const char *path, const char *value)
{
	int file = open(path, O_WRONLY);
	int error = 0;

	if (file < 0)
		return errno;
	if (write(file, value, strlen(value)) < 0)
		error = errno;
	close(file);
	return error;
}

static int switch_value(void)
{
	FILE *file = fopen(SWITCH, "r");
	int value = -1;

	if (!file)
		return -1;
	if (fscanf(file, "%d", &value) != 1)
		value = -1;
	fclose(file);
	return value;
}

static void test_switch(void)
{
	static const char *const refused[] = { "2", "-1", "255", "256", "257", "x", "4294967296" };
	bool passed = TAP_CHECK(switch_value() == 1, "it starts as %d", switch_value());
	size_t i;

	passed &= TAP_CHECK(!write_file(SWITCH, "0") && switch_value() == 0, "0 is not taken");
	for (i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		passed &= TAP_CHECK(write_file(SWITCH, refused[i]) == EINVAL, "%s is taken",
				    refused[i]);
		passed &= TAP_CHECK(switch_value() == 0, "%s changed it to %d", refused[i],
				    switch_value());
	}
	passed &= TAP_CHECK(!write_file(SWITCH, "1") && switch_value() == 1, "1 is not taken");
	tap_result(passed, "the switch starts as 1 and takes 0 and 1 alone");
}

static void read_counters(long long *values)
{
	int i;

	for (i = 0; i < COUNTERS; i++)
		values[i] = value_of("/proc/vmstat", counters[i]);
}

static void test_counters_are_there(void)
{
	long long values[COUNTERS];
	bool passed = true;
	int i;

	read_counters(values);
	for (i = 0; i < COUNTERS; i++)
		passed &= TAP_CHECK(values[i] >= 0, "/proc/vmstat lacks %s", counters[i]);
	tap_result(passed, "/proc/vmstat counts every decision");
}

static char *anonymous(size_t bytes)
{
	char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);

	if (memory == MAP_FAILED) {
		perror("mmap");
		exit(2);
	}
	/* Pages of 2 MiB would hide what is decided of each small one. */
	madvise(memory, bytes, MADV_NOHUGEPAGE);
	return memory;
}

static bool holds(const char *memory, size_t bytes)
{
	size_t at;

	for (at = 0; at < bytes; at += PAGE) {
		if (*(const size_t *)(memory + at) != at)
			return false;
	}
	return true;
}

static void fill(char *memory, size_t bytes)
{
	size_t at;

	for (at = 0; at < bytes; at += PAGE)
		*(size_t *)(memory + at) = at;
}

/*
 * One of the processes that share @hot: fills memory of its own, more than the
 * machine has, and turns to HOT_TURNS shared pages for each page of that. It
 * uses its own pages once, so only shared ones have to be brought back.
 */
static int share(const char *hot, size_t hot_bytes, size_t own_bytes)
{
	char *own = anonymous(own_bytes);
	size_t at, cursor = 0;
	int turn;

	for (at = 0; at < own_bytes; at += PAGE) {
		own[at] = 1;
		for (turn = 0; turn < HOT_TURNS; turn++) {
			if (*(const size_t *)(hot + cursor) != cursor)
				return 1;
			cursor = (cursor + PAGE) % hot_bytes;
		}
	}
	return 0;
}

/*
 * Pages mapped by several processes under pressure, since nothing else takes
 * the decision ACTIVATE often. False where a page lost its content.
 */
static bool press(long long *major_faults)
{
	size_t memory = (size_t)value_of("/proc/meminfo", "MemTotal:") * 1024;
	size_t swap = (size_t)value_of("/proc/meminfo", "SwapFree:") * 1024;
	size_t hot_bytes = memory / 4 / PAGE * PAGE;
	/* A tenth is left, so that nobody is killed for want of memory. */
	size_t own_bytes = (swap - swap / 10) / SHARERS / PAGE * PAGE;
	char *hot = anonymous(hot_bytes);
	long long before;
	bool passed = true;
	int i, status;

	fill(hot, hot_bytes);
	before = value_of("/proc/vmstat", "pgmajfault");
	for (i = 0; i < SHARERS; i++) {
		if (fork() == 0)
			_exit(share(hot, hot_bytes, own_bytes));
	}
	for (i = 0; i < SHARERS; i++) {
		wait(&status);
		passed &= TAP_CHECK(status == 0, "a sharer ended with status %#x", status);
	}
	*major_faults = value_of("/proc/vmstat", "pgmajfault") - before;
	passed &= TAP_CHECK(holds(hot, hot_bytes), "a shared page lost its content");
	munmap(hot, hot_bytes);
	return passed;
}

static long long test_pressure(const char *policy)
{
	long long before[COUNTERS], after[COUNTERS], overruled, activate, faults;
	bool passed;
	char name[128];
	int i;

	write_file(SWITCH, policy);
	read_counters(before);
	passed = press(&faults);
	read_counters(after);
	tap_note("second chance %s: %lld major faults", policy, faults);
	for (i = 0; i < COUNTERS; i++)
		tap_note("second chance %s: %s %lld", policy, counters[i], after[i] - before[i]);

	overruled = after[OVERRULED] - before[OVERRULED];
	activate = after[ACTIVATE] - before[ACTIVATE];
	passed &= TAP_CHECK(after[RECLAIM] > before[RECLAIM], "nothing was reclaimed");
	passed &= TAP_CHECK(activate > 0, "nothing was found in use");
	if (*policy == '1')
		passed &= TAP_CHECK(overruled == 0, "%lld overruled", overruled);
	else
		passed &= TAP_CHECK(overruled == activate, "%lld of %lld overruled", overruled,
				    activate);
	snprintf(name, sizeof(name), "with %s, memory survives pressure and decisions are counted",
		 policy);
	tap_result(passed, name);
	return faults;
}

static void test_locked_memory(const char *policy)
{
	const size_t bytes = 8ul << 20;
	char *locked = anonymous(bytes);
	unsigned char *resident = calloc(bytes / PAGE, 1);
	bool passed = TAP_CHECK(mlock(locked, bytes) == 0, "mlock: %s", strerror(errno));
	size_t page, gone = 0;
	long long faults;
	char name[128];

	write_file(SWITCH, policy);
	fill(locked, bytes);
	passed &= press(&faults);
	if (mincore(locked, bytes, resident))
		abort();
	for (page = 0; page < bytes / PAGE; page++)
		gone += !(resident[page] & 1);
	passed &= TAP_CHECK(gone == 0, "%zu locked pages are gone", gone);
	passed &= TAP_CHECK(holds(locked, bytes), "a locked page lost its content");
	munmap(locked, bytes);
	free(resident);
	snprintf(name, sizeof(name), "with %s, locked memory stays under pressure", policy);
	tap_result(passed, name);
}

static void test_switching_under_pressure(void)
{
	long long faults;
	bool passed;
	pid_t child = fork();

	if (child == 0) {
		for (;;) {
			write_file(SWITCH, "0");
			write_file(SWITCH, "1");
		}
	}
	passed = press(&faults);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	tap_result(passed, "memory survives the switch being turned under pressure");
}

static void test_out_of_memory(const char *policy)
{
	char name[128];
	int status;
	pid_t child;

	write_file(SWITCH, policy);
	child = fork();
	if (child == 0) {
		/* Only this one is to be killed. */
		write_file("/proc/self/oom_score_adj", "1000");
		for (;;)
			memset(anonymous(16ul << 20), 1, 16ul << 20);
	}
	waitpid(child, &status, 0);
	snprintf(name, sizeof(name), "with %s, a process that takes all memory is killed", policy);
	tap_result(TAP_CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
			     "status %#x", status), name);
}

int main(void)
{
	long long kept, dropped;

	if (switch_value() < 0) {
		tap_skip("vm.reclaim_second_chance", "this kernel is without the patches");
		return tap_end();
	}
	test_switch();
	test_counters_are_there();
	if (value_of("/proc/meminfo", "SwapTotal:") <= 0) {
		tap_skip("reclaim under pressure", "there is no swap");
		return tap_end();
	}
	/* The decisions are those of the classic lists. */
	write_file("/sys/kernel/mm/lru_gen/enabled", "n");
	write_file("/proc/sys/vm/overcommit_memory", "1");
	/* Every page that comes back is a fault of its own. */
	write_file("/proc/sys/vm/page-cluster", "0");
	kept = test_pressure("1");
	dropped = test_pressure("0");
	/* Some tens against some ten thousands. */
	tap_result(TAP_CHECK(kept < dropped, "%lld and %lld major faults", kept, dropped),
		   "without the second chance, shared pages have to be brought back");
	test_locked_memory("1");
	test_locked_memory("0");
	test_switching_under_pressure();
	test_out_of_memory("0");
	test_out_of_memory("1");
	write_file(SWITCH, "1");
	return tap_end();
}
