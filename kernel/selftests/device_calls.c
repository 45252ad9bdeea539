// SPDX-License-Identifier: GPL-2.0
/* Any call with any arguments. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device.h"
#include "device_calls.h"
#include "random.h"
#include "tap.h"

/* Ports that masters may have, so that slaves can find some. */
#define PORT 4000
#define PORTS 16

static uint64_t below(struct caller *caller, uint64_t bound)
{
	return random_below(&caller->random, bound);
}

static bool one_in(struct caller *caller, uint64_t bound)
{
	return below(caller, bound) == 0;
}

/* Nonblocking: nothing would wake a single thread. */
int open_file(int index)
{
	return open(index % 2 ? SLAVE : MASTER, O_RDWR | O_CLOEXEC | O_NONBLOCK);
}

static uint64_t edge64(struct caller *caller)
{
	static const uint64_t edges[] = {
		0, 1, 511, 512, 4095, 4096, 65535, 65536, 65537, 1u << 24, (1u << 24) + 1,
		INT32_MAX, UINT32_MAX, 1ull << 32, 1ull << 63, UINT64_MAX,
	};

	return one_in(caller, 8) ? random_next(&caller->random) :
	       one_in(caller, 2) ? below(caller, 5000) :
				   edges[below(caller, sizeof(edges) / sizeof(*edges))];
}

static uint64_t random_address(struct caller *caller)
{
	switch (below(caller, 6)) {
	case 0:
		return 0;
	case 1:
		return 0xffffffff81000000ull + below(caller, 1u << 24);
	case 2:
		return 0xffff888000000000ull + below(caller, 1u << 24);
	case 3:
		return random_next(&caller->random);
	case 4:
		return 0x7ffffffff000ull - below(caller, 64);
	default:
		return (uintptr_t)caller->page + below(caller, 2 * 4096);
	}
}

static int call_settings(struct caller *caller, int file)
{
	struct toll_device_settings settings = {
		.buffer_bytes = one_in(caller, 3) ? edge64(caller) : 512 + below(caller, 20000),
		.mode = one_in(caller, 16) ? edge64(caller) : below(caller, 3),
		.no_delay = one_in(caller, 16) ? edge64(caller) : below(caller, 2),
		.reserved = one_in(caller, 64),
	};

	if (one_in(caller, 4))
		return command(file, TOLL_DEVICE_GET_SETTINGS, &settings);
	return command(file, TOLL_DEVICE_SET_SETTINGS, &settings);
}

static int call_endpoint(struct caller *caller, int file)
{
	static const unsigned long commands[] = {
		TOLL_DEVICE_LISTEN, TOLL_DEVICE_ACCEPT, TOLL_DEVICE_CONNECT,
	};
	struct toll_device_endpoint endpoint =
		loopback(one_in(caller, 3) ? AF_INET6 : AF_INET, PORT + below(caller, PORTS));

	/* Limits the wait of CONNECT, the only one that O_NONBLOCK leaves. */
	endpoint.timeout_ms = 1 + below(caller, 3);
	if (one_in(caller, 16))
		endpoint.family = edge64(caller);
	if (one_in(caller, 32))
		endpoint.address[below(caller, 16)] = 127;
	if (one_in(caller, 64))
		endpoint.reserved = 1;
	if (one_in(caller, 64))
		endpoint.scope_id = edge64(caller);
	return command(file, commands[below(caller, 3)], &endpoint);
}

static int call_transfer(struct caller *caller, int file)
{
	struct toll_device_transfer request = {
		.offset = one_in(caller, 2) ? 0 : edge64(caller),
		.length = edge64(caller),
		.done = random_next(&caller->random),
		.sequence = random_next(&caller->random),
	};
	struct toll_device_completion completion = {
		.timeout_ms = below(caller, 3),
		.reserved = one_in(caller, 64),
	};

	switch (below(caller, 8)) {
	case 0:
		return ioctl(file, TOLL_DEVICE_PUBLISHED_TRANSFER, request.length) < 0 ? errno : 0;
	case 1:
		return one_in(caller, 64) ? command(file, TOLL_DEVICE_FINISH, NULL) : 0;
	case 2:
	case 3:
		return command(file, TOLL_DEVICE_REAP, &completion);
	case 4:
	case 5:
		return command(file, TOLL_DEVICE_SEND, &request);
	default:
		return command(file, TOLL_DEVICE_RECEIVE, &request);
	}
}

