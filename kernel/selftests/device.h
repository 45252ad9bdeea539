/* SPDX-License-Identifier: GPL-2.0 */
/* The two devices, connected in this program, and what they must do. */
#ifndef TOLL_SELFTESTS_DEVICE_H
#define TOLL_SELFTESTS_DEVICE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "toll_device.h"

#define MASTER "/dev/master_device"
#define SLAVE "/dev/slave_device"

/* Both ends of a connection. */
struct pair {
	int master;
	int slave;
};

/* From device_pair.c; errors are positive, results as of system calls. */
void loopback_up(void);
struct toll_device_endpoint loopback(int family, uint16_t port);
bool pair_open(struct pair *pair, int family, uint32_t mode, uint32_t buffer_bytes);
void pair_close(struct pair *pair);
int set_settings(int device, uint32_t buffer_bytes, uint32_t mode);
int set_nonblock(int device, bool nonblock);
int command(int device, unsigned long number, void *argument);
/* SEND or RECEIVE; returns bytes, or a negative errno. */
int64_t transfer(int device, unsigned long number, uint64_t offset, uint64_t length);
/* Queues a SEND or RECEIVE; returns its number, or a negative errno. */
int64_t queue(int device, unsigned long number, uint64_t offset, uint64_t length);
int64_t reap(int device, uint64_t *sequence, uint32_t timeout_ms);
void *map(int device, size_t bytes);
void fill(void *bytes, size_t count, uint64_t seed, uint64_t position);
bool is_filled(const void *bytes, size_t count, uint64_t seed, uint64_t position);
bool write_all(int file, const void *bytes, size_t count);
/* Reads up to the end or to count; returns the bytes. */
size_t read_all(int file, void *bytes, size_t count);
/* Writes or reads a filled stream of this many bytes in pieces. */
bool write_filled(int file, uint64_t bytes, size_t piece, uint64_t seed);
bool read_filled(int file, uint64_t bytes, size_t piece, uint64_t seed);
int poll_events(int file, short events, int timeout_ms);
/* Whether the exit status of a child is 0. */
bool child_passed(pid_t child);

/* From device_modules.c: parameters in /sys/module; false if a check failed. */
bool parameter_reads(const char *module, const char *name, const char *expected);
bool parameter_set(const char *module, const char *name, const char *value, bool taken);

/* From the files device_*.c, in the order of the calls */
void test_modules(const char *directory);
void test_connections(void);
void test_streams(uint32_t mode);
void test_mappings(void);
void test_published(void);
void test_pages(void);
void test_log(void);
void test_queues(void);
void test_partners(uint32_t mode);
void test_waits(uint32_t mode);
void test_refusals(void);
void test_races(uint64_t seed);
void test_events(void);
void test_device_faults(void);
void test_device_calls(uint64_t seed, unsigned long calls);

/* From device_pair.c */
const char *mode_name(uint32_t mode);
void result(uint32_t mode, bool passed, const char *what);

#endif /* TOLL_SELFTESTS_DEVICE_H */
