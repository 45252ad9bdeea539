// SPDX-License-Identifier: GPL-2.0
/* How connections are made, and how they fail. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device.h"
#include "tap.h"

static int open_end(const char *node)
{
	return open(node, O_RDWR | O_CLOEXEC);
}

static void test_families(void)
{
	static const int families[] = { AF_INET, AF_INET6 };
	bool passed = true;
	int i;

	for (i = 0; i < 2; i++) {
		struct toll_device_endpoint here = loopback(families[i], 0);
		struct toll_device_endpoint expected = here;
		struct toll_device_endpoint peer = { .timeout_ms = 20000 };
		int master = open_end(MASTER);
		int slave = open_end(SLAVE);
		uint16_t port;

		passed &= TAP_CHECK(!command(master, TOLL_DEVICE_LISTEN, &here), "listen");
		passed &= TAP_CHECK(here.port != 0, "no port was chosen");
		port = here.port;
		expected.port = port;
		passed &= TAP_CHECK(!memcmp(&here, &expected, sizeof(here)), "more has changed");
		passed &= TAP_CHECK(!command(slave, TOLL_DEVICE_CONNECT, &here), "connect");
		passed &= TAP_CHECK(!command(master, TOLL_DEVICE_ACCEPT, &peer), "accept");
		expected.port = peer.port;
		passed &= TAP_CHECK(peer.port && peer.port != port, "the partner's port is %u",
				    peer.port);
		passed &= TAP_CHECK(!memcmp(&peer, &expected, sizeof(peer)),
				    "the partner is somewhere else");
		passed &= write_filled(master, 1000, 1000, i) && read_filled(slave, 1000, 1000, i);
		close(master);
		close(slave);
	}
	tap_result(passed, "the ends join over IPv4 and over IPv6");
}

static void test_order_of_calls(void)
{
	struct toll_device_endpoint here = loopback(AF_INET, 0);
	struct toll_device_endpoint peer = loopback(AF_INET, 0);
	struct toll_device_completion completion = { 0 };
	int master = open_end(MASTER);
	int other = open_end(MASTER);
	int slave = open_end(SLAVE);
	bool passed = true;
	char byte = 0;

	passed &= TAP_CHECK(write(master, &byte, 1) < 0 && errno == ENOTCONN, "write");
	passed &= TAP_CHECK(read(slave, &byte, 1) < 0 && errno == ENOTCONN, "read");
	passed &= TAP_CHECK(transfer(master, TOLL_DEVICE_SEND, 0, 1) == -ENOTCONN, "SEND");
	passed &= TAP_CHECK(transfer(slave, TOLL_DEVICE_RECEIVE, 0, 1) == -ENOTCONN, "RECEIVE");
	passed &= TAP_CHECK(command(master, TOLL_DEVICE_FINISH, NULL) == ENOTCONN, "FINISH");
	passed &= TAP_CHECK(command(master, TOLL_DEVICE_REAP, &completion) == ENOTCONN, "REAP");
	passed &= TAP_CHECK(poll_events(slave, POLLIN | POLLOUT, 0) == POLLHUP, "poll");
	passed &= TAP_CHECK(command(master, TOLL_DEVICE_ACCEPT, &peer) == EINVAL, "no LISTEN yet");
	passed &= TAP_CHECK(!command(master, TOLL_DEVICE_LISTEN, &here), "LISTEN");
	passed &= TAP_CHECK(command(master, TOLL_DEVICE_LISTEN, &here) == EBUSY, "LISTEN again");
	passed &= TAP_CHECK(command(other, TOLL_DEVICE_LISTEN, &here) == EADDRINUSE, "same port");
	passed &= TAP_CHECK(poll_events(master, POLLIN, 0) == 0, "nobody is there");
	passed &= TAP_CHECK(!command(slave, TOLL_DEVICE_CONNECT, &here), "CONNECT");
	passed &= TAP_CHECK(command(slave, TOLL_DEVICE_CONNECT, &here) == EISCONN, "again");
	passed &= TAP_CHECK(poll_events(master, POLLIN, 5000) == POLLIN, "somebody is there");
	passed &= TAP_CHECK(!command(master, TOLL_DEVICE_ACCEPT, &peer), "ACCEPT");
	passed &= TAP_CHECK(command(master, TOLL_DEVICE_ACCEPT, &peer) == EISCONN, "again");
	passed &= TAP_CHECK(command(master, TOLL_DEVICE_REAP, &completion) == ENOENT, "REAP");
	passed &= TAP_CHECK(set_settings(master, 65536, TOLL_DEVICE_ASYNC) == EBUSY, "mode");
	/* The port is free again as soon as the peer has connected. */
	passed &= TAP_CHECK(!command(other, TOLL_DEVICE_LISTEN, &here), "the port stays taken");
	close(master);
	close(other);
	close(slave);
	tap_result(passed, "calls out of order are refused");
}

