// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of an open file that its caller may map. It is the only memory that
 * can be mapped, unlike in the published driver, which mapped physical memory
 * at any requested offset.
 */
#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/kref.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "tolldev_buffer.h"
#include "tolldev_compat.h"

static void tolldev_buffer_free(struct kref *references)
{
	struct tolldev_buffer *buffer =
		container_of(references, struct tolldev_buffer, references);

	vfree(buffer->data);
	kfree(buffer);
}

/**
 * tolldev_buffer_put() - Drop a reference
 * @buffer: From tolldev_buffer_get(). May sleep.
 */
void tolldev_buffer_put(struct tolldev_buffer *buffer)
{
	kref_put(&buffer->references, tolldev_buffer_free);
}

static struct tolldev_buffer *tolldev_buffer_new(size_t bytes)
{
	struct tolldev_buffer *buffer;

	buffer = kzalloc(sizeof(*buffer), GFP_KERNEL_ACCOUNT);
	if (!buffer)
		return NULL;
	kref_init(&buffer->references);
	buffer->bytes = bytes;
	buffer->page_count = DIV_ROUND_UP(bytes, PAGE_SIZE);
	/* vmalloc_user() would not charge it to the caller's cgroup. */
	buffer->data = __vmalloc(buffer->page_count * PAGE_SIZE,
				 GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN);
	if (!buffer->data) {
		kfree(buffer);
		return NULL;
	}
	return buffer;
}

/* Returns the holder's buffer, allocated if needed. Takes no reference. */
static struct tolldev_buffer *
tolldev_buffer_ensure(struct tolldev_buffer_holder *holder)
{
	lockdep_assert_held(&holder->lock);
	if (!holder->buffer)
		holder->buffer = tolldev_buffer_new(holder->bytes);
	return holder->buffer;
}

/**
 * tolldev_buffer_init() - Start without a buffer
 * @holder: Buffer of a new file.
 * @bytes: Size of the buffer, once it is allocated.
 */
void tolldev_buffer_init(struct tolldev_buffer_holder *holder, u32 bytes)
{
	mutex_init(&holder->lock);
	holder->bytes = bytes;
	holder->buffer = NULL;
}

/**
 * tolldev_buffer_destroy() - Drop the file's reference to the buffer
 * @holder: Buffer of a file that nobody uses any more.
 */
void tolldev_buffer_destroy(struct tolldev_buffer_holder *holder)
{
	if (holder->buffer)
		tolldev_buffer_put(holder->buffer);
	mutex_destroy(&holder->lock);
}

/**
 * tolldev_buffer_resize() - Change the size, and so the buffer
 * @holder: Buffer of a file.
 * @bytes: The size.
 *
 * A running transfer keeps the old buffer until it ends. A new one is zeroed.
 *
 * Return: 0, or -EBUSY for a buffer that is mapped.
 */
int tolldev_buffer_resize(struct tolldev_buffer_holder *holder, u32 bytes)
{
	struct tolldev_buffer *old = NULL;
	int err = 0;

	mutex_lock(&holder->lock);
	if (holder->bytes == bytes)
		goto out_unlock;
	if (holder->buffer && atomic_read(&holder->buffer->mappings)) {
		err = -EBUSY;
		goto out_unlock;
	}
	old = holder->buffer;
	holder->buffer = NULL;
	holder->bytes = bytes;
out_unlock:
	mutex_unlock(&holder->lock);
	if (old)
		tolldev_buffer_put(old);
	return err;
}

/**
 * tolldev_buffer_get() - Take a reference to the buffer
 * @holder: Buffer of a file.
 *
 * Return: the buffer, to be released by tolldev_buffer_put(), or NULL if there
 * is no memory for it.
 */
struct tolldev_buffer *tolldev_buffer_get(struct tolldev_buffer_holder *holder)
{
	struct tolldev_buffer *buffer;

	mutex_lock(&holder->lock);
	buffer = tolldev_buffer_ensure(holder);
	if (buffer)
		kref_get(&buffer->references);
	mutex_unlock(&holder->lock);
	return buffer;
}

static void tolldev_buffer_vm_open(struct vm_area_struct *vma)
{
	struct tolldev_buffer *buffer = vma->vm_private_data;

	kref_get(&buffer->references);
	atomic_inc(&buffer->mappings);
}

static void tolldev_buffer_vm_close(struct vm_area_struct *vma)
{
	struct tolldev_buffer *buffer = vma->vm_private_data;

	atomic_dec(&buffer->mappings);
	tolldev_buffer_put(buffer);
}

static vm_fault_t tolldev_buffer_vm_fault(struct vm_fault *fault)
{
	struct tolldev_buffer *buffer = fault->vma->vm_private_data;
	unsigned long page = fault->pgoff % buffer->page_count;

	fault->page = vmalloc_to_page(buffer->data + page * PAGE_SIZE);
	get_page(fault->page);
	return 0;
}

static const struct vm_operations_struct tolldev_buffer_vm_operations = {
	.open = tolldev_buffer_vm_open,
	.close = tolldev_buffer_vm_close,
	.fault = tolldev_buffer_vm_fault,
};

/**
 * tolldev_buffer_map() - Map a part of the buffer
 * @holder: Buffer of a file.
 * @vma: Shared and not executable. After its last page the buffer begins
 *	again; the mapping must not cross that point. It holds the file, and so
 *	the module, until it is unmapped.
 *
 * Return: 0, -EINVAL or -ENOMEM.
 */
int tolldev_buffer_map(struct tolldev_buffer_holder *holder,
		       struct vm_area_struct *vma)
{
	struct tolldev_buffer *buffer;
	int err = 0;

	/* A private mapping would show a copy that no transfer sees. */
	if (!(vma->vm_flags & VM_MAYSHARE) || vma->vm_flags & VM_EXEC)
		return -EINVAL;

	mutex_lock(&holder->lock);
	buffer = tolldev_buffer_ensure(holder);
	if (!buffer) {
		err = -ENOMEM;
	} else if (vma_pages(vma) > buffer->page_count -
					    vma->vm_pgoff % buffer->page_count) {
		err = -EINVAL;
	} else {
		vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
		/* mprotect() must not add what mmap() refuses. */
		vm_flags_clear(vma, VM_MAYEXEC);
		vma->vm_private_data = buffer;
		vma->vm_ops = &tolldev_buffer_vm_operations;
		tolldev_buffer_vm_open(vma);
	}
	mutex_unlock(&holder->lock);
	return err;
}
