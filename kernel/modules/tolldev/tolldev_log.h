/* SPDX-License-Identifier: GPL-2.0 */
/* What a device writes to the kernel log while its parameter log is set. */
#ifndef TOLLDEV_LOG_H
#define TOLLDEV_LOG_H

#include <linux/compiler_attributes.h>

struct tolldev_device;

void tolldev_log_ioctl(struct tolldev_device *device, unsigned int command);
__printf(2, 3)
void tolldev_log_event(struct tolldev_device *device, const char *format, ...);

#endif /* TOLLDEV_LOG_H */
