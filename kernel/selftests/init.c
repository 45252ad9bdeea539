// SPDX-License-Identifier: GPL-2.0
/*
 * First process of a guest that runs the selftests: mounts what they need,
 * runs them and restarts, which ends the emulator. The kernel hands on
 * selftests_seed=, selftests_calls= and selftests_only= of its command line as
 * environment; behind `--`, QEMU would add its own words to them.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/swap.h>
#include <sys/wait.h>
#include <unistd.h>

#define KMEMLEAK "/sys/kernel/debug/kmemleak"

static int run(char **arguments)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		execv(arguments[0], arguments);
		perror(arguments[0]);
		_exit(127);
	}
	if (waitpid(child, &status, 0) != child)
		return 1;
	printf("# %s: status %#x\n", arguments[0], status);
	fflush(stdout);
	return status != 0;
}

/* What is unreferenced in two scans is leaked; a first sight may be a race. */
static void report_leaks(void)
{
	char line[4096];
	ssize_t bytes;
	int scan, file;

	for (scan = 0; scan < 2; scan++) {
		file = open(KMEMLEAK, O_WRONLY);
		if (file < 0)
			return;
		if (write(file, "scan", 4) != 4)
			printf("# cannot scan for leaks\n");
		close(file);
		sleep(6);
	}
	file = open(KMEMLEAK, O_RDONLY);
	printf("# leaks found by kmemleak follow\n");
	fflush(stdout);
	while ((bytes = read(file, line, sizeof(line))) > 0) {
		if (write(STDOUT_FILENO, line, (size_t)bytes) != bytes)
			break;
	}
	printf("# leaks found by kmemleak end\n");
	close(file);
}

static bool wanted(const char *test)
{
	const char *only = getenv("selftests_only");

	return !only || !strcmp(only, test);
}

int main(void)
{
	char *seed = getenv("selftests_seed");
	char *calls = getenv("selftests_calls");
	char *primes[] = { "/primes_test", "--module", "/toll_primes.ko", "--calls",
			   calls ? calls : "1000000", seed ? "--seed" : NULL, seed, NULL };
	char *reclaim[] = { "/reclaim_test", NULL };
	int failed = 0;

	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
	if (swapon("/dev/vda", 0))
		printf("# no swap: /dev/vda is not there\n");

	if (wanted("primes"))
		failed |= run(primes);
	if (wanted("reclaim"))
		failed |= run(reclaim);
	report_leaks();
	printf("selftests: %s\n", failed ? "failed" : "passed");
	fflush(stdout);
	sync();
	reboot(RB_AUTOBOOT);
	return 1;
}
