/* SPDX-License-Identifier: GPL-2.0 */
/* TCP sockets that the kernel opens for a file. */
#ifndef TOLL_TOLLDEV_SOCKET_H
#define TOLL_TOLLDEV_SOCKET_H

#include <linux/types.h>

#include "toll_device.h"

struct socket;

int tolldev_socket_listen(struct toll_device_endpoint *here, bool fasync,
			  struct socket **listener);
int tolldev_socket_accept(struct socket *listener, struct toll_device_endpoint *peer,
			  bool nonblock, struct socket **connection);
void tolldev_socket_stop_listening(struct socket *listener);
int tolldev_socket_connect(const struct toll_device_endpoint *peer, bool fasync,
			   struct socket **connection);
int tolldev_socket_set_no_delay(struct socket *sock, bool no_delay);
void tolldev_socket_set_fasync(struct socket *sock);
int tolldev_socket_finish(struct socket *sock);
void tolldev_socket_release(struct socket *sock);

#endif /* TOLL_TOLLDEV_SOCKET_H */
