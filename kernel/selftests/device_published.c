// SPDX-License-Identifier: GPL-2.0
/*
 * The published programs: page by page, file and device are mapped at the same
 * offset, bytes are copied from one mapping to the other, and an ioctl sends or
 * receives them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device.h"
#include "tap.h"

#define PAGE 4096u

/* When the published slave maps the device. The report shows no code. */
enum slave_order { MAPS_AFTER, MAPS_BEFORE };

static void *map_page(int file, off_t offset)
{
	void *mapped = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, offset);

	if (mapped == MAP_FAILED)
		tap_note("cannot map a page at %lld: %s", (long long)offset, strerror(errno));
	return mapped == MAP_FAILED ? NULL : mapped;
}

static bool send_page(int device, int file, off_t offset, size_t length)
{
	char *source = map_page(file, offset);
	char *target = map_page(device, offset);
	bool passed = source && target;

	if (passed) {
		memcpy(target, source, length);
		passed &= TAP_CHECK(!ioctl(device, TOLL_DEVICE_PUBLISHED_PAGE, source),
				    "0x12345676: %s", strerror(errno));
		passed &= TAP_CHECK(ioctl(device, TOLL_DEVICE_PUBLISHED_TRANSFER, length) ==
				    (int)length, "0x12345678 at %lld: %s", (long long)offset,
				    strerror(errno));
	}
	munmap(source, PAGE);
	munmap(target, PAGE);
	return passed;
}

static bool published_master(int device, int file, off_t size)
{
	bool passed = true;
	off_t offset;

	for (offset = 0; passed && offset < size; offset += PAGE) {
		size_t left = size - offset;

		passed = send_page(device, file, offset, left < PAGE ? left : PAGE);
	}
	return passed;
}

static bool keep_page(int file, const char *page, off_t offset, size_t length)
{
	char *target;

	if (!TAP_CHECK(!ftruncate(file, offset + length), "%s", strerror(errno)))
		return false;
	target = map_page(file, offset);
	if (!target)
		return false;
	memcpy(target, page, length);
	munmap(target, PAGE);
	return true;
}

static bool published_slave(int device, int file, enum slave_order order)
{
	off_t offset = 0;
	bool passed = true;
	int length;

	/* A short page is the last: no page begins behind it. */
	do {
		char *page = order == MAPS_BEFORE ? map_page(device, offset) : NULL;

		length = ioctl(device, TOLL_DEVICE_PUBLISHED_TRANSFER, PAGE);
		passed &= TAP_CHECK(length >= 0, "0x12345678 at %lld: %s", (long long)offset,
				    strerror(errno));
		if (order == MAPS_AFTER)
			page = map_page(device, offset);
		passed &= page && (length <= 0 || keep_page(file, page, offset, length));
		munmap(page, PAGE);
		offset += length;
	} while (passed && length == (int)PAGE);
	/* Once more, as a program does that knows no length. */
	passed &= TAP_CHECK(ioctl(device, TOLL_DEVICE_PUBLISHED_TRANSFER, PAGE) == 0, "no end: %s",
			    strerror(errno));
	return passed;
}

/* A file goes through a pair whose buffers have so many bytes. */
static bool send_file(uint32_t mode, uint32_t buffer_bytes, off_t size, enum slave_order order)
{
	int from = memfd_create("from", MFD_CLOEXEC);
	int to = memfd_create("to", MFD_CLOEXEC);
	struct stat arrived;
	struct pair pair;
	bool passed = pair_open(&pair, AF_INET, mode, buffer_bytes);
	char *bytes;
	pid_t child;

	passed &= write_filled(from, size, PAGE, size);
	child = fork();
	if (child == 0) {
		close(pair.slave);
		_exit(!(passed && published_master(pair.master, from, size)));
	}
	close(pair.master);
	passed &= published_slave(pair.slave, to, order);
	passed &= child_passed(child);
	fstat(to, &arrived);
	passed &= TAP_CHECK(arrived.st_size == size, "%lld bytes arrived",
			    (long long)arrived.st_size);
	bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, to, 0);
	passed &= passed && is_filled(bytes, size, size, 0);
	munmap(bytes, size);
	close(pair.slave);
	close(from);
	close(to);
	return TAP_CHECK(passed, "%lld bytes through %u", (long long)size, buffer_bytes);
}

