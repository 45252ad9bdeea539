/* SPDX-License-Identifier: GPL-2.0 */
/* The state of an open file of a device. */
#ifndef TOLLDEV_FILE_H
#define TOLLDEV_FILE_H

#include <linux/atomic.h>
#include <linux/fs.h>
#include <linux/mutex.h>
#include <linux/net.h>
#include <linux/socket.h>
#include <linux/types.h>
#include <linux/wait.h>

#include "tolldev_buffer.h"
#include "toll_device.h"

struct tolldev_async;
struct tolldev_device;

/**
 * struct tolldev_counters - See struct toll_device_statistics
 */
struct tolldev_counters {
	atomic64_t bytes_sent;
	atomic64_t bytes_received;
	atomic64_t sends;
	atomic64_t receives;
	atomic64_t waits;
	atomic64_t queued_max;
};

/**
 * struct tolldev_forward - Forwards wake-ups of a socket
 * @entry: An entry in the wait queue of the socket.
 * @to: Woken with the same events.
 */
struct tolldev_forward {
	wait_queue_entry_t entry;
	wait_queue_head_t *to;
};

/**
 * struct tolldev_file - State of an open file
 * @device: Device that was opened.
 * @setup: Held while a connection is made and while settings change.
 * @mode: See struct toll_device_settings. Written under @setup.
 * @no_delay: See struct toll_device_settings. Written under @setup.
 * @listener: Set once, under @setup.
 * @connection: NULL, then set once, under @setup. It is stored by a release, so
 *	that a thread that sees it also sees @async. Both sockets stay until the
 *	file is released, since another thread may wait on them.
 * @async: Queues of asynchronous mode, set before @connection; else NULL.
 * @buffer: Has a lock of its own.
 * @counters: What this file has done.
 * @published_bytes: Bytes that TOLL_DEVICE_PUBLISHED_TRANSFER has moved.
 * @events: All pollers wait here. A poller that came before there was a socket
 *	is also woken when something happens on the socket.
 * @listener_wakes: Forwards wake-ups of the listener to @events.
 * @connection_wakes: Forwards wake-ups of the connection to @events.
 */
struct tolldev_file {
	struct tolldev_device *device;
	struct mutex setup; /* see above */
	u32 mode;
	u32 no_delay;
	struct socket *listener;
	struct socket *connection;
	struct tolldev_async *async;
	struct tolldev_buffer_holder buffer;
	struct tolldev_counters counters;
	atomic64_t published_bytes;
	wait_queue_head_t events;
	struct tolldev_forward listener_wakes;
	struct tolldev_forward connection_wakes;
};

/* From tolldev_file.c */
void tolldev_forward_start(struct tolldev_forward *forward,
			   struct socket *sock, wait_queue_head_t *to);

/* From tolldev_settings.c */
void tolldev_settings_init(struct tolldev_file *state);
int tolldev_settings_set(struct tolldev_file *state,
			 const struct toll_device_settings *settings);
void tolldev_settings_get(struct tolldev_file *state,
			  struct toll_device_settings *settings);

/* From tolldev_stream.c */
int tolldev_send_message(struct tolldev_file *state, struct msghdr *message);
int tolldev_receive_message(struct tolldev_file *state, struct msghdr *message,
			    int flags);
ssize_t tolldev_stream_write(struct tolldev_file *state, struct iov_iter *from,
			     int flags);
ssize_t tolldev_stream_read(struct tolldev_file *state, struct iov_iter *to,
			    int flags);
ssize_t tolldev_stream_transfer(struct tolldev_file *state, bool sends,
				struct tolldev_buffer *buffer, size_t offset,
			       size_t length, bool nonblock);

/**
 * tolldev_connection() - The connection of a file
 * @state: Its state.
 *
 * Return: the connection, or NULL. Once there is one, @state->async no longer
 * changes.
 */
static inline struct socket *tolldev_connection(struct tolldev_file *state)
{
	/* Pairs with the release in tolldev_ioctl.c. */
	return smp_load_acquire(&state->connection);
}

/**
 * tolldev_is_nonblock() - Whether calls of a file must not wait
 * @file: The file.
 *
 * Return: whether O_NONBLOCK is set, by open(2) or fcntl(2).
 */
static inline bool tolldev_is_nonblock(const struct file *file)
{
	return file->f_flags & O_NONBLOCK;
}

#endif /* TOLLDEV_FILE_H */
