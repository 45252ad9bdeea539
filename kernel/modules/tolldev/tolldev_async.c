// SPDX-License-Identifier: GPL-2.0
/*
 * Asynchronous mode: calls queue and take what is there, a worker sends and
 * receives.
 */
#include <linux/errno.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <net/sock.h>

#include "tolldev_file.h"
#include "tolldev_async.h"

static void tolldev_data_ready(struct sock *sk)
{
	void (*original)(struct sock *sk) = NULL;
	struct tolldev_async *async;

	read_lock_bh(&sk->sk_callback_lock);
	async = sk->sk_user_data;
	if (async) {
		original = async->data_ready;
		/* Who decides wakes the worker, too. */
		if (READ_ONCE(async->receiver) != TOLLDEV_UNDECIDED)
			tolldev_worker_wake_receiver(async);
	}
	read_unlock_bh(&sk->sk_callback_lock);
	if (original)
		original(sk);
}

static void tolldev_write_space(struct sock *sk)
{
	void (*original)(struct sock *sk) = NULL;
	struct tolldev_async *async;

	read_lock_bh(&sk->sk_callback_lock);
	async = sk->sk_user_data;
	if (async) {
		original = async->write_space;
		tolldev_worker_wake_sender(async);
	}
	read_unlock_bh(&sk->sk_callback_lock);
	if (original)
		original(sk);
}

/* An end or an error concerns both directions. */
static void tolldev_wake_both(struct tolldev_async *async)
{
	tolldev_worker_wake_sender(async);
	tolldev_worker_wake_receiver(async);
}

static void tolldev_state_change(struct sock *sk)
{
	void (*original)(struct sock *sk) = NULL;
	struct tolldev_async *async;

	read_lock_bh(&sk->sk_callback_lock);
	async = sk->sk_user_data;
	if (async) {
		original = async->state_change;
		tolldev_wake_both(async);
	}
	read_unlock_bh(&sk->sk_callback_lock);
	if (original)
		original(sk);
}

static void tolldev_error_report(struct sock *sk)
{
	void (*original)(struct sock *sk) = NULL;
	struct tolldev_async *async;

	read_lock_bh(&sk->sk_callback_lock);
	async = sk->sk_user_data;
	if (async) {
		original = async->error_report;
		tolldev_wake_both(async);
	}
	read_unlock_bh(&sk->sk_callback_lock);
	if (original)
		original(sk);
}

/* Another user of sk_user_data, a BPF sockmap for one, also has callbacks. */
static int tolldev_async_hook(struct tolldev_async *async)
{
	struct sock *sk = async->connection->sk;
	int err = 0;

	write_lock_bh(&sk->sk_callback_lock);
	if (sk->sk_user_data) {
		err = -EBUSY;
		goto out_unlock;
	}
	async->data_ready = sk->sk_data_ready;
	async->write_space = sk->sk_write_space;
	async->state_change = sk->sk_state_change;
	async->error_report = sk->sk_error_report;
	sk->sk_user_data = async;
	sk->sk_data_ready = tolldev_data_ready;
	sk->sk_write_space = tolldev_write_space;
	sk->sk_state_change = tolldev_state_change;
	sk->sk_error_report = tolldev_error_report;
out_unlock:
	write_unlock_bh(&sk->sk_callback_lock);
	return err;
}

/*
 * TCP calls the callbacks with the socket locked, so that none of ours runs any
 * more, and the module may go, when the socket was locked here.
 */
static void tolldev_async_unhook(struct tolldev_async *async)
{
	struct sock *sk = async->connection->sk;

	lock_sock(sk);
	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_data_ready = async->data_ready;
	sk->sk_write_space = async->write_space;
	sk->sk_state_change = async->state_change;
	sk->sk_error_report = async->error_report;
	sk->sk_user_data = NULL;
	write_unlock_bh(&sk->sk_callback_lock);
	release_sock(sk);
}

/**
 * tolldev_async_start() - Make the queues of a new connection
 * @file: Gets them.
 * @connection: The socket, which nobody else knows yet.
 *
 * Return: 0, -ENOMEM, or -EBUSY if something else in the kernel uses the socket.
 */
