// SPDX-License-Identifier: GPL-2.0
/*
 * The worker of asynchronous mode. It never waits: it sends and receives what
 * the socket takes and has at once, and is woken by the socket's callbacks.
 */
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/net.h>
#include <linux/sched.h>
#include <linux/socket.h>
#include <linux/uio.h>
#include <linux/workqueue.h>
#include <net/sock.h>

#include "device.h"
#include "device_async.h"

/* Rounds before others have their turn, and before a file can be released. */
#define DEVICE_WORKER_ROUNDS 64

static struct workqueue_struct *device_workqueue;

/**
 * device_worker_create() - Get ready at load
 *
 * Return: 0 or -ENOMEM.
 */
int device_worker_create(void)
{
	/* Copying is much work for the CPU that an interrupt happened to hit. */
	device_workqueue = alloc_workqueue(KBUILD_MODNAME, WQ_UNBOUND, 0);
	return device_workqueue ? 0 : -ENOMEM;
}

/**
 * device_worker_destroy() - At unload
 */
void device_worker_destroy(void)
{
	destroy_workqueue(device_workqueue);
}

static int device_send_part(struct device_async *async, struct kvec *parts,
			    unsigned int count, size_t bytes)
{
	struct msghdr message = { .msg_flags = MSG_DONTWAIT };

	iov_iter_kvec(&message.msg_iter, ITER_SOURCE, parts, count, bytes);
	return device_send_message(async->file, &message);
}

static int device_receive_part(struct device_async *async, struct kvec *parts,
			       unsigned int count, size_t bytes)
{
	struct msghdr message = { };

	iov_iter_kvec(&message.msg_iter, ITER_DEST, parts, count, bytes);
	return device_receive_message(async->file, &message, MSG_DONTWAIT);
}

/* The connection is broken: what is queued will not be sent. */
static void device_fail_sends(struct device_async *async, int error)
{
	struct device_transfer *transfer;

	spin_lock(&async->lock);
	async->send_error = error;
	spin_unlock(&async->lock);
	device_ring_consumed(&async->outgoing,
			     device_ring_used(&async->outgoing));
	for (;;) {
		spin_lock(&async->lock);
		transfer = list_first_entry_or_null(&async->sends,
						    struct device_transfer,
						    entry);
		spin_unlock(&async->lock);
		if (!transfer)
			break;
		device_async_end(async, transfer,
				 transfer->done ? transfer->done : error);
	}
	wake_up_all(&async->wait);
}

/* Whether there may be more to do at once. */
static bool device_sent(struct device_async *async,
			struct device_transfer *transfer, int result)
{
	if (result == -EAGAIN) {
		/* Memory was missing: no partner's answer will wake us. */
		if (sk_stream_is_writeable(async->connection->sk))
			queue_delayed_work(device_workqueue, &async->send_work,
					   1);
		return false;
	}
	if (result < 0) {
		device_fail_sends(async, result);
		return false;
	}
	if (!transfer) {
		device_ring_consumed(&async->outgoing, result);
		wake_up_all(&async->wait);
		return true;
	}
	transfer->done += result;
	if (transfer->done == transfer->length)
		device_async_end(async, transfer, transfer->done);
	return true;
}

/* Sends what is first in the order of the calls. */
static bool device_send_step(struct device_async *async)
{
	struct device_transfer *transfer;
	struct kvec parts[2];
	unsigned int count;
	u32 stream_bytes;
	int error;

	/* What write() leaves behind a transfer comes after it is listed. */
	spin_lock(&async->lock);
	error = async->send_error;
	transfer = list_first_entry_or_null(&async->sends,
					    struct device_transfer, entry);
	stream_bytes = device_ring_used(&async->outgoing);
	if (transfer)
		stream_bytes = min(stream_bytes, transfer->stream_before -
							 async->outgoing.tail);
	spin_unlock(&async->lock);

	if (error) {
		device_fail_sends(async, error);
		return false;
	}
	if (stream_bytes) {
		count = device_ring_used_parts(&async->outgoing, parts,
					       stream_bytes);
		return device_sent(async, NULL,
				   device_send_part(async, parts, count,
						    stream_bytes));
	}
	if (!transfer)
		return false;
	if (!transfer->length) {
		device_async_end(async, transfer, 0);
		return true;
	}
	parts[0].iov_base = transfer->buffer->data + transfer->offset +
			    transfer->done;
	parts[0].iov_len = transfer->length - transfer->done;
	return device_sent(async, transfer,
			   device_send_part(async, parts, 1, parts[0].iov_len));
}

