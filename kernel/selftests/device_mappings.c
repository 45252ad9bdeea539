// SPDX-License-Identifier: GPL-2.0
/* The buffer: its size, its mappings, and transfers of its parts. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device.h"
#include "module.h"
#include "tap.h"

#define PAGE 4096u

static int open_with(uint32_t buffer_bytes)
{
	int device = open(MASTER, O_RDWR | O_CLOEXEC);

	if (set_settings(device, buffer_bytes, TOLL_DEVICE_SYNC))
		tap_note("a buffer of %u bytes is refused", buffer_bytes);
	return device;
}

/* Returns the error of a mapping, 0 if it is made. It is undone at once. */
static int map_error(int device, size_t bytes, int protection, int flags, off_t offset)
{
	void *mapped = mmap(NULL, bytes, protection, flags, device, offset);

	if (mapped == MAP_FAILED)
		return errno;
	munmap(mapped, bytes);
	return 0;
}

static void test_bounds(void)
{
	static const struct {
		uint32_t buffer, pages;
	} sizes[] = { { 512, 1 }, { 4096, 1 }, { 4097, 2 }, { 65536, 16 }, { 16u << 20, 4096 } };
	const int both = PROT_READ | PROT_WRITE;
	bool passed = true;
	size_t i;

	for (i = 0; i < 5; i++) {
		int device = open_with(sizes[i].buffer);
		size_t all = sizes[i].pages * PAGE;

		passed &= TAP_CHECK(!map_error(device, all, both, MAP_SHARED, 0), "all");
		passed &= TAP_CHECK(!map_error(device, 1, both, MAP_SHARED, 0), "one byte");
		passed &= TAP_CHECK(!map_error(device, PAGE, both, MAP_SHARED, all - PAGE), "last");
		passed &= TAP_CHECK(map_error(device, all + 1, both, MAP_SHARED, 0) == EINVAL,
				    "a page more than %zu", all);
		passed &= TAP_CHECK(map_error(device, 2 * PAGE, both, MAP_SHARED, all - PAGE) ==
				    EINVAL, "across the end");
		passed &= TAP_CHECK(map_error(device, 2 * PAGE, both, MAP_SHARED,
					      100 * all - PAGE) == EINVAL, "across a later end");
		passed &= TAP_CHECK(map_error(device, PAGE, both, MAP_PRIVATE, 0) == EINVAL,
				    "a private copy");
		passed &= TAP_CHECK(map_error(device, PAGE, both | PROT_EXEC, MAP_SHARED, 0) ==
				    EINVAL, "code");
		close(device);
	}
	tap_result(passed, "only the buffer can be mapped");
}

/*
 * After its last page the buffer repeats, at any offset, even where the
 * published device would have shown physical memory.
 */
static void test_repeated(void)
{
	static const off_t offsets[] = { 0, PAGE, 3 * PAGE, 0x1000000, 0x7ffffffffffff000 };
	static const uint32_t pages[] = { 1, 2, 3, 16 };
	bool passed = true;
	size_t i, k;

	for (i = 0; i < 4; i++) {
		int device = open_with(pages[i] * PAGE);
		char *all = map(device, pages[i] * PAGE);

		fill(all, pages[i] * PAGE, 9, 0);
		for (k = 0; k < 5; k++) {
			size_t place = offsets[k] % (pages[i] * PAGE);
			char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, device,
					  offsets[k]);

			if (!TAP_CHECK(page != MAP_FAILED, "%u pages at %#llx: %s", pages[i],
				       (unsigned long long)offsets[k], strerror(errno))) {
				passed = false;
				continue;
			}
			passed &= is_filled(page, PAGE, 9, place);
			page[77]++;
			passed &= TAP_CHECK(all[place + 77] == page[77], "%u pages at %#llx",
					    pages[i], (unsigned long long)offsets[k]);
			page[77]--;
			munmap(page, PAGE);
		}
		munmap(all, pages[i] * PAGE);
		close(device);
	}
	tap_result(passed, "after its last page the buffer repeats");
}

/* mmap() refuses PROT_EXEC; mprotect() must not allow it afterwards. */
static void test_no_code(void)
{
	int device = open_with(PAGE);
	void *mapped = map(device, PAGE);
	bool passed = TAP_CHECK(mapped != MAP_FAILED, "map");

	passed &= TAP_CHECK(mprotect(mapped, PAGE, PROT_READ | PROT_EXEC) < 0 && errno == EACCES,
			    "the mapping became executable");
	passed &= TAP_CHECK(!mprotect(mapped, PAGE, PROT_READ), "it became unreadable");
	munmap(mapped, PAGE);
	close(device);
	tap_result(passed, "a mapping never becomes executable");
}

