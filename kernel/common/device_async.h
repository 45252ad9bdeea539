/* SPDX-License-Identifier: GPL-2.0 */
/* Asynchronous mode: calls queue, a worker sends and receives. */
#ifndef TOLL_DEVICE_ASYNC_H
#define TOLL_DEVICE_ASYNC_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "device_ring.h"
#include "toll_device.h"

struct device_buffer;
struct device_file;
struct sock;
struct socket;

/* Who wants to know that a transfer has ended. */
enum device_transfer_end {
	DEVICE_REAPED, /* TOLL_DEVICE_REAP */
	DEVICE_AWAITED, /* the call that queued it, which is waiting */
	DEVICE_ABANDONED, /* nobody any more */
};

/**
 * struct device_transfer - A part of a buffer on its way
 * @entry: In one of the lists of struct device_async.
 * @sequence: Its number, from 1.
 * @buffer: A reference, until it has ended.
 * @offset: Where the part begins.
 * @length: Its bytes.
 * @done: Bytes transferred so far. The worker's.
 * @result: Once it has ended: bytes or a negative errno.
 * @stream_before: How many bytes of write() go before it, modulo 2^32.
 * @end: Who wants to know of its end.
 * @has_ended: Set for DEVICE_AWAITED.
 */
struct device_transfer {
	struct list_head entry;
	u64 sequence;
	struct device_buffer *buffer;
	size_t offset;
	size_t length;
	size_t done;
	s64 result;
	u32 stream_before;
	enum device_transfer_end end;
	bool has_ended;
};

/* What is received goes to read() or to TOLL_DEVICE_RECEIVE, never to both. */
enum device_receiver {
	DEVICE_UNDECIDED,
	DEVICE_READ,
	DEVICE_RECEIVE,
};

/**
 * struct device_async - Queues and worker of a connection
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
 * @wait: Woken when anything above has changed for a caller.
 * @data_ready: The socket's own callbacks, as they were.
 * @write_space: The same.
 * @state_change: The same.
 * @error_report: The same.
 * @transfers: All that there are.
 */
struct device_async {
	struct device_file *file;
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
	enum device_receiver receiver;
	struct mutex write_lock; /* see above */
	struct mutex read_lock; /* see above */
	struct device_ring outgoing;
	struct device_ring incoming;
	int starved;
	struct delayed_work send_work;
	struct delayed_work receive_work;
	wait_queue_head_t wait;
	void (*data_ready)(struct sock *sk);
	void (*write_space)(struct sock *sk);
	void (*state_change)(struct sock *sk);
	void (*error_report)(struct sock *sk);
	struct device_transfer transfers[TOLL_DEVICE_QUEUE_MAX];
};

/* From device_async.c */
int device_async_start(struct device_file *file, struct socket *connection);
void device_async_stop(struct device_async *async);
ssize_t device_async_write(struct device_async *async, struct iov_iter *from,
			   bool nonblock);
ssize_t device_async_read(struct device_async *async, struct iov_iter *to,
			  bool nonblock);
int device_async_finish(struct device_async *async, bool nonblock);
__poll_t device_async_poll(struct device_async *async, struct file *file,
			   poll_table *wait);

/* From device_queue.c */
ssize_t device_async_queue(struct device_async *async, bool sends,
			   struct device_buffer *buffer,
			   struct toll_device_transfer *transfer,
			   bool nonblock);
ssize_t device_async_transfer(struct device_async *async, bool sends,
			      struct device_buffer *buffer, size_t offset,
			      size_t length, bool nonblock);
int device_async_reap(struct device_async *async,
		      struct toll_device_completion *completion,
		      bool nonblock);
void device_async_end(struct device_async *async,
		      struct device_transfer *transfer, s64 result);

/* From device_worker.c */
int device_worker_create(void);
void device_worker_destroy(void);
void device_worker_init(struct device_async *async);
void device_worker_wake_sender(struct device_async *async);
void device_worker_wake_receiver(struct device_async *async);
void device_worker_cancel(struct device_async *async);

#endif /* TOLL_DEVICE_ASYNC_H */
