// SPDX-License-Identifier: GPL-2.0
/*
 * Lines in the kernel log, in the words of the published modules. Each begins
 * with the name of its device instead of a prefix of this module.
 */
#include <linux/printk.h>
#include <linux/ratelimit.h>
#include <linux/stdarg.h>

#include "tolldev.h"
#include "tolldev_log.h"

/**
 * tolldev_log_ioctl() - Log that an ioctl was called
 * @device: Device it was called on.
 * @command: Number of the ioctl.
 */
void tolldev_log_ioctl(struct tolldev_device *device, unsigned int command)
{
	bool logs;

	if (!READ_ONCE(device->log.enabled))
		return;
	if (READ_ONCE(device->log.published))
		logs = !device->listens;
	else
		logs = __ratelimit(&device->log.ioctls);
	if (logs)
		pr_info("%s device ioctl %#x\n", device->name, command);
}

/**
 * tolldev_log_event() - Log what happened on a device
 * @device: The device, whose name begins the line.
 * @format: As for printk(), without the end of the line.
 */
void tolldev_log_event(struct tolldev_device *device, const char *format, ...)
{
	struct va_format text;
	va_list arguments;

	if (!READ_ONCE(device->log.enabled))
		return;
	if (!READ_ONCE(device->log.published) && !__ratelimit(&device->log.events))
		return;
	va_start(arguments, format);
	text.fmt = format;
	text.va = &arguments;
	pr_info("%s: %pV\n", device->name, &text);
	va_end(arguments);
}
