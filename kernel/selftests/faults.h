/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Makes one point of a call fail: an allocation or an access to the caller's
 * memory, if the kernel injects faults (Documentation/fault-injection).
 */
#ifndef TOLL_SELFTESTS_FAULTS_H
#define TOLL_SELFTESTS_FAULTS_H

#include <stdbool.h>

/* More faults than any call has points that can fail. */
#define FAULTS_MAX 1000

/* Returns a descriptor for the calling thread, negative without faults. */
int faults_open(void);
/* Sets the point that fails next, from 1; 0: none. */
void faults_set(int file, unsigned int nth);
/* Whether the fault is still pending, or came after the call. */
bool faults_are_over(int file);

/* Percentage of all allocations that fail, in every task and in interrupts. */
void faults_everywhere(unsigned int percent);

/* Makes every allocation of the calling thread fail, or none. */
void faults_of_thread(int file, bool fail);
/* Returns a descriptor for faults_of_thread(), negative without faults. */
int faults_of_thread_open(void);

#endif /* TOLL_SELFTESTS_FAULTS_H */
