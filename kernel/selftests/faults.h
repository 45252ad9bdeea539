/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One place of a call fails: an allocation or an access to the caller's memory,
 * where the kernel injects faults (Documentation/fault-injection).
 */
#ifndef TOLL_SELFTESTS_FAULTS_H
#define TOLL_SELFTESTS_FAULTS_H

#include <stdbool.h>

/* More faults than any call has places for. */
#define FAULTS_MAX 1000

/* A descriptor for the calling thread, negative where there are no faults. */
int faults_open(void);
/* The place that fails next, from 1; 0: none. */
void faults_set(int file, unsigned int nth);
/* Whether the fault still waits for its turn, or came after the call. */
bool faults_are_over(int file);

/* Percent of all allocations that fail, of every task and of interrupts. */
void faults_everywhere(unsigned int percent);

/* Every allocation of the calling thread fails, or none. */
void faults_of_thread(int file, bool fail);
/* A descriptor for that, negative where there are no faults. */
int faults_of_thread_open(void);

#endif /* TOLL_SELFTESTS_FAULTS_H */
