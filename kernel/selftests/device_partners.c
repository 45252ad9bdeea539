// SPDX-License-Identifier: GPL-2.0
/* Peers that are programs: they break off, send garbage, or die. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device.h"
#include "tap.h"

/* Opens a master connected to a socket of this program; returns that socket. */
static int open_with_socket(int *master, uint32_t mode)
{
	struct toll_device_endpoint here = loopback(AF_INET, 0);
	struct sockaddr_in address = { .sin_family = AF_INET };
	int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*master = open(MASTER, O_RDWR | O_CLOEXEC);
	if (set_settings(*master, 65536, mode) || command(*master, TOLL_DEVICE_LISTEN, &here))
		return -1;
	address.sin_port = htons(here.port);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (connect(other, (struct sockaddr *)&address, sizeof(address)) ||
	    command(*master, TOLL_DEVICE_ACCEPT, &here)) {
		tap_note("cannot join: %s", strerror(errno));
		return -1;
	}
	return other;
}

static void reset(int other)
{
	struct linger linger = { .l_onoff = 1, .l_linger = 0 };

	setsockopt(other, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(other);
}

static void test_garbage(uint32_t mode)
{
	int master;
	int other = open_with_socket(&master, mode);
	char byte = 'x';
	bool passed = other >= 0;
	pid_t child = fork();

	if (child == 0)
		_exit(!write_filled(other, 400000, 777, 0xbad));
	passed &= read_filled(master, 400000, 50000, 0xbad) && child_passed(child);
	/* A byte out of band is not part of the stream. */
	passed &= TAP_CHECK(send(other, &byte, 1, MSG_OOB) == 1, "urgent");
	passed &= TAP_CHECK(poll_events(master, POLLPRI, 50) == 0, "something urgent");
	passed &= write_filled(other, 10, 10, 1) && read_filled(master, 10, 10, 1);
	close(other);
	passed &= TAP_CHECK(read(master, &byte, 1) == 0, "no end");
	close(master);
	result(mode, passed, "whatever a partner sends arrives as plain bytes");
}

static bool is_broken(int error)
{
	return error == ECONNRESET || error == EPIPE;
}

static void test_reset_reader(uint32_t mode)
{
	int master;
	int other = open_with_socket(&master, mode);
	char bytes[65536];
	bool passed = other >= 0;
	ssize_t got;

	passed &= write_filled(other, 1000, 1000, 2);
	passed &= read_filled(master, 500, 500, 2);
	reset(other);
	/* Bytes that came before can still be read; then comes the error. */
	do {
		got = read(master, bytes, sizeof(bytes));
	} while (got > 0);
	passed &= TAP_CHECK(got < 0 && is_broken(errno), "read: %zd %s", got, strerror(errno));
	passed &= TAP_CHECK(poll_events(master, POLLIN, 0) & POLLIN, "poll");
	passed &= TAP_CHECK(read(master, bytes, 1) <= 0, "more bytes");
	passed &= TAP_CHECK(write(master, bytes, 1) <= 0 || mode == TOLL_DEVICE_ASYNC, "written");
	passed &= TAP_CHECK(command(master, TOLL_DEVICE_FINISH, NULL) != 0, "finished");
	close(master);
	result(mode, passed, "a reader gets an error after a reset");
}

static void test_reset_writer(uint32_t mode)
{
	char *bytes = calloc(1, 65536);
	int master, turn;
	bool passed = true;

	for (turn = 0; turn < 10; turn++) {
		int other = open_with_socket(&master, mode);
		pid_t child;
		ssize_t got;

		passed &= other >= 0;
		child = fork();
		if (child == 0) {
			/* In the middle of a write. */
			usleep(turn * 1000);
			reset(other);
			_exit(0);
		}
		close(other);
		do {
			got = write(master, bytes, 65536);
		} while (got > 0);
		passed &= TAP_CHECK(is_broken(errno), "write: %s", strerror(errno));
		passed &= TAP_CHECK(write(master, bytes, 1) < 0 && is_broken(errno), "again");
		passed &= TAP_CHECK(command(master, TOLL_DEVICE_FINISH, NULL) != 0, "finished");
		passed &= child_passed(child);
		close(master);
	}
	free(bytes);
	result(mode, passed, "a writer gets an error after a reset in mid-transfer");
}

static void test_reset_transfer(uint32_t mode)
{
	int master;
	int other = open_with_socket(&master, mode);
	bool passed = other >= 0;
	uint64_t sequence;
	int64_t got;
	int i;

	passed &= write_filled(other, 10, 10, 1);
	if (mode == TOLL_DEVICE_ASYNC) {
		for (i = 0; i < 3; i++)
			queue(master, TOLL_DEVICE_RECEIVE, 0, 100);
		usleep(20000);
		reset(other);
		got = reap(master, &sequence, 5000);
		passed &= TAP_CHECK(got == 10 || got == -ECONNRESET, "first: %lld",
				    (long long)got);
		got = reap(master, &sequence, 5000);
		passed &= TAP_CHECK(got == -ECONNRESET, "second: %lld", (long long)got);
		got = reap(master, &sequence, 5000);
		passed &= TAP_CHECK(got == -ECONNRESET, "third: %lld", (long long)got);
	} else {
		pid_t child = fork();

		if (child == 0) {
			usleep(20000);
			reset(other);
			_exit(0);
		}
		close(other);
		got = transfer(master, TOLL_DEVICE_RECEIVE, 0, 100);
		passed &= TAP_CHECK(got == 10 || got == -ECONNRESET, "got %lld", (long long)got);
		passed &= child_passed(child);
	}
	got = transfer(master, TOLL_DEVICE_SEND, 0, 10);
	passed &= TAP_CHECK(got < 0 || mode == TOLL_DEVICE_ASYNC, "SEND: %lld", (long long)got);
	close(master);
	result(mode, passed, "a waiting transfer of the buffer ends with a reset");
}

/* Before the master has accepted it, with bytes and without. */
static void test_gone_early(uint32_t mode)
{
	bool passed = true;
	int turn;

	for (turn = 0; turn < 4; turn++) {
		struct toll_device_endpoint here = loopback(AF_INET, 0);
		struct sockaddr_in address = { .sin_family = AF_INET };
		int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		int master = open(MASTER, O_RDWR | O_CLOEXEC);
		char bytes[100];
		ssize_t got;
		int error;

		passed &= TAP_CHECK(!set_settings(master, 512, mode) &&
				    !command(master, TOLL_DEVICE_LISTEN, &here), "listen");
		address.sin_port = htons(here.port);
		address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		connect(other, (struct sockaddr *)&address, sizeof(address));
		if (turn % 2)
			passed &= write_filled(other, 10, 10, 1);
		if (turn < 2)
			close(other);
		else
			reset(other);
		error = command(master, TOLL_DEVICE_ACCEPT, &here);
		passed &= TAP_CHECK(error == (turn < 2 ? 0 : ECONNABORTED), "turn %d: error %d",
				    turn, error);
		got = read(master, bytes, 100);
		passed &= TAP_CHECK(got == (turn == 0 ? 0 : turn == 1 ? 10 : -1), "turn %d: %zd",
				    turn, got);
		close(master);
	}
	result(mode, passed, "a partner may be gone before it is accepted");
}

static void test_killed_partner(uint32_t mode)
{
	char *bytes = malloc(65536);
	bool passed = true;
	int turn;

	for (turn = 0; turn < 6; turn++) {
		struct pair pair;
		uint64_t done = 0;
		ssize_t got;
		pid_t child;

		passed &= pair_open(&pair, AF_INET, mode, 65536);
		child = fork();
		if (child == 0) {
			close(pair.slave);
			write_filled(pair.master, 1ull << 40, 65536, 7);
			_exit(1);
		}
		close(pair.master);
		passed &= read_filled(pair.slave, 200000 * turn, 50000, 7);
		done = 200000 * turn;
		kill(child, SIGKILL);
		while ((got = read(pair.slave, bytes, 65536)) > 0) {
			passed &= is_filled(bytes, got, 7, done);
			done += got;
		}
		passed &= TAP_CHECK(got == 0 || errno == ECONNRESET, "read: %s", strerror(errno));
		waitpid(child, NULL, 0);
		close(pair.slave);
	}
	free(bytes);
	result(mode, passed, "after a killed sender, the bytes sent are correct and then end");
}

static void test_silent_partner(uint32_t mode)
{
	int master;
	int other = open_with_socket(&master, mode);
	bool passed = other >= 0;
	pid_t child = fork();

	if (child == 0) {
		write_filled(master, 1ull << 40, 65536, 1);
		_exit(1);
	}
	/* Nobody reads; the writer waits, and can still be killed. */
	usleep(300000);
	passed &= TAP_CHECK(waitpid(child, NULL, WNOHANG) == 0, "it did not wait");
	kill(child, SIGKILL);
	passed &= TAP_CHECK(waitpid(child, NULL, 0) == child, "it is not killed");
	close(master);
	close(other);
	result(mode, passed, "a sender whose partner never reads can be killed");
}

void test_partners(uint32_t mode)
{
	test_garbage(mode);
	test_reset_reader(mode);
	test_reset_writer(mode);
	test_reset_transfer(mode);
	test_gone_early(mode);
	test_killed_partner(mode);
	test_silent_partner(mode);
}
