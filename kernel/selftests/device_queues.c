// SPDX-License-Identifier: GPL-2.0
/* Asynchronous mode: what is queued, in which order it ends and is reaped. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device.h"
#include "tap.h"

#define ASYNC TOLL_DEVICE_ASYNC
#define PART 16384u
#define PARTS 8u

static void test_order(void)
{
	struct pair pair;
	bool passed = pair_open(&pair, AF_INET, ASYNC, PART * PARTS);
	char *out = map(pair.master, PART * PARTS);
	char *in = map(pair.slave, PART * PARTS);
	uint64_t sequence;
	unsigned int i;

	fill(out, PART * PARTS, 1, 0);
	passed &= TAP_CHECK(reap(pair.slave, &sequence, 0) == -ENOENT, "nothing was queued");
	/* Waits for what has not been sent yet. */
	for (i = 0; i < PARTS; i++)
		passed &= TAP_CHECK(queue(pair.slave, TOLL_DEVICE_RECEIVE, i * PART, PART) == i + 1,
				    "RECEIVE %u", i);
	passed &= TAP_CHECK(reap(pair.slave, &sequence, 20) == -ETIMEDOUT, "nothing came");
	passed &= TAP_CHECK(poll_events(pair.slave, POLLPRI, 0) == 0, "nothing to be reaped");
	for (i = 0; i < PARTS; i++)
		passed &= TAP_CHECK(queue(pair.master, TOLL_DEVICE_SEND, i * PART, PART) == i + 1,
				    "SEND %u", i);
	for (i = 0; i < PARTS; i++) {
		passed &= TAP_CHECK(reap(pair.master, &sequence, 5000) == PART &&
				    sequence == i + 1, "sent %u", i);
		passed &= TAP_CHECK(poll_events(pair.slave, POLLPRI, 5000) == POLLPRI, "poll %u",
				    i);
		passed &= TAP_CHECK(reap(pair.slave, &sequence, 5000) == PART &&
				    sequence == i + 1, "received %u", i);
	}
	passed &= TAP_CHECK(reap(pair.slave, &sequence, 0) == -ENOENT, "all were reaped");
	passed &= is_filled(in, PART * PARTS, 1, 0);
	munmap(out, PART * PARTS);
	munmap(in, PART * PARTS);
	pair_close(&pair);
	tap_result(passed, "async: transfers end in the order of their calls");
}

/* Alternating writes and parts of the buffer are one stream. */
static void test_mixed_sends(void)
{
	struct pair pair;
	bool passed = pair_open(&pair, AF_INET, ASYNC, 65536);
	char *out = map(pair.master, 65536);
	uint64_t position = 0, sequence;
	char bytes[7000];
	pid_t child;
	int i;

	child = fork();
	if (child == 0)
		_exit(!read_filled(pair.slave, 60 * 12000, 5000, 2));
	for (i = 0; passed && i < 60; i++) {
		fill(bytes, 7000, 2, position);
		passed &= write_all(pair.master, bytes, 7000);
		/* A part must not be written again before it is sent. */
		if (i >= 10)
			passed &= TAP_CHECK(reap(pair.master, &sequence, 5000) == 5000, "reap");
		fill(out + i % 10 * 5000, 5000, 2, position + 7000);
		passed &= TAP_CHECK(queue(pair.master, TOLL_DEVICE_SEND, i % 10 * 5000, 5000) ==
				    i + 1, "SEND %d", i);
		position += 12000;
	}
	passed &= TAP_CHECK(!command(pair.master, TOLL_DEVICE_FINISH, NULL), "FINISH");
	passed &= child_passed(child);
	munmap(out, 65536);
	pair_close(&pair);
	tap_result(passed, "async: writes and sends of the buffer keep their order");
}

static void test_full(void)
{
	struct toll_device_statistics statistics = { 0 };
	struct pair pair;
	bool passed = pair_open(&pair, AF_INET, ASYNC, 65536);
	uint64_t sequence;
	int i;

	set_nonblock(pair.slave, true);
	for (i = 0; i < 64; i++)
		passed &= TAP_CHECK(queue(pair.slave, TOLL_DEVICE_RECEIVE, 0, 1) == i + 1,
				    "RECEIVE %d", i);
	passed &= TAP_CHECK(queue(pair.slave, TOLL_DEVICE_RECEIVE, 0, 1) == -EAGAIN, "one more");
	passed &= TAP_CHECK(queue(pair.slave, TOLL_DEVICE_SEND, 0, 1) == -EAGAIN, "one more");
	passed &= TAP_CHECK(reap(pair.slave, &sequence, 0) == -EAGAIN, "reap");
	passed &= write_filled(pair.master, 64, 64, 3);
	set_nonblock(pair.slave, false);
	/* A receive that has ended makes room, but only once it is reaped. */
	passed &= TAP_CHECK(reap(pair.slave, &sequence, 5000) == 1 && sequence == 1, "first");
	passed &= TAP_CHECK(queue(pair.slave, TOLL_DEVICE_SEND, 0, 1) == 65, "room");
	while (poll_events(pair.master, POLLIN, 0) == 0)
		usleep(1000);
	usleep(100000);
	passed &= TAP_CHECK(queue(pair.slave, TOLL_DEVICE_SEND, 0, 1) == -EBUSY, "not reaped");
	for (i = 0; i < 64; i++)
		passed &= TAP_CHECK(reap(pair.slave, &sequence, 5000) == 1, "reap %d", i);
	passed &= TAP_CHECK(reap(pair.slave, &sequence, 0) == -ENOENT, "no more");
	passed &= TAP_CHECK(!command(pair.slave, TOLL_DEVICE_STATISTICS, &statistics) &&
			    statistics.queued_max == 64, "at most %llu",
			    (unsigned long long)statistics.queued_max);
	pair_close(&pair);
	tap_result(passed, "async: the queue has 64 places, each taken until it is reaped");
}

