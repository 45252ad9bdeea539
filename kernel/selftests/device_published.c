// SPDX-License-Identifier: GPL-2.0
/*
 * The published programs. The master maps file and device page by page at the
 * same offset. It copies each buffer to the beginning of the device's page, and
 * an ioctl sends it from there. The slave reads. A slave that receives by ioctl
 * is what the published driver could do.
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

/* The last two receive by ioctl, and map the device after or before that. */
enum slave_way { READS, MAPS_AFTER, MAPS_BEFORE };

/* One transfer through a pair. */
struct course {
	uint32_t mode;
	uint32_t device_bytes;
	uint32_t copy_bytes;
	enum slave_way way;
};

static void *map_page(int file, off_t offset)
{
	void *mapped = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, offset);

	if (mapped == MAP_FAILED)
		tap_note("cannot map a page at %lld: %s", (long long)offset, strerror(errno));
	return mapped == MAP_FAILED ? NULL : mapped;
}

static size_t at_most(size_t length, size_t most)
{
	return length < most ? length : most;
}

static bool send_page(int device, int file, off_t offset, size_t length, size_t copy_bytes)
{
	char *source = map_page(file, offset);
	char *target = map_page(device, offset);
	bool passed = source && target;
	size_t inside, piece;

	if (passed)
		passed &= TAP_CHECK(!ioctl(device, TOLL_DEVICE_PUBLISHED_PAGE, source),
				    "0x12345676: %s", strerror(errno));
	for (inside = 0; passed && inside < length; inside += piece) {
		piece = at_most(length - inside, copy_bytes);
		memcpy(target, source + inside, piece);
		passed &= TAP_CHECK(ioctl(device, TOLL_DEVICE_PUBLISHED_TRANSFER, piece) ==
				    (int)piece, "0x12345678 at %lld: %s",
				    (long long)(offset + inside), strerror(errno));
	}
	munmap(source, PAGE);
	munmap(target, PAGE);
	return passed;
}

static bool published_master(int device, int file, off_t size, size_t copy_bytes)
{
	bool passed = true;
	off_t offset;

	for (offset = 0; passed && offset < size; offset += PAGE)
		passed = send_page(device, file, offset, at_most(size - offset, PAGE), copy_bytes);
	return passed;
}

/* Maps the file, not the device. */
static bool published_slave(int device, int file, size_t copy_bytes)
{
	char bytes[PAGE];
	off_t offset = 0;
	ssize_t length;

	while ((length = read(device, bytes, copy_bytes)) > 0) {
		if (!TAP_CHECK(pwrite(file, bytes, length, offset) == length, "%s",
			       strerror(errno)))
			return false;
		offset += length;
	}
	return TAP_CHECK(length == 0, "read at %lld: %s", (long long)offset, strerror(errno));
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

static bool receiving_slave(int device, int file, enum slave_way way)
{
	off_t offset = 0;
	bool passed = true;
	int length;

	/* A short page is the last: no page begins after it. */
	do {
		char *page = way == MAPS_BEFORE ? map_page(device, offset) : NULL;

		length = ioctl(device, TOLL_DEVICE_PUBLISHED_TRANSFER, PAGE);
		passed &= TAP_CHECK(length >= 0, "0x12345678 at %lld: %s", (long long)offset,
				    strerror(errno));
		if (way == MAPS_AFTER)
			page = map_page(device, offset);
		passed &= page && (length <= 0 || keep_page(file, page, offset, length));
		munmap(page, PAGE);
		offset += length;
	} while (passed && length == (int)PAGE);
	/* One call more, as from a program that does not know the length. */
	passed &= TAP_CHECK(ioctl(device, TOLL_DEVICE_PUBLISHED_TRANSFER, PAGE) == 0, "no end: %s",
			    strerror(errno));
	return passed;
}

static bool send_file(const struct course *course, off_t size)
{
	int from = memfd_create("from", MFD_CLOEXEC);
	int to = memfd_create("to", MFD_CLOEXEC);
	struct stat arrived;
	struct pair pair;
	bool passed = pair_open(&pair, AF_INET, course->mode, course->device_bytes);
	char *bytes;
	pid_t child;

	passed &= write_filled(from, size, PAGE, size);
	child = fork();
	if (child == 0) {
		close(pair.slave);
		_exit(!(passed && published_master(pair.master, from, size, course->copy_bytes)));
	}
	close(pair.master);
	passed &= course->way == READS ?
			  published_slave(pair.slave, to, course->copy_bytes) :
			  receiving_slave(pair.slave, to, course->way);
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
	return TAP_CHECK(passed, "%lld bytes by %u through %u", (long long)size, course->copy_bytes,
			 course->device_bytes);
}

static void test_files(uint32_t mode)
{
	/* The report's sizes, and three times the default buffer. */
	static const off_t sizes[] = { 4, 577, 9695, 1502860, 3 * TOLL_DEVICE_BUFFER_DEFAULT };
	const struct course courses[] = {
		/* The published driver has one page. */
		{ mode, PAGE, 512, READS },
		{ mode, PAGE, PAGE, READS },
		{ mode, 3 * PAGE, 1000, READS },
		{ mode, TOLL_DEVICE_BUFFER_DEFAULT, PAGE, MAPS_AFTER },
		{ mode, TOLL_DEVICE_BUFFER_DEFAULT, PAGE, MAPS_BEFORE },
		{ mode, PAGE, PAGE, MAPS_AFTER },
		{ mode, 3 * PAGE, PAGE, MAPS_BEFORE },
		{ 0 },
	};
	bool passed = true;
	size_t i, j;

	for (i = 0; i < 5; i++)
		for (j = 0; courses[j].device_bytes; j++)
			passed &= send_file(&courses[j], sizes[i]);
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
	/*
	 * A refused call moves no position. These start in the second page and
	 * wrap around.
	 */
	fill(out, 2 * PAGE, 7, 0);
	passed &= both_transfer(&pair, 5000);
	passed &= is_filled(in, 904, 7, 0) && is_filled(in + 904, 3192, 6, 904) &&
		  is_filled(in + PAGE, PAGE, 7, PAGE);
	close(pair.master);
	munmap(out, 2 * PAGE);
	passed &= TAP_CHECK(ioctl(pair.slave, TOLL_DEVICE_PUBLISHED_TRANSFER, 2 * PAGE) == 0,
			    "the end");
	munmap(in, 2 * PAGE);
	close(pair.slave);
	result(mode, passed, "0x12345678 begins with the page in which the previous call ended");
}

/* A last page that is not whole would show bytes that cannot be transferred. */
static void test_last_page(void)
{
	struct pair pair;
	bool passed = pair_open(&pair, AF_INET, TOLL_DEVICE_SYNC, PAGE + 100);

	passed &= both_transfer(&pair, PAGE);
	passed &= TAP_CHECK(ioctl(pair.master, TOLL_DEVICE_PUBLISHED_TRANSFER, 101) < 0 &&
			    errno == EINVAL, "a byte after the buffer");
	passed &= both_transfer(&pair, 100);
	pair_close(&pair);
	tap_result(passed, "0x12345678 transfers nothing after the buffer's bytes");
}

void test_published(void)
{
	test_files(TOLL_DEVICE_SYNC);
	test_files(TOLL_DEVICE_ASYNC);
	test_transfer(TOLL_DEVICE_SYNC);
	test_transfer(TOLL_DEVICE_ASYNC);
	test_last_page();
}
