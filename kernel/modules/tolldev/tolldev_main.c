// SPDX-License-Identifier: GPL-2.0
/*
 * The module tolldev: TCP connections as files. It has no device of its own;
 * the modules master and slave have one each.
 */
#include <linux/module.h>

#include "tolldev_async.h"

static int __init tolldev_init(void)
{
	return tolldev_worker_create();
}

static void __exit tolldev_exit(void)
{
	tolldev_worker_destroy();
}

module_init(tolldev_init);
module_exit(tolldev_exit);

MODULE_AUTHOR("The toll developers");
MODULE_DESCRIPTION("TCP connections as files, for the modules master and slave");
MODULE_LICENSE("GPL");
