// SPDX-License-Identifier: GPL-2.0
/* Settings of open files, and the parameters that new files start with. */
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/moduleparam.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "tolldev.h"
#include "tolldev_file.h"
#include "tolldev_socket.h"

static const char *const tolldev_modes[] = {
	[TOLL_DEVICE_SYNC] = "sync",
	[TOLL_DEVICE_FASYNC] = "fasync",
	[TOLL_DEVICE_ASYNC] = "async",
};

static int tolldev_buffer_bytes_set(const char *val,
				    const struct kernel_param *kp)
{
	return param_set_uint_minmax(val, kp, TOLL_DEVICE_BUFFER_MIN,
				     TOLL_DEVICE_BUFFER_MAX);
}

const struct kernel_param_ops tolldev_buffer_bytes_ops = {
	.set = tolldev_buffer_bytes_set,
	.get = param_get_uint,
};
EXPORT_SYMBOL_GPL(tolldev_buffer_bytes_ops);

/* Takes the name of a mode or its number. */
static int tolldev_mode_set(const char *val, const struct kernel_param *kp)
{
	int chosen = sysfs_match_string(tolldev_modes, val);

	if (chosen < 0)
		return param_set_uint_minmax(val, kp, 0,
					     ARRAY_SIZE(tolldev_modes) - 1);
	*(unsigned int *)kp->arg = chosen;
	return 0;
}

static int tolldev_mode_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%s\n",
			  tolldev_modes[*(unsigned int *)kp->arg]);
}

const struct kernel_param_ops tolldev_mode_ops = {
	.set = tolldev_mode_set,
	.get = tolldev_mode_get,
};
EXPORT_SYMBOL_GPL(tolldev_mode_ops);

/**
 * tolldev_settings_init() - Settings of a new file
 * @state: Gets the defaults of its device.
 */
void tolldev_settings_init(struct tolldev_file *state)
{
	const struct tolldev_defaults *defaults = &state->device->defaults;

	state->mode = READ_ONCE(defaults->mode);
	state->no_delay = READ_ONCE(defaults->no_delay);
	tolldev_buffer_init(&state->buffer, READ_ONCE(defaults->buffer_bytes));
}

/**
 * tolldev_settings_get() - Settings of a file
 * @state: State of the file.
 * @settings: Out.
 */
void tolldev_settings_get(struct tolldev_file *state,
			  struct toll_device_settings *settings)
{
	*settings = (struct toll_device_settings){
		.buffer_bytes = READ_ONCE(state->buffer.bytes),
		.mode = READ_ONCE(state->mode),
		.no_delay = READ_ONCE(state->no_delay),
	};
}

/**
 * tolldev_settings_set() - Change a file's settings
 * @state: State of the file; its lock setup is held.
 * @settings: The new ones.
 *
 * Return: 0; -EINVAL for values that the header does not allow; -EBUSY for
 * another mode once there is a connection, or another size while the buffer is
 * mapped. After an error nothing has changed.
 */
int tolldev_settings_set(struct tolldev_file *state,
			 const struct toll_device_settings *settings)
{
	int err;

	lockdep_assert_held(&state->setup);
	if (settings->buffer_bytes < TOLL_DEVICE_BUFFER_MIN ||
	    settings->buffer_bytes > TOLL_DEVICE_BUFFER_MAX ||
	    settings->mode >= ARRAY_SIZE(tolldev_modes) ||
	    settings->no_delay > 1 || settings->reserved)
		return -EINVAL;
	if (state->connection && settings->mode != state->mode)
		return -EBUSY;
	err = tolldev_buffer_resize(&state->buffer, settings->buffer_bytes);
	if (err)
		return err;
	if (state->connection && settings->no_delay != state->no_delay) {
		err = tolldev_socket_set_no_delay(state->connection,
						  settings->no_delay);
		if (err)
			return err;
	}
	WRITE_ONCE(state->mode, settings->mode);
	WRITE_ONCE(state->no_delay, settings->no_delay);
	return 0;
}
