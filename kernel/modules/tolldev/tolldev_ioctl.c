// SPDX-License-Identifier: GPL-2.0
/* The ioctls of a device. */
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/fs.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/uaccess.h>

#include "tolldev.h"
#include "tolldev_async.h"
#include "tolldev_file.h"
#include "tolldev_log.h"
#include "tolldev_page.h"
#include "tolldev_socket.h"

/* Interruptible: the lock's holder may be waiting for a peer to connect. */
static int tolldev_setup_lock(struct file *file)
{
	struct tolldev_file *state = file->private_data;

	if (tolldev_is_nonblock(file))
		return mutex_trylock(&state->setup) ? 0 : -EAGAIN;
	return mutex_lock_interruptible(&state->setup) ? -ERESTARTSYS : 0;
}

/* Makes a new connection the file's own, or releases it on an error. */
static int tolldev_adopt(struct tolldev_file *state, struct socket *connection)
{
	int err = 0;

	lockdep_assert_held(&state->setup);
	if (state->no_delay)
		err = tolldev_socket_set_no_delay(connection, true);
	if (!err && state->mode == TOLL_DEVICE_ASYNC)
		err = tolldev_async_start(state, connection);
	if (err) {
		tolldev_socket_release(connection);
		return err;
	}
	tolldev_forward_start(&state->connection_wakes, connection,
			      &state->events);
	/* Pairs with tolldev_connection(). */
	smp_store_release(&state->connection, connection);
	wake_up_all(&state->events);
	return 0;
}

static void tolldev_log_connected(struct tolldev_file *state,
				  const struct toll_device_endpoint *peer)
{
	if (peer->family == AF_INET6)
		tolldev_log_event(state->device, "connected to : %pI6c %u",
				  peer->address, peer->port);
	else
		tolldev_log_event(state->device, "connected to : %pI4 %u",
				  peer->address, peer->port);
}

static int tolldev_listen(struct tolldev_file *state,
			  struct toll_device_endpoint *endpoint)
{
	struct socket *listener;
	int err;

	if (state->listener)
		return -EBUSY;
	err = tolldev_socket_listen(endpoint, state->mode == TOLL_DEVICE_FASYNC,
				    &listener);
	if (err)
		return err;
	tolldev_forward_start(&state->listener_wakes, listener, &state->events);
	/* Pairs with tolldev_poll(). */
	smp_store_release(&state->listener, listener);
	wake_up_all(&state->events);
	return 0;
}

static int tolldev_accept(struct tolldev_file *state,
			  struct toll_device_endpoint *endpoint, bool nonblock)
{
	struct socket *connection;
	int err;

	if (!state->listener)
		return -EINVAL;
	if (state->connection)
		return -EISCONN;
	err = tolldev_socket_accept(state->listener, endpoint, nonblock, &connection);
	if (err)
		return err;
	if (state->mode == TOLL_DEVICE_FASYNC)
		tolldev_socket_set_fasync(connection);
	err = tolldev_adopt(state, connection);
	if (err)
		return err;
	tolldev_socket_stop_listening(state->listener);
	tolldev_log_connected(state, endpoint);
	return 0;
}

static int tolldev_connect(struct tolldev_file *state,
			   const struct toll_device_endpoint *endpoint)
{
	struct socket *connection;
	int err;

	if (state->connection)
		return -EISCONN;
	err = tolldev_socket_connect(endpoint, state->mode == TOLL_DEVICE_FASYNC,
				     &connection);
	if (err)
		return err;
	err = tolldev_adopt(state, connection);
	if (!err)
		tolldev_log_connected(state, endpoint);
	return err;
}

static long tolldev_ioctl_endpoint(struct file *file, unsigned int command,
				   struct toll_device_endpoint __user *argument)
{
	struct tolldev_file *state = file->private_data;
	struct toll_device_endpoint endpoint;
	int err;

	if (state->device->listens ? command == TOLL_DEVICE_CONNECT :
				  command != TOLL_DEVICE_CONNECT)
		return -ENOTTY;
	if (copy_from_user(&endpoint, argument, sizeof(endpoint)))
		return -EFAULT;
	if (endpoint.reserved)
		return -EINVAL;
	err = tolldev_setup_lock(file);
	if (err)
		return err;
	if (command == TOLL_DEVICE_LISTEN)
		err = tolldev_listen(state, &endpoint);
	else if (command == TOLL_DEVICE_ACCEPT)
		err = tolldev_accept(state, &endpoint, tolldev_is_nonblock(file));
	else
		err = tolldev_connect(state, &endpoint);
	mutex_unlock(&state->setup);
	if (err || command == TOLL_DEVICE_CONNECT)
		return err;
	return copy_to_user(argument, &endpoint, sizeof(endpoint)) ? -EFAULT :
								     0;
}

