// SPDX-License-Identifier: GPL-2.0
/*
 * TCP sockets that the kernel opens for a file. sock_create() makes them, as it
 * makes a program's. A socket of sock_create_kern() holds no reference to its
 * network namespace, which could be freed while TCP still sends the last
 * segments. As a consequence, bind() checks the caller's capabilities: ports
 * below 1024 need CAP_NET_BIND_SERVICE.
 *
 * The sizes of socket buffers are not set here. So the kernel adapts them to
 * the delay and rate of the connection (tcp_rmem, tcp_wmem), as it does for the
 * programs that the devices are compared with.
 */
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/jiffies.h>
#include <linux/net.h>
#include <linux/sched.h>
#include <linux/sockptr.h>
#include <linux/string.h>
#include <linux/tcp.h>
#include <net/sock.h>

#include "tolldev_socket.h"

/* A file accepts one connection, so no second one has to wait. */
#define TOLLDEV_SOCKET_BACKLOG 1

/* Returns jiffies; 0 ms means no limit. */
static long tolldev_socket_timeout(u32 timeout_ms)
{
	return timeout_ms ? msecs_to_jiffies(timeout_ms) :
			    MAX_SCHEDULE_TIMEOUT;
}

static int tolldev_socket_address(const struct toll_device_endpoint *endpoint,
				  struct sockaddr_storage *address)
{
	struct sockaddr_in *in = (struct sockaddr_in *)address;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)address;

	memset(address, 0, sizeof(*address));
	switch (endpoint->family) {
	case AF_INET:
		if (endpoint->scope_id || memchr_inv(endpoint->address + 4, 0, 12))
			return -EINVAL;
		in->sin_family = AF_INET;
		in->sin_port = htons(endpoint->port);
		memcpy(&in->sin_addr, endpoint->address, 4);
		return sizeof(*in);
	case AF_INET6:
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(endpoint->port);
		in6->sin6_scope_id = endpoint->scope_id;
		memcpy(&in6->sin6_addr, endpoint->address, 16);
		return sizeof(*in6);
	default:
		return -EAFNOSUPPORT;
	}
}

/* Leaves timeout_ms and reserved as they are. */
static void tolldev_socket_endpoint(const struct sockaddr_storage *address,
				    struct toll_device_endpoint *endpoint)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)address;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;

	memset(endpoint->address, 0, sizeof(endpoint->address));
	endpoint->family = address->ss_family;
	if (address->ss_family == AF_INET6) {
		endpoint->port = ntohs(in6->sin6_port);
		endpoint->scope_id = in6->sin6_scope_id;
		memcpy(endpoint->address, &in6->sin6_addr, 16);
	} else {
		endpoint->port = ntohs(in->sin_port);
		endpoint->scope_id = 0;
		memcpy(endpoint->address, &in->sin_addr, 4);
	}
}

/**
 * tolldev_socket_set_fasync() - Set the flag that the published modules set
 * @sock: No other thread can reach it yet.
 *
 * FASYNC is a flag of files. No code reads it in a socket's flags.
 */
void tolldev_socket_set_fasync(struct socket *sock)
{
	sock->flags |= FASYNC;
}

static int tolldev_socket_create(int family, bool fasync, struct socket **sock)
{
	int err;

	err = sock_create(family, SOCK_STREAM, IPPROTO_TCP, sock);
	if (err)
		return err;
	if (fasync)
		tolldev_socket_set_fasync(*sock);
	return 0;
}

/**
 * tolldev_socket_listen() - Wait on an address of the caller's network namespace
 * @here: The address; its port is set to the one that was chosen.
 * @fasync: Whether to set FASYNC.
 * @listener: Out.
 *
 * Return: 0 or a negative errno, as of socket(2), bind(2) and listen(2).
 */
int tolldev_socket_listen(struct toll_device_endpoint *here, bool fasync,
			  struct socket **listener)
{
	struct sockaddr_storage address;
	struct socket *sock;
	int length, err;

	length = tolldev_socket_address(here, &address);
	if (length < 0)
		return length;
	err = tolldev_socket_create(here->family, fasync, &sock);
	if (err)
		return err;
	/* Allow a port that an earlier connection still holds in TIME_WAIT. */
	sock_set_reuseaddr(sock->sk);
	err = kernel_bind(sock, (struct sockaddr *)&address, length);
	if (err)
		goto out_release;
	err = kernel_listen(sock, TOLLDEV_SOCKET_BACKLOG);
	if (err)
		goto out_release;
	err = kernel_getsockname(sock, (struct sockaddr *)&address);
	if (err < 0)
		goto out_release;
	tolldev_socket_endpoint(&address, here);
	*listener = sock;
	return 0;

out_release:
	sock_release(sock);
	return err;
}

