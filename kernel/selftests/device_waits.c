// SPDX-License-Identifier: GPL-2.0
/* Signals to calls that wait. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device.h"
#include "tap.h"

static atomic_int alarms;

static void on_alarm(int number)
{
	(void)number;
	atomic_fetch_add(&alarms, 1);
}

/* Sends a signal after @ms and again every @ms; 0 stops that. */
static void alarm_each(long ms, bool restarts)
{
	struct sigaction action = {
		.sa_handler = on_alarm,
		.sa_flags = restarts ? SA_RESTART : 0,
	};
	struct itimerval timer = {
		.it_interval = { .tv_usec = ms * 1000 },
		.it_value = { .tv_usec = ms * 1000 },
	};

	sigaction(SIGALRM, &action, NULL);
	atomic_store(&alarms, 0);
	setitimer(ITIMER_REAL, &timer, NULL);
}

static void test_interrupted(uint32_t mode)
{
	struct toll_device_endpoint here = loopback(AF_INET, 0);
	struct pair pair;
	bool passed = pair_open(&pair, AF_INET, mode, 65536);
	int master = open(MASTER, O_RDWR | O_CLOEXEC);
	uint64_t sequence;
	char byte;

	passed &= TAP_CHECK(!command(master, TOLL_DEVICE_LISTEN, &here), "listen");
	alarm_each(30, false);
	here.timeout_ms = 0;
	passed &= TAP_CHECK(command(master, TOLL_DEVICE_ACCEPT, &here) == EINTR, "ACCEPT");
	here.timeout_ms = 100000;
	passed &= TAP_CHECK(command(master, TOLL_DEVICE_ACCEPT, &here) == EINTR, "ACCEPT");
	passed &= TAP_CHECK(read(pair.slave, &byte, 1) < 0 && errno == EINTR, "read: %s",
			    strerror(errno));
	if (mode == TOLL_DEVICE_ASYNC) {
		queue(pair.master, TOLL_DEVICE_RECEIVE, 0, 1);
		passed &= TAP_CHECK(reap(pair.master, &sequence, 0) == -EINTR, "REAP");
		passed &= TAP_CHECK(reap(pair.master, &sequence, 100000) == -EINTR, "REAP");
	} else {
		passed &= TAP_CHECK(transfer(pair.master, TOLL_DEVICE_RECEIVE, 0, 1) == -EINTR,
				    "RECEIVE");
		/* What came before the signal is not lost. */
		passed &= write_filled(pair.slave, 7, 7, 1);
		passed &= TAP_CHECK(transfer(pair.master, TOLL_DEVICE_RECEIVE, 0, 100) == 7,
				    "a part");
	}
	alarm_each(0, false);
	close(master);
	pair_close(&pair);
	result(mode, passed, "a signal ends a wait");
}

/* An interrupted 0x12345678 of a slave continues without its caller. */
static void test_abandoned(void)
{
	struct pair pair;
	bool passed = pair_open(&pair, AF_INET, TOLL_DEVICE_ASYNC, 65536);
	uint64_t sequence;

	alarm_each(30, false);
	passed &= TAP_CHECK(ioctl(pair.slave, TOLL_DEVICE_PUBLISHED_TRANSFER, 100) < 0 &&
			    errno == EINTR, "0x12345678: %s", strerror(errno));
	alarm_each(0, false);
	passed &= TAP_CHECK(reap(pair.slave, &sequence, 20) == -ETIMEDOUT, "REAP");
	passed &= write_filled(pair.master, 150, 150, 1);
	passed &= TAP_CHECK(queue(pair.slave, TOLL_DEVICE_RECEIVE, 0, 50) == 2, "RECEIVE");
	passed &= TAP_CHECK(reap(pair.slave, &sequence, 5000) == 50 && sequence == 2, "REAP");
	passed &= TAP_CHECK(reap(pair.slave, &sequence, 0) == -ENOENT, "nothing is left");
	pair_close(&pair);
	tap_result(passed, "async: a transfer whose caller was interrupted still ends");
}

static void test_restarted(uint32_t mode)
{
	struct pair pair;
	bool passed = pair_open(&pair, AF_INET, mode, 65536);
	pid_t child = fork();

	if (child == 0) {
		usleep(100000);
		_exit(!write_filled(pair.master, 300000, 10000, 2));
	}
	alarm_each(10, true);
	passed &= read_filled(pair.slave, 300000, 100000, 2);
	passed &= TAP_CHECK(atomic_load(&alarms) > 0, "no signal came");
	alarm_each(0, true);
	passed &= child_passed(child);
	pair_close(&pair);
	result(mode, passed, "calls restart after signals whose handlers request that");
}

/* Writes and reads are short, but no byte is lost or doubled. */
static void test_showered(uint32_t mode)
{
	const uint64_t bytes = 20u << 20;
	struct pair pair;
	bool passed = pair_open(&pair, AF_INET, mode, 65536);
	static char buffer[200000];
	uint64_t done = 0;
	pid_t child = fork();

	if (child == 0) {
		alarm_each(2, false);
		while (done < bytes) {
			size_t count = bytes - done < sizeof(buffer) ? bytes - done :
								       sizeof(buffer);
			ssize_t written;

			fill(buffer, count, 3, done);
			written = write(pair.master, buffer, count);
			if (written < 0 && errno != EINTR)
				_exit(1);
			done += written > 0 ? written : 0;
		}
		alarm_each(0, false);
		_exit(0);
	}
	passed &= read_filled(pair.slave, bytes, 150000, 3) && child_passed(child);
	pair_close(&pair);
	result(mode, passed, "many signals neither lose nor double a byte");
}

/* Makes calls that only SIGKILL ends. */
static void test_killed(uint32_t mode)
{
	bool passed = true;
	int which;

	for (which = 0; which < 4; which++) {
		struct toll_device_endpoint here = loopback(AF_INET, 0);
		struct pair pair;
		pid_t child;
		char byte;

		passed &= pair_open(&pair, AF_INET, mode, 65536);
		child = fork();
		if (child == 0) {
			int master = open(MASTER, O_RDWR | O_CLOEXEC);

			here.timeout_ms = 0;
			if (which == 0 && read(pair.slave, &byte, 1))
				_exit(1);
			if (which == 1)
				ioctl(pair.slave, TOLL_DEVICE_PUBLISHED_TRANSFER, 100);
			if (which == 2)
				write_filled(pair.master, 1ull << 40, 65536, 1);
			if (which == 3 && !command(master, TOLL_DEVICE_LISTEN, &here))
				command(master, TOLL_DEVICE_ACCEPT, &here);
			_exit(1);
		}
		usleep(50000);
		kill(child, SIGKILL);
		passed &= TAP_CHECK(waitpid(child, NULL, 0) == child, "case %d", which);
		pair_close(&pair);
	}
	result(mode, passed, "a waiting caller can be killed");
}

void test_waits(uint32_t mode)
{
	test_interrupted(mode);
	test_restarted(mode);
	test_showered(mode);
	test_killed(mode);
	if (mode == TOLL_DEVICE_ASYNC)
		test_abandoned();
}
