// SPDX-License-Identifier: GPL-2.0
/* /dev/slave_device: the end of a connection that connects to a master. */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/moduleparam.h>

#include "tolldev.h"

static const struct file_operations slave_operations = {
	.owner = THIS_MODULE,
	TOLLDEV_OPERATIONS,
};

static struct tolldev_device slave_device = {
	.misc = {
		.minor = MISC_DYNAMIC_MINOR,
		.name = "slave_device",
		.fops = &slave_operations,
		.mode = 0600,
	},
	.name = "slave",
	.listens = false,
	.log = {
		.enabled = true,
		.ioctls = TOLLDEV_LIMIT_INIT(slave_device.log.ioctls),
		.events = TOLLDEV_LIMIT_INIT(slave_device.log.events),
	},
	.defaults = {
		.buffer_bytes = TOLL_DEVICE_BUFFER_DEFAULT,
		.mode = TOLL_DEVICE_SYNC,
	},
};

module_param_cb(buffer_bytes, &tolldev_buffer_bytes_ops,
		&slave_device.defaults.buffer_bytes, 0644);
MODULE_PARM_DESC(buffer_bytes, "Buffer size of files opened from now on");

module_param_cb(mode, &tolldev_mode_ops, &slave_device.defaults.mode, 0644);
MODULE_PARM_DESC(mode, "Mode of files opened from now on: sync, fasync, async");

module_param_named(no_delay, slave_device.defaults.no_delay, bool, 0644);
MODULE_PARM_DESC(no_delay, "Whether files opened from now on set TCP_NODELAY");

module_param_named(log, slave_device.log.enabled, bool, 0644);
MODULE_PARM_DESC(log, "Whether connections and ioctls go to the kernel log");

module_param_named(log_published, slave_device.log.published, bool, 0644);
MODULE_PARM_DESC(log_published, "Whether to log without limits, as published");

static int __init slave_init(void)
{
	return misc_register(&slave_device.misc);
}

static void __exit slave_exit(void)
{
	misc_deregister(&slave_device.misc);
}

module_init(slave_init);
module_exit(slave_exit);

MODULE_AUTHOR("The toll developers");
MODULE_DESCRIPTION("End of a TCP connection in the kernel that connects to a master");
MODULE_LICENSE("GPL");