static void test_sizes(void)
{
	static const uint32_t refused[] = { 0, 1, 511, (16u << 20) + 1, UINT32_MAX };
	int device = open_with(65536);
	bool passed = true;
	char *mapped;
	size_t i;

	for (i = 0; i < 5; i++)
		passed &= TAP_CHECK(set_settings(device, refused[i], 0) == EINVAL, "%u",
				    refused[i]);
	mapped = map(device, 65536);
	memset(mapped, 7, 65536);
	passed &= TAP_CHECK(set_settings(device, 4096, 0) == EBUSY, "while it is mapped");
	passed &= TAP_CHECK(!set_settings(device, 65536, 0), "to what it is");
	munmap(mapped, PAGE);
	passed &= TAP_CHECK(set_settings(device, 4096, 0) == EBUSY, "while a part is mapped");
	munmap(mapped + PAGE, 65536 - PAGE);
	passed &= TAP_CHECK(!set_settings(device, 4096, 0), "when it is mapped no more");
	passed &= TAP_CHECK(map_error(device, 65536, PROT_READ, MAP_SHARED, 0) == EINVAL,
			    "the old size");
	mapped = map(device, 4096);
	for (i = 0; i < 4096; i++)
		passed &= mapped[i] == 0;
	passed &= TAP_CHECK(passed, "old bytes came back");
	munmap(mapped, 4096);
	close(device);
	tap_result(passed, "the buffer's size can change only while it is not mapped");
}

/* Reads of memory that others have used would find their bytes. */
static void test_fresh(void)
{
	bool passed = true;
	int turn;

	for (turn = 0; passed && turn < 20; turn++) {
		uint32_t bytes = turn % 2 ? 1000000 : 512;
		size_t whole = (bytes + PAGE - 1) / PAGE * PAGE;
		int device = open_with(bytes);
		char *mapped = map(device, whole);
		size_t i;

		for (i = 0; i < whole; i++)
			passed &= mapped[i] == 0;
		passed &= TAP_CHECK(passed, "turn %d: not 0", turn);
		memset(mapped, 0x5a, whole);
		munmap(mapped, whole);
		close(device);
	}
	tap_result(passed, "a new buffer is 0 to the end of its last page");
}

static void test_kept(void)
{
	int device = open_with(8192);
	char *mapped = map(device, 8192);
	char *grown;
	bool passed = true;
	pid_t child;

	fill(mapped, 8192, 1, 0);
	madvise(mapped, 8192, MADV_DONTNEED);
	passed &= is_filled(mapped, 8192, 1, 0);
	child = fork();
	if (child == 0) {
		/*
		 * The child's mapping keeps the size once the parent's is gone.
		 */
		pause();
		_exit(0);
	}
	munmap(mapped, 8192);
	passed &= TAP_CHECK(set_settings(device, 4096, 0) == EBUSY, "a child maps it");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	mapped = map(device, 8192);
	passed &= is_filled(mapped, 8192, 1, 0);
	grown = mremap(mapped, 8192, 16384, MREMAP_MAYMOVE);
	passed &= TAP_CHECK(grown == MAP_FAILED, "it grew");
	grown = mremap(mapped, 8192, 8192, MREMAP_MAYMOVE | MREMAP_FIXED, mapped + (1u << 30));
	passed &= TAP_CHECK(grown != MAP_FAILED && is_filled(grown, 8192, 1, 0), "it moved");
	close(device);
	passed &= is_filled(grown, 8192, 1, 0);
	passed &= TAP_CHECK(module_unload("master") == EWOULDBLOCK, "it is still mapped");
	grown[0] = 3;
	munmap(grown, 8192);
	tap_result(passed, "a mapping outlives fork, close and attempts to unload");
}

static void test_access(void)
{
	int reader = open(SLAVE, O_RDONLY | O_CLOEXEC);
	bool passed = true;

	passed &= TAP_CHECK(map_error(reader, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0) ==
			    EACCES, "written by who may read");
	passed &= TAP_CHECK(!map_error(reader, PAGE, PROT_READ, MAP_SHARED, 0), "read");
	passed &= TAP_CHECK(transfer(reader, TOLL_DEVICE_SEND, 0, 1) == -EBADF, "SEND");
	passed &= TAP_CHECK(command(reader, TOLL_DEVICE_FINISH, NULL) == EBADF, "FINISH");
	close(reader);
	tap_result(passed, "a file opened for reading can neither write nor send");
}

