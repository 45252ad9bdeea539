// SPDX-License-Identifier: GPL-2.0
/* The modules themselves: loading, unloading and their parameters. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device.h"
#include "module.h"
#include "tap.h"

#define LOADS 200

static char shared_path[256];
static char paths[2][256];
static const char *const names[2] = { "master", "slave" };
static const char *const nodes[2] = { MASTER, SLAVE };

bool parameter_reads(const char *module, const char *name, const char *expected)
{
	char path[128], value[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/sys/module/%s/parameters/%s", module, name);
	file = fopen(path, "r");
	if (!TAP_CHECK(file, "%s: %s", path, strerror(errno)))
		return false;
	if (fgets(value, sizeof(value), file))
		value[strcspn(value, "\n")] = '\0';
	fclose(file);
	return TAP_CHECK(!strcmp(value, expected), "%s is %s, not %s", path, value, expected);
}

bool parameter_set(const char *module, const char *name, const char *value, bool taken)
{
	char path[128];
	int file;
	bool was;

	snprintf(path, sizeof(path), "/sys/module/%s/parameters/%s", module, name);
	file = open(path, O_WRONLY | O_CLOEXEC);
	was = write(file, value, strlen(value)) == (ssize_t)strlen(value);
	close(file);
	return TAP_CHECK(was == taken, "%s: %s was %s", path, value, was ? "taken" : "refused");
}

static void test_loads(void)
{
	bool passed = true;
	int load, i;

	for (load = 0; passed && load < LOADS; load++) {
		struct pair pair;

		passed &= TAP_CHECK(!module_load(shared_path, ""), "load %d of tolldev", load);
		for (i = 0; i < 2; i++)
			passed &= TAP_CHECK(!module_load(paths[i], load % 2 ? "mode=async" : ""),
					    "load %d of %s", load, names[i]);
		/* A connection, so that a file's state is created and freed. */
		if (passed && load % 10 == 0)
			passed = pair_open(&pair, AF_INET, TOLL_DEVICE_ASYNC, 4096);
		if (passed && load % 10 == 0)
			pair_close(&pair);
		for (i = 0; i < 2; i++) {
			/* Its users hold it, whether they are open or not. */
			passed &= TAP_CHECK(module_unload("tolldev") == EWOULDBLOCK,
					    "tolldev went before %s", names[i]);
			passed &= TAP_CHECK(!module_unload(names[i]), "unload %d of %s", load,
					    names[i]);
			passed &= TAP_CHECK(access(nodes[i], F_OK) < 0, "%s stayed", nodes[i]);
		}
		passed &= TAP_CHECK(!module_unload("tolldev"), "unload %d of tolldev", load);
	}
	tap_result(passed, "the modules load and unload 200 times");
}

static void test_parameters(void)
{
	struct toll_device_settings settings;
	bool passed = true;
	int i;

	for (i = 0; i < 2; i++) {
		int device;

		passed &= TAP_CHECK(!module_load(paths[i], "buffer_bytes=4097 mode=2 no_delay=1"),
				    "%s", names[i]);
		passed &= parameter_reads(names[i], "buffer_bytes", "4097");
		passed &= parameter_reads(names[i], "mode", "async");
		passed &= parameter_reads(names[i], "no_delay", "Y");
		passed &= parameter_reads(names[i], "log", "Y");
		device = open(nodes[i], O_RDWR | O_CLOEXEC);
		memset(&settings, 0xff, sizeof(settings));
		passed &= TAP_CHECK(!command(device, TOLL_DEVICE_GET_SETTINGS, &settings) &&
				    settings.buffer_bytes == 4097 && settings.mode == 2 &&
				    settings.no_delay == 1 && settings.reserved == 0,
				    "settings of a new file: %u %u %u %u", settings.buffer_bytes,
				    settings.mode, settings.no_delay, settings.reserved);
		/* An open file keeps its settings. */
		passed &= parameter_set(names[i], "mode", "fasync", true);
		passed &= parameter_set(names[i], "buffer_bytes", "512", true);
		passed &= parameter_set(names[i], "buffer_bytes", "511", false);
		passed &= parameter_set(names[i], "buffer_bytes", "16777217", false);
		passed &= parameter_set(names[i], "mode", "quick", false);
		passed &= parameter_set(names[i], "mode", "3", false);
		passed &= parameter_reads(names[i], "buffer_bytes", "512");
		passed &= parameter_reads(names[i], "mode", "fasync");
		passed &= TAP_CHECK(!command(device, TOLL_DEVICE_GET_SETTINGS, &settings) &&
				    settings.buffer_bytes == 4097 && settings.mode == 2,
				    "an open file changed");
		close(device);
		passed &= TAP_CHECK(!module_unload(names[i]), "unload %s", names[i]);
	}
	tap_result(passed, "new files begin with the parameters");
}

static void test_refused_parameters(void)
{
	static const char *const refused[] = {
		"buffer_bytes=0", "buffer_bytes=511", "buffer_bytes=16777217", "buffer_bytes=-1",
		"buffer_bytes=x", "mode=3",	      "mode=meow",	       "no_delay=2",
		"log=2",
	};
	bool passed = true;
	size_t i;

	for (i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		int error = module_load(paths[i % 2], refused[i]);

		passed &= TAP_CHECK(error == EINVAL || error == ERANGE, "%s: error %d", refused[i],
				    error);
		passed &= TAP_CHECK(access(nodes[i % 2], F_OK) < 0, "%s is there", nodes[i % 2]);
		if (!error)
			module_unload(names[i % 2]);
	}
	tap_result(passed, "a load with parameters out of range is refused and leaves nothing");
}

static void test_in_use(void)
{
	bool passed = true;
	int i;

	for (i = 0; i < 2; i++) {
		int device = open(nodes[i], O_RDWR | O_CLOEXEC);
		char *mapped = map(device, 4096);

		passed &= TAP_CHECK(module_unload(names[i]) == EWOULDBLOCK, "%s: open", names[i]);
		close(device);
		passed &= TAP_CHECK(module_unload(names[i]) == EWOULDBLOCK, "%s: mapped", names[i]);
		/* The buffer exists as long as its mapping. */
		mapped[0] = 1;
		mapped[4095] = 2;
		passed &= TAP_CHECK(mapped[0] == 1 && mapped[4095] == 2 && mapped[1] == 0,
				    "the buffer changed");
		munmap(mapped, 4096);
	}
	tap_result(passed, "a module that is open or mapped cannot be unloaded");
}

/* Leaves both modules loaded, for the tests of their devices. */
void test_modules(const char *directory)
{
	bool passed = true;
	int i;

	for (i = 0; i < 2; i++)
		snprintf(paths[i], sizeof(paths[i]), "%s/%s.ko", directory, names[i]);
	snprintf(shared_path, sizeof(shared_path), "%s/tolldev.ko", directory);
	test_loads();
	passed &= TAP_CHECK(!module_load(shared_path, ""), "tolldev: %s", strerror(errno));
	test_parameters();
	test_refused_parameters();
	for (i = 0; i < 2; i++) {
		int error = module_load(paths[i], "");

		passed &= TAP_CHECK(!error, "%s: %s", paths[i], strerror(error));
	}
	tap_result(passed, "both modules load for the tests of their devices");
	if (passed)
		test_in_use();
}
