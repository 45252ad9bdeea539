// SPDX-License-Identifier: GPL-2.0
/* Transfers of the buffer in asynchronous mode: queued, ended, reaped. */
#include <linux/errno.h>
#include <linux/jiffies.h>
#include <linux/sched.h>

#include "tolldev_file.h"
#include "tolldev_async.h"

/**
 * tolldev_async_end() - End a transfer
 * @async: Its queues. Only the worker calls this.
 * @transfer: The first of its list.
 * @result: Bytes or a negative errno.
 */
void tolldev_async_end(struct tolldev_async *async,
		       struct tolldev_transfer *transfer, s64 result)
{
	struct tolldev_buffer *buffer = transfer->buffer;

	spin_lock(&async->lock);
	transfer->buffer = NULL;
	transfer->result = result;
	async->under_way--;
	switch (transfer->end) {
	case TOLLDEV_REAPED:
		list_move_tail(&transfer->entry, &async->ended);
		break;
	case TOLLDEV_AWAITED:
		list_del_init(&transfer->entry);
		WRITE_ONCE(transfer->has_ended, true);
		break;
	case TOLLDEV_ABANDONED:
		list_move_tail(&transfer->entry, &async->free);
		break;
	}
	spin_unlock(&async->lock);
	tolldev_buffer_put(buffer);
	tolldev_async_wake(async);
}

/* Returns the error of a transfer queued now, or 0 if it may be queued. */
static int tolldev_queue_obstacle(struct tolldev_async *async, bool sends)
{
	lockdep_assert_held(&async->lock);
	if (sends && async->send_error)
		return async->send_error;
	if (sends && async->finished)
		return -EPIPE;
	if (!sends && async->receiver == TOLLDEV_READ)
		return -EBUSY;
	if (!list_empty(&async->free))
		return 0;
	/* If all have ended, waiting frees no place: the caller has to reap. */
	return async->under_way ? -EAGAIN : -EBUSY;
}

static int tolldev_queue_obstacle_now(struct tolldev_async *async, bool sends)
{
	int err;

	spin_lock(&async->lock);
	err = tolldev_queue_obstacle(async, sends);
	spin_unlock(&async->lock);
	return err;
}

/* Queues a copy of @request, and takes a reference to its buffer. */
static int tolldev_queue_once(struct tolldev_async *async, bool sends,
			      const struct tolldev_transfer *request,
			     struct tolldev_transfer **queued, u64 *sequence)
{
	struct tolldev_file *file = async->file;
	struct tolldev_transfer *transfer;
	int err;

	spin_lock(&async->lock);
	err = tolldev_queue_obstacle(async, sends);
	if (err)
		goto out_unlock;
	transfer = list_first_entry(&async->free, struct tolldev_transfer,
				    entry);
	list_del(&transfer->entry);
	*transfer = *request;
	kref_get(&transfer->buffer->references);
	transfer->sequence = ++async->last_sequence;
	transfer->stream_before = async->outgoing.head;
	if (!sends)
		async->receiver = TOLLDEV_RECEIVE;
	list_add_tail(&transfer->entry,
		      sends ? &async->sends : &async->receives);
	async->under_way++;
	if (async->under_way > atomic64_read(&file->counters.queued_max))
		atomic64_set(&file->counters.queued_max, async->under_way);
	*queued = transfer;
	*sequence = transfer->sequence;
out_unlock:
	spin_unlock(&async->lock);
	return err;
}

/*
 * Queues a transfer, and waits for room if it may. The worker can end the
 * transfer before this returns.
 */
static int tolldev_queue(struct tolldev_async *async, bool sends,
			 const struct tolldev_transfer *request,
			struct tolldev_transfer **queued, u64 *sequence,
			bool nonblock)
{
	int err;

	for (;;) {
		/* A send must not come between the parts of a write(). */
		if (!sends)
			err = 0;
		else if (nonblock)
			err = mutex_trylock(&async->write_lock) ? 0 : -EAGAIN;
		else if (mutex_lock_interruptible(&async->write_lock))
			err = -ERESTARTSYS;
		else
			err = 0;
		if (err)
			return err;
		err = tolldev_queue_once(async, sends, request, queued,
					 sequence);
		if (sends)
			mutex_unlock(&async->write_lock);
		if (err != -EAGAIN || nonblock)
			break;
		if (wait_event_interruptible(async->wait,
					     tolldev_queue_obstacle_now(async, sends) != -EAGAIN))
			return -ERESTARTSYS;
	}
	if (err)
		return err;
	if (sends)
		tolldev_worker_wake_sender(async);
	else
		tolldev_worker_wake_receiver(async);
	return 0;
}

