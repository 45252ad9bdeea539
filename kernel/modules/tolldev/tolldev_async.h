/* SPDX-License-Identifier: GPL-2.0 */
/* Asynchronous mode: calls queue, a worker sends and receives. */
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

/* Who wants to know that a transfer has ended. */
enum tolldev_transfer_end {
	TOLLDEV_REAPED, /* TOLL_DEVICE_REAP */
	TOLLDEV_AWAITED, /* the call that queued it, which is waiting */
	TOLLDEV_ABANDONED, /* nobody any more */
};

/**
 * struct tolldev_transfer - A part of a buffer on its way
 * @entry: In one of the lists of struct tolldev_async.
 * @sequence: Its number, from 1.
 * @buffer: A reference, until it has ended.
 * @offset: Where the part begins.
 * @length: Its bytes.
 * @done: Bytes transferred so far. The worker's.
 * @result: Once it has ended: bytes or a negative errno.
 * @stream_before: How many bytes of write() go before it, modulo 2^32.
 * @end: Who wants to know of its end.
 * @has_ended: Set for TOLLDEV_AWAITED.
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

/* What is received goes to read() or to TOLL_DEVICE_RECEIVE, never to both. */
enum tolldev_receiver {
	TOLLDEV_UNDECIDED,
	TOLLDEV_READ,
	TOLLDEV_RECEIVE,
};

/**
 * struct tolldev_async - Queues and worker of a connection
 * @file: Whose.
 * @connection: The socket.
 * @lock: Guards lists, numbers, errors and @receiver.
 * @free: Transfers that may be queued.
 * @sends: Queued; the worker ends the first, and alone takes out.
 * @receives: The same.
 * @ended: To be reaped, in the order in which they ended.
 * @under_way: How many are queued.
 * @last_sequence: Number of the last that was queued.
 * @send_error: Negative errno that ended sending, or 0.
 * @receive_error: The same for receiving.
 * @at_end: The partner sends nothing more.
 * @finished: Nothing more may be queued to be sent.
 * @receiver: Decided by the first call that receives.
 * @write_lock: Makes one caller the producer of @outgoing.
 * @read_lock: Makes one caller the consumer of @incoming.
 * @outgoing: What write() left for the worker.
 * @incoming: What the worker received ahead of read().
 * @starved: The worker found @incoming full.
 * @send_work: Sends.
 * @receive_work: Receives.
 * @wait: Woken by tolldev_async_wake() for calls that wait.
 * @data_ready: The socket's own callbacks, as they were.
 * @write_space: The same.
 * @state_change: The same.
 * @error_report: The same.
 * @transfers: All that there are.
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
