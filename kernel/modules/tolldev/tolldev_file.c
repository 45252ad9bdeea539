// SPDX-License-Identifier: GPL-2.0
/* The file operations of a device. */
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/net.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <linux/wait.h>
#include <net/sock.h>

#include "tolldev.h"
#include "tolldev_async.h"
#include "tolldev_file.h"
#include "tolldev_log.h"
#include "tolldev_socket.h"

static int tolldev_forward_wake(wait_queue_entry_t *entry, unsigned int mode,
				int flags, void *key)
{
	struct tolldev_forward *forward =
		container_of(entry, struct tolldev_forward, entry);

	wake_up_poll(forward->to, key_to_poll(key));
	return 0;
}

/**
 * tolldev_forward_start() - Forward wake-ups of a socket
 * @forward: Not in use yet.
 * @sock: The socket, which no other thread can reach yet.
 * @to: Wait queue that is woken from now on.
 */
void tolldev_forward_start(struct tolldev_forward *forward,
			   struct socket *sock, wait_queue_head_t *to)
{
	forward->to = to;
	init_waitqueue_func_entry(&forward->entry, tolldev_forward_wake);
	add_wait_queue(sk_sleep(sock->sk), &forward->entry);
}

static void tolldev_forward_stop(struct tolldev_forward *forward,
				 struct socket *sock)
{
	if (sock)
		remove_wait_queue(sk_sleep(sock->sk), &forward->entry);
}

int tolldev_open(struct inode *inode, struct file *file)
{
	/* misc_open() has set private_data to its device. */
	struct miscdevice *misc = file->private_data;
	struct tolldev_file *state;

	state = kzalloc(sizeof(*state), GFP_KERNEL_ACCOUNT);
	if (!state)
		return -ENOMEM;
	state->device = container_of(misc, struct tolldev_device, misc);
	mutex_init(&state->setup);
	init_waitqueue_head(&state->events);
	tolldev_settings_init(state);
	file->private_data = state;
	file->f_mode |= FMODE_NOWAIT;
	/* Without a file position, reads and writes need no common lock. */
	return stream_open(inode, file);
}
EXPORT_SYMBOL_GPL(tolldev_open);

/* No mapping, poller or waiting call is left: each of them holds the file. */
int tolldev_release(struct inode *inode, struct file *file)
{
	struct tolldev_file *state = file->private_data;
	bool had_buffer = state->buffer.buffer;

	tolldev_async_stop(state->async);
	tolldev_forward_stop(&state->connection_wakes, state->connection);
	tolldev_forward_stop(&state->listener_wakes, state->listener);
	tolldev_socket_release(state->connection);
	tolldev_socket_release(state->listener);
	tolldev_buffer_destroy(&state->buffer);
	if (had_buffer)
		tolldev_log_event(state->device, "buffer freed");
	mutex_destroy(&state->setup);
	kfree(state);
	return 0;
}
EXPORT_SYMBOL_GPL(tolldev_release);

static bool tolldev_iocb_nonblock(const struct kiocb *iocb)
{
	return iocb->ki_flags & IOCB_NOWAIT ||
	       tolldev_is_nonblock(iocb->ki_filp);
}

ssize_t tolldev_write_iter(struct kiocb *iocb, struct iov_iter *from)
{
	struct tolldev_file *state = iocb->ki_filp->private_data;
	bool nonblock = tolldev_iocb_nonblock(iocb);
	int flags = nonblock ? MSG_DONTWAIT : 0;

	if (!tolldev_connection(state))
		return -ENOTCONN;
	if (state->async)
		return tolldev_async_write(state->async, from, nonblock);
	/*
	 * splice(2) and sendfile(2) hand over pages that the socket may keep.
	 * io_uring's registered buffers come as a bvec, too, but the program
	 * may write to them later. Its kiocbs are never synchronous.
	 */
	if (iov_iter_is_bvec(from) && is_sync_kiocb(iocb))
		flags |= MSG_SPLICE_PAGES;
	return tolldev_stream_write(state, from, flags);
}
EXPORT_SYMBOL_GPL(tolldev_write_iter);

ssize_t tolldev_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct tolldev_file *state = iocb->ki_filp->private_data;
	bool nonblock = tolldev_iocb_nonblock(iocb);

	if (!tolldev_connection(state))
		return -ENOTCONN;
	if (state->async)
		return tolldev_async_read(state->async, to, nonblock);
	return tolldev_stream_read(state, to, nonblock ? MSG_DONTWAIT : 0);
}
EXPORT_SYMBOL_GPL(tolldev_read_iter);

__poll_t tolldev_poll(struct file *file, poll_table *wait)
{
	struct tolldev_file *state = file->private_data;
	struct socket *connection;
	struct socket *listener;

	poll_wait(file, &state->events, wait);
	/*
	 * The poller must be in the wait queue before it looks for events.
	 * Pairs with the barrier in sock_def_readable().
	 */
	smp_mb();
	connection = tolldev_connection(state);
	if (connection && state->async)
		return tolldev_async_poll(state->async, file);
	/* No EPOLLPRI for TCP's urgent data: no call here reads it. */
	if (connection)
		return connection->ops->poll(file, connection, NULL) & ~EPOLLPRI;
	/* Pairs with the release in tolldev_ioctl.c. */
	listener = smp_load_acquire(&state->listener);
	if (!listener)
		return EPOLLHUP;
	/* A connection that can be accepted counts as something to read. */
	return listener->ops->poll(file, listener, NULL) & EPOLLIN;
}
EXPORT_SYMBOL_GPL(tolldev_poll);

int tolldev_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct tolldev_file *state = file->private_data;
	int err = tolldev_buffer_map(&state->buffer, vma);

	if (err == -EINVAL)
		tolldev_log_event(state->device,
				  "cannot map %lu pages at page %lu: map them MAP_SHARED, without PROT_EXEC, and not across the end of a buffer of %u bytes",
				  vma_pages(vma), vma->vm_pgoff,
				  READ_ONCE(state->buffer.bytes));
	return err;
}
EXPORT_SYMBOL_GPL(tolldev_mmap);
