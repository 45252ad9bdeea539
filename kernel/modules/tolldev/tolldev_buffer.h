/* SPDX-License-Identifier: GPL-2.0 */
/* Memory of an open file that its caller may map. */
#ifndef TOLLDEV_BUFFER_H
#define TOLLDEV_BUFFER_H

#include <linux/atomic.h>
#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/types.h>

struct vm_area_struct;

/**
 * struct tolldev_buffer - Memory that is freed with its last reference
 * @references: One for the file, and one for each mapping and transfer.
 * @mappings: Number of mappings. It becomes more than 0 only under the holder's
 *	lock; then fork may add more without it.
 * @bytes: Bytes that can be transferred.
 * @page_count: Pages that can be mapped.
 * @data: Whole pages, zeroed at first.
 */
struct tolldev_buffer {
	struct kref references;
	atomic_t mappings;
	size_t bytes;
	unsigned long page_count;
	void *data;
};

/**
 * struct tolldev_buffer_holder - A file's buffer, allocated when first needed
 * @lock: Guards the other fields. mmap() takes it while it holds mmap_lock. So
 *	its holder must not copy from or to a caller, which may fault and then
 *	take mmap_lock.
 * @bytes: Size of the next buffer.
 * @buffer: NULL until it is needed.
 */
struct tolldev_buffer_holder {
	struct mutex lock; /* see above */
	u32 bytes;
	struct tolldev_buffer *buffer;
};

void tolldev_buffer_init(struct tolldev_buffer_holder *holder, u32 bytes);
void tolldev_buffer_destroy(struct tolldev_buffer_holder *holder);
int tolldev_buffer_resize(struct tolldev_buffer_holder *holder, u32 bytes);
struct tolldev_buffer *tolldev_buffer_get(struct tolldev_buffer_holder *holder);
void tolldev_buffer_put(struct tolldev_buffer *buffer);
int tolldev_buffer_map(struct tolldev_buffer_holder *holder,
		       struct vm_area_struct *vma);

#endif /* TOLLDEV_BUFFER_H */
