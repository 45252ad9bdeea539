/* SPDX-License-Identifier: GPL-2.0 */
/* What the module tolldev exports to the modules master and slave. */
#ifndef TOLLDEV_H
#define TOLLDEV_H

#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/moduleparam.h>
#include <linux/poll.h>
#include <linux/ratelimit_types.h>
#include <linux/types.h>

#include "toll_device.h"
#include "tolldev_compat.h"

/**
 * struct tolldev_defaults - Settings that a file starts with
 * @buffer_bytes: See struct toll_device_settings.
 * @mode: See struct toll_device_settings.
 * @no_delay: See struct toll_device_settings.
 *
 * Parameters of the module that owns the device. They may change at any time.
 */
struct tolldev_defaults {
	unsigned int buffer_bytes;
	unsigned int mode;
	bool no_delay;
};

/*
 * Largest number of lines of one kind that a device logs in five seconds. It is
 * enough for each ioctl of a small file. For a large file, ioctls would otherwise
 * flush other messages out of the log, and each of them would wait for a slow
 * console.
 */
#define TOLLDEV_LOG_BURST 50

/**
 * struct tolldev_log - What a device writes to the kernel log
 * @enabled: Whether it writes at all. A parameter, which may change at any time.
 * @published: No limits, and for a master no line about an ioctl, as in the
 *	published modules. A parameter, which may change at any time.
 * @ioctls: Limits lines about ioctls.
 * @events: Limits all other lines, so that ioctls cannot use up their share.
 */
struct tolldev_log {
	bool enabled;
	bool published;
	struct ratelimit_state ioctls;
	struct ratelimit_state events;
};

#define TOLLDEV_LIMIT_INIT(limit) \
	RATELIMIT_STATE_INIT(limit, DEFAULT_RATELIMIT_INTERVAL, TOLLDEV_LOG_BURST)

/**
 * struct tolldev_device - A device node, one per module
 * @misc: Its operations are TOLLDEV_OPERATIONS.
 * @name: Begins the device's lines in the kernel log.
 * @listens: The device listens and accepts; otherwise it connects.
 * @log: See struct tolldev_log.
 * @defaults: Settings of new files.
 */
struct tolldev_device {
	struct miscdevice misc;
	const char *name;
	bool listens;
	struct tolldev_log log;
	struct tolldev_defaults defaults;
};

/* Parameter types for the fields of struct tolldev_defaults. */
extern const struct kernel_param_ops tolldev_buffer_bytes_ops;
extern const struct kernel_param_ops tolldev_mode_ops;

int tolldev_open(struct inode *inode, struct file *file);
int tolldev_release(struct inode *inode, struct file *file);
ssize_t tolldev_read_iter(struct kiocb *iocb, struct iov_iter *to);
ssize_t tolldev_write_iter(struct kiocb *iocb, struct iov_iter *from);
__poll_t tolldev_poll(struct file *file, poll_table *wait);
long tolldev_ioctl(struct file *file, unsigned int command,
		   unsigned long argument);
int tolldev_mmap(struct file *file, struct vm_area_struct *vma);

/*
 * File operations of a struct tolldev_device. The module adds .owner, so that
 * open files keep it loaded. splice_read is the generic one, since that of
 * sockets expects the socket's own file.
 */
#define TOLLDEV_OPERATIONS \
	.open = tolldev_open, \
	.release = tolldev_release, \
	.read_iter = tolldev_read_iter, \
	.write_iter = tolldev_write_iter, \
	.splice_read = copy_splice_read, \
	.splice_write = iter_file_splice_write, \
	.poll = tolldev_poll, \
	.unlocked_ioctl = tolldev_ioctl, \
	.compat_ioctl = compat_ptr_ioctl, \
	.mmap = tolldev_mmap

#endif /* TOLLDEV_H */
