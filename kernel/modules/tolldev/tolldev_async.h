/* SPDX-License-Identifier: GPL-2.0 */
/* Asynchronous mode: calls use queues, and a worker uses the socket. */
#ifndef TOLLDEV_ASYNC_H
#define TOLLDEV_ASYNC_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "tolldev_ring.h"
#include "toll_device.h"

struct tolldev_buffer;
struct tolldev_file;
struct sock;
struct socket;

/* Who takes the result of a transfer that has ended. */
enum tolldev_transfer_end {
	TOLLDEV_REAPED, /* TOLL_DEVICE_REAP */
	TOLLDEV_AWAITED, /* the call that queued it and waits for its end */
	TOLLDEV_ABANDONED, /* nobody: a signal ended the call that waited */
};

/**
 * struct tolldev_transfer - A part of a buffer to be sent or filled
 * @entry: Links it into one of the lists of struct tolldev_async.
 * @sequence: Its number, from 1.
 * @buffer: The buffer, with a reference until the transfer has ended.
 * @offset: Where the part begins.
 * @length: Its length in bytes.
 * @done: Bytes transferred so far. Only the worker uses it.
 * @result: Once it has ended: bytes or a negative errno.
 * @stream_before: Bytes of write() that must be sent before it: all that the
 *	connection had taken when it was queued, modulo 2^32.
 * @end: Who takes its result.
 * @has_ended: Set at the end of a transfer that is TOLLDEV_AWAITED.
 */
struct tolldev_transfer {
	struct list_head entry;
	u64 sequence;
	struct tolldev_buffer *buffer;
	size_t offset;
	size_t length;
	size_t done;
	s64 result;
	u32 stream_before;
	enum tolldev_transfer_end end;
	bool has_ended;
};

/* Which call gets received bytes: read() or TOLL_DEVICE_RECEIVE, never both. */
enum tolldev_receiver {
	TOLLDEV_UNDECIDED,
	TOLLDEV_READ,
	TOLLDEV_RECEIVE,
};

/**
 * struct tolldev_async - Queues and worker of a connection
 * @file: The file that the connection belongs to.
 * @connection: The socket.
 * @lock: Guards lists, numbers, errors and @receiver.
 * @free: Transfers that are not in use.
 * @sends: Transfers that wait to be sent. The worker sends the first one, and
 *	only the worker removes one.
 * @receives: Transfers that wait to be filled, with the same rules.
 * @ended: Transfers to be reaped, in the order in which they ended.
 * @under_way: Number of transfers in @sends and @receives.
 * @last_sequence: Number of the transfer that was queued last.
 * @send_error: Negative errno that ended sending, or 0.
 * @receive_error: Negative errno that ended receiving, or 0.
 * @at_end: The peer sends nothing more.
 * @finished: TOLL_DEVICE_FINISH was called: nothing more may be sent.
 * @receiver: Decided by the first call that receives.
 * @write_lock: Held by the one caller that may add to @outgoing.
 * @read_lock: Held by the one caller that may take from @incoming.
 * @outgoing: Bytes of write() that the worker has not sent yet.
 * @incoming: Bytes that the worker received before read() asked for them.
 * @starved: The worker stopped receiving, since @incoming was full.
 * @send_work: The part of the worker that sends.
 * @receive_work: The part of the worker that receives.
 * @wait: Woken by tolldev_async_wake() for calls that wait.
 * @data_ready: The socket's own callback, which ours calls, and which is put
 *	back when the file is released.
 * @write_space: Likewise, the socket's own callback.
 * @state_change: Likewise, the socket's own callback.
 * @error_report: Likewise, the socket's own callback.
 * @transfers: Memory of all transfers.
 */
struct tolldev_async {
	struct tolldev_file *file;
	struct socket *connection;
	spinlock_t lock; /* see above */
	struct list_head free;
	struct list_head sends;
	struct list_head receives;
	struct list_head ended;
	unsigned int under_way;
	u64 last_sequence;
	int send_error;
	int receive_error;
	bool at_end;
	bool finished;
	enum tolldev_receiver receiver;
	struct mutex write_lock; /* see above */
	struct mutex read_lock; /* see above */
	struct tolldev_ring outgoing;
	struct tolldev_ring incoming;
	int starved;
	struct delayed_work send_work;
	struct delayed_work receive_work;
	wait_queue_head_t wait;
	void (*data_ready)(struct sock *sk);
	void (*write_space)(struct sock *sk);
	void (*state_change)(struct sock *sk);
	void (*error_report)(struct sock *sk);
	struct tolldev_transfer transfers[TOLL_DEVICE_QUEUE_MAX];
};

/* From tolldev_async.c */
int tolldev_async_start(struct tolldev_file *file, struct socket *connection);
void tolldev_async_stop(struct tolldev_async *async);
ssize_t tolldev_async_write(struct tolldev_async *async, struct iov_iter *from,
			    bool nonblock);
ssize_t tolldev_async_read(struct tolldev_async *async, struct iov_iter *to,
			   bool nonblock);
int tolldev_async_finish(struct tolldev_async *async, bool nonblock);
__poll_t tolldev_async_poll(struct tolldev_async *async, struct file *file);
void tolldev_async_wake(struct tolldev_async *async);

/* From tolldev_queue.c */
ssize_t tolldev_async_queue(struct tolldev_async *async, bool sends,
			    struct tolldev_buffer *buffer,
			   struct toll_device_transfer *transfer,
			   bool nonblock);
ssize_t tolldev_async_transfer(struct tolldev_async *async, bool sends,
			       struct tolldev_buffer *buffer, size_t offset,
			      size_t length, bool nonblock);
int tolldev_async_reap(struct tolldev_async *async,
		       struct toll_device_completion *completion,
		      bool nonblock);
void tolldev_async_end(struct tolldev_async *async,
		       struct tolldev_transfer *transfer, s64 result);

/* From tolldev_worker.c */
int tolldev_worker_create(void);
void tolldev_worker_destroy(void);
void tolldev_worker_init(struct tolldev_async *async);
void tolldev_worker_wake_sender(struct tolldev_async *async);
void tolldev_worker_wake_receiver(struct tolldev_async *async);
void tolldev_worker_cancel(struct tolldev_async *async);

#endif /* TOLLDEV_ASYNC_H */
