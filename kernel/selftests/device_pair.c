// SPDX-License-Identifier: GPL-2.0
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device.h"
#include "tap.h"

/* A guest starts with it down. */
void loopback_up(void)
{
	struct ifreq request = { .ifr_name = "lo" };
	int file = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (file < 0 || ioctl(file, SIOCGIFFLAGS, &request) < 0) {
		tap_note("cannot look at lo: %s", strerror(errno));
		exit(1);
	}
	request.ifr_flags |= IFF_UP;
	if (ioctl(file, SIOCSIFFLAGS, &request) < 0) {
		tap_note("cannot bring lo up: %s", strerror(errno));
		exit(1);
	}
	close(file);
}

struct toll_device_endpoint loopback(int family, uint16_t port)
{
	struct toll_device_endpoint endpoint = {
		.family = family,
		.port = port,
		.timeout_ms = 20000,
	};

	if (family == AF_INET6) {
		endpoint.address[15] = 1;
	} else {
		endpoint.address[0] = 127;
		endpoint.address[3] = 1;
	}
	return endpoint;
}

int command(int device, unsigned long number, void *argument)
{
	return ioctl(device, number, argument) < 0 ? errno : 0;
}

int set_settings(int device, uint32_t buffer_bytes, uint32_t mode)
{
	struct toll_device_settings settings = {
		.buffer_bytes = buffer_bytes,
		.mode = mode,
	};

	return command(device, TOLL_DEVICE_SET_SETTINGS, &settings);
}

int set_nonblock(int device, bool nonblock)
{
	return fcntl(device, F_SETFL, O_RDWR | (nonblock ? O_NONBLOCK : 0)) < 0 ? errno : 0;
}

/* The backlog lets the slave connect before the master has accepted. */
static int join(struct pair *pair, int family)
{
	struct toll_device_endpoint here = loopback(family, 0);
	struct toll_device_endpoint peer = loopback(family, 0);
	int error = command(pair->master, TOLL_DEVICE_LISTEN, &here);

	if (error)
		return error;
	error = command(pair->slave, TOLL_DEVICE_CONNECT, &here);
	if (error)
		return error;
	return command(pair->master, TOLL_DEVICE_ACCEPT, &peer);
}

bool pair_open(struct pair *pair, int family, uint32_t mode, uint32_t buffer_bytes)
{
	int error;

	pair->master = open(MASTER, O_RDWR | O_CLOEXEC);
	pair->slave = open(SLAVE, O_RDWR | O_CLOEXEC);
	if (!TAP_CHECK(pair->master >= 0 && pair->slave >= 0, "open: %s", strerror(errno)))
		return false;
	error = set_settings(pair->master, buffer_bytes, mode);
	if (!error)
		error = set_settings(pair->slave, buffer_bytes, mode);
	if (!error)
		error = join(pair, family);
	return TAP_CHECK(!error, "cannot join: %s", strerror(error));
}

void pair_close(struct pair *pair)
{
	close(pair->master);
	close(pair->slave);
}

int64_t transfer(int device, unsigned long number, uint64_t offset, uint64_t length)
{
	struct toll_device_transfer request = { .offset = offset, .length = length };

	if (ioctl(device, number, &request) < 0)
		return -errno;
	return request.done;
}

int64_t queue(int device, unsigned long number, uint64_t offset, uint64_t length)
{
	struct toll_device_transfer request = { .offset = offset, .length = length };

	if (ioctl(device, number, &request) < 0)
		return -errno;
	return request.done ? -ERANGE : (int64_t)request.sequence;
}

int64_t reap(int device, uint64_t *sequence, uint32_t timeout_ms)
{
	struct toll_device_completion completion = { .timeout_ms = timeout_ms };

	*sequence = 0;
	if (ioctl(device, TOLL_DEVICE_REAP, &completion) < 0)
		return -errno;
	*sequence = completion.sequence;
	return completion.result;
}

void *map(int device, size_t bytes)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, device, 0);
}

/* Each byte depends on seed and position, in blocks of 8. */
static uint8_t byte_at(uint64_t seed, uint64_t position)
{
	uint64_t z = (seed + position / 8 + 1) * 0x9e3779b97f4a7c15ull;

	z ^= z >> 29;
	return z >> (position % 8 * 8);
}

void fill(void *bytes, size_t count, uint64_t seed, uint64_t position)
{
	size_t i;

	for (i = 0; i < count; i++)
		((uint8_t *)bytes)[i] = byte_at(seed, position + i);
}

bool is_filled(const void *bytes, size_t count, uint64_t seed, uint64_t position)
{
	size_t i;

	for (i = 0; i < count; i++) {
		uint8_t byte = ((const uint8_t *)bytes)[i];

		if (byte != byte_at(seed, position + i))
			return TAP_CHECK(false, "byte %zu of %zu at %llu is %#x", i, count,
					 (unsigned long long)position, byte);
	}
	return true;
}

bool write_all(int file, const void *bytes, size_t count)
{
	size_t done = 0;

	while (done < count) {
		ssize_t written = write(file, (const char *)bytes + done, count - done);

		if (written <= 0)
			return TAP_CHECK(false, "write: %zd, %s", written, strerror(errno));
		done += written;
	}
	return true;
}

size_t read_all(int file, void *bytes, size_t count)
{
	size_t done = 0;

	while (done < count) {
		ssize_t got = read(file, (char *)bytes + done, count - done);

		if (got < 0)
			tap_note("read: %s", strerror(errno));
		if (got <= 0)
			break;
		done += got;
	}
	return done;
}

bool write_filled(int file, uint64_t bytes, size_t piece, uint64_t seed)
{
	char *buffer = malloc(piece);
	bool passed = buffer;
	uint64_t done;

	for (done = 0; passed && done < bytes; done += piece) {
		size_t count = bytes - done < piece ? bytes - done : piece;

		fill(buffer, count, seed, done);
		passed = write_all(file, buffer, count);
	}
	free(buffer);
	return passed;
}

bool read_filled(int file, uint64_t bytes, size_t piece, uint64_t seed)
{
	char *buffer = malloc(piece);
	bool passed = buffer;
	uint64_t done;

	for (done = 0; passed && done < bytes; done += piece) {
		size_t count = bytes - done < piece ? bytes - done : piece;
		size_t got = read_all(file, buffer, count);

		passed = TAP_CHECK(got == count, "%zu of %zu bytes at %llu", got, count,
				   (unsigned long long)done) &&
			 is_filled(buffer, count, seed, done);
	}
	free(buffer);
	return passed;
}

int poll_events(int file, short events, int timeout_ms)
{
	struct pollfd request = { .fd = file, .events = events };

	return poll(&request, 1, timeout_ms) < 0 ? -errno : request.revents;
}

bool child_passed(pid_t child)
{
	int status;

	if (child < 0 || waitpid(child, &status, 0) != child)
		return TAP_CHECK(false, "no child: %s", strerror(errno));
	return TAP_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child: status %#x",
			 status);
}

const char *mode_name(uint32_t mode)
{
	static const char *const names[] = { "sync", "fasync", "async" };

	return names[mode];
}

void result(uint32_t mode, bool passed, const char *what)
{
	char name[160];

	snprintf(name, sizeof(name), "%s: %s", mode_name(mode), what);
	tap_result(passed, name);
}
