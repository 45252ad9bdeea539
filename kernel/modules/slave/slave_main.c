// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/slave_device: the end that makes a connection and receives through it, usually.
 * All it does is common to both ends.
 */
#include <linux/miscdevice.h>
#include <linux/module.h>

#include "device.h"
#include "device_async.h"

const struct device_role device_role = { .listens = false };

static struct miscdevice slave_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "slave_device",
	.fops = &device_operations,
	.mode = 0600,
};

static int __init slave_init(void)
{
	int err;

	err = device_worker_create();
	if (err)
		return err;
	err = misc_register(&slave_device);
	if (err)
		device_worker_destroy();
	return err;
}

static void __exit slave_exit(void)
{
	misc_deregister(&slave_device);
	device_worker_destroy();
}

module_init(slave_init);
module_exit(slave_exit);

MODULE_AUTHOR("The toll developers");
MODULE_DESCRIPTION("End of a connection in the kernel that goes to its partner");
MODULE_LICENSE("GPL");