static long
tolldev_ioctl_get_settings(struct tolldev_file *state,
			   struct toll_device_settings __user *argument)
{
	struct toll_device_settings settings;

	tolldev_settings_get(state, &settings);
	return copy_to_user(argument, &settings, sizeof(settings)) ? -EFAULT :
								     0;
}

static long
tolldev_ioctl_set_settings(struct file *file,
			   const struct toll_device_settings __user *argument)
{
	struct tolldev_file *state = file->private_data;
	struct toll_device_settings settings;
	int err;

	if (copy_from_user(&settings, argument, sizeof(settings)))
		return -EFAULT;
	err = tolldev_setup_lock(file);
	if (err)
		return err;
	err = tolldev_settings_set(state, &settings);
	mutex_unlock(&state->setup);
	return err;
}

/* Sends or receives as the mode requires, and sets the out fields. */
static int tolldev_transfer(struct file *file, bool sends,
			    struct toll_device_transfer *transfer, bool awaited)
{
	struct tolldev_file *state = file->private_data;
	bool nonblock = tolldev_is_nonblock(file);
	struct tolldev_buffer *buffer;
	ssize_t result = -EINVAL;

	if (!(file->f_mode & (sends ? FMODE_WRITE : FMODE_READ)))
		return -EBADF;
	if (!tolldev_connection(state))
		return -ENOTCONN;
	buffer = tolldev_buffer_get(&state->buffer);
	if (!buffer)
		return -ENOMEM;
	transfer->sequence = 0;
	if (transfer->offset > buffer->bytes ||
	    transfer->length > buffer->bytes - transfer->offset)
		goto out_put;
	if (!state->async)
		result = tolldev_stream_transfer(state, sends, buffer,
						 transfer->offset,
						transfer->length, nonblock);
	else if (awaited)
		result = tolldev_async_transfer(state->async, sends, buffer,
						transfer->offset,
					       transfer->length, nonblock);
	else
		result = tolldev_async_queue(state->async, sends, buffer,
					     transfer, nonblock);
out_put:
	tolldev_buffer_put(buffer);
	if (result < 0)
		return result;
	transfer->done = result;
	return 0;
}

static long
tolldev_ioctl_transfer(struct file *file, bool sends,
		       struct toll_device_transfer __user *argument)
{
	struct toll_device_transfer transfer;
	int err;

	if (copy_from_user(&transfer, argument, sizeof(transfer)))
		return -EFAULT;
	err = tolldev_transfer(file, sends, &transfer, false);
	if (err)
		return err;
	return copy_to_user(argument, &transfer, sizeof(transfer)) ? -EFAULT :
								     0;
}

/*
 * The published programs map the device page by page, at the offset in their
 * file. The published driver has a buffer of one page, and each call starts at
 * its beginning. So bytes are at the beginning of the page that a mapping at
 * that offset shows, and continue at the beginning of the buffer after its last
 * page.
 */
static long tolldev_ioctl_published_transfer(struct file *file,
					     unsigned long length)
{
	struct tolldev_file *state = file->private_data;
	u32 buffer_bytes = READ_ONCE(state->buffer.bytes);
	u64 position = atomic64_read(&state->published_bytes) & PAGE_MASK;
	struct toll_device_transfer transfer;
	unsigned long done = 0;
	int err = -EINVAL;

	if (length > PAGE_ALIGN(buffer_bytes))
		goto out_log;
	do {
		div64_u64_rem(position + done, PAGE_ALIGN(buffer_bytes),
			      &transfer.offset);
		transfer.length = min_t(u64, length - done,
					PAGE_ALIGN(buffer_bytes) - transfer.offset);
		err = tolldev_transfer(file, state->device->listens, &transfer,
				       true);
		if (err)
			break;
		done += transfer.done;
	} while (done < length && transfer.done == transfer.length);
	atomic64_add(done, &state->published_bytes);
	if (done)
		return done;
out_log:
	if (err == -EINVAL)
		tolldev_log_event(state->device,
				  "cannot transfer %lu bytes by a buffer of %u bytes: load the module with a larger buffer_bytes, of whole pages",
				  length, buffer_bytes);
	return err;
}

static void tolldev_log_page(struct tolldev_file *state,
			     const struct toll_device_page *page)
{
	tolldev_log_event(state->device, "%016llX", page->entry);
}

