/* SPDX-License-Identifier: GPL-2.0 */
#ifndef TOLLDEV_PAGE_H
#define TOLLDEV_PAGE_H

#include "toll_device.h"

int tolldev_page_look_up(struct toll_device_page *page);

#endif /* TOLLDEV_PAGE_H */
