/* SPDX-License-Identifier: GPL-2.0 */
/* What an open file of a device is made of. */
#ifndef TOLL_DEVICE_INTERNAL_H
#define TOLL_DEVICE_INTERNAL_H

#include <linux/atomic.h>
#include <linux/fs.h>
#include <linux/mutex.h>
#include <linux/net.h>
#include <linux/socket.h>
#include <linux/types.h>
#include <linux/wait.h>

#include "device_buffer.h"
#include "toll_device.h"

struct device_async;

/**
 * struct device_role - What a module is
 * @listens: It waits for a connection; else it makes one.
 */
struct device_role {
	bool listens;
};

/**
 * struct device_counters - See struct toll_device_statistics
 */
struct device_counters {
	atomic64_t bytes_sent;
	atomic64_t bytes_received;
	atomic64_t sends;
	atomic64_t receives;
	atomic64_t waits;
	atomic64_t queued_max;
};

/**
 * struct device_file - State of an open file
 * @setup: Held while a connection comes about and while settings change.
 * @mode: See struct toll_device_settings. Written under @setup.
 * @no_delay: The same.
 * @listener: Set once, under @setup.
 * @connection: Set once, under @setup, by a release that what was set before
 *	is seen with; NULL before. Both sockets stay until the file is
 *	released, since somebody may wait on them.
 * @async: Set before the connection where the mode asks for it, else NULL.
 * @buffer: Has a lock of its own.
 * @counters: Of this file.
 * @connected: Woken when there is a connection.
 */
struct device_file {
	struct mutex setup; /* see above */
	u32 mode;
	u32 no_delay;
	struct socket *listener;
	struct socket *connection;
	struct device_async *async;
	struct device_buffer_holder buffer;
	struct device_counters counters;
	wait_queue_head_t connected;
};

/* From the module. */
extern const struct device_role device_role;

/* From device_file.c */
extern const struct file_operations device_operations;

/* From device_ioctl.c */
long device_ioctl(struct file *file, unsigned int command,
		  unsigned long argument);

/* From device_settings.c */
void device_settings_init(struct device_file *state);
int device_settings_set(struct device_file *state,
			const struct toll_device_settings *settings);
void device_settings_get(struct device_file *state,
			 struct toll_device_settings *settings);

/* From device_stream.c */
int device_send_message(struct device_file *state, struct msghdr *message);
int device_receive_message(struct device_file *state, struct msghdr *message,
			   int flags);
ssize_t device_stream_write(struct device_file *state, struct iov_iter *from,
			    int flags);
ssize_t device_stream_read(struct device_file *state, struct iov_iter *to,
			   int flags);
ssize_t device_stream_transfer(struct device_file *state, bool sends,
			       struct device_buffer *buffer, size_t offset,
			       size_t length, bool nonblock);

/**
 * device_connection() - The connection of a file
 * @state: Its state.
 *
 * Return: it, or NULL. Where there is one, @state->async is final.
 */
static inline struct socket *device_connection(struct device_file *state)
{
	/* Pairs with the release in device_ioctl.c. */
	return smp_load_acquire(&state->connection);
}

/**
 * device_is_nonblock() - Whether calls of a file must not wait
 * @file: The file.
 *
 * Return: whether it was opened with O_NONBLOCK, or was made so.
 */
static inline bool device_is_nonblock(const struct file *file)
{
	return file->f_flags & O_NONBLOCK;
}

#endif /* TOLL_DEVICE_INTERNAL_H */
