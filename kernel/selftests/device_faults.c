// SPDX-License-Identifier: GPL-2.0
/* Every allocation and every access to the caller's memory fails once. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "device.h"
#include "faults.h"
#include "tap.h"

/* Uses a connection in every way until something fails; returns that error. */
static int use(const struct pair *pair, uint32_t mode)
{
	char bytes[3000] = "meow!\n";
	struct toll_device_statistics statistics;
	uint64_t sequence;
	int64_t got;
	char *mapped = map(pair->master, 8192);

	if (mapped == MAP_FAILED)
		return errno;
	munmap(mapped, 8192);
	if (command(pair->master, TOLL_DEVICE_STATISTICS, &statistics))
		return errno;
	/* A transfer may be short because of the failure; the rest may still come. */
	if (write(pair->master, bytes, sizeof(bytes)) < 0)
		return errno;
	if (mode != TOLL_DEVICE_ASYNC) {
		got = transfer(pair->master, TOLL_DEVICE_SEND, 0, 8192);
	} else {
		got = queue(pair->master, TOLL_DEVICE_SEND, 0, 8192);
		if (got > 0)
			got = reap(pair->master, &sequence, 5000);
	}
	if (got < 0)
		return -got;
	return read(pair->slave, bytes, sizeof(bytes)) < 0 ? errno : 0;
}

/* Opens, connects, uses and closes two files. */
static int live(uint32_t mode)
{
	struct toll_device_endpoint here = loopback(AF_INET, 0);
	struct toll_device_endpoint peer = loopback(AF_INET, 0);
	struct pair pair = { -1, -1 };
	int error = 0;

	/* A segment whose allocation failed is retransmitted, perhaps too late. */
	here.timeout_ms = 5000;
	peer.timeout_ms = 5000;
	pair.master = open(MASTER, O_RDWR | O_CLOEXEC);
	if (pair.master < 0)
		return errno;
	pair.slave = open(SLAVE, O_RDWR | O_CLOEXEC);
	if (pair.slave < 0)
		error = errno;
	if (!error)
		error = set_settings(pair.master, 8192, mode);
	if (!error)
		error = set_settings(pair.slave, 8192, mode);
	if (!error)
		error = command(pair.master, TOLL_DEVICE_LISTEN, &here);
	here.timeout_ms = 5000;
	if (!error)
		error = command(pair.slave, TOLL_DEVICE_CONNECT, &here);
	if (!error)
		error = command(pair.master, TOLL_DEVICE_ACCEPT, &peer);
	if (!error)
		error = use(&pair, mode);
	close(pair.master);
	if (pair.slave >= 0)
		close(pair.slave);
	return error;
}

/* What the network's code returns for missing memory and lost packets. */
static bool is_expected(int error)
{
	static const int expected[] = {
		0, ENOMEM, EFAULT, ENOBUFS, ENFILE, ETIMEDOUT, EADDRINUSE, ECONNABORTED, ECONNRESET,
	};
	size_t i;

	for (i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		if (error == expected[i])
			return true;
	}
	return false;
}

static void test_mode(int file, uint32_t mode)
{
	unsigned int nth, failures = 0;
	bool passed = true;

	for (nth = 1; passed && nth < FAULTS_MAX; nth++) {
		int error;

		faults_set(file, nth);
		error = live(mode);
		/* Each point has failed once. */
		if (faults_are_over(file))
			break;
		failures += error != 0;
		passed &= TAP_CHECK(is_expected(error), "fault %u: %s", nth, strerror(error));
	}
	faults_set(file, 0);
	tap_note("%s: %u faults, %u of them refused a call", mode_name(mode), nth - 1, failures);
	passed &= TAP_CHECK(failures > 0, "no fault reached the caller");
	passed &= TAP_CHECK(live(mode) == 0, "it no longer works");
	result(mode, passed, "each point of failure returns an error");
}

/* Short of memory, TCP drops packets and retransmits them; nothing is lost. */
static void test_shortage(uint32_t mode)
{
	struct pair pair;
	bool passed = pair_open(&pair, AF_INET, mode, 65536);
	pid_t child = fork();

	if (child == 0) {
		char byte;

		/* The peer says when to start. */
		_exit(!(read_all(pair.master, &byte, 1) == 1 &&
			write_filled(pair.master, 2u << 20, 20000, 6)));
	}
	faults_everywhere(3);
	passed &= write_filled(pair.slave, 1, 1, 0) &&
		  read_filled(pair.slave, 2u << 20, 30000, 6);
	faults_everywhere(0);
	passed &= child_passed(child);
	pair_close(&pair);
	result(mode, passed, "bytes arrive while 3 % of allocations fail");
}

/* With IOCB_NOWAIT a call must not wait for memory, so it must not need any. */
static void test_nowait(void)
{
	struct pair pair;
	bool passed = pair_open(&pair, AF_INET, TOLL_DEVICE_ASYNC, 4096);
	char bytes[8] = "meow!";
	struct iovec part = { bytes, 5 };
	ssize_t written, got;
	int write_error, read_error, file;

	file = faults_of_thread_open();
	faults_of_thread(file, true);
	written = pwritev2(pair.master, &part, 1, -1, RWF_NOWAIT);
	write_error = errno;
	got = preadv2(pair.slave, &part, 1, -1, RWF_NOWAIT);
	read_error = errno;
	faults_of_thread(file, false);
	passed &= TAP_CHECK(written == 5, "write: %s", strerror(write_error));
	passed &= TAP_CHECK(got == 5 || (got < 0 && read_error == EAGAIN), "read: %s",
			    strerror(read_error));
	close(file);
	pair_close(&pair);
	tap_result(passed, "async: calls with RWF_NOWAIT allocate nothing");
}

void test_device_faults(void)
{
	int file = faults_open();

	if (file < 0) {
		tap_skip("each point of failure returns an error",
			 "this kernel injects no faults");
		return;
	}
	test_nowait();
	test_mode(file, TOLL_DEVICE_SYNC);
	test_mode(file, TOLL_DEVICE_ASYNC);
	test_shortage(TOLL_DEVICE_SYNC);
	test_shortage(TOLL_DEVICE_ASYNC);
	close(file);
}
