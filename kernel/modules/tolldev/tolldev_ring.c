// SPDX-License-Identifier: GPL-2.0
/*
 * A ring of bytes for one producer and one consumer, without a lock. The worker
 * is one of them. The other is the caller that holds write_lock or read_lock of
 * struct tolldev_async.
 */
#include <linux/errno.h>
#include <linux/gfp.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "tolldev_ring.h"

/**
 * tolldev_ring_allocate() - Allocate the memory
 * @ring: Zeroed.
 *
 * Return: 0 or -ENOMEM.
 */
int tolldev_ring_allocate(struct tolldev_ring *ring)
{
	ring->data = kvzalloc(TOLLDEV_RING_BYTES,
			      GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	return ring->data ? 0 : -ENOMEM;
}

/**
 * tolldev_ring_free() - Free the memory
 * @ring: Nobody uses it any more.
 */
void tolldev_ring_free(struct tolldev_ring *ring)
{
	kvfree(ring->data);
}

/**
 * tolldev_ring_used() - How many bytes are in the ring
 * @ring: The ring.
 *
 * Return: the bytes. The other side may change the number at once: the producer
 * may then find fewer, the consumer more.
 */
u32 tolldev_ring_used(const struct tolldev_ring *ring)
{
	/* Pairs with tolldev_ring_produced() and tolldev_ring_consumed(). */
	return smp_load_acquire(&ring->head) - smp_load_acquire(&ring->tail);
}

/**
 * tolldev_ring_space() - How many bytes the ring has room for
 * @ring: The ring.
 *
 * Return: the bytes. For the producer, the number can only grow.
 */
u32 tolldev_ring_space(const struct tolldev_ring *ring)
{
	return TOLLDEV_RING_BYTES - tolldev_ring_used(ring);
}

/* Finds the bytes from a position on, in two parts if they wrap around. */
static unsigned int tolldev_ring_parts(const struct tolldev_ring *ring,
				       struct kvec parts[2], u32 position,
				      u32 bytes)
{
	u32 offset = position % TOLLDEV_RING_BYTES;
	u32 first = min(bytes, TOLLDEV_RING_BYTES - offset);

	parts[0].iov_base = ring->data + offset;
	parts[0].iov_len = first;
	parts[1].iov_base = ring->data;
	parts[1].iov_len = bytes - first;
	return bytes > first ? 2 : 1;
}

/**
 * tolldev_ring_free_parts() - Where the producer may write
 * @ring: With memory.
 * @parts: Out: one part or two.
 * @limit: Most bytes.
 *
 * Return: the number of parts.
 */
unsigned int tolldev_ring_free_parts(const struct tolldev_ring *ring,
				     struct kvec parts[2], u32 limit)
{
	return tolldev_ring_parts(ring, parts, ring->head,
				 min(limit, tolldev_ring_space(ring)));
}

/**
 * tolldev_ring_used_parts() - Where the consumer may read
 * @ring: With memory.
 * @parts: Out: one part or two.
 * @limit: Most bytes.
 *
 * Return: the number of parts.
 */
unsigned int tolldev_ring_used_parts(const struct tolldev_ring *ring,
				     struct kvec parts[2], u32 limit)
{
	return tolldev_ring_parts(ring, parts, ring->tail,
				 min(limit, tolldev_ring_used(ring)));
}

/**
 * tolldev_ring_produced() - Hand bytes to the consumer
 * @ring: The ring. The producer has written the bytes.
 * @bytes: At most the room that there was.
 */
void tolldev_ring_produced(struct tolldev_ring *ring, u32 bytes)
{
	/* A consumer that sees the new head also sees the bytes. */
	smp_store_release(&ring->head, ring->head + bytes);
}

/**
 * tolldev_ring_consumed() - Return room to the producer
 * @ring: The ring. The consumer has read the bytes.
 * @bytes: At most the bytes that were there.
 */
void tolldev_ring_consumed(struct tolldev_ring *ring, u32 bytes)
{
	/* The bytes are read before the producer can overwrite them. */
	smp_store_release(&ring->tail, ring->tail + bytes);
}

/**
 * tolldev_ring_put() - Copy into the ring
 * @ring: With memory; the caller is its producer.
 * @from: Advanced by what was copied.
 *
 * Return: bytes copied; fewer than there is room for if the caller's memory
 * cannot be read.
 */
size_t tolldev_ring_put(struct tolldev_ring *ring, struct iov_iter *from)
{
	struct kvec parts[2];
	size_t bytes;

	tolldev_ring_free_parts(ring, parts,
				min_t(size_t, iov_iter_count(from), U32_MAX));
	bytes = copy_from_iter(parts[0].iov_base, parts[0].iov_len, from);
	if (bytes == parts[0].iov_len && parts[1].iov_len)
		bytes += copy_from_iter(parts[1].iov_base, parts[1].iov_len,
					from);
	tolldev_ring_produced(ring, bytes);
	return bytes;
}

/**
 * tolldev_ring_take() - Copy out of the ring
 * @ring: With memory; the caller is its consumer.
 * @to: Advanced by what was copied.
 *
 * Return: bytes copied; fewer than there are if the caller's memory cannot be
 * written.
 */
size_t tolldev_ring_take(struct tolldev_ring *ring, struct iov_iter *to)
{
	struct kvec parts[2];
	size_t bytes;

	tolldev_ring_used_parts(ring, parts,
				min_t(size_t, iov_iter_count(to), U32_MAX));
	bytes = copy_to_iter(parts[0].iov_base, parts[0].iov_len, to);
	if (bytes == parts[0].iov_len && parts[1].iov_len)
		bytes += copy_to_iter(parts[1].iov_base, parts[1].iov_len, to);
	tolldev_ring_consumed(ring, bytes);
	return bytes;
}