/**
 * tolldev_async_queue() - Queue a part of the buffer to be sent or filled
 * @async: Queues of the connection.
 * @sends: Whether it is sent; otherwise it is filled.
 * @buffer: The caller holds a reference.
 * @transfer: The part, within the buffer; sequence is set.
 * @nonblock: Do not wait for room in the queue.
 *
 * Return: 0; -EAGAIN without room; -EBUSY if all places have transfers that
 * wait to be reaped, or if read() gets the received bytes; the error that ended
 * sending; -ERESTARTSYS.
 */
ssize_t tolldev_async_queue(struct tolldev_async *async, bool sends,
			    struct tolldev_buffer *buffer,
			   struct toll_device_transfer *transfer,
			   bool nonblock)
{
	const struct tolldev_transfer request = {
		.buffer = buffer,
		.offset = transfer->offset,
		.length = transfer->length,
		.end = TOLLDEV_REAPED,
	};
	struct tolldev_transfer *queued;

	return tolldev_queue(async, sends, &request, &queued,
			    &transfer->sequence, nonblock);
}

static void tolldev_queue_free(struct tolldev_async *async,
			       struct tolldev_transfer *transfer)
{
	spin_lock(&async->lock);
	list_add_tail(&transfer->entry, &async->free);
	spin_unlock(&async->lock);
	tolldev_async_wake(async);
}

/**
 * tolldev_async_transfer() - Queue a transfer, and wait until it has ended
 * @async: Queues of the connection.
 * @sends: Whether it is sent; otherwise it is filled.
 * @buffer: The caller holds a reference.
 * @offset: Where the part begins.
 * @length: Its length in bytes.
 * @nonblock: The caller must not wait: -EOPNOTSUPP.
 *
 * Return: bytes or a negative errno; -EINTR for a signal. The transfer then
 * continues, and its result is dropped.
 */
ssize_t tolldev_async_transfer(struct tolldev_async *async, bool sends,
			       struct tolldev_buffer *buffer, size_t offset,
			      size_t length, bool nonblock)
{
	const struct tolldev_transfer request = {
		.buffer = buffer,
		.offset = offset,
		.length = length,
		.end = TOLLDEV_AWAITED,
	};
	struct tolldev_transfer *transfer;
	ssize_t result;
	u64 sequence;
	bool ended;
	int err;

	if (nonblock)
		return -EOPNOTSUPP;
	err = tolldev_queue(async, sends, &request, &transfer, &sequence, false);
	if (err)
		return err;
	err = wait_event_interruptible(async->wait,
				       READ_ONCE(transfer->has_ended));
	spin_lock(&async->lock);
	ended = transfer->has_ended;
	if (!ended)
		transfer->end = TOLLDEV_ABANDONED;
	result = transfer->result;
	spin_unlock(&async->lock);
	/* Not -ERESTARTSYS: a restarted call would transfer a second time. */
	if (!ended)
		return -EINTR;
	tolldev_queue_free(async, transfer);
	return result;
}

/* Takes a transfer that has ended. -EAGAIN: none has, but one will. */
static int tolldev_reap_once(struct tolldev_async *async,
			     struct toll_device_completion *completion)
{
	struct tolldev_transfer *transfer;
	int err = 0;

	spin_lock(&async->lock);
	transfer = list_first_entry_or_null(&async->ended,
					    struct tolldev_transfer, entry);
	if (transfer) {
		completion->sequence = transfer->sequence;
		completion->result = transfer->result;
		list_move_tail(&transfer->entry, &async->free);
	} else {
		err = async->under_way ? -EAGAIN : -ENOENT;
	}
	spin_unlock(&async->lock);
	if (!err)
		tolldev_async_wake(async);
	return err;
}

static bool tolldev_may_reap(struct tolldev_async *async)
{
	bool may;

	spin_lock(&async->lock);
	may = !list_empty(&async->ended) || !async->under_way;
	spin_unlock(&async->lock);
	return may;
}

/**
 * tolldev_async_reap() - Take the transfer that ended first
 * @async: Queues of the connection.
 * @completion: timeout_ms is the longest wait; the other fields are set.
 * @nonblock: Do not wait.
 *
 * Return: 0, -ENOENT, -EAGAIN, -ETIMEDOUT or -ERESTARTSYS. A wait with a limit
 * returns -EINTR, since a restarted call would wait for the whole time again.
 */
int tolldev_async_reap(struct tolldev_async *async,
		       struct toll_device_completion *completion, bool nonblock)
{
	bool is_limited = completion->timeout_ms > 0;
	long left = is_limited ? msecs_to_jiffies(completion->timeout_ms) :
				 MAX_SCHEDULE_TIMEOUT;
	int err;

	for (;;) {
		err = tolldev_reap_once(async, completion);
		if (err != -EAGAIN || nonblock)
			return err;
		left = wait_event_interruptible_timeout(async->wait,
							tolldev_may_reap(async),
							left);
		if (left < 0)
			return is_limited ? -EINTR : -ERESTARTSYS;
		if (!left)
			return -ETIMEDOUT;
	}
}
