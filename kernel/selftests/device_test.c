// SPDX-License-Identifier: GPL-2.0
/*
 * Files through /dev/master_device and /dev/slave_device, which are connected
 * in one program and with peers of all kinds:
 *
 *     device_test --module-directory /modules [--seed N] [--calls N]
 *
 * Loads and unloads the modules itself, so run it in a guest.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "device.h"
#include "module.h"
#include "tap.h"

static void test_devices(uint64_t seed, unsigned long calls)
{
	static const uint32_t modes[] = { TOLL_DEVICE_SYNC, TOLL_DEVICE_FASYNC, TOLL_DEVICE_ASYNC };
	size_t i;

	test_connections();
	for (i = 0; i < 3; i++) {
		test_streams(modes[i]);
		test_partners(modes[i]);
		test_waits(modes[i]);
	}
	test_mappings();
	test_published();
	test_pages();
	test_log();
	test_queues();
	test_refusals();
	test_races(seed);
	test_events();
	test_device_faults();
	test_device_calls(seed, calls);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "module-directory", required_argument, NULL, 'm' },
		{ "seed", required_argument, NULL, 's' },
		{ "calls", required_argument, NULL, 'c' },
		{ 0 },
	};
	uint64_t seed = (uint64_t)time(NULL);
	unsigned long calls = 1000000;
	const char *directory = NULL;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'm':
			directory = optarg;
			break;
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'c':
			calls = strtoul(optarg, NULL, 0);
			break;
		default:
			directory = NULL;
			optind = argc;
		}
	}
	if (!directory) {
		fprintf(stderr, "usage: %s --module-directory DIR [--seed N] [--calls N]\n",
			argv[0]);
		return 2;
	}
	tap_begin();
	loopback_up();
	test_modules(directory);
	test_devices(seed, calls);
	tap_result(module_unload("master") == 0 && module_unload("slave") == 0 &&
		   module_unload("tolldev") == 0,
		   "the modules unload after all tests");
	tap_end();
}
