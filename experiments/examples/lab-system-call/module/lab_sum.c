// SPDX-License-Identifier: GPL-2.0
/* The sum of the lab, behind an ioctl of /dev/lab_sum. */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>

static long lab_sum_ioctl(struct file *file, unsigned int command,
			  unsigned long count)
{
	unsigned int sum = 0;
	unsigned int i;

	if (count > 1000000)
		return -EINVAL;
	for (i = 0; i < count; i++)
		sum = sum * 31 + i;
	return sum & 0x7fffffff;
}

static const struct file_operations lab_sum_operations = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = lab_sum_ioctl,
};

static struct miscdevice lab_sum_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "lab_sum",
	.fops = &lab_sum_operations,
};
module_misc_device(lab_sum_device);

MODULE_DESCRIPTION("The sum of the lab");
MODULE_LICENSE("GPL");
