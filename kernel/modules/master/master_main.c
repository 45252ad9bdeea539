// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/master_device: the end that waits for a connection and sends through it, usually.
 * All it does is common to both ends.
 */
#include <linux/miscdevice.h>
#include <linux/module.h>

#include "device.h"
#include "device_async.h"

const struct device_role device_role = { .listens = true };

static struct miscdevice master_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "master_device",
	.fops = &device_operations,
	.mode = 0600,
};

static int __init master_init(void)
{
	int err;

	err = device_worker_create();
	if (err)
		return err;
	err = misc_register(&master_device);
	if (err)
		device_worker_destroy();
	return err;
}

static void __exit master_exit(void)
{
	misc_deregister(&master_device);
	device_worker_destroy();
}

module_init(master_init);
module_exit(master_exit);

MODULE_AUTHOR("The toll developers");
MODULE_DESCRIPTION("End of a connection in the kernel that waits for its partner");
MODULE_LICENSE("GPL");