static void test_roles(void)
{
	struct toll_device_endpoint here = loopback(AF_INET, 0);
	int master = open_end(MASTER);
	int slave = open_end(SLAVE);
	bool passed = true;

	passed &= TAP_CHECK(command(master, TOLL_DEVICE_CONNECT, &here) == ENOTTY, "a master");
	passed &= TAP_CHECK(command(slave, TOLL_DEVICE_LISTEN, &here) == ENOTTY, "a slave");
	passed &= TAP_CHECK(command(slave, TOLL_DEVICE_ACCEPT, &here) == ENOTTY, "a slave");
	close(master);
	close(slave);
	tap_result(passed, "a master does not connect and a slave does not listen");
}

static void test_addresses(void)
{
	struct toll_device_endpoint good = loopback(AF_INET, 1);
	struct toll_device_endpoint cases[7];
	int expected[7] = { EAFNOSUPPORT, EAFNOSUPPORT, EINVAL, EINVAL,
			    EINVAL, EINVAL, ECONNREFUSED };
	int slave = open_end(SLAVE);
	bool passed = true;
	int i;

	for (i = 0; i < 7; i++)
		cases[i] = good;
	cases[0].family = 0;
	cases[1].family = AF_UNIX;
	cases[2].address[4] = 1;
	cases[3].scope_id = 1;
	cases[4].reserved = 1;
	cases[5].port = 0;
	for (i = 0; i < 7; i++) {
		int error = command(slave, TOLL_DEVICE_CONNECT, &cases[i]);

		passed &= TAP_CHECK(error == expected[i], "case %d: error %d, not %d", i, error,
				    expected[i]);
	}
	close(slave);
	tap_result(passed, "addresses that the header does not allow are refused");
}

/* A listener that accepts no more connections, and does not say so. */
static int open_full_listener(struct toll_device_endpoint *there, int others[4])
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int i;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 0) ||
	    getsockname(listener, (struct sockaddr *)&address, &length))
		return -1;
	for (i = 0; i < 4; i++) {
		others[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		connect(others[i], (struct sockaddr *)&address, length);
	}
	*there = loopback(AF_INET, ntohs(address.sin_port));
	return listener;
}

static void test_timeouts(void)
{
	struct toll_device_endpoint here = loopback(AF_INET, 0);
	struct toll_device_endpoint there = { 0 };
	int master = open_end(MASTER);
	int slave = open_end(SLAVE);
	int others[4], listener, i;
	bool passed = true;

	passed &= TAP_CHECK(!command(master, TOLL_DEVICE_LISTEN, &here), "listen");
	here.timeout_ms = 50;
	passed &= TAP_CHECK(command(master, TOLL_DEVICE_ACCEPT, &here) == ETIMEDOUT, "accept");
	set_nonblock(master, true);
	here.timeout_ms = 0;
	passed &= TAP_CHECK(command(master, TOLL_DEVICE_ACCEPT, &here) == EAGAIN, "nonblocking");

	listener = open_full_listener(&there, others);
	there.timeout_ms = 50;
	passed &= TAP_CHECK(listener >= 0 &&
			    command(slave, TOLL_DEVICE_CONNECT, &there) == ETIMEDOUT, "connect");
	for (i = 0; i < 4; i++)
		close(others[i]);
	close(listener);
	/* Both sockets still work. */
	set_nonblock(master, false);
	passed &= TAP_CHECK(!command(slave, TOLL_DEVICE_CONNECT, &here), "connect after all");
	passed &= TAP_CHECK(!command(master, TOLL_DEVICE_ACCEPT, &here), "accept after all");
	passed &= write_filled(slave, 5, 5, 1) && read_filled(master, 5, 5, 1);
	close(master);
	close(slave);
	tap_result(passed, "a wait in vain times out, and can be repeated");
}

