// SPDX-License-Identifier: GPL-2.0
/* What system calls on a device's file do. */
#include <linux/errno.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/net.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/splice.h>
#include <linux/uio.h>

#include "device.h"
#include "device_async.h"
#include "device_compat.h"
#include "ksocket.h"

static int device_open(struct inode *inode, struct file *file)
{
	struct device_file *state;

	state = kzalloc(sizeof(*state), GFP_KERNEL_ACCOUNT);
	if (!state)
		return -ENOMEM;
	mutex_init(&state->setup);
	init_waitqueue_head(&state->connected);
	device_settings_init(state);
	file->private_data = state;
	file->f_mode |= FMODE_NOWAIT;
	/* A connection has no position that reads and writes would share. */
	return stream_open(inode, file);
}

/* Nobody maps the buffer, polls or waits any more: those hold the file. */
static int device_release(struct inode *inode, struct file *file)
{
	struct device_file *state = file->private_data;

	device_async_stop(state->async);
	ksocket_release(state->connection);
	ksocket_release(state->listener);
	device_buffer_destroy(&state->buffer);
	mutex_destroy(&state->setup);
	kfree(state);
	return 0;
}

static bool device_iocb_nonblock(const struct kiocb *iocb)
{
	return iocb->ki_flags & IOCB_NOWAIT ||
	       device_is_nonblock(iocb->ki_filp);
}

static ssize_t device_write_iter(struct kiocb *iocb, struct iov_iter *from)
{
	struct device_file *state = iocb->ki_filp->private_data;
	bool nonblock = device_iocb_nonblock(iocb);
	int flags = nonblock ? MSG_DONTWAIT : 0;

	if (!device_connection(state))
		return -ENOTCONN;
	if (state->async)
		return device_async_write(state->async, from, nonblock);
	/*
	 * splice(2) and sendfile(2) hand over pages that the socket may keep.
	 * Those of io_uring's registered buffers look the same, but belong to
	 * a program that may write to them later; its calls are never
	 * synchronous to the kernel.
	 */
	if (iov_iter_is_bvec(from) && is_sync_kiocb(iocb))
		flags |= MSG_SPLICE_PAGES;
	return device_stream_write(state, from, flags);
}

static ssize_t device_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct device_file *state = iocb->ki_filp->private_data;
	bool nonblock = device_iocb_nonblock(iocb);

	if (!device_connection(state))
		return -ENOTCONN;
	if (state->async)
		return device_async_read(state->async, to, nonblock);
	return device_stream_read(state, to, nonblock ? MSG_DONTWAIT : 0);
}

static __poll_t device_poll(struct file *file, poll_table *wait)
{
	struct device_file *state = file->private_data;
	struct socket *connection = device_connection(state);
	struct socket *listener;

	if (connection && state->async)
		return device_async_poll(state->async, file, wait);
	/* A byte out of band is none that can be read here. */
	if (connection)
		return connection->ops->poll(file, connection, wait) & ~EPOLLPRI;
	poll_wait(file, &state->connected, wait);
	/* Pairs with the release in device_ioctl.c. */
	listener = smp_load_acquire(&state->listener);
	if (!listener)
		return EPOLLHUP;
	/* A connection that can be accepted counts as something to read. */
	return listener->ops->poll(file, listener, wait) & EPOLLIN;
}

static int device_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct device_file *state = file->private_data;

	return device_buffer_map(&state->buffer, vma);
}

const struct file_operations device_operations = {
	.owner = THIS_MODULE,
	.open = device_open,
	.release = device_release,
	.read_iter = device_read_iter,
	.write_iter = device_write_iter,
	/* The socket's own would look for a file of the socket's. */
	.splice_read = copy_splice_read,
	.splice_write = iter_file_splice_write,
	.poll = device_poll,
	.unlocked_ioctl = device_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = device_mmap,
};