static bool device_received(struct device_async *async,
			    struct device_transfer *transfer, int result)
{
	if (result == -EAGAIN)
		return false;
	if (result <= 0) {
		spin_lock(&async->lock);
		async->receive_error = result;
		async->at_end = true;
		spin_unlock(&async->lock);
		wake_up_all(&async->wait);
		return true;
	}
	if (!transfer) {
		device_ring_produced(&async->incoming, result);
		wake_up_all(&async->wait);
		return true;
	}
	transfer->done += result;
	if (transfer->done == transfer->length)
		device_async_end(async, transfer, transfer->done);
	return true;
}

/* Receives ahead of read(). */
static bool device_receive_ahead(struct device_async *async)
{
	u32 space = device_ring_space(&async->incoming);
	struct kvec parts[2];
	unsigned int count;

	if (space) {
		count = device_ring_free_parts(&async->incoming, parts, space);
		return device_received(async, NULL,
				       device_receive_part(async, parts, count,
							   space));
	}
	/* Pairs with the exchange in device_wake_starved(). */
	smp_store_mb(async->starved, 1);
	if (device_ring_space(&async->incoming) < DEVICE_RING_BYTES / 2)
		return false;
	WRITE_ONCE(async->starved, 0);
	return true;
}

static bool device_receive_step(struct device_async *async)
{
	struct device_transfer *transfer;
	enum device_receiver receiver;
	struct kvec part;
	bool at_end;
	int error;

	spin_lock(&async->lock);
	receiver = async->receiver;
	error = async->receive_error;
	at_end = async->at_end;
	transfer = list_first_entry_or_null(&async->receives,
					    struct device_transfer, entry);
	spin_unlock(&async->lock);

	if (receiver == DEVICE_READ)
		return !at_end && device_receive_ahead(async);
	if (!transfer)
		return false;
	if (at_end || !transfer->length) {
		device_async_end(async, transfer,
				 transfer->done ? transfer->done : error);
		return true;
	}
	part.iov_base = transfer->buffer->data + transfer->offset +
			transfer->done;
	part.iov_len = transfer->length - transfer->done;
	return device_received(async, transfer,
			       device_receive_part(async, &part, 1,
						   part.iov_len));
}

static void device_send_work(struct work_struct *work)
{
	struct device_async *async = container_of(to_delayed_work(work),
						  struct device_async,
						  send_work);
	int round;

	for (round = 0; round < DEVICE_WORKER_ROUNDS; round++) {
		if (!device_send_step(async))
			return;
		cond_resched();
	}
	device_worker_wake_sender(async);
}

static void device_receive_work(struct work_struct *work)
{
	struct device_async *async = container_of(to_delayed_work(work),
						  struct device_async,
						  receive_work);
	int round;

	for (round = 0; round < DEVICE_WORKER_ROUNDS; round++) {
		if (!device_receive_step(async))
			return;
		cond_resched();
	}
	device_worker_wake_receiver(async);
}

/**
 * device_worker_init() - Get ready for a connection
 * @async: Its queues.
 */
void device_worker_init(struct device_async *async)
{
	INIT_DELAYED_WORK(&async->send_work, device_send_work);
	INIT_DELAYED_WORK(&async->receive_work, device_receive_work);
}

/**
 * device_worker_wake_sender() - There is something to send, or room for it
 * @async: Of the connection. Any context.
 */
void device_worker_wake_sender(struct device_async *async)
{
	queue_delayed_work(device_workqueue, &async->send_work, 0);
}

/**
 * device_worker_wake_receiver() - There is something to receive, or room for it
 * @async: Of the connection. Any context.
 */
void device_worker_wake_receiver(struct device_async *async)
{
	queue_delayed_work(device_workqueue, &async->receive_work, 0);
}

/**
 * device_worker_cancel() - Wait until the worker has left, for good
 * @async: Of a connection whose callbacks wake it no more.
 */
void device_worker_cancel(struct device_async *async)
{
	cancel_delayed_work_sync(&async->send_work);
	cancel_delayed_work_sync(&async->receive_work);
}