static void drop_capability(int capability)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	syscall(SYS_capget, &header, data);
	data[0].effective &= ~(1u << capability);
	syscall(SYS_capset, &header, data);
}

static void test_privileged_port(void)
{
	struct toll_device_endpoint here = loopback(AF_INET, 80);
	int master = open_end(MASTER);
	bool passed = true;
	pid_t child = fork();

	if (child == 0) {
		drop_capability(CAP_NET_BIND_SERVICE);
		_exit(command(master, TOLL_DEVICE_LISTEN, &here) == EACCES ? 0 : 1);
	}
	passed &= child_passed(child);
	passed &= TAP_CHECK(!command(master, TOLL_DEVICE_LISTEN, &here), "root may");
	close(master);
	tap_result(passed, "ports below 1024 need CAP_NET_BIND_SERVICE");
}

#define PAIRS 8

/* Alternates pieces of all pairs, so that mixed-up bytes are found. */
static void test_several(void)
{
	struct pair pairs[PAIRS];
	bool passed = true;
	char bytes[3000];
	int i, turn;

	for (i = 0; i < PAIRS; i++)
		passed &= pair_open(&pairs[i], i % 2 ? AF_INET6 : AF_INET, i % 3, 4096 * (i + 1));
	for (turn = 0; passed && turn < 20; turn++) {
		for (i = 0; i < PAIRS; i++) {
			fill(bytes, 3000, i, turn);
			passed &= write_all(pairs[i].master, bytes, 3000);
			fill(bytes, 3000, i + 100, turn);
			passed &= write_all(pairs[i].slave, bytes, 3000);
		}
		for (i = PAIRS - 1; i >= 0; i--) {
			passed &= read_all(pairs[i].slave, bytes, 3000) == 3000 &&
				  is_filled(bytes, 3000, i, turn);
			passed &= read_all(pairs[i].master, bytes, 3000) == 3000 &&
				  is_filled(bytes, 3000, i + 100, turn);
		}
	}
	for (i = 0; i < PAIRS; i++)
		pair_close(&pairs[i]);
	tap_result(passed, "eight connections at once do not mix their bytes, in both directions");
}

/* Port and connection belong to a file, whichever end closes first. */
static void test_repeated(void)
{
	struct toll_device_endpoint here = loopback(AF_INET, 0);
	bool passed = true;
	int i;

	for (i = 0; passed && i < 50; i++) {
		struct toll_device_endpoint peer = loopback(AF_INET, 0);
		int master = open_end(MASTER);
		int slave = open_end(SLAVE);

		passed &= TAP_CHECK(!command(master, TOLL_DEVICE_LISTEN, &here), "listen %d", i);
		passed &= TAP_CHECK(!command(slave, TOLL_DEVICE_CONNECT, &here), "connect %d", i);
		passed &= TAP_CHECK(!command(master, TOLL_DEVICE_ACCEPT, &peer), "accept %d", i);
		passed &= write_filled(master, 100, 100, i) && read_filled(slave, 100, 100, i);
		close(i % 2 ? master : slave);
		close(i % 2 ? slave : master);
	}
	tap_result(passed, "a port can be used again at once, fifty times");
}

void test_connections(void)
{
	test_families();
	test_order_of_calls();
	test_roles();
	test_addresses();
	test_timeouts();
	test_privileged_port();
	test_several();
	test_repeated();
}
