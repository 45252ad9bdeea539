// SPDX-License-Identifier: GPL-2.0
/* Arguments that no program should pass. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "device.h"
#include "tap.h"

static void test_commands(void)
{
	static const unsigned long unknown[] = {
		0, 1, _IO(TOLL_DEVICE_MAGIC, 11), _IO(TOLL_DEVICE_MAGIC, 0), 0x12345677, 0x12345679,
		_IOR(TOLL_DEVICE_MAGIC, 1, struct toll_device_settings),
		_IOWR(TOLL_DEVICE_MAGIC, 5, char), 0xffffffff,
	};
	struct toll_device_transfer request = { 0 };
	const char *nodes[] = { MASTER, SLAVE };
	bool passed = true;
	size_t i;

	for (i = 0; i < 2 * sizeof(unknown) / sizeof(*unknown); i++) {
		int device = open(nodes[i % 2], O_RDWR | O_CLOEXEC);

		passed &= TAP_CHECK(command(device, unknown[i / 2], &request) == ENOTTY, "%#lx",
				    unknown[i / 2]);
		close(device);
	}
	tap_result(passed, "the devices know their commands and no others");
}

/* Every command on an address that cannot be read, or cannot be written. */
static bool refuses_address(const struct pair *pair, void *address)
{
	static const unsigned long commands[] = {
		TOLL_DEVICE_GET_SETTINGS, TOLL_DEVICE_SET_SETTINGS, TOLL_DEVICE_LISTEN,
		TOLL_DEVICE_ACCEPT,	  TOLL_DEVICE_CONNECT,	    TOLL_DEVICE_SEND,
		TOLL_DEVICE_RECEIVE,	  TOLL_DEVICE_REAP,	    TOLL_DEVICE_PAGE,
		TOLL_DEVICE_STATISTICS,
	};
	bool passed = true;
	size_t i;

	for (i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		bool slave = commands[i] == TOLL_DEVICE_CONNECT;
		int error = command(slave ? pair->slave : pair->master, commands[i], address);

		passed &= TAP_CHECK(error == EFAULT, "%#lx at %p: error %d", commands[i], address,
				    error);
	}
	return passed;
}

static void test_addresses(uint32_t mode)
{
	struct pair pair;
	bool passed = pair_open(&pair, AF_INET, mode, 65536);
	/* One page of the caller's, with nothing after it. */
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *kernel = (char *)0xffffffff81000000ull;
	struct toll_device_page request = { .address = (uintptr_t)page };
	ssize_t got;
	char byte;

	munmap(page + 4096, 4096);
	passed &= refuses_address(&pair, NULL);
	passed &= refuses_address(&pair, kernel);
	passed &= refuses_address(&pair, (void *)0xffff888000000000ull);
	passed &= refuses_address(&pair, (void *)0x8000000000000000ull);
	passed &= refuses_address(&pair, page + 4096 - 15);
	passed &= TAP_CHECK(write(pair.master, kernel, 100) < 0 && errno == EFAULT, "write");
	passed &= TAP_CHECK(write(pair.master, page + 4096, 100) < 0 && errno == EFAULT, "none");
	/* All of it or, if it is copied by pages, what can be read of it. */
	memset(page, 7, 4096);
	got = write(pair.master, page + 4000, 200);
	passed &= TAP_CHECK(got == 96 || (got < 0 && errno == EFAULT), "cut short: %zd", got);
	passed &= TAP_CHECK(write(pair.master, page + 4090, 6) == 6, "up to the end");
	passed &= TAP_CHECK(poll_events(pair.slave, POLLIN, 5000) == POLLIN, "nothing came");
	passed &= TAP_CHECK(read(pair.slave, kernel, 5) < 0 && errno == EFAULT, "read");
	got = read(pair.slave, page + 4095, 5);
	passed &= TAP_CHECK(got == 1 || (got < 0 && errno == EFAULT), "little room: %zd", got);
	passed &= TAP_CHECK(read(pair.slave, &byte, 1) == 1 && byte == 7, "bytes are gone");
	memcpy(page, &request, sizeof(request));
	mprotect(page, 4096, PROT_READ);
	passed &= TAP_CHECK(command(pair.master, TOLL_DEVICE_PAGE, page) == EFAULT, "no room");
	munmap(page, 4096);
	pair_close(&pair);
	result(mode, passed, "only memory of the caller's own is read and written");
}

static void test_reserved(void)
{
	struct toll_device_settings settings = { .buffer_bytes = 512 };
	struct toll_device_settings wrong;
	struct toll_device_endpoint endpoint = loopback(AF_INET, 0);
	struct toll_device_completion completion = { .reserved = 1 };
	int master = open(MASTER, O_RDWR | O_CLOEXEC);
	int slave = open(SLAVE, O_RDWR | O_CLOEXEC);
	bool passed = true;

	wrong = settings;
	wrong.reserved = 1;
	passed &= TAP_CHECK(command(master, TOLL_DEVICE_SET_SETTINGS, &wrong) == EINVAL, "it");
	wrong = settings;
	wrong.mode = 3;
	passed &= TAP_CHECK(command(master, TOLL_DEVICE_SET_SETTINGS, &wrong) == EINVAL, "mode");
	wrong = settings;
	wrong.no_delay = 2;
	passed &= TAP_CHECK(command(master, TOLL_DEVICE_SET_SETTINGS, &wrong) == EINVAL, "delay");
	passed &= TAP_CHECK(!command(master, TOLL_DEVICE_SET_SETTINGS, &settings), "right ones");
	endpoint.reserved = 1;
	passed &= TAP_CHECK(command(master, TOLL_DEVICE_LISTEN, &endpoint) == EINVAL, "LISTEN");
	passed &= TAP_CHECK(command(master, TOLL_DEVICE_ACCEPT, &endpoint) == EINVAL, "ACCEPT");
	passed &= TAP_CHECK(command(slave, TOLL_DEVICE_CONNECT, &endpoint) == EINVAL, "CONNECT");
	passed &= TAP_CHECK(command(master, TOLL_DEVICE_REAP, &completion) == EINVAL, "REAP");
	close(master);
	close(slave);
	tap_result(passed, "reserved fields and values out of range are refused");
}

void test_refusals(void)
{
	test_commands();
	test_addresses(TOLL_DEVICE_SYNC);
	test_addresses(TOLL_DEVICE_ASYNC);
	test_reserved();
}
