// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/toll_primes: counts primes in a module, and measures the way into one.
 *
 * If it is loaded with n=, the module counts once at load and prints n, the
 * count and the time, as the published module did. The device does this on
 * request.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/errno.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/time64.h>
#include <linux/timekeeping.h>
#include <linux/toll_primes.h>
#include <linux/uaccess.h>

#include "count_primes_work.h"

static unsigned int n;
module_param(n, uint, 0444);
MODULE_PARM_DESC(n, "Count the primes among this many numbers at load (0: no count)");

/* Written only while the module loads, before anybody can read them. */
static u64 primes;
static u64 duration_ns;

static int result_set(const char *val, const struct kernel_param *kp)
{
	return -EPERM;
}

static int result_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%llu\n", *(u64 *)kp->arg);
}

static const struct kernel_param_ops result_ops = {
	.set = result_set,
	.get = result_get,
};

module_param_cb(primes, &result_ops, &primes, 0444);
MODULE_PARM_DESC(primes, "Result: number of primes counted at load");
module_param_cb(duration_ns, &result_ops, &duration_ns, 0444);
MODULE_PARM_DESC(duration_ns, "Result: nanoseconds at load until the count was printed");

/* State of an open file. */
struct toll_file {
	/* Guards the bytes of buffer, not the pointer, which never changes. */
	struct mutex lock;
	/*
	 * TOLL_COPY_LENGTH_MAX bytes, allocated at open so that no copy pays
	 * for it.
	 */
	void *buffer;
};

static int toll_primes_open(struct inode *inode, struct file *file)
{
	struct toll_file *state;

	state = kzalloc(sizeof(*state), GFP_KERNEL_ACCOUNT);
	if (!state)
		return -ENOMEM;
	state->buffer = kvmalloc(TOLL_COPY_LENGTH_MAX,
				 GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!state->buffer) {
		kfree(state);
		return -ENOMEM;
	}
	mutex_init(&state->lock);
	file->private_data = state;
	return 0;
}

static int toll_primes_release(struct inode *inode, struct file *file)
{
	struct toll_file *state = file->private_data;

	mutex_destroy(&state->lock);
	kvfree(state->buffer);
	kfree(state);
	return 0;
}

static long toll_primes_ioctl_count(struct toll_primes __user *argument)
{
	struct toll_primes request;
	int err;

	if (copy_from_user(&request, argument, sizeof(request)))
		return -EFAULT;
	err = toll_primes_work(&request);
	if (err)
		return err;
	if (copy_to_user(argument, &request, sizeof(request)))
		return -EFAULT;
	return 0;
}

static long toll_primes_ioctl_copy(struct toll_file *state,
				   const struct toll_copy __user *argument)
{
	struct toll_copy copy;
	long err = 0;

	if (copy_from_user(&copy, argument, sizeof(copy)))
		return -EFAULT;
	if (!copy.length || copy.length > TOLL_COPY_LENGTH_MAX)
		return -EINVAL;

	if (mutex_lock_interruptible(&state->lock))
		return -ERESTARTSYS;
	if (copy_from_user(state->buffer, u64_to_user_ptr(copy.address),
			   copy.length))
		err = -EFAULT;
	mutex_unlock(&state->lock);
	return err;
}

static long toll_primes_ioctl(struct file *file, unsigned int command,
			      unsigned long argument)
{
	switch (command) {
	case TOLL_PRIMES_EMPTY:
		return 0;
	case TOLL_PRIMES_COUNT:
		return toll_primes_ioctl_count((void __user *)argument);
	case TOLL_PRIMES_COPY:
		return toll_primes_ioctl_copy(file->private_data,
					      (void __user *)argument);
	default:
		return -ENOTTY;
	}
}

static const struct file_operations toll_primes_operations = {
	.owner = THIS_MODULE,
	.open = toll_primes_open,
	.release = toll_primes_release,
	.unlocked_ioctl = toll_primes_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

static struct miscdevice toll_primes_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "toll_primes",
	.fops = &toll_primes_operations,
};

static int __init toll_primes_count_at_load(void)
{
	u64 started;
	int err = -EINVAL;

	/* As published: n is known, and the time covers all that follows. */
	started = ktime_get_ns();
	if (n >= 2 && n <= TOLL_PRIMES_N_MAX)
		err = toll_primes_published(n, &primes);
	if (err) {
		pr_err("cannot count the primes among n=%u numbers: %d\n", n,
		       err);
		return err;
	}
	pr_info("%llu primes among %u numbers\n", primes, n);
	duration_ns = ktime_get_ns() - started;
	pr_info("%u numbers took %llu.%03llu us\n", n,
		duration_ns / NSEC_PER_USEC, duration_ns % NSEC_PER_USEC);
	return 0;
}

static int __init toll_primes_init(void)
{
	int err;

	if (n) {
		err = toll_primes_count_at_load();
		if (err)
			return err;
	}
	return misc_register(&toll_primes_device);
}

static void __exit toll_primes_exit(void)
{
	misc_deregister(&toll_primes_device);
}

module_init(toll_primes_init);
module_exit(toll_primes_exit);

MODULE_AUTHOR("The toll developers");
MODULE_DESCRIPTION("Counts primes in a module, to measure the way into it");
MODULE_LICENSE("GPL");
