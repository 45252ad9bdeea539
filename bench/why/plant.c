/*
 * Some work, plus one delay of a known kind that `toll run --why` has to find.
 *
 *     plant none|spin|call|lock|faults
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#define BASE_TURNS 4000000
#define BASE_READS 200
#define PLANTED_TURNS 6000000
#define PLANTED_CALLS 12
#define PLANTED_LOCK_US 3000
#define PLANTED_BYTES (16UL << 20)

static char buffer[1 << 18];

static __attribute__((noinline)) uint64_t base_work(uint64_t turns)
{
	volatile uint64_t sum = 0;

	for (uint64_t turn = 0; turn < turns; turn++)
		sum += turn;
	return sum;
}

static __attribute__((noinline)) uint64_t planted_spin(uint64_t turns)
{
	volatile uint64_t product = 1;

	for (uint64_t turn = 0; turn < turns; turn++)
		product *= 3;
	return product;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t held;

static void *hold(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&lock);
	pthread_barrier_wait(&held);
	usleep(PLANTED_LOCK_US);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static int planted_lock(void)
{
	pthread_t holder;

	if (pthread_barrier_init(&held, NULL, 2) ||
	    pthread_create(&holder, NULL, hold, NULL))
		return 1;
	pthread_barrier_wait(&held);
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	return pthread_join(holder, NULL);
}

static int planted_calls(void)
{
	for (int call = 0; call < PLANTED_CALLS; call++)
		if (getrandom(buffer, sizeof(buffer), 0) < 0)
			return 1;
	return 0;
}

static int planted_faults(void)
{
	char *memory = mmap(NULL, PLANTED_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return 1;
	for (size_t at = 0; at < PLANTED_BYTES; at += 4096)
		memory[at] = 1;
	return munmap(memory, PLANTED_BYTES);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "none";
	int zero = open("/dev/zero", O_RDONLY);

	if (zero < 0)
		return 1;
	base_work(BASE_TURNS);
	for (int turn = 0; turn < BASE_READS; turn++)
		if (read(zero, buffer, 1 << 16) < 0)
			return 1;
	if (!strcmp(what, "spin"))
		return planted_spin(PLANTED_TURNS) == 0;
	if (!strcmp(what, "call"))
		return planted_calls();
	if (!strcmp(what, "lock"))
		return planted_lock();
	if (!strcmp(what, "faults"))
		return planted_faults();
	return strcmp(what, "none") != 0;
}
