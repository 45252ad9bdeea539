// SPDX-License-Identifier: GPL-2.0
/* Bytes by read, write and splice, in every mode. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "device.h"
#include "tap.h"

#define BUFFER (64u << 10)

static bool is_at_end(int file)
{
	char byte;

	return TAP_CHECK(read(file, &byte, 1) == 0, "no end") &&
	       TAP_CHECK(read(file, &byte, 1) == 0, "no end a second time");
}

/* One process writes, another reads. */
static bool stream(uint32_t mode, int family, uint64_t bytes, size_t written, size_t read)
{
	struct pair pair;
	bool passed;
	pid_t child;

	if (!pair_open(&pair, family, mode, BUFFER))
		return false;
	child = fork();
	if (child == 0) {
		close(pair.slave);
		_exit(!(write_filled(pair.master, bytes, written, bytes) &&
			!command(pair.master, TOLL_DEVICE_FINISH, NULL)));
	}
	close(pair.master);
	passed = read_filled(pair.slave, bytes, read, bytes) && is_at_end(pair.slave);
	passed &= child_passed(child);
	close(pair.slave);
	return TAP_CHECK(passed, "%llu bytes, written by %zu, read by %zu",
			 (unsigned long long)bytes, written, read);
}

static void test_sizes(uint32_t mode)
{
	static const uint64_t sizes[] = { 0, 1, 4, 577, 4095, 4096, 4097, 9695, 262143, 1502860 };
	static const size_t pieces[] = { 512, 4096, 65536, 1u << 20 };
	bool passed = true;
	size_t i;

	for (i = 0; i < 40; i++)
		passed &= stream(mode, i % 2 ? AF_INET6 : AF_INET, sizes[i / 4], pieces[i % 4],
				 pieces[(i + i / 4) % 4]);
	passed &= stream(mode, AF_INET, 5000001, 70001, 65537);
	result(mode, passed, "files of 0 to 5,000,001 bytes arrive whole, then comes the end");
}

static void test_both_ways(uint32_t mode)
{
	struct pair pair;
	bool passed = pair_open(&pair, AF_INET, mode, BUFFER);
	pid_t children[3];
	int i;

	for (i = 0; i < 3; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			if (i == 0)
				passed = write_filled(pair.master, 700000, 5000, 1);
			else if (i == 1)
				passed = write_filled(pair.slave, 600000, 4000, 2);
			else
				passed = read_filled(pair.slave, 700000, 3000, 1);
			_exit(!passed);
		}
	}
	passed &= read_filled(pair.master, 600000, 9000, 2);
	for (i = 0; i < 3; i++)
		passed &= child_passed(children[i]);
	pair_close(&pair);
	result(mode, passed, "both directions run at once");
}

/* Appends pieces until no more fit; returns all bytes. */
static uint64_t fill_up(int file, size_t piece, uint64_t seed, uint64_t done)
{
	char *bytes = malloc(piece);
	ssize_t written;

	do {
		fill(bytes, piece, seed, done);
		written = write(file, bytes, piece);
		if (written > 0)
			done += written;
		/* For a while, bytes that the worker takes make room. */
		if (written < 0 && errno == EAGAIN && poll_events(file, POLLOUT, 200) > 0)
			written = 0;
	} while (written >= 0 && done < 64u << 20);
	if (errno != EAGAIN)
		done = 0;
	free(bytes);
	return done;
}

static void test_nonblocking(uint32_t mode)
{
	const int rounds_max = 1000;
	struct pair pair;
	bool passed = pair_open(&pair, AF_INET, mode, BUFFER);
	uint64_t bytes = 0;
	int rounds = 0;
	char byte;

	set_nonblock(pair.master, true);
	set_nonblock(pair.slave, true);
	passed &= TAP_CHECK(read(pair.slave, &byte, 1) < 0 && errno == EAGAIN, "read");
	passed &= TAP_CHECK(poll_events(pair.slave, POLLIN, 0) == 0, "nothing is there");
	passed &= TAP_CHECK(poll_events(pair.master, POLLOUT, 1000) == POLLOUT, "no room");
	/* On a busy machine the worker may make room later. */
	do {
		bytes = fill_up(pair.master, 20000, 5, bytes);
	} while (poll_events(pair.master, POLLOUT, 0) != 0 && ++rounds < rounds_max);
	passed &= TAP_CHECK(bytes > 0 && bytes < 64u << 20, "%llu bytes went in",
			    (unsigned long long)bytes);
	passed &= TAP_CHECK(rounds < rounds_max, "there is room");
	passed &= TAP_CHECK(poll_events(pair.slave, POLLIN, 5000) == POLLIN, "nothing came");
	set_nonblock(pair.slave, false);
	passed &= read_filled(pair.slave, bytes, 30000, 5);
	passed &= TAP_CHECK(poll_events(pair.master, POLLOUT, 5000) == POLLOUT, "no room again");
	pair_close(&pair);
	result(mode, passed, "O_NONBLOCK and poll show which calls would wait");
}

static void test_ends(uint32_t mode)
{
	struct pair pair;
	bool passed = pair_open(&pair, AF_INET, mode, BUFFER);
	char bytes[100];

	passed &= write_filled(pair.master, 100, 100, 3);
	passed &= TAP_CHECK(!command(pair.master, TOLL_DEVICE_FINISH, NULL), "FINISH");
	passed &= TAP_CHECK(!command(pair.master, TOLL_DEVICE_FINISH, NULL), "FINISH again");
	/* SIGPIPE would end this program. */
	passed &= TAP_CHECK(write(pair.master, bytes, 1) < 0 && errno == EPIPE, "write: %d", errno);
	passed &= TAP_CHECK(poll_events(pair.slave, POLLIN, 5000) & POLLIN, "poll");
	passed &= read_filled(pair.slave, 100, 100, 3) && is_at_end(pair.slave);
	passed &= TAP_CHECK(poll_events(pair.slave, POLLIN, 0) & POLLIN, "poll at the end");
	/* The other direction stays open. */
	passed &= write_filled(pair.slave, 50, 50, 4) && read_filled(pair.master, 50, 50, 4);
	passed &= TAP_CHECK(write(pair.slave, bytes, 0) == 0, "nothing written");
	close(pair.slave);
	passed &= is_at_end(pair.master);
	close(pair.master);
	result(mode, passed, "the end is read after all bytes, and the other direction stays open");
}