static int call_bytes(struct caller *caller, int file)
{
	char bytes[5000];
	void *address = one_in(caller, 8) ? (void *)random_address(caller) : bytes;
	size_t count = one_in(caller, 32) ? edge64(caller) : below(caller, sizeof(bytes));
	struct pollfd request = { .fd = file, .events = POLLIN | POLLOUT | POLLPRI };

	if (address == bytes && count > sizeof(bytes))
		count = sizeof(bytes);
	switch (below(caller, 3)) {
	case 0:
		memset(bytes, 1, sizeof(bytes));
		return write(file, address, count) < 0 ? errno : 0;
	case 1:
		/* At most the page that may be the caller's. */
		if (address != bytes && count > 8192)
			count = 8192;
		return read(file, address, count) < 0 ? errno : 0;
	default:
		return poll(&request, 1, 0) < 0 ? errno : 0;
	}
}

static int call_mapping(struct caller *caller, int file)
{
	uint64_t offset = one_in(caller, 2) ? 0 : edge64(caller) & ~4095ull;
	uint64_t bytes = one_in(caller, 4) ? edge64(caller) : below(caller, 20000);
	char *mapped;

	if (caller->mapped) {
		/* Reads and writes of mapped memory never fail. */
		caller->mapped[below(caller, caller->mapped_bytes)]++;
		munmap(caller->mapped, caller->mapped_bytes);
		caller->mapped = NULL;
	}
	/* Any protection, except one that could not be written above. */
	mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE | (one_in(caller, 16) ? PROT_EXEC : 0),
		      one_in(caller, 8) ? MAP_PRIVATE : MAP_SHARED, file, offset);
	if (mapped == MAP_FAILED)
		return errno;
	caller->mapped = mapped;
	caller->mapped_bytes = bytes;
	return 0;
}

static int call_wild(struct caller *caller, int file)
{
	struct toll_device_page page = {
		.address = random_address(caller),
		.reserved = one_in(caller, 64),
	};

	switch (below(caller, 4)) {
	case 0:
		return command(file, TOLL_DEVICE_PAGE, &page);
	case 1:
		return command(file, random_next(&caller->random),
			       (void *)random_address(caller));
	default:
		return command(file, _IOC(below(caller, 4), TOLL_DEVICE_MAGIC, below(caller, 12),
					  8 * below(caller, 9)),
			       (void *)random_address(caller));
	}
}

/* Puts a new file in place of one that others may be using. */
static int call_reopen(struct caller *caller, int index)
{
	int file;

	if (!one_in(caller, 4))
		return 0;
	file = open_file(index);
	if (file < 0)
		return errno;
	/* Also closes the old one. */
	dup3(file, caller->files[index], O_CLOEXEC);
	close(file);
	return 0;
}

static bool is_expected(int error)
{
	static const int expected[] = {
		0,	    EAGAIN,	  EFAULT,    EINVAL,   ENOTTY,	   ENOMEM,    ENOTCONN,
		EISCONN,    EBUSY,	  ENOENT,    EPIPE,    ECONNRESET, ETIMEDOUT, EADDRINUSE,
		ENODEV,	    ECONNREFUSED, EOVERFLOW, EACCES,   EOPNOTSUPP, ENETUNREACH,
		EAFNOSUPPORT, EADDRNOTAVAIL, ECONNABORTED, EHOSTUNREACH, EINTR,
	};
	size_t i;

	for (i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		if (error == expected[i])
			return true;
	}
	return false;
}

bool random_call(struct caller *caller)
{
	int index = below(caller, FILES);
	int file = caller->files[index];
	unsigned int kind = below(caller, 32);
	int error;

	if (kind < 4)
		error = call_endpoint(caller, file);
	else if (kind < 6)
		error = call_settings(caller, file);
	else if (kind < 14)
		error = call_transfer(caller, file);
	else if (kind < 24)
		error = call_bytes(caller, file);
	else if (kind < 27)
		error = call_mapping(caller, file);
	else if (kind < 31)
		error = call_wild(caller, file);
	else
		error = call_reopen(caller, index);
	return TAP_CHECK(is_expected(error), "call of kind %u: %s", kind, strerror(error));
}

void test_device_calls(uint64_t seed, unsigned long calls)
{
	int files[FILES];
	struct caller caller = { .random = seed, .files = files };
	unsigned long call;
	bool passed = true;
	int i;

	caller.page = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0);
	munmap(caller.page + 4096, 4096);
	for (i = 0; i < FILES; i++)
		files[i] = open_file(i);
	tap_note("%lu random calls, --seed %llu", calls, (unsigned long long)seed);
	for (call = 0; passed && call < calls; call++)
		passed = random_call(&caller);
	if (!passed)
		tap_note("call %lu failed", call - 1);
	if (caller.mapped)
		munmap(caller.mapped, caller.mapped_bytes);
	for (i = 0; i < FILES; i++)
		close(files[i]);
	munmap(caller.page, 4096);
	tap_result(passed, "random calls are answered as the header says");
}
