// SPDX-License-Identifier: GPL-2.0
/*
 * Asynchronous mode: system calls add to queues and take from them, and a
 * worker sends and receives.
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
		/*
		 * Nothing is received until this is decided. Deciding wakes the
		 * worker.
		 */
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

/* Wakes both directions, because an end or an error concerns both. */
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

/*
 * Replaces the socket's callbacks. Something else in the kernel, such as a BPF
 * sockmap, has done so already if sk_user_data is set.
 */
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
 * Restores the socket's callbacks. TCP calls them with the socket locked, so
 * this locks it, too. After it returns, none of ours runs or will be called,
 * and the module may be unloaded.
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
 * @file: Its field async is set.
 * @connection: The socket, which no other thread can reach yet.
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
	/* Allocated now: calls with IOCB_NOWAIT must not allocate. */
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
 * tolldev_async_stop() - Drop what is queued, and free the queues
 * @async: Queues of a connection that is still open, or NULL. No call is in
 *	progress.
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

/* Returns the error of a call that would send now, or 0 if it may send. */
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

/* Copies as many bytes as there is room for. -EAGAIN: there is no room. */
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
 * tolldev_async_write() - Queue a copy of the caller's bytes for the worker
 * @async: Queues of the connection.
 * @from: Advanced by what was copied.
 * @nonblock: Do not wait for room.
 *
 * Return: bytes copied, or a negative errno. The errno may concern bytes that
 * an earlier call queued.
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

/* Reserves received bytes for read(). -EBUSY: RECEIVE has reserved them. */
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

/*
 * Wakes a worker that stopped because the ring was full. It waits until half of
 * the ring is free, so that a small read() does not wake the worker each time.
 */
static void tolldev_wake_starved(struct tolldev_async *async)
{
	if (tolldev_ring_space(&async->incoming) < TOLLDEV_RING_BYTES / 2)
		return;
	/* Pairs with the store in tolldev_receive_ahead(). */
	smp_mb();
	if (READ_ONCE(async->starved) && xchg(&async->starved, 0))
		tolldev_worker_wake_receiver(async);
}

/* Copies received bytes. Returns 0 at the end, -EAGAIN if there are none. */
static ssize_t tolldev_read_once(struct tolldev_async *async, struct iov_iter *to)
{
	/*
	 * Must come before the check of the ring: once the end is set, all
	 * bytes before it are in the ring.
	 */
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
 * tolldev_async_read() - Copy bytes that the worker has received
 * @async: Queues of the connection.
 * @to: Advanced by what was copied.
 * @nonblock: Do not wait.
 *
 * Return: bytes copied, 0 at the end, -EBUSY if TOLL_DEVICE_RECEIVE was called
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
 * tolldev_async_finish() - End sending, and wait until the socket has all bytes
 * @async: Queues of the connection.
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
	 * A write() that found finished unset may still be copying. It keeps
	 * this lock until its bytes are in the ring. Later ones get EPIPE.
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
	/* An error is set before the bytes that cannot be sent are dropped. */
	spin_lock(&async->lock);
	err = async->send_error;
	spin_unlock(&async->lock);
	return err;
}

/**
 * tolldev_async_poll() - Which calls would not wait
 * @async: Queues of the connection.
 * @file: The device's file. Its pollers wait on @async->file->events.
 *
 * Return: EPOLLPRI if a transfer can be reaped, EPOLLIN for read(), EPOLLOUT for
 * write(); and EPOLLRDHUP, EPOLLHUP and EPOLLERR as for a socket.
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