static long tolldev_ioctl_published_page(struct tolldev_file *state,
					 unsigned long address)
{
	struct toll_device_page page = { .address = address };
	int err = tolldev_page_look_up(&page);

	if (!err)
		tolldev_log_page(state, &page);
	return err;
}

static long tolldev_ioctl_page(struct tolldev_file *state,
			       struct toll_device_page __user *argument)
{
	struct toll_device_page page;
	int err;

	if (copy_from_user(&page, argument, sizeof(page)))
		return -EFAULT;
	err = tolldev_page_look_up(&page);
	if (err)
		return err;
	tolldev_log_page(state, &page);
	return copy_to_user(argument, &page, sizeof(page)) ? -EFAULT : 0;
}

static long tolldev_ioctl_reap(struct file *file,
			       struct toll_device_completion __user *argument)
{
	struct tolldev_file *state = file->private_data;
	struct toll_device_completion completion;
	int err;

	if (copy_from_user(&completion, argument, sizeof(completion)))
		return -EFAULT;
	if (completion.reserved)
		return -EINVAL;
	if (!tolldev_connection(state))
		return -ENOTCONN;
	if (!state->async)
		return -ENOENT;
	err = tolldev_async_reap(state->async, &completion,
				 tolldev_is_nonblock(file));
	if (err)
		return err;
	return copy_to_user(argument, &completion, sizeof(completion)) ?
		       -EFAULT :
		       0;
}

static long tolldev_ioctl_finish(struct file *file)
{
	struct tolldev_file *state = file->private_data;
	struct socket *connection = tolldev_connection(state);
	int err;

	if (!(file->f_mode & FMODE_WRITE))
		return -EBADF;
	if (!connection)
		return -ENOTCONN;
	if (state->async) {
		err = tolldev_async_finish(state->async,
					   tolldev_is_nonblock(file));
		if (err)
			return err;
	}
	return tolldev_socket_finish(connection);
}

static long
tolldev_ioctl_statistics(struct tolldev_file *state,
			 struct toll_device_statistics __user *argument)
{
	struct tolldev_counters *counters = &state->counters;
	struct toll_device_statistics statistics = {
		.bytes_sent = atomic64_read(&counters->bytes_sent),
		.bytes_received = atomic64_read(&counters->bytes_received),
		.sends = atomic64_read(&counters->sends),
		.receives = atomic64_read(&counters->receives),
		.waits = atomic64_read(&counters->waits),
		.queued_max = atomic64_read(&counters->queued_max),
	};

	return copy_to_user(argument, &statistics, sizeof(statistics)) ?
		       -EFAULT :
		       0;
}

/**
 * tolldev_ioctl() - Run a command of toll_device.h
 * @file: An open file of a device.
 * @command: Number of the command.
 * @argument: As the header says for the command.
 *
 * Return: 0, bytes of the published transfer, or a negative errno.
 */
long tolldev_ioctl(struct file *file, unsigned int command,
		   unsigned long argument)
{
	struct tolldev_file *state = file->private_data;
	void __user *pointer = (void __user *)argument;

	tolldev_log_ioctl(state->device, command);
	switch (command) {
	case TOLL_DEVICE_GET_SETTINGS:
		return tolldev_ioctl_get_settings(state, pointer);
	case TOLL_DEVICE_SET_SETTINGS:
		return tolldev_ioctl_set_settings(file, pointer);
	case TOLL_DEVICE_LISTEN:
	case TOLL_DEVICE_ACCEPT:
	case TOLL_DEVICE_CONNECT:
		return tolldev_ioctl_endpoint(file, command, pointer);
	case TOLL_DEVICE_SEND:
	case TOLL_DEVICE_RECEIVE:
		return tolldev_ioctl_transfer(file, command == TOLL_DEVICE_SEND,
					     pointer);
	case TOLL_DEVICE_REAP:
		return tolldev_ioctl_reap(file, pointer);
	case TOLL_DEVICE_FINISH:
		return tolldev_ioctl_finish(file);
	case TOLL_DEVICE_PAGE:
		return tolldev_ioctl_page(state, pointer);
	case TOLL_DEVICE_STATISTICS:
		return tolldev_ioctl_statistics(state, pointer);
	case TOLL_DEVICE_PUBLISHED_PAGE:
		return tolldev_ioctl_published_page(state, argument);
	case TOLL_DEVICE_PUBLISHED_TRANSFER:
		return tolldev_ioctl_published_transfer(file, argument);
	default:
		return -ENOTTY;
	}
}
EXPORT_SYMBOL_GPL(tolldev_ioctl);
