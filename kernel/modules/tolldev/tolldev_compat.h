/* SPDX-License-Identifier: GPL-2.0 */
/* Names that older kernels lack, such as Debian's 6.1. */
#ifndef TOLLDEV_COMPAT_H
#define TOLLDEV_COMPAT_H

#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)

static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}

static inline void vm_flags_clear(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags &= ~flags;
}

#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
#define copy_splice_read generic_file_splice_read
#endif

#endif /* TOLLDEV_COMPAT_H */
