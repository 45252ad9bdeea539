// SPDX-License-Identifier: GPL-2.0
/* What TOLL_DEVICE_PAGE returns for addresses, against what the kernel says. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "device.h"
#include "tap.h"

/* x86's bits of an entry */
#define PRESENT 0x001u
#define WRITABLE 0x002u
#define USER 0x004u
#define ACCESSED 0x020u
#define DIRTY 0x040u
#define FRAME 0x000ffffffffff000ull

static struct toll_device_page look_up(int device, const void *address)
{
	struct toll_device_page page = { .address = (uintptr_t)address, .entry = 5 };

	if (command(device, TOLL_DEVICE_PAGE, &page))
		page.page_bytes = UINT64_MAX;
	return page;
}

/* Returns the frame number that /proc/self/pagemap has for an address. */
static uint64_t frame_of(const void *address)
{
	uint64_t entry = 0;
	int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	if (pread(file, &entry, 8, (uintptr_t)address / 4096 * 8) != 8)
		entry = 0;
	close(file);
	return entry & ((1ull << 55) - 1);
}

static void test_entries(int device)
{
	char *memory = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	char *buffer = map(device, 8192);
	struct toll_device_page page;
	bool passed = true;

	memory[0] = 1;
	page = look_up(device, memory + 77);
	passed &= TAP_CHECK(page.page_bytes == 4096 && (page.entry & 0x67) ==
			    (PRESENT | WRITABLE | USER | ACCESSED | DIRTY), "written: %#llx",
			    (unsigned long long)page.entry);
	passed &= TAP_CHECK((page.entry & FRAME) >> 12 == frame_of(memory), "another frame");
	page = look_up(device, memory + 4096);
	passed &= TAP_CHECK(page.entry == 0 && page.page_bytes == 0, "not touched");
	mprotect(memory, 4096, PROT_NONE);
	page = look_up(device, memory);
	passed &= TAP_CHECK(page.entry == 0 && page.page_bytes == 0, "no access: %#llx",
			    (unsigned long long)page.entry);
	munmap(memory + 8192, 4096);
	page = look_up(device, memory + 8192);
	passed &= TAP_CHECK(page.entry == 0 && page.page_bytes == 0, "not mapped");
	/* A page of this program's code; the published master logged ...025 for such a page. */
	page = look_up(device, (const void *)(uintptr_t)test_pages);
	passed &= TAP_CHECK((page.entry & 0x27) == (PRESENT | USER | ACCESSED), "code: %#llx",
			    (unsigned long long)page.entry);
	buffer[4096] = 1;
	page = look_up(device, buffer + 4096);
	passed &= TAP_CHECK((page.entry & FRAME) >> 12 == frame_of(buffer + 4096) &&
			    page.entry & DIRTY, "the buffer: %#llx",
			    (unsigned long long)page.entry);
	munmap(memory, 8192);
	munmap(buffer, 8192);
	tap_result(passed, "page-table entries match the kernel's");
}

static void test_huge(int device)
{
	const size_t huge = 2u << 20;
	char *memory = mmap(NULL, 2 * huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	char *aligned = (char *)(((uintptr_t)memory + huge - 1) & ~(uintptr_t)(huge - 1));
	const char *name = "the entry of a huge page maps all of it";
	struct toll_device_page page;

	madvise(aligned, huge, MADV_HUGEPAGE);
	aligned[0] = 1;
	page = look_up(device, aligned + 5 * 4096);
	if (page.page_bytes == huge)
		tap_result(TAP_CHECK((page.entry & FRAME & ~(huge - 1)) >> 12 ==
				     frame_of(aligned), "%#llx", (unsigned long long)page.entry),
			   name);
	else
		tap_skip(name, "no huge page was given");
	munmap(memory, 2 * huge);
}

static void test_kernel_addresses(int device)
{
	static const uint64_t addresses[] = {
		0, 0x7ffffffff000, 0x7fffffffffff, 0x800000000000, 0x8000000000000000,
		0xffff888000000000, 0xffffffff81000000, 0xffffffffff600000, UINT64_MAX,
	};
	struct toll_device_page page = { .address = (uintptr_t)&page, .reserved = 1 };
	bool passed = true;
	size_t i;

	passed &= TAP_CHECK(command(device, TOLL_DEVICE_PAGE, &page) == EINVAL, "reserved");
	for (i = 0; i < sizeof(addresses) / sizeof(*addresses); i++) {
		page = look_up(device, (const void *)addresses[i]);
		passed &= TAP_CHECK(page.entry == 0 && page.page_bytes == 0, "%#llx: %#llx",
				    (unsigned long long)addresses[i],
				    (unsigned long long)page.entry);
		passed &= TAP_CHECK(!ioctl(device, TOLL_DEVICE_PUBLISHED_PAGE, addresses[i]),
				    "0x12345676: %s", strerror(errno));
	}
	tap_result(passed, "addresses that are not the caller's have no entry");
}

static void test_masked(int device)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };
	struct toll_device_page page = look_up(device, &header);
	uint64_t bits = page.entry & ~FRAME;
	bool passed = TAP_CHECK((page.entry & FRAME) != 0, "root sees no frame");
	pid_t child = fork();

	if (child == 0) {
		syscall(SYS_capset, &header, none);
		/* The child's copy of the page. */
		none[0].effective = 0;
		page = look_up(device, &header);
		_exit(!(TAP_CHECK((page.entry & FRAME) == 0, "the frame is shown") &&
			TAP_CHECK((page.entry & 0x25) == (bits & 0x25), "bits: %#llx",
				  (unsigned long long)page.entry) &&
			page.page_bytes == 4096));
	}
	passed &= child_passed(child);
	tap_result(passed, "frame numbers need CAP_SYS_ADMIN");
}

void test_pages(void)
{
	int device = open(MASTER, O_RDWR | O_CLOEXEC);

	test_entries(device);
	test_huge(device);
	test_kernel_addresses(device);
	test_masked(device);
	close(device);
}
