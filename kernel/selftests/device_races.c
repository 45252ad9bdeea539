// SPDX-License-Identifier: GPL-2.0
/* Several threads open, close, map, unmap and call, all on the same files. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device.h"
#include "device_calls.h"
#include "random.h"
#include "tap.h"

#define THREADS 6
#define CALLS 3000

static int shared_files[FILES];
static char *shared_page;

static void *call_at_random(void *argument)
{
	struct caller caller = {
		.random = *(const uint64_t *)argument,
		.files = shared_files,
		.page = shared_page,
	};
	bool passed = true;
	int call;

	for (call = 0; passed && call < CALLS; call++)
		passed = random_call(&caller);
	if (caller.mapped)
		munmap(caller.mapped, caller.mapped_bytes);
	return passed ? argument : NULL;
}

static void test_random_threads(uint64_t seed)
{
	pthread_t threads[THREADS];
	uint64_t seeds[THREADS];
	bool passed = true;
	int i;

	shared_page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(shared_page + 4096, 4096);
	for (i = 0; i < FILES; i++)
		shared_files[i] = open_file(i);
	tap_note("%d threads of random calls, --seed %llu", THREADS, (unsigned long long)seed);
	for (i = 0; i < THREADS; i++) {
		seeds[i] = random_next(&seed);
		if (pthread_create(&threads[i], NULL, call_at_random, &seeds[i]))
			abort();
	}
	for (i = 0; i < THREADS; i++) {
		void *answer;

		pthread_join(threads[i], &answer);
		passed &= TAP_CHECK(answer, "thread %d", i);
	}
	for (i = 0; i < FILES; i++)
		close(shared_files[i]);
	munmap(shared_page, 4096);
	tap_result(passed, "random calls of several threads are answered as the header says");
}

static void *resize_and_map(void *argument)
{
	const struct pair *pair = argument;
	int i;

	for (i = 0; i < 400; i++) {
		char *mapped = map(pair->master, 4096);

		if (mapped != MAP_FAILED) {
			mapped[i]++;
			munmap(mapped, 4096);
		}
		set_settings(pair->master, i % 2 ? 65536 : 4096, TOLL_DEVICE_ASYNC);
	}
	return NULL;
}

/* The buffer is mapped and replaced while it is being sent. */
static void test_resized_in_use(void)
{
	struct pair pair;
	bool passed = pair_open(&pair, AF_INET, TOLL_DEVICE_ASYNC, 4096);
	uint64_t sequence, sent = 0;
	pthread_t thread;
	pid_t child;
	int i;

	child = fork();
	if (child == 0) {
		char bytes[4096];

		close(pair.master);
		while (read(pair.slave, bytes, sizeof(bytes)) > 0)
			;
		_exit(0);
	}
	if (pthread_create(&thread, NULL, resize_and_map, &pair))
		abort();
	for (i = 0; passed && i < 400; i++) {
		int64_t number = queue(pair.master, TOLL_DEVICE_SEND, 0, 4096);

		passed &= TAP_CHECK(number > 0, "SEND %d: %lld", i, (long long)number);
		passed &= TAP_CHECK(reap(pair.master, &sequence, 0) == 4096, "REAP %d", i);
		sent++;
	}
	pthread_join(thread, NULL);
	passed &= TAP_CHECK(!command(pair.master, TOLL_DEVICE_FINISH, NULL) && sent == 400,
			    "FINISH");
	passed &= child_passed(child);
	pair_close(&pair);
	tap_result(passed, "async: a buffer is replaced while it is sent");
}

void test_races(uint64_t seed)
{
	test_resized_in_use();
	test_random_threads(seed);
}