int tolldev_async_start(struct tolldev_file *file, struct socket *connection)
{
	struct tolldev_async *async;
	int err = -ENOMEM;
	size_t i;

	async = kvzalloc(sizeof(*async), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!async)
		return -ENOMEM;
	/* Here, since calls with IOCB_NOWAIT must not allocate. */
	if (tolldev_ring_allocate(&async->outgoing) ||
	    tolldev_ring_allocate(&async->incoming))
		goto out_free;
	async->file = file;
	async->connection = connection;
	spin_lock_init(&async->lock);
	INIT_LIST_HEAD(&async->free);
	INIT_LIST_HEAD(&async->sends);
	INIT_LIST_HEAD(&async->receives);
	INIT_LIST_HEAD(&async->ended);
	for (i = 0; i < ARRAY_SIZE(async->transfers); i++)
		list_add_tail(&async->transfers[i].entry, &async->free);
	mutex_init(&async->write_lock);
	mutex_init(&async->read_lock);
	init_waitqueue_head(&async->wait);
	tolldev_worker_init(async);
	err = tolldev_async_hook(async);
	if (err)
		goto out_free;
	file->async = async;
	return 0;

out_free:
	tolldev_ring_free(&async->outgoing);
	tolldev_ring_free(&async->incoming);
	kvfree(async);
	return err;
}

/**
 * tolldev_async_stop() - Give up what is queued, and free the queues
 * @async: Of a connection that is still open, or NULL. Nobody calls any more.
 */
void tolldev_async_stop(struct tolldev_async *async)
{
	size_t i;

	if (!async)
		return;
	tolldev_async_unhook(async);
	tolldev_worker_cancel(async);
	for (i = 0; i < ARRAY_SIZE(async->transfers); i++) {
		if (async->transfers[i].buffer)
			tolldev_buffer_put(async->transfers[i].buffer);
	}
	tolldev_ring_free(&async->outgoing);
	tolldev_ring_free(&async->incoming);
	mutex_destroy(&async->write_lock);
	mutex_destroy(&async->read_lock);
	kvfree(async);
}

/**
 * tolldev_async_wake() - Wake calls that wait, and pollers
 * @async: Its state has changed.
 */
void tolldev_async_wake(struct tolldev_async *async)
{
	wake_up_all(&async->wait);
	wake_up_all(&async->file->events);
}

static int tolldev_async_lock(struct mutex *lock, bool nonblock)
{
	if (nonblock)
		return mutex_trylock(lock) ? 0 : -EAGAIN;
	return mutex_lock_interruptible(lock) ? -ERESTARTSYS : 0;
}

/* Why nothing more can be sent, or 0. */
static int tolldev_send_obstacle(struct tolldev_async *async)
{
	int err;

	spin_lock(&async->lock);
	err = async->send_error;
	if (!err && async->finished)
		err = -EPIPE;
	spin_unlock(&async->lock);
	return err;
}

/* Copies what there is room for now: bytes, -EAGAIN where there is none. */
static ssize_t tolldev_write_once(struct tolldev_async *async,
				  struct iov_iter *from)
{
	size_t bytes;
	int err;

	err = tolldev_send_obstacle(async);
	if (err)
		return err;
	if (!tolldev_ring_space(&async->outgoing))
		return -EAGAIN;
	bytes = tolldev_ring_put(&async->outgoing, from);
	if (!bytes)
		return -EFAULT;
	tolldev_worker_wake_sender(async);
	return bytes;
}

/**
 * tolldev_async_write() - Leave a copy of the caller's bytes to the worker
 * @async: Of the connection.
 * @from: Advanced by what was copied.
 * @nonblock: Do not wait for room.
 *
 * Return: bytes copied, or a negative errno, which may be that of earlier
 * bytes.
 */
ssize_t tolldev_async_write(struct tolldev_async *async, struct iov_iter *from,
			    bool nonblock)
{
	ssize_t written = 0;
	ssize_t result;

	if (!iov_iter_count(from))
		return 0;
	result = tolldev_async_lock(&async->write_lock, nonblock);
	if (result)
		return result;
	while (!result && iov_iter_count(from)) {
		result = tolldev_write_once(async, from);
		if (result > 0) {
			written += result;
			result = 0;
		} else if (result == -EAGAIN && !nonblock) {
			result = wait_event_interruptible(async->wait,
							  tolldev_ring_space(&async->outgoing) ||
							  tolldev_send_obstacle(async));
		}
	}
	mutex_unlock(&async->write_lock);
	return written ? written : result;
}

/* Decides that read() receives. */
static int tolldev_read_decide(struct tolldev_async *async)
{
	int err = 0;

	if (READ_ONCE(async->receiver) == TOLLDEV_READ)
		return 0;
	spin_lock(&async->lock);
	if (async->receiver == TOLLDEV_RECEIVE)
		err = -EBUSY;
	else
		async->receiver = TOLLDEV_READ;
	spin_unlock(&async->lock);
	if (!err)
		tolldev_worker_wake_receiver(async);
	return err;
}

static bool tolldev_is_at_end(struct tolldev_async *async)
{
	bool at_end;

	spin_lock(&async->lock);
	at_end = async->at_end;
	spin_unlock(&async->lock);
	return at_end;
}

