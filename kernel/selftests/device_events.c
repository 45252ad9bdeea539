// SPDX-License-Identifier: GPL-2.0
/* Pollers that came before the connection, and FINISH during a write. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device.h"
#include "random.h"
#include "tap.h"

#define WRITE_BYTES 200000u

static int epoll_with(int device)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, device, &event))
		tap_note("epoll_ctl: %s", strerror(errno));
	return epoll;
}

static uint32_t epoll_events(int epoll, int timeout_ms)
{
	struct epoll_event event = { 0 };

	return epoll_wait(epoll, &event, 1, timeout_ms) == 1 ? event.events : 0;
}

/* Once epoll has found nothing, it checks again only when it is woken. */
static void test_early_epoll(uint32_t mode)
{
	struct toll_device_endpoint here = loopback(AF_INET, 0);
	struct toll_device_endpoint peer = loopback(AF_INET, 0);
	int master = open(MASTER, O_RDWR | O_CLOEXEC);
	int slave = open(SLAVE, O_RDWR | O_CLOEXEC);
	int epolls[2] = { epoll_with(master), epoll_with(slave) };
	bool passed = true;

	passed &= TAP_CHECK(!set_settings(master, 4096, mode), "master");
	passed &= TAP_CHECK(!set_settings(slave, 4096, mode), "slave");
	passed &= TAP_CHECK(!command(master, TOLL_DEVICE_LISTEN, &here), "LISTEN");
	passed &= TAP_CHECK(epoll_events(epolls[0], 0) == 0, "nobody has connected");
	passed &= TAP_CHECK(!command(slave, TOLL_DEVICE_CONNECT, &here), "CONNECT");
	passed &= TAP_CHECK(epoll_events(epolls[0], 5000) == EPOLLIN, "no partner to accept");
	passed &= TAP_CHECK(!command(master, TOLL_DEVICE_ACCEPT, &peer), "ACCEPT");
	passed &= TAP_CHECK(epoll_events(epolls[0], 0) == 0, "nothing to read by the master");
	passed &= TAP_CHECK(epoll_events(epolls[1], 0) == 0, "nothing to read by the slave");
	passed &= write_filled(master, 10, 10, 1) && write_filled(slave, 10, 10, 1);
	passed &= TAP_CHECK(epoll_events(epolls[0], 5000) == EPOLLIN, "master missed bytes");
	passed &= TAP_CHECK(epoll_events(epolls[1], 5000) == EPOLLIN, "slave missed bytes");
	close(epolls[0]);
	close(epolls[1]);
	close(master);
	close(slave);
	result(mode, passed, "an epoll that came before the connection sees its bytes");
}

struct writer {
	int device;
	uint64_t written;
};

/* Writes from memory that faults page by page, so copying takes a while. */
static void *write_until_refused(void *argument)
{
	struct writer *writer = argument;
	char *bytes = mmap(NULL, WRITE_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ssize_t written;

	while ((written = write(writer->device, bytes, WRITE_BYTES)) > 0)
		writer->written += written;
	munmap(bytes, WRITE_BYTES);
	return NULL;
}

static void *read_to_end(void *argument)
{
	struct writer *reader = argument;
	static char bytes[WRITE_BYTES];
	ssize_t got;

	while ((got = read(reader->device, bytes, sizeof(bytes))) > 0)
		reader->written += got;
	return NULL;
}

static void test_finish_beside_write(void)
{
	uint64_t random = 1;
	bool passed = true;
	int turn;

	for (turn = 0; passed && turn < 100; turn++) {
		struct writer writer = { 0 }, reader = { 0 };
		pthread_t threads[2];
		struct pair pair;

		passed &= pair_open(&pair, AF_INET, TOLL_DEVICE_ASYNC, 4096);
		writer.device = pair.master;
		reader.device = pair.slave;
		pthread_create(&threads[0], NULL, write_until_refused, &writer);
		pthread_create(&threads[1], NULL, read_to_end, &reader);
		usleep(random_below(&random, 2000));
		passed &= TAP_CHECK(!command(pair.master, TOLL_DEVICE_FINISH, NULL), "FINISH");
		pthread_join(threads[0], NULL);
		pthread_join(threads[1], NULL);
		passed &= TAP_CHECK(writer.written == reader.written,
				    "turn %d: %llu bytes written, %llu arrived", turn,
				    (unsigned long long)writer.written,
				    (unsigned long long)reader.written);
		pair_close(&pair);
	}
	tap_result(passed, "async: bytes that write accepted arrive, even beside FINISH");
}

void test_events(void)
{
	test_early_epoll(TOLL_DEVICE_SYNC);
	test_early_epoll(TOLL_DEVICE_ASYNC);
	test_finish_beside_write();
}