static void test_one_receiver(void)
{
	struct pair pair;
	bool passed = pair_open(&pair, AF_INET, ASYNC, 65536);
	uint64_t sequence;
	char byte;

	passed &= write_filled(pair.master, 10, 10, 1) && read_filled(pair.slave, 10, 10, 1);
	passed &= TAP_CHECK(queue(pair.slave, TOLL_DEVICE_RECEIVE, 0, 1) == -EBUSY, "after read");
	passed &= TAP_CHECK(queue(pair.master, TOLL_DEVICE_RECEIVE, 0, 1) == 1, "RECEIVE");
	passed &= TAP_CHECK(read(pair.master, &byte, 1) < 0 && errno == EBUSY, "after RECEIVE");
	passed &= write_filled(pair.slave, 1, 1, 1);
	passed &= TAP_CHECK(reap(pair.master, &sequence, 5000) == 1, "reap");
	passed &= TAP_CHECK(read(pair.master, &byte, 1) < 0 && errno == EBUSY, "still");
	pair_close(&pair);
	tap_result(passed, "async: read and RECEIVE do not share a connection");
}

static void test_end(void)
{
	struct pair pair;
	bool passed = pair_open(&pair, AF_INET, ASYNC, 65536);
	char *in = map(pair.slave, 65536);
	uint64_t sequence;
	int i;

	for (i = 0; i < 4; i++)
		passed &= TAP_CHECK(queue(pair.slave, TOLL_DEVICE_RECEIVE, i * 1000, 1000) > 0,
				    "RECEIVE %d", i);
	passed &= write_filled(pair.master, 2500, 2500, 4);
	passed &= TAP_CHECK(!command(pair.master, TOLL_DEVICE_FINISH, NULL), "FINISH");
	passed &= TAP_CHECK(queue(pair.master, TOLL_DEVICE_SEND, 0, 1) == -EPIPE, "SEND after it");
	passed &= TAP_CHECK(reap(pair.slave, &sequence, 5000) == 1000, "whole");
	passed &= TAP_CHECK(reap(pair.slave, &sequence, 5000) == 1000, "whole");
	passed &= TAP_CHECK(reap(pair.slave, &sequence, 5000) == 500, "the rest");
	passed &= TAP_CHECK(reap(pair.slave, &sequence, 5000) == 0, "the end");
	passed &= TAP_CHECK(queue(pair.slave, TOLL_DEVICE_RECEIVE, 0, 10) == 5, "one more");
	passed &= TAP_CHECK(reap(pair.slave, &sequence, 5000) == 0, "the end again");
	passed &= is_filled(in, 2500, 4, 0);
	munmap(in, 65536);
	pair_close(&pair);
	tap_result(passed, "async: waiting transfers end with the stream");
}

static void test_zero(void)
{
	struct pair pair;
	bool passed = pair_open(&pair, AF_INET, ASYNC, 512);
	uint64_t sequence;

	passed &= TAP_CHECK(queue(pair.master, TOLL_DEVICE_SEND, 512, 0) == 1, "SEND");
	passed &= TAP_CHECK(queue(pair.slave, TOLL_DEVICE_RECEIVE, 0, 0) == 1, "RECEIVE");
	passed &= TAP_CHECK(reap(pair.master, &sequence, 5000) == 0 && sequence == 1, "sent");
	passed &= TAP_CHECK(reap(pair.slave, &sequence, 5000) == 0 && sequence == 1, "received");
	passed &= TAP_CHECK(queue(pair.master, TOLL_DEVICE_SEND, 1, 512) == -EINVAL, "outside");
	pair_close(&pair);
	tap_result(passed, "async: transfers of 0 bytes end at once");
}

static void test_given_up(void)
{
	bool passed = true;
	int i, turn;

	for (turn = 0; turn < 20; turn++) {
		struct pair pair;

		passed &= pair_open(&pair, AF_INET, ASYNC, 1u << 20);
		set_nonblock(pair.master, true);
		/* Queue more than the socket takes, all in one buffer. */
		for (i = 0; i < 64; i++) {
			queue(pair.master, TOLL_DEVICE_SEND, 0, 1u << 20);
			queue(pair.slave, TOLL_DEVICE_RECEIVE, 0, 100);
		}
		/* A buffer in use is replaced, not freed. */
		passed &= TAP_CHECK(!set_settings(pair.master, 512, ASYNC), "resize");
		if (turn % 2)
			usleep(turn * 300);
		pair_close(&pair);
	}
	tap_result(passed, "async: a file is closed with transfers under way");
}

void test_queues(void)
{
	test_order();
	test_mixed_sends();
	test_full();
	test_one_receiver();
	test_end();
	test_zero();
	test_given_up();
}