/**
 * tolldev_socket_accept() - Wait for a connection
 * @listener: From tolldev_socket_listen().
 * @peer: timeout_ms is the longest wait; the address becomes the peer's.
 * @nonblock: Do not wait: -EAGAIN.
 * @connection: Out.
 *
 * Return: 0, -ETIMEDOUT, -ERESTARTSYS or -EINTR for a signal, or another
 * negative errno of accept(2).
 */
int tolldev_socket_accept(struct socket *listener, struct toll_device_endpoint *peer,
			  bool nonblock, struct socket **connection)
{
	struct sockaddr_storage address;
	struct socket *sock;
	int err;

	WRITE_ONCE(listener->sk->sk_rcvtimeo, tolldev_socket_timeout(peer->timeout_ms));
	err = kernel_accept(listener, &sock, nonblock ? O_NONBLOCK : 0);
	if (err == -EAGAIN && !nonblock)
		return -ETIMEDOUT;
	if (err)
		return err;
	/* It inherited the listener's timeout. Waits for data have none. */
	WRITE_ONCE(sock->sk->sk_rcvtimeo, MAX_SCHEDULE_TIMEOUT);
	err = kernel_getpeername(sock, (struct sockaddr *)&address);
	if (err < 0) {
		/* The peer has already reset the connection. */
		sock_release(sock);
		return -ECONNABORTED;
	}
	tolldev_socket_endpoint(&address, peer);
	*connection = sock;
	return 0;
}

/**
 * tolldev_socket_stop_listening() - Free the port
 * @listener: From tolldev_socket_listen(). It is not released, since another
 *	thread may poll it.
 */
void tolldev_socket_stop_listening(struct socket *listener)
{
	kernel_sock_shutdown(listener, SHUT_RDWR);
}

/**
 * tolldev_socket_connect() - Connect within the caller's network namespace
 * @peer: The destination; timeout_ms is the longest wait.
 * @fasync: Whether to set FASYNC.
 * @connection: Out.
 *
 * Return: 0, -ETIMEDOUT, -ERESTARTSYS or -EINTR for a signal, or another
 * negative errno of connect(2).
 */
int tolldev_socket_connect(const struct toll_device_endpoint *peer, bool fasync,
			   struct socket **connection)
{
	struct sockaddr_storage address;
	struct socket *sock;
	int length, err;

	length = tolldev_socket_address(peer, &address);
	if (length < 0)
		return length;
	if (!peer->port)
		return -EINVAL;
	err = tolldev_socket_create(peer->family, fasync, &sock);
	if (err)
		return err;
	WRITE_ONCE(sock->sk->sk_sndtimeo, tolldev_socket_timeout(peer->timeout_ms));
	err = kernel_connect(sock, (struct sockaddr *)&address, length, 0);
	if (err) {
		sock_release(sock);
		/* The timeout has passed before the connection was made. */
		return err == -EINPROGRESS ? -ETIMEDOUT : err;
	}
	WRITE_ONCE(sock->sk->sk_sndtimeo, MAX_SCHEDULE_TIMEOUT);
	*connection = sock;
	return 0;
}

/**
 * tolldev_socket_set_no_delay() - Choose whether small segments may be held back
 * @sock: A TCP socket.
 * @no_delay: They are sent at once (TCP_NODELAY).
 *
 * Return: 0 or a negative errno.
 */
int tolldev_socket_set_no_delay(struct socket *sock, bool no_delay)
{
	int value = no_delay;

	return sock->ops->setsockopt(sock, SOL_TCP, TCP_NODELAY,
				     KERNEL_SOCKPTR(&value), sizeof(value));
}

/**
 * tolldev_socket_finish() - End sending, so that the peer reads the end
 * @sock: A connection.
 *
 * Return: 0, or the error that has ended the connection.
 */
int tolldev_socket_finish(struct socket *sock)
{
	int err = sock_error(sock->sk);

	return err ? err : kernel_sock_shutdown(sock, SHUT_WR);
}

/**
 * tolldev_socket_release() - Close a socket
 * @sock: The socket, or NULL.
 */
void tolldev_socket_release(struct socket *sock)
{
	if (sock)
		sock_release(sock);
}