/* Half of the ring makes a full one worth filling again. */
static void tolldev_wake_starved(struct tolldev_async *async)
{
	if (tolldev_ring_space(&async->incoming) < TOLLDEV_RING_BYTES / 2)
		return;
	/* Pairs with the store in tolldev_receive_ahead(). */
	smp_mb();
	if (READ_ONCE(async->starved) && xchg(&async->starved, 0))
		tolldev_worker_wake_receiver(async);
}

/* Copies what is there: bytes, 0 at the end, -EAGAIN where there is none. */
static ssize_t tolldev_read_once(struct tolldev_async *async, struct iov_iter *to)
{
	/* What came before the end is there when the end is seen. */
	bool at_end = tolldev_is_at_end(async);
	size_t bytes;

	if (tolldev_ring_used(&async->incoming)) {
		bytes = tolldev_ring_take(&async->incoming, to);
		tolldev_wake_starved(async);
		return bytes ? bytes : -EFAULT;
	}
	if (!at_end)
		return -EAGAIN;
	return READ_ONCE(async->receive_error);
}

/**
 * tolldev_async_read() - Take what the worker received ahead
 * @async: Of the connection.
 * @to: Advanced by what was copied.
 * @nonblock: Do not wait.
 *
 * Return: bytes copied, 0 at the end, -EBUSY where TOLL_DEVICE_RECEIVE was used
 * before, or another negative errno.
 */
ssize_t tolldev_async_read(struct tolldev_async *async, struct iov_iter *to,
			   bool nonblock)
{
	ssize_t result;

	if (!iov_iter_count(to))
		return 0;
	result = tolldev_async_lock(&async->read_lock, nonblock);
	if (result)
		return result;
	result = tolldev_read_decide(async);
	while (!result) {
		result = tolldev_read_once(async, to);
		if (result != -EAGAIN || nonblock)
			break;
		result = wait_event_interruptible(async->wait,
						  tolldev_ring_used(&async->incoming) ||
						  tolldev_is_at_end(async));
	}
	mutex_unlock(&async->read_lock);
	return result;
}

static bool tolldev_has_sent_all(struct tolldev_async *async)
{
	bool has;

	spin_lock(&async->lock);
	has = list_empty(&async->sends) && !tolldev_ring_used(&async->outgoing);
	spin_unlock(&async->lock);
	return has;
}

/**
 * tolldev_async_finish() - Take nothing more, wait until all is with the socket
 * @async: Of the connection.
 * @nonblock: Do not wait: -EAGAIN.
 *
 * Return: 0, the error that ended sending, or -ERESTARTSYS.
 */
int tolldev_async_finish(struct tolldev_async *async, bool nonblock)
{
	int err;

	spin_lock(&async->lock);
	async->finished = true;
	spin_unlock(&async->lock);
	tolldev_async_wake(async);
	/*
	 * A write that looked before that may still be copying. Once it has
	 * left the lock, its bytes are in the ring, and later ones see EPIPE.
	 */
	err = tolldev_async_lock(&async->write_lock, nonblock);
	if (err)
		return err;
	mutex_unlock(&async->write_lock);
	tolldev_worker_wake_sender(async);
	if (nonblock && !tolldev_has_sent_all(async))
		return -EAGAIN;
	if (wait_event_interruptible(async->wait, tolldev_has_sent_all(async)))
		return -ERESTARTSYS;
	/* The error is set before what it concerns is thrown away. */
	spin_lock(&async->lock);
	err = async->send_error;
	spin_unlock(&async->lock);
	return err;
}

/**
 * tolldev_async_poll() - What would not wait
 * @async: Of the connection.
 * @file: The device's, whose poller waits for @async->file->events.
 *
 * Return: EPOLLPRI for a transfer to be reaped, EPOLLIN for read() and EPOLLOUT
 * for write(), and the ends and errors of the connection.
 */
__poll_t tolldev_async_poll(struct tolldev_async *async, struct file *file)
{
	struct socket *connection = async->connection;
	__poll_t socket_events, events;

	socket_events = connection->ops->poll(file, connection, NULL);
	events = socket_events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP);
	spin_lock(&async->lock);
	if (!list_empty(&async->ended))
		events |= EPOLLPRI;
	if (async->receiver != TOLLDEV_READ)
		events |= socket_events & (EPOLLIN | EPOLLRDNORM);
	else if (async->at_end || tolldev_ring_used(&async->incoming))
		events |= EPOLLIN | EPOLLRDNORM;
	if (async->send_error || async->finished ||
	    tolldev_ring_used(&async->outgoing) < TOLLDEV_RING_BYTES)
		events |= EPOLLOUT | EPOLLWRNORM;
	spin_unlock(&async->lock);
	return events;
}
