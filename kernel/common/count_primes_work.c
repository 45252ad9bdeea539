// SPDX-License-Identifier: GPL-2.0
#include <linux/capability.h>
#include <linux/errno.h>
#include <linux/gfp.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/printk.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/vmalloc.h>

#include "count_primes_core.h"
#include "count_primes_work.h"

/* Numbers of 1 MiB, drawn between two looks at signals. */
#define DRAW_CHUNK (256u * 1024)

/*
 * Between two chunks: let others run, and give up for a caller that is being
 * killed. Nobody is left to see the error then.
 */
static int toll_primes_pause(void)
{
	if (fatal_signal_pending(current))
		return -EINTR;
	cond_resched();
	return 0;
}

/* All random bytes come of one call, up to 1 MiB. */
static int toll_primes_draw_bulk(u32 *numbers, u32 n)
{
	u32 done, chunk, i;
	int err;

	for (done = 0; done < n; done += chunk) {
		chunk = min(n - done, DRAW_CHUNK);
		get_random_bytes(numbers + done, chunk * sizeof(*numbers));
		err = toll_primes_pause();
		if (err)
			return err;
	}
	for (i = 0; i < n; i++)
		numbers[i] = toll_number_in_range(numbers[i], n);
	return 0;
}

static int toll_primes_draw_each(u32 *numbers, u32 n)
{
	u32 i;
	int err;

	for (i = 0; i < n; i++) {
		if (i % TOLL_PRIMES_CHUNK == 0) {
			err = toll_primes_pause();
			if (err)
				return err;
		}
		numbers[i] = toll_number_in_range(get_random_u32(), n);
	}
	return 0;
}

static int toll_primes_draw(u32 *numbers, const struct toll_primes *request)
{
	switch (request->random) {
	case TOLL_PRIMES_BULK:
		return toll_primes_draw_bulk(numbers, request->n);
	case TOLL_PRIMES_EACH:
		return toll_primes_draw_each(numbers, request->n);
	default:
		toll_draw_numbers(numbers, request->n, request->seed);
		return 0;
	}
}

/* Counts the primes, a chunk at a time. */
static int toll_primes_count(const u32 *numbers, u32 n, u64 *primes)
{
	u32 done, chunk;
	int err;

	*primes = 0;
	for (done = 0; done < n; done += chunk) {
		err = toll_primes_pause();
		if (err)
			return err;
		chunk = min(n - done, TOLL_PRIMES_CHUNK);
		*primes += toll_count_primes(numbers + done, chunk);
	}
	return 0;
}

/**
 * toll_primes_published() - Count primes as the published kernel code did
 * @n: How many numbers, and the largest; 2 to TOLL_PRIMES_N_MAX.
 * @primes: Out: how many are prime.
 *
 * Gets memory by kmalloc(), prints @n, draws all numbers at once and counts.
 * No clock is read: the published system call left that to its caller.
 *
 * Return: 0; -ENOMEM; -EINTR where the caller is being killed.
 */
int toll_primes_published(u32 n, u64 *primes)
{
	u32 *numbers;
	int err;

	numbers = kmalloc_array(n, sizeof(*numbers),
				GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!numbers)
		return -ENOMEM;
	pr_info("toll_primes: %u numbers\n", n);
	err = toll_primes_draw_bulk(numbers, n);
	if (!err)
		err = toll_primes_count(numbers, n, primes);
	kfree(numbers);
	return err;
}

static int toll_primes_check(const struct toll_primes *request)
{
	if (request->n < 2 || request->n > TOLL_PRIMES_N_MAX)
		return -EINVAL;
	if (request->flags & ~TOLL_PRIMES_PRINT)
		return -EINVAL;
	if (request->random > TOLL_PRIMES_EACH)
		return -EINVAL;
	if (request->allocation > TOLL_PRIMES_KVMALLOC)
		return -EINVAL;
	if (request->random != TOLL_PRIMES_SEEDED && request->seed)
		return -EINVAL;
	if (request->reserved)
		return -EINVAL;
	/* Whoever may call must not be able to flush others' messages out. */
	if (request->flags & TOLL_PRIMES_PRINT && !capable(CAP_SYSLOG))
		return -EPERM;
	return 0;
}

static u32 *toll_primes_allocate(const struct toll_primes *request)
{
	size_t size = request->n * sizeof(u32);
	gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_NOWARN;

	switch (request->allocation) {
	case TOLL_PRIMES_VMALLOC:
		return __vmalloc(size, gfp);
	case TOLL_PRIMES_KVMALLOC:
		return kvmalloc(size, gfp);
	default:
		return kmalloc(size, gfp);
	}
}

/**
 * toll_primes_work() - Do a request and time its parts
 * @request: Checked first; the out fields are set on success only.
 *
 * Return: 0; -EINVAL or -EPERM for a request that struct toll_primes does not
 * allow; -ENOMEM; -EINTR where the caller is being killed.
 */
int toll_primes_work(struct toll_primes *request)
{
	u64 started, allocated, drawn, primes;
	u32 *numbers;
	int err;

	err = toll_primes_check(request);
	if (err)
		return err;

	started = ktime_get_ns();
	numbers = toll_primes_allocate(request);
	if (!numbers)
		return -ENOMEM;
	allocated = ktime_get_ns();
	err = toll_primes_draw(numbers, request);
	if (err)
		goto out_free_numbers;
	drawn = ktime_get_ns();
	err = toll_primes_count(numbers, request->n, &primes);
	if (err)
		goto out_free_numbers;
	if (request->flags & TOLL_PRIMES_PRINT)
		pr_info("toll_primes: %llu primes among %u numbers\n", primes,
			request->n);
	request->count_ns = ktime_get_ns() - drawn;
	request->draw_ns = drawn - allocated;
	request->allocate_ns = allocated - started;
	request->primes = primes;

out_free_numbers:
	kvfree(numbers);
	return err;
}