static void test_files(uint32_t mode)
{
	/* The report's, and the pages of the default buffer three times. */
	static const off_t sizes[] = { 4, 577, 9695, 1502860, 3 * TOLL_DEVICE_BUFFER_DEFAULT };
	bool passed = true;
	size_t i;

	for (i = 0; i < 5; i++) {
		passed &= send_file(mode, TOLL_DEVICE_BUFFER_DEFAULT, sizes[i], MAPS_AFTER);
		passed &= send_file(mode, TOLL_DEVICE_BUFFER_DEFAULT, sizes[i], MAPS_BEFORE);
		passed &= send_file(mode, PAGE, sizes[i], MAPS_AFTER);
		passed &= send_file(mode, 3 * PAGE, sizes[i], MAPS_BEFORE);
	}
	result(mode, passed, "the published programs send files page by page");
}

static bool both_transfer(struct pair *pair, int length)
{
	return TAP_CHECK(ioctl(pair->master, TOLL_DEVICE_PUBLISHED_TRANSFER, length) == length,
			 "send %d: %s", length, strerror(errno)) &&
	       TAP_CHECK(ioctl(pair->slave, TOLL_DEVICE_PUBLISHED_TRANSFER, length) == length,
			 "receive %d: %s", length, strerror(errno));
}

static void test_transfer(uint32_t mode)
{
	struct pair pair;
	bool passed = pair_open(&pair, AF_INET, mode, 2 * PAGE);
	char *out = map(pair.master, 2 * PAGE);
	char *in = map(pair.slave, 2 * PAGE);

	fill(out, 2 * PAGE, 6, 0);
	passed &= both_transfer(&pair, 0) && both_transfer(&pair, 5000);
	passed &= is_filled(in, 5000, 6, 0);
	passed &= TAP_CHECK(ioctl(pair.master, TOLL_DEVICE_PUBLISHED_TRANSFER, 2 * PAGE + 1) < 0 &&
			    errno == EINVAL, "too much");
	passed &= TAP_CHECK(ioctl(pair.slave, TOLL_DEVICE_PUBLISHED_TRANSFER, -1L) < 0 &&
			    errno == EINVAL, "far too much");
	/* What is refused moves no place. These go round the end. */
	fill(out, 2 * PAGE, 7, 0);
	passed &= both_transfer(&pair, 5000);
	passed &= is_filled(in, 1808, 7, 0) && is_filled(in + 1808, 3192, 6, 1808) &&
		  is_filled(in + 5000, 3192, 7, 5000);
	close(pair.master);
	munmap(out, 2 * PAGE);
	passed &= TAP_CHECK(ioctl(pair.slave, TOLL_DEVICE_PUBLISHED_TRANSFER, 2 * PAGE) == 0,
			    "the end");
	munmap(in, 2 * PAGE);
	close(pair.slave);
	result(mode, passed, "0x12345678 goes on where the call before it ended");
}

/* A last page that is not whole would show bytes that cannot be transferred. */
static void test_last_page(void)
{
	struct pair pair;
	bool passed = pair_open(&pair, AF_INET, TOLL_DEVICE_SYNC, PAGE + 100);

	passed &= both_transfer(&pair, PAGE) && both_transfer(&pair, 100);
	passed &= TAP_CHECK(ioctl(pair.master, TOLL_DEVICE_PUBLISHED_TRANSFER, 1) < 0 &&
			    errno == EINVAL, "a byte behind the buffer");
	pair_close(&pair);
	tap_result(passed, "0x12345678 takes nothing behind the buffer's bytes");
}

void test_published(void)
{
	test_files(TOLL_DEVICE_SYNC);
	test_files(TOLL_DEVICE_ASYNC);
	test_transfer(TOLL_DEVICE_SYNC);
	test_transfer(TOLL_DEVICE_ASYNC);
	test_last_page();
}
