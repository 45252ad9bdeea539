// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Included so that Kbuild leaves its objects here and not beside the source. */
#include "../../common/count_primes_core.c"
