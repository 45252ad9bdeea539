// SPDX-License-Identifier: GPL-2.0
/*
 * The worker of asynchronous mode. It never waits for the socket: it sends what
 * the socket has room for, receives what has arrived, and ends. The socket's
 * callbacks queue it again.
 */
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/net.h>
#include <linux/sched.h>
#include <linux/socket.h>
#include <linux/uio.h>
#include <linux/workqueue.h>
#include <net/sock.h>

#include "tolldev_file.h"
#include "tolldev_async.h"

/*
 * Steps in one run of the worker. Then the worker is queued again, behind
 * other work. The release of a file waits for at most one run.
 */
#define TOLLDEV_WORKER_ROUNDS 64

static struct workqueue_struct *tolldev_workqueue;

/**
 * tolldev_worker_create() - Make the workqueue, when the module is loaded
 *
 * Return: 0 or -ENOMEM.
 */
int tolldev_worker_create(void)
{
	/*
	 * Unbound: otherwise the CPU that took the network card's interrupt
	 * would also do all the copying.
	 */
	tolldev_workqueue = alloc_workqueue(KBUILD_MODNAME, WQ_UNBOUND, 0);
	return tolldev_workqueue ? 0 : -ENOMEM;
}

/**
 * tolldev_worker_destroy() - Free the workqueue, when the module is unloaded
 */
void tolldev_worker_destroy(void)
{
	destroy_workqueue(tolldev_workqueue);
}

static int tolldev_send_part(struct tolldev_async *async, struct kvec *parts,
			     unsigned int count, size_t bytes)
{
	struct msghdr message = { .msg_flags = MSG_DONTWAIT };

	iov_iter_kvec(&message.msg_iter, ITER_SOURCE, parts, count, bytes);
	return tolldev_send_message(async->file, &message);
}

static int tolldev_receive_part(struct tolldev_async *async, struct kvec *parts,
				unsigned int count, size_t bytes)
{
	struct msghdr message = { };

	iov_iter_kvec(&message.msg_iter, ITER_DEST, parts, count, bytes);
	return tolldev_receive_message(async->file, &message, MSG_DONTWAIT);
}

/* The connection is broken: drops what is queued to be sent. */
static void tolldev_fail_sends(struct tolldev_async *async, int error)
{
	struct tolldev_transfer *transfer;

	spin_lock(&async->lock);
	async->send_error = error;
	spin_unlock(&async->lock);
	tolldev_ring_consumed(&async->outgoing,
			      tolldev_ring_used(&async->outgoing));
	for (;;) {
		spin_lock(&async->lock);
		transfer = list_first_entry_or_null(&async->sends,
						    struct tolldev_transfer,
						    entry);
		spin_unlock(&async->lock);
		if (!transfer)
			break;
		tolldev_async_end(async, transfer,
				  transfer->done ? transfer->done : error);
	}
	tolldev_async_wake(async);
}

/* Handles the result of a send. Returns whether the next step may follow. */
static bool tolldev_sent(struct tolldev_async *async,
			 struct tolldev_transfer *transfer, int result)
{
	if (result == -EAGAIN) {
		/*
		 * The socket has room, so memory was short. write_space is not
		 * called then, so retry after a tick.
		 */
		if (sk_stream_is_writeable(async->connection->sk))
			queue_delayed_work(tolldev_workqueue, &async->send_work,
					   1);
		return false;
	}
	if (result < 0) {
		tolldev_fail_sends(async, result);
		return false;
	}
	if (!transfer) {
		tolldev_ring_consumed(&async->outgoing, result);
		tolldev_async_wake(async);
		return true;
	}
	transfer->done += result;
	if (transfer->done == transfer->length)
		tolldev_async_end(async, transfer, transfer->done);
	return true;
}

/* Sends bytes of the oldest call, whether write() or a transfer. */
static bool tolldev_send_step(struct tolldev_async *async)
{
	struct tolldev_transfer *transfer;
	struct kvec parts[2];
	unsigned int count;
	u32 stream_bytes;
	int error;

	/*
	 * Transfers are added to the list under this lock, and bytes that
	 * write() adds after a transfer come later. So while the list is empty,
	 * all bytes that are seen here go before the next transfer.
	 */
	spin_lock(&async->lock);
	error = async->send_error;
	transfer = list_first_entry_or_null(&async->sends,
					    struct tolldev_transfer, entry);
	stream_bytes = tolldev_ring_used(&async->outgoing);
	if (transfer)
		stream_bytes = min(stream_bytes, transfer->stream_before -
							 async->outgoing.tail);
	spin_unlock(&async->lock);

	if (error) {
		tolldev_fail_sends(async, error);
		return false;
	}
	if (stream_bytes) {
		count = tolldev_ring_used_parts(&async->outgoing, parts,
						stream_bytes);
		return tolldev_sent(async, NULL,
				   tolldev_send_part(async, parts, count,
						     stream_bytes));
	}
	if (!transfer)
		return false;
	if (!transfer->length) {
		tolldev_async_end(async, transfer, 0);
		return true;
	}
	parts[0].iov_base = transfer->buffer->data + transfer->offset +
			    transfer->done;
	parts[0].iov_len = transfer->length - transfer->done;
	return tolldev_sent(async, transfer,
			   tolldev_send_part(async, parts, 1, parts[0].iov_len));
}

