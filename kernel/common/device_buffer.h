/* SPDX-License-Identifier: GPL-2.0 */
/* Memory of an open file that its caller may map. */
#ifndef TOLL_DEVICE_BUFFER_H
#define TOLL_DEVICE_BUFFER_H

#include <linux/atomic.h>
#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/types.h>

struct vm_area_struct;

/**
 * struct device_buffer - Memory that lives as long as somebody uses it
 * @references: Of the file, of each mapping and of each transfer.
 * @mappings: How many there are; none comes but under the holder's lock.
 * @bytes: What may be transferred.
 * @page_count: What may be mapped.
 * @data: Whole pages, zeroed when they were got.
 */
struct device_buffer {
	struct kref references;
	atomic_t mappings;
	size_t bytes;
	unsigned long page_count;
	void *data;
};

/**
 * struct device_buffer_holder - A file's buffer, got when first needed
 * @lock: Guards the other fields. Taken within mmap_lock, so nothing is copied
 *	from or to a caller while it is held.
 * @bytes: Size of the next buffer.
 * @buffer: NULL until it is needed.
 */
struct device_buffer_holder {
	struct mutex lock; /* see above */
	u32 bytes;
	struct device_buffer *buffer;
};

void device_buffer_init(struct device_buffer_holder *holder, u32 bytes);
void device_buffer_destroy(struct device_buffer_holder *holder);
int device_buffer_resize(struct device_buffer_holder *holder, u32 bytes);
struct device_buffer *device_buffer_get(struct device_buffer_holder *holder);
void device_buffer_put(struct device_buffer *buffer);
int device_buffer_map(struct device_buffer_holder *holder,
		      struct vm_area_struct *vma);

#endif /* TOLL_DEVICE_BUFFER_H */
