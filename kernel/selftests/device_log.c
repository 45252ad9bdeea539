// SPDX-License-Identifier: GPL-2.0
/* The lines that the devices write to the kernel log, as published. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "device.h"
#include "log.h"
#include "tap.h"

#define FRAME 0x000ffffffffff000ull
/* The report's port. */
#define PORT 2325
/* The kernel drops further lines of a kind for this long. */
#define LIMIT_SECONDS 6

static bool log_has(const char *log, const char *line)
{
	return TAP_CHECK(log_count(log, line) > 0, "no line %s in %s", line, log);
}

static bool join_at(struct pair *pair, uint16_t port)
{
	struct toll_device_endpoint here = loopback(AF_INET, port);
	struct toll_device_endpoint peer = loopback(AF_INET, port);
	int error;

	pair->master = open(MASTER, O_RDWR | O_CLOEXEC);
	pair->slave = open(SLAVE, O_RDWR | O_CLOEXEC);
	error = command(pair->master, TOLL_DEVICE_LISTEN, &here);
	if (!error)
		error = command(pair->slave, TOLL_DEVICE_CONNECT, &here);
	if (!error)
		error = command(pair->master, TOLL_DEVICE_ACCEPT, &peer);
	return TAP_CHECK(!error, "cannot join: %s", strerror(error));
}

static struct toll_device_page look_up(int device, const void *address)
{
	struct toll_device_page page = { .address = (uintptr_t)address };

	command(device, TOLL_DEVICE_PAGE, &page);
	return page;
}

/* Makes each kind of line; returns the new lines of the log, to be freed. */
static char *talk(bool *passed, struct toll_device_page *page)
{
	int log = log_open();
	struct pair pair;
	char *mapped;

	*passed &= join_at(&pair, PORT);
	mapped = map(pair.master, 4096);
	mapped[0] = 7;
	*page = look_up(pair.master, mapped);
	*passed &= TAP_CHECK(ioctl(pair.slave, TOLL_DEVICE_PUBLISHED_PAGE, mapped) == 0, "page");
	*passed &= TAP_CHECK(ioctl(pair.master, TOLL_DEVICE_PUBLISHED_TRANSFER, 9) == 9, "send");
	*passed &= TAP_CHECK(ioctl(pair.slave, TOLL_DEVICE_PUBLISHED_TRANSFER, 9) == 9, "receive");
	*passed &= TAP_CHECK(ioctl(pair.slave, TOLL_DEVICE_PUBLISHED_TRANSFER, 1u << 20) < 0,
			     "too much");
	munmap(mapped, 4096);
	pair_close(&pair);
	return log_close(log);
}

static void test_lines(void)
{
	struct toll_device_page page;
	bool passed = true;
	char entry[64];
	char *log;

	log = talk(&passed, &page);
	passed &= log_has(log, ";slave: connected to : 127.0.0.1 2325\n");
	passed &= log_has(log, ";master: connected to : 127.0.0.1 ");
	passed &= log_has(log, ";slave device ioctl 0x12345678\n");
	passed &= log_has(log, ";master device ioctl 0x12345678\n");
	snprintf(entry, sizeof(entry), ";master: %016llX\n", (unsigned long long)page.entry);
	passed &= log_has(log, entry);
	snprintf(entry, sizeof(entry), ";slave: %016llX\n", (unsigned long long)page.entry);
	passed &= log_has(log, entry);
	passed &= log_has(log, ";slave: cannot transfer 1048576 bytes by a buffer of 65536 ");
	passed &= log_has(log, ";master: buffer freed\n");
	passed &= log_has(log, ";slave: buffer freed\n");
	free(log);
	tap_result(passed, "connections, ioctls and page-table entries are logged as published");
}

static void test_switch(void)
{
	struct toll_device_page page;
	bool passed = true;
	char *log;

	passed &= parameter_set("master", "log", "N", true);
	passed &= parameter_set("slave", "log", "N", true);
	log = talk(&passed, &page);
	passed &= TAP_CHECK(!log_count(log, ";slave") && !log_count(log, ";master"), "%s", log);
	free(log);
	passed &= parameter_set("master", "log", "Y", true);
	log = talk(&passed, &page);
	passed &= log_has(log, ";master device ioctl ");
	passed &= TAP_CHECK(!log_count(log, ";slave"), "%s", log);
	free(log);
	passed &= parameter_set("slave", "log", "Y", true);
	tap_result(passed, "the log can be turned off and on, for each module");
}

static void test_limit(void)
{
	const size_t calls = 10000;
	struct toll_device_settings settings;
	bool passed = true;
	int log = log_open();
	struct pair pair;
	size_t lines, i;
	char *text;

	passed &= join_at(&pair, PORT + 1);
	for (i = 0; i < calls; i++)
		passed &= !command(pair.slave, TOLL_DEVICE_GET_SETTINGS, &settings);
	look_up(pair.slave, &settings);
	pair_close(&pair);
	text = log_close(log);
	lines = log_count(text, ";slave device ioctl ");
	passed &= TAP_CHECK(lines > 0 && lines < calls / 2, "%zu lines", lines);
	/* Lines of another kind have a limit of their own. */
	passed &= log_has(text, ";slave: 8");
	free(text);
	tap_result(passed, "many ioctls leave few lines in the log");
}

static void test_unlimited(void)
{
	const size_t pages = 100;
	bool passed = true;
	int log = log_open();
	struct pair pair;
	size_t i;
	char *text;

	passed &= parameter_set("master", "log_published", "Y", true);
	passed &= parameter_set("slave", "log_published", "Y", true);
	passed &= join_at(&pair, PORT + 2);
	for (i = 0; i < pages; i++) {
		passed &= !ioctl(pair.master, TOLL_DEVICE_PUBLISHED_PAGE, &pair);
		passed &= !ioctl(pair.slave, TOLL_DEVICE_PUBLISHED_PAGE, &pair);
	}
	pair_close(&pair);
	text = log_close(log);
	passed &= TAP_CHECK(log_count(text, ";master: 8") == pages &&
			    log_count(text, ";slave: 8") == pages &&
			    log_count(text, ";slave device ioctl 0x12345676\n") == pages &&
			    log_count(text, ";master device ioctl ") == 0, "%s", text);
	free(text);
	passed &= parameter_set("master", "log_published", "N", true);
	passed &= parameter_set("slave", "log_published", "N", true);
	tap_result(passed, "with log_published each page is logged");
}

static void test_masked(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };
	int device = open(MASTER, O_RDWR | O_CLOEXEC);
	int log = log_open();
	bool passed = true;
	pid_t child = fork();
	char *text, *line;

	if (child == 0) {
		syscall(SYS_capset, &header, none);
		_exit(ioctl(device, TOLL_DEVICE_PUBLISHED_PAGE, &header) != 0);
	}
	passed &= child_passed(child);
	text = log_close(log);
	line = text ? strstr(text, ";master: ") : NULL;
	passed &= TAP_CHECK(line && strtoull(line + 9, NULL, 16) != 0 &&
			    (strtoull(line + 9, NULL, 16) & FRAME) == 0, "%s", text);
	free(text);
	close(device);
	tap_result(passed, "without CAP_SYS_ADMIN the log has no frame numbers");
}

void test_log(void)
{
	int log = log_open();

	if (log < 0)
		return tap_skip("the devices write to the kernel log", "there is no /dev/kmsg");
	close(log);
	/* Earlier lines have used up what may be logged. */
	sleep(LIMIT_SECONDS);
	test_lines();
	test_switch();
	test_masked();
	test_unlimited();
	test_limit();
}
