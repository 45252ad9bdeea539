/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the system calls and the module do alike, so that a difference between
 * them is one between their ways in.
 */
#ifndef TOLL_COUNT_PRIMES_WORK_H
#define TOLL_COUNT_PRIMES_WORK_H

#include <linux/toll_primes.h>
#include <linux/types.h>

int toll_primes_published(u32 n, u64 *primes);
int toll_primes_work(struct toll_primes *request);

#endif /* TOLL_COUNT_PRIMES_WORK_H */
