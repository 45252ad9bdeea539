// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "module.h"

int module_load(const char *path, const char *parameters)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	int error;

	if (file < 0)
		return errno;
	error = syscall(SYS_finit_module, file, parameters, 0) < 0 ? errno : 0;
	close(file);
	return error;
}

int module_unload(const char *name)
{
	return syscall(SYS_delete_module, name, O_NONBLOCK) < 0 ? errno : 0;
}
