// SPDX-License-Identifier: GPL-2.0
/* Included so that Kbuild leaves its objects here and not beside the source. */
#include "../../common/ksocket.c"
