/* SPDX-License-Identifier: GPL-2.0 */
/* TCP sockets that the kernel opens for a file. */
#ifndef TOLL_KSOCKET_H
#define TOLL_KSOCKET_H

#include <linux/types.h>

#include "toll_device.h"

struct socket;

int ksocket_listen(struct toll_device_endpoint *here, bool fasync,
		   struct socket **listener);
int ksocket_accept(struct socket *listener, struct toll_device_endpoint *peer,
		   bool nonblock, struct socket **connection);
int ksocket_connect(const struct toll_device_endpoint *peer, bool fasync,
		    struct socket **connection);
int ksocket_set_no_delay(struct socket *sock, bool no_delay);
void ksocket_set_fasync(struct socket *sock);
int ksocket_finish(struct socket *sock);
void ksocket_release(struct socket *sock);

#endif /* TOLL_KSOCKET_H */
