// SPDX-License-Identifier: GPL-2.0
/* /dev/master_device: the end of a connection that listens and accepts. */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/moduleparam.h>

#include "tolldev.h"

static const struct file_operations master_operations = {
	.owner = THIS_MODULE,
	TOLLDEV_OPERATIONS,
};

static struct tolldev_device master_device = {
	.misc = {
		.minor = MISC_DYNAMIC_MINOR,
		.name = "master_device",
		.fops = &master_operations,
		.mode = 0600,
	},
	.name = "master",
	.listens = true,
	.log = {
		.enabled = true,
		.ioctls = TOLLDEV_LIMIT_INIT(master_device.log.ioctls),
		.events = TOLLDEV_LIMIT_INIT(master_device.log.events),
	},
	.defaults = {
		.buffer_bytes = TOLL_DEVICE_BUFFER_DEFAULT,
		.mode = TOLL_DEVICE_SYNC,
	},
};

module_param_cb(buffer_bytes, &tolldev_buffer_bytes_ops,
		&master_device.defaults.buffer_bytes, 0644);
MODULE_PARM_DESC(buffer_bytes, "Buffer size of files opened from now on");

module_param_cb(mode, &tolldev_mode_ops, &master_device.defaults.mode, 0644);
MODULE_PARM_DESC(mode, "Mode of files opened from now on: sync, fasync, async");

module_param_named(no_delay, master_device.defaults.no_delay, bool, 0644);
MODULE_PARM_DESC(no_delay, "Whether files opened from now on set TCP_NODELAY");

module_param_named(log, master_device.log.enabled, bool, 0644);
MODULE_PARM_DESC(log, "Whether connections and ioctls go to the kernel log");

module_param_named(log_published, master_device.log.published, bool, 0644);
MODULE_PARM_DESC(log_published, "Whether to log without limits, as published");

static int __init master_init(void)
{
	return misc_register(&master_device.misc);
}

static void __exit master_exit(void)
{
	misc_deregister(&master_device.misc);
}

module_init(master_init);
module_exit(master_exit);

MODULE_AUTHOR("The toll developers");
MODULE_DESCRIPTION("End of a TCP connection in the kernel that listens and accepts");
MODULE_LICENSE("GPL");
