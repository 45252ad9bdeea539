/* SPDX-License-Identifier: GPL-2.0 */
#ifndef TOLL_SELFTESTS_MODULE_H
#define TOLL_SELFTESTS_MODULE_H

/* Return 0 or the error. */
int module_load(const char *path, const char *parameters);
int module_unload(const char *name);

#endif /* TOLL_SELFTESTS_MODULE_H */
