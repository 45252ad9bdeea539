// SPDX-License-Identifier: GPL-2.0
/* Settings: of a module for files to come, and of an open file. */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "device.h"
#include "ksocket.h"

static const char *const device_modes[] = {
	[TOLL_DEVICE_SYNC] = "sync",
	[TOLL_DEVICE_FASYNC] = "fasync",
	[TOLL_DEVICE_ASYNC] = "async",
};

static int device_buffer_bytes_set(const char *val,
				   const struct kernel_param *kp)
{
	return param_set_uint_minmax(val, kp, TOLL_DEVICE_BUFFER_MIN,
				     TOLL_DEVICE_BUFFER_MAX);
}

static const struct kernel_param_ops device_buffer_bytes_ops = {
	.set = device_buffer_bytes_set,
	.get = param_get_uint,
};

static unsigned int buffer_bytes = TOLL_DEVICE_BUFFER_DEFAULT;
module_param_cb(buffer_bytes, &device_buffer_bytes_ops, &buffer_bytes, 0644);
MODULE_PARM_DESC(buffer_bytes, "Bytes of the buffer of files to come");

/* By its word or its number. */
static int device_mode_set(const char *val, const struct kernel_param *kp)
{
	int chosen = sysfs_match_string(device_modes, val);

	if (chosen < 0)
		return param_set_uint_minmax(val, kp, 0,
					     ARRAY_SIZE(device_modes) - 1);
	*(unsigned int *)kp->arg = chosen;
	return 0;
}

static int device_mode_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%s\n",
			  device_modes[*(unsigned int *)kp->arg]);
}

static const struct kernel_param_ops device_mode_ops = {
	.set = device_mode_set,
	.get = device_mode_get,
};

static unsigned int mode = TOLL_DEVICE_SYNC;
module_param_cb(mode, &device_mode_ops, &mode, 0644);
MODULE_PARM_DESC(mode, "Mode of files to come: sync, fasync or async");

static bool no_delay;
module_param(no_delay, bool, 0644);
MODULE_PARM_DESC(no_delay, "Whether files to come send small segments at once");

/**
 * device_settings_init() - Settings of a new file
 * @state: Gets those of the module.
 */
void device_settings_init(struct device_file *state)
{
	state->mode = READ_ONCE(mode);
	state->no_delay = READ_ONCE(no_delay);
	device_buffer_init(&state->buffer, READ_ONCE(buffer_bytes));
}

/**
 * device_settings_get() - Settings of a file
 * @state: Of the file.
 * @settings: Out.
 */
void device_settings_get(struct device_file *state,
			 struct toll_device_settings *settings)
{
	*settings = (struct toll_device_settings){
		.buffer_bytes = READ_ONCE(state->buffer.bytes),
		.mode = READ_ONCE(state->mode),
		.no_delay = READ_ONCE(state->no_delay),
	};
}

/**
 * device_settings_set() - Change a file's settings
 * @state: Of the file; its lock setup is held.
 * @settings: The new ones.
 *
 * Return: 0; -EINVAL for what the header does not allow; -EBUSY for a mode once
 * there is a connection, or a size while the buffer is mapped: then nothing has
 * changed.
 */
int device_settings_set(struct device_file *state,
			const struct toll_device_settings *settings)
{
	int err;

	lockdep_assert_held(&state->setup);
	if (settings->buffer_bytes < TOLL_DEVICE_BUFFER_MIN ||
	    settings->buffer_bytes > TOLL_DEVICE_BUFFER_MAX ||
	    settings->mode >= ARRAY_SIZE(device_modes) ||
	    settings->no_delay > 1 || settings->reserved)
		return -EINVAL;
	if (state->connection && settings->mode != state->mode)
		return -EBUSY;
	err = device_buffer_resize(&state->buffer, settings->buffer_bytes);
	if (err)
		return err;
	if (state->connection && settings->no_delay != state->no_delay) {
		err = ksocket_set_no_delay(state->connection,
					   settings->no_delay);
		if (err)
			return err;
	}
	WRITE_ONCE(state->mode, settings->mode);
	WRITE_ONCE(state->no_delay, settings->no_delay);
	return 0;
}
