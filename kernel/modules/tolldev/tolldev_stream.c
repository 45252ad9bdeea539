// SPDX-License-Identifier: GPL-2.0
/* Modes sync and fasync: each call itself sends or receives its bytes. */
#include <linux/errno.h>
#include <linux/sched.h>
#include <linux/uio.h>

#include "tolldev_file.h"

/*
 * Counts a call that waited. Waiting raises the thread's number of voluntary
 * context switches, so no second, non-blocking call is needed to find out.
 */
static void tolldev_count_wait(struct tolldev_file *state,
			       unsigned long switches_before, int result)
{
	if (result == -EAGAIN || current->nvcsw != switches_before)
		atomic64_inc(&state->counters.waits);
}

/**
 * tolldev_send_message() - sendmsg(2) on the connection, counted
 * @state: State of a file with a connection.
 * @message: No signal is raised for a peer that is gone.
 *
 * Return: bytes sent or a negative errno.
 */
int tolldev_send_message(struct tolldev_file *state, struct msghdr *message)
{
	unsigned long switches = current->nvcsw;
	int result;

	message->msg_flags |= MSG_NOSIGNAL;
	result = sock_sendmsg(state->connection, message);
	atomic64_inc(&state->counters.sends);
	if (result > 0)
		atomic64_add(result, &state->counters.bytes_sent);
	tolldev_count_wait(state, switches, result);
	return result;
}

/**
 * tolldev_receive_message() - recvmsg(2) on the connection, counted
 * @state: State of a file with a connection.
 * @message: The destination.
 * @flags: Flags of recvmsg(2).
 *
 * Return: bytes received, 0 at the end, or a negative errno.
 */
int tolldev_receive_message(struct tolldev_file *state, struct msghdr *message,
			    int flags)
{
	unsigned long switches = current->nvcsw;
	int result;

	result = sock_recvmsg(state->connection, message, flags);
	atomic64_inc(&state->counters.receives);
	if (result > 0)
		atomic64_add(result, &state->counters.bytes_received);
	tolldev_count_wait(state, switches, result);
	return result;
}

/**
 * tolldev_stream_write() - Send directly from the caller's memory
 * @state: State of a file with a connection.
 * @from: Advanced by what was sent.
 * @flags: Flags of sendmsg(2).
 *
 * Return: bytes sent or a negative errno.
 */
ssize_t tolldev_stream_write(struct tolldev_file *state, struct iov_iter *from,
			     int flags)
{
	struct msghdr message = { .msg_iter = *from, .msg_flags = flags };
	int result = tolldev_send_message(state, &message);

	*from = message.msg_iter;
	return result;
}

/**
 * tolldev_stream_read() - Receive into the caller's memory
 * @state: State of a file with a connection.
 * @to: Advanced by what was received.
 * @flags: Flags of recvmsg(2).
 *
 * Return: bytes received, 0 at the end, or a negative errno.
 */
ssize_t tolldev_stream_read(struct tolldev_file *state, struct iov_iter *to,
			    int flags)
{
	struct msghdr message = { .msg_iter = *to };
	int result;

	/* As with read(2) on a socket, a read of 0 bytes does not wait. */
	if (!iov_iter_count(to))
		return 0;
	result = tolldev_receive_message(state, &message, flags);
	*to = message.msg_iter;
	return result;
}

/**
 * tolldev_stream_transfer() - Send or fill a part of the buffer
 * @state: State of a file with a connection.
 * @sends: Whether it is sent; otherwise it is filled.
 * @buffer: The caller holds a reference.
 * @offset: Where the part begins.
 * @length: Its length in bytes.
 * @nonblock: Do not wait.
 *
 * Sending copies the bytes. If the socket borrowed the pages instead
 * (MSG_SPLICE_PAGES), the receiver could get what the caller writes to them
 * later. Waiting until the socket is done with them would make each call wait
 * for the receiver.
 *
 * Return: bytes transferred, or a negative errno. Fewer than @length after a
 * signal, if waiting was not allowed, and at the end.
 */
ssize_t tolldev_stream_transfer(struct tolldev_file *state, bool sends,
				struct tolldev_buffer *buffer, size_t offset,
			       size_t length, bool nonblock)
{
	struct kvec part = { buffer->data + offset, length };
	struct msghdr message = { .msg_flags = nonblock ? MSG_DONTWAIT : 0 };

	if (!length)
		return 0;
	iov_iter_kvec(&message.msg_iter, sends ? ITER_SOURCE : ITER_DEST, &part,
		      1, length);
	if (sends)
		return tolldev_send_message(state, &message);
	return tolldev_receive_message(state, &message,
				      nonblock ? MSG_DONTWAIT : MSG_WAITALL);
}
