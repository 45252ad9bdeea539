/* SPDX-License-Identifier: GPL-2.0 */
/* Bytes in order from one producer to one consumer, without a lock. */
#ifndef TOLL_DEVICE_RING_H
#define TOLL_DEVICE_RING_H

#include <linux/types.h>
#include <linux/uio.h>

/* Four of the default buffers, and little enough to stay in a cache. */
#define DEVICE_RING_BYTES (256u << 10)

/**
 * struct device_ring - Bytes in order
 * @data: DEVICE_RING_BYTES, or NULL: nothing goes in or out.
 * @head: How many bytes were put in, modulo 2^32. The producer's.
 * @tail: How many were taken out. The consumer's.
 */
struct device_ring {
	void *data;
	u32 head;
	u32 tail;
};

int device_ring_allocate(struct device_ring *ring);
void device_ring_free(struct device_ring *ring);
u32 device_ring_used(const struct device_ring *ring);
u32 device_ring_space(const struct device_ring *ring);
unsigned int device_ring_free_parts(const struct device_ring *ring,
				    struct kvec parts[2], u32 limit);
unsigned int device_ring_used_parts(const struct device_ring *ring,
				    struct kvec parts[2], u32 limit);
void device_ring_produced(struct device_ring *ring, u32 bytes);
void device_ring_consumed(struct device_ring *ring, u32 bytes);
size_t device_ring_put(struct device_ring *ring, struct iov_iter *from);
size_t device_ring_take(struct device_ring *ring, struct iov_iter *to);

#endif /* TOLL_DEVICE_RING_H */
