/* SPDX-License-Identifier: GPL-2.0 */
/* A ring of bytes for one producer and one consumer, without a lock. */
#ifndef TOLLDEV_RING_H
#define TOLLDEV_RING_H

#include <linux/types.h>
#include <linux/uio.h>

/* Room for four default buffers, and small enough to stay in a CPU's cache. */
#define TOLLDEV_RING_BYTES (256u << 10)

/**
 * struct tolldev_ring - A ring of bytes
 * @data: TOLLDEV_RING_BYTES.
 * @head: Bytes ever put in, modulo 2^32. Only the producer changes it.
 * @tail: Bytes ever taken out, modulo 2^32. Only the consumer changes it.
 */
struct tolldev_ring {
	void *data;
	u32 head;
	u32 tail;
};

int tolldev_ring_allocate(struct tolldev_ring *ring);
void tolldev_ring_free(struct tolldev_ring *ring);
u32 tolldev_ring_used(const struct tolldev_ring *ring);
u32 tolldev_ring_space(const struct tolldev_ring *ring);
unsigned int tolldev_ring_free_parts(const struct tolldev_ring *ring,
				     struct kvec parts[2], u32 limit);
unsigned int tolldev_ring_used_parts(const struct tolldev_ring *ring,
				     struct kvec parts[2], u32 limit);
void tolldev_ring_produced(struct tolldev_ring *ring, u32 bytes);
void tolldev_ring_consumed(struct tolldev_ring *ring, u32 bytes);
size_t tolldev_ring_put(struct tolldev_ring *ring, struct iov_iter *from);
size_t tolldev_ring_take(struct tolldev_ring *ring, struct iov_iter *to);

#endif /* TOLLDEV_RING_H */
