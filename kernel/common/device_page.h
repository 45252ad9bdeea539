/* SPDX-License-Identifier: GPL-2.0 */
#ifndef TOLL_DEVICE_PAGE_H
#define TOLL_DEVICE_PAGE_H

#include "toll_device.h"

int device_page_look_up(struct toll_device_page *page);

#endif /* TOLL_DEVICE_PAGE_H */