static void test_parts(void)
{
	static const uint64_t wrong[][2] = {
		{ 0, 8193 }, { 8192, 1 }, { 8193, 0 }, { 1, 8192 }, { UINT64_MAX, 1 },
		{ 1, UINT64_MAX }, { UINT64_MAX, UINT64_MAX }, { 1ull << 63, 1ull << 63 },
	};
	struct pair pair;
	bool passed = pair_open(&pair, AF_INET, TOLL_DEVICE_SYNC, 8192);
	char *out = map(pair.master, 8192);
	char *in = map(pair.slave, 8192);
	size_t i;

	for (i = 0; i < 8; i++) {
		passed &= TAP_CHECK(transfer(pair.master, TOLL_DEVICE_SEND, wrong[i][0],
					     wrong[i][1]) == -EINVAL, "SEND %zu", i);
		passed &= TAP_CHECK(transfer(pair.slave, TOLL_DEVICE_RECEIVE, wrong[i][0],
					     wrong[i][1]) == -EINVAL, "RECEIVE %zu", i);
	}
	fill(out, 8192, 2, 0);
	passed &= TAP_CHECK(transfer(pair.master, TOLL_DEVICE_SEND, 8192, 0) == 0, "nothing");
	passed &= TAP_CHECK(transfer(pair.master, TOLL_DEVICE_SEND, 100, 5000) == 5000, "SEND");
	/* What has been sent does not change. */
	memset(out, 0, 8192);
	passed &= TAP_CHECK(transfer(pair.slave, TOLL_DEVICE_RECEIVE, 0, 0) == 0, "nothing");
	passed &= TAP_CHECK(transfer(pair.slave, TOLL_DEVICE_RECEIVE, 3, 1000) == 1000, "RECEIVE");
	passed &= TAP_CHECK(transfer(pair.slave, TOLL_DEVICE_RECEIVE, 4192, 4000) == 4000, "rest");
	passed &= is_filled(in + 3, 1000, 2, 100) && is_filled(in + 4192, 4000, 2, 1100);
	passed &= TAP_CHECK(in[0] == 0 && in[2] == 0 && in[1003] == 0 && in[4191] == 0,
			    "bytes beside the part");
	munmap(out, 8192);
	munmap(in, 8192);
	pair_close(&pair);
	tap_result(passed, "parts within the buffer are sent and filled");
}

static void test_fills(void)
{
	struct pair pair;
	bool passed = pair_open(&pair, AF_INET6, TOLL_DEVICE_FASYNC, 65536);
	char *in = map(pair.slave, 65536);
	pid_t child = fork();

	if (child == 0) {
		uint64_t done;

		for (done = 0; passed && done < 50000; done += 10000) {
			char bytes[10000];

			fill(bytes, 10000, 4, done);
			passed = write_all(pair.master, bytes, 10000);
			usleep(5000);
		}
		_exit(!passed || command(pair.master, TOLL_DEVICE_FINISH, NULL));
	}
	passed &= TAP_CHECK(transfer(pair.slave, TOLL_DEVICE_RECEIVE, 0, 30000) == 30000, "whole");
	passed &= TAP_CHECK(transfer(pair.slave, TOLL_DEVICE_RECEIVE, 30000, 30000) == 20000,
			    "up to the end");
	passed &= TAP_CHECK(transfer(pair.slave, TOLL_DEVICE_RECEIVE, 0, 1) == 0, "the end");
	passed &= is_filled(in, 50000, 4, 0) && child_passed(child);
	set_nonblock(pair.master, true);
	passed &= TAP_CHECK(transfer(pair.master, TOLL_DEVICE_RECEIVE, 0, 1) == -EAGAIN,
			    "it does not wait");
	munmap(in, 65536);
	pair_close(&pair);
	tap_result(passed, "RECEIVE fills its whole part, except at the end");
}

void test_mappings(void)
{
	test_bounds();
	test_repeated();
	test_no_code();
	test_sizes();
	test_fresh();
	test_kept();
	test_access();
	test_parts();
	test_fills();
}
