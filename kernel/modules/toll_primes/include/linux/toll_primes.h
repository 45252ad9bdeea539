/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/* The header's name in a kernel with the patches. */
#include "../../../../uapi/toll_primes.h"