/* Handles the result of a receive. Returns whether the next step may follow. */
static bool tolldev_received(struct tolldev_async *async,
			     struct tolldev_transfer *transfer, int result)
{
	if (result == -EAGAIN)
		return false;
	if (result <= 0) {
		spin_lock(&async->lock);
		async->receive_error = result;
		async->at_end = true;
		spin_unlock(&async->lock);
		tolldev_async_wake(async);
		return true;
	}
	if (!transfer) {
		tolldev_ring_produced(&async->incoming, result);
		tolldev_async_wake(async);
		return true;
	}
	transfer->done += result;
	if (transfer->done == transfer->length)
		tolldev_async_end(async, transfer, transfer->done);
	return true;
}

/* Receives into the ring, before read() asks for the bytes. */
static bool tolldev_receive_ahead(struct tolldev_async *async)
{
	u32 space = tolldev_ring_space(&async->incoming);
	struct kvec parts[2];
	unsigned int count;

	if (space) {
		count = tolldev_ring_free_parts(&async->incoming, parts, space);
		return tolldev_received(async, NULL,
				       tolldev_receive_part(async, parts, count,
							    space));
	}
	/* Pairs with the exchange in tolldev_wake_starved(). */
	smp_store_mb(async->starved, 1);
	if (tolldev_ring_space(&async->incoming) < TOLLDEV_RING_BYTES / 2)
		return false;
	WRITE_ONCE(async->starved, 0);
	return true;
}

static bool tolldev_receive_step(struct tolldev_async *async)
{
	struct tolldev_transfer *transfer;
	enum tolldev_receiver receiver;
	struct kvec part;
	bool at_end;
	int error;

	spin_lock(&async->lock);
	receiver = async->receiver;
	error = async->receive_error;
	at_end = async->at_end;
	transfer = list_first_entry_or_null(&async->receives,
					    struct tolldev_transfer, entry);
	spin_unlock(&async->lock);

	if (receiver == TOLLDEV_READ)
		return !at_end && tolldev_receive_ahead(async);
	if (!transfer)
		return false;
	if (at_end || !transfer->length) {
		tolldev_async_end(async, transfer,
				  transfer->done ? transfer->done : error);
		return true;
	}
	part.iov_base = transfer->buffer->data + transfer->offset +
			transfer->done;
	part.iov_len = transfer->length - transfer->done;
	return tolldev_received(async, transfer,
			       tolldev_receive_part(async, &part, 1,
						    part.iov_len));
}

static void tolldev_send_work(struct work_struct *work)
{
	struct tolldev_async *async = container_of(to_delayed_work(work),
						  struct tolldev_async,
						  send_work);
	int round;

	for (round = 0; round < TOLLDEV_WORKER_ROUNDS; round++) {
		if (!tolldev_send_step(async))
			return;
		cond_resched();
	}
	tolldev_worker_wake_sender(async);
}

static void tolldev_receive_work(struct work_struct *work)
{
	struct tolldev_async *async = container_of(to_delayed_work(work),
						  struct tolldev_async,
						  receive_work);
	int round;

	for (round = 0; round < TOLLDEV_WORKER_ROUNDS; round++) {
		if (!tolldev_receive_step(async))
			return;
		cond_resched();
	}
	tolldev_worker_wake_receiver(async);
}

/**
 * tolldev_worker_init() - Prepare the work of a connection
 * @async: Its queues.
 */
void tolldev_worker_init(struct tolldev_async *async)
{
	INIT_DELAYED_WORK(&async->send_work, tolldev_send_work);
	INIT_DELAYED_WORK(&async->receive_work, tolldev_receive_work);
}

/**
 * tolldev_worker_wake_sender() - Have the worker send what it can
 * @async: Queues of the connection. May be called in any context.
 */
void tolldev_worker_wake_sender(struct tolldev_async *async)
{
	queue_delayed_work(tolldev_workqueue, &async->send_work, 0);
}

/**
 * tolldev_worker_wake_receiver() - Have the worker receive what it can
 * @async: Queues of the connection. May be called in any context.
 */
void tolldev_worker_wake_receiver(struct tolldev_async *async)
{
	queue_delayed_work(tolldev_workqueue, &async->receive_work, 0);
}

/**
 * tolldev_worker_cancel() - End the worker, and wait until its run is over
 * @async: Queues of a connection whose callbacks no longer wake the worker.
 */
void tolldev_worker_cancel(struct tolldev_async *async)
{
	cancel_delayed_work_sync(&async->send_work);
	cancel_delayed_work_sync(&async->receive_work);
}