static void test_splices(uint32_t mode)
{
	const size_t bytes = 300000;
	char *content = malloc(bytes);
	int source = memfd_create("source", MFD_CLOEXEC);
	struct pair pair;
	bool passed = pair_open(&pair, AF_INET, mode, BUFFER);
	size_t done = 0;
	int pipes[2];
	pid_t child;

	fill(content, bytes, 9, 0);
	passed &= write_all(source, content, bytes);
	passed &= TAP_CHECK(pipe(pipes) == 0, "pipe");
	child = fork();
	if (child == 0) {
		off_t offset = 0;
		ssize_t sent = 1;

		while (sent > 0)
			sent = sendfile(pair.master, source, &offset, bytes);
		_exit(!(sent == 0 && offset == (off_t)bytes &&
			!command(pair.master, TOLL_DEVICE_FINISH, NULL)));
	}
	memset(content, 0, bytes);
	while (passed && done < bytes) {
		ssize_t got = splice(pair.slave, NULL, pipes[1], NULL, 4096 * 8, 0);

		passed = TAP_CHECK(got > 0, "splice: %zd %s", got, strerror(errno)) &&
			 TAP_CHECK(read_all(pipes[0], content + done, got) == (size_t)got, "pipe");
		done += got;
	}
	passed &= is_filled(content, bytes, 9, 0);
	passed &= TAP_CHECK(splice(pair.slave, NULL, pipes[1], NULL, 4096, 0) == 0, "no end");
	passed &= child_passed(child);
	close(pipes[0]);
	close(pipes[1]);
	close(source);
	free(content);
	pair_close(&pair);
	result(mode, passed, "sendfile and splice move bytes in and out");
}

static void test_vectors(uint32_t mode)
{
	struct pair pair;
	bool passed = pair_open(&pair, AF_INET, mode, BUFFER);
	char bytes[9], got[9];
	struct iovec out[3] = { { bytes, 2 }, { bytes + 2, 0 }, { bytes + 2, 7 } };
	struct iovec in[2] = { { got, 4 }, { got + 4, 5 } };

	fill(bytes, 9, 8, 0);
	passed &= TAP_CHECK(writev(pair.master, out, 3) == 9, "writev");
	passed &= TAP_CHECK(poll_events(pair.slave, POLLIN, 5000) == POLLIN, "poll");
	passed &= TAP_CHECK(readv(pair.slave, in, 2) == 9 && is_filled(got, 9, 8, 0), "readv");
	passed &= TAP_CHECK(pread(pair.slave, got, 1, 0) < 0 && errno == ESPIPE, "pread");
	passed &= TAP_CHECK(lseek(pair.slave, 0, SEEK_CUR) < 0 && errno == ESPIPE, "lseek");
	passed &= TAP_CHECK(read(pair.slave, got, 0) == 0, "nothing asked for");
	passed &= TAP_CHECK(preadv2(pair.slave, in, 2, -1, RWF_NOWAIT) < 0 && errno == EAGAIN,
			    "RWF_NOWAIT: %d", errno);
	pair_close(&pair);
	result(mode, passed, "vectored calls work, and file positions are refused");
}

static void test_statistics(uint32_t mode)
{
	struct toll_device_settings settings = {
		.buffer_bytes = BUFFER, .mode = mode, .no_delay = 1,
	};
	struct toll_device_statistics sent = { 0 }, received = { 0 };
	struct pair pair;
	bool passed = pair_open(&pair, AF_INET, mode, BUFFER);

	passed &= TAP_CHECK(!command(pair.master, TOLL_DEVICE_SET_SETTINGS, &settings),
			    "no_delay of a connection");
	passed &= write_filled(pair.master, 123457, 1000, 6);
	passed &= read_filled(pair.slave, 123457, 1000, 6);
	passed &= TAP_CHECK(!command(pair.master, TOLL_DEVICE_FINISH, NULL), "FINISH");
	passed &= is_at_end(pair.slave);
	passed &= TAP_CHECK(!command(pair.master, TOLL_DEVICE_STATISTICS, &sent) &&
			    !command(pair.slave, TOLL_DEVICE_STATISTICS, &received), "statistics");
	passed &= TAP_CHECK(sent.bytes_sent == 123457 && sent.bytes_received == 0 &&
			    sent.sends > 0 && sent.receives == 0, "%llu sent by %llu",
			    (unsigned long long)sent.bytes_sent, (unsigned long long)sent.sends);
	passed &= TAP_CHECK(received.bytes_received == 123457 && received.bytes_sent == 0 &&
			    received.receives > 0 && received.sends == 0, "%llu received by %llu",
			    (unsigned long long)received.bytes_received,
			    (unsigned long long)received.receives);
	pair_close(&pair);
	result(mode, passed, "statistics count what was moved");
}

void test_streams(uint32_t mode)
{
	test_sizes(mode);
	test_both_ways(mode);
	test_nonblocking(mode);
	test_ends(mode);
	test_splices(mode);
	test_vectors(mode);
	test_statistics(mode);
}
