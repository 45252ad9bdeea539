/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * /dev/master_device and /dev/slave_device: the two ends of a TCP connection
 * that the kernel makes, and through which a file is sent.
 *
 * Each open file has its own connection. The master waits for one, the slave
 * makes one; after that both can send and receive:
 *
 *  - write(2), read(2), splice(2): bytes from and to the caller's memory;
 *  - mmap(2) of the driver's buffer, shared, then TOLL_DEVICE_SEND or _RECEIVE
 *    of a part of it. The buffer repeats at offsets after its last page: page p
 *    of the device is page p modulo the buffer's number of pages. A mapping
 *    across the end of the buffer is EINVAL.
 *
 * poll(2): POLLIN and POLLOUT for read(2) and write(2), POLLPRI for a transfer
 * that can be reaped; for a master that listens, POLLIN for ACCEPT. A poll(2)
 * or epoll_ctl(2) that comes before the connection sees it, too. With
 * O_NONBLOCK, calls return EAGAIN instead of waiting, and parts instead of the
 * whole; only CONNECT still waits. A signal ends a wait with what was done so
 * far, otherwise with EINTR unless its handler restarts calls.
 *
 * In asynchronous mode write(2) leaves a copy of the bytes in a queue, where
 * they keep their order with SEND. read(2) takes what has been received ahead.
 * Later calls report what ended sending or receiving. The first call that
 * receives decides for the connection whether read(2) or RECEIVE does; the
 * other one is EBUSY. close(2) drops what is queued, so call FINISH before.
 *
 * Reserved fields must be 0, so that they can get a meaning later.
 */
#ifndef _UAPI_LINUX_TOLL_DEVICE_H
#define _UAPI_LINUX_TOLL_DEVICE_H

#include <linux/ioctl.h>
#include <linux/types.h>

/*
 * Smallest and largest buffer of a file in bytes. It is mapped in whole pages.
 */
#define TOLL_DEVICE_BUFFER_MIN 512u
#define TOLL_DEVICE_BUFFER_MAX (16u << 20)
/* Buffer size of a file that was not configured otherwise. */
#define TOLL_DEVICE_BUFFER_DEFAULT (64u << 10)

/*
 * Largest number of transfers in asynchronous mode that are not reaped yet. A
 * further one waits for room (EAGAIN with O_NONBLOCK). It fails with EBUSY if
 * only TOLL_DEVICE_REAP can make room.
 */
#define TOLL_DEVICE_QUEUE_MAX 64u

/* mode: how the kernel's socket is used */
#define TOLL_DEVICE_SYNC 0 /* a call returns when the socket has its bytes */
#define TOLL_DEVICE_FASYNC 1 /* the same with socket->flags |= FASYNC, as published */
#define TOLL_DEVICE_ASYNC 2 /* a call queues, a worker sends and receives */

/**
 * struct toll_device_settings - How an open file works
 * @buffer_bytes: Size of its buffer, TOLL_DEVICE_BUFFER_MIN to _MAX. A mapped
 *	buffer keeps its size: EBUSY. A buffer of another size is zeroed.
 * @mode: TOLL_DEVICE_SYNC, _FASYNC or _ASYNC; EBUSY once there is a connection.
 * @no_delay: 1 sends small segments at once (TCP_NODELAY), 0 may hold them back.
 * @reserved: 0.
 */
struct toll_device_settings {
	__u32 buffer_bytes;
	__u32 mode;
	__u32 no_delay;
	__u32 reserved;
};

/**
 * struct toll_device_endpoint - One end of a connection
 * @family: AF_INET or AF_INET6.
 * @port: Port in the byte order of the host; 0 lets LISTEN choose one.
 * @scope_id: Interface of a link-local IPv6 address, else 0.
 * @address: IPv4 in its first four bytes, the others 0; or IPv6.
 * @timeout_ms: Longest wait of ACCEPT, which ignores the fields above, and of
 *	CONNECT; after it they return ETIMEDOUT. 0: no limit.
 * @reserved: 0.
 */
struct toll_device_endpoint {
	__u16 family;
	__u16 port;
	__u32 scope_id;
	__u8 address[16];
	__u32 timeout_ms;
	__u32 reserved;
};

/**
 * struct toll_device_transfer - A part of the buffer to be sent or filled
 * @offset: Where it begins in the buffer.
 * @length: Its length in bytes; @offset + @length is within the buffer.
 * @done: Out: bytes sent or received; 0 in asynchronous mode. RECEIVE fills all
 *	of @length, except at the end of what the peer sends: there it fills
 *	less, and after that 0 bytes.
 * @sequence: Out: in asynchronous mode the number of the transfer, from 1,
 *	which REAP returns; otherwise 0.
 */
struct toll_device_transfer {
	__u64 offset;
	__u64 length;
	__u64 done;
	__u64 sequence;
};

/**
 * struct toll_device_completion - A transfer that has ended, asynchronous mode
 * @sequence: Out: its number.
 * @result: Out: bytes sent or received, or a negative errno.
 * @timeout_ms: Longest wait, then ETIMEDOUT; 0: no limit. A file opened with
 *	O_NONBLOCK does not wait: EAGAIN.
 * @reserved: 0.
 *
 * ENOENT if no transfer is under way or waits to be reaped.
 */
struct toll_device_completion {
	__u64 sequence;
	__s64 result;
	__u32 timeout_ms;
	__u32 reserved;
};

/**
 * struct toll_device_page - The page-table entry of an address
 * @address: Any address of the caller.
 * @entry: Out: the entry of the lowest level that maps it, 0 if none does.
 *	Without CAP_SYS_ADMIN its frame number reads 0.
 * @page_bytes: Out: how much the entry maps, 0 if nothing.
 * @reserved: 0.
 */
struct toll_device_page {
	__u64 address;
	__u64 entry;
	__u64 page_bytes;
	__u64 reserved;
};

/**
 * struct toll_device_statistics - What an open file has done
 * @bytes_sent: Bytes that the socket took.
 * @bytes_received: Bytes that the socket gave.
 * @sends: Calls of the kernel's send.
 * @receives: Calls of the kernel's receive.
 * @waits: How often one of them had to wait, or would have had to.
 * @queued_max: Most transfers that waited or ran at a time.
 * @reserved: 0.
 */
struct toll_device_statistics {
	__u64 bytes_sent;
	__u64 bytes_received;
	__u64 sends;
	__u64 receives;
	__u64 waits;
	__u64 queued_max;
	__u64 reserved[2];
};

#define TOLL_DEVICE_MAGIC 0xE8

#define TOLL_DEVICE_GET_SETTINGS _IOR(TOLL_DEVICE_MAGIC, 0, struct toll_device_settings)
#define TOLL_DEVICE_SET_SETTINGS _IOW(TOLL_DEVICE_MAGIC, 1, struct toll_device_settings)
/*
 * Master: listen on an address of the caller's network namespace; returns the
 * chosen port. One below 1024 needs CAP_NET_BIND_SERVICE.
 */
#define TOLL_DEVICE_LISTEN _IOWR(TOLL_DEVICE_MAGIC, 2, struct toll_device_endpoint)
/*
 * Master: wait for the slave; returns its address. Needs LISTEN, and ends it.
 */
#define TOLL_DEVICE_ACCEPT _IOWR(TOLL_DEVICE_MAGIC, 3, struct toll_device_endpoint)
/* Slave: connect. */
#define TOLL_DEVICE_CONNECT _IOW(TOLL_DEVICE_MAGIC, 4, struct toll_device_endpoint)
#define TOLL_DEVICE_SEND _IOWR(TOLL_DEVICE_MAGIC, 5, struct toll_device_transfer)
#define TOLL_DEVICE_RECEIVE _IOWR(TOLL_DEVICE_MAGIC, 6, struct toll_device_transfer)
#define TOLL_DEVICE_REAP _IOWR(TOLL_DEVICE_MAGIC, 7, struct toll_device_completion)
/*
 * Ends sending: waits until the socket has everything that was queued, then
 * lets the peer read to the end. Receiving goes on.
 */
#define TOLL_DEVICE_FINISH _IO(TOLL_DEVICE_MAGIC, 8)
#define TOLL_DEVICE_PAGE _IOWR(TOLL_DEVICE_MAGIC, 9, struct toll_device_page)
#define TOLL_DEVICE_STATISTICS _IOR(TOLL_DEVICE_MAGIC, 10, struct toll_device_statistics)

/*
 * The published numbers. The first one looks up the address in its argument, as
 * _PAGE does, and prints the entry to the kernel log. It prints nothing if the
 * module's parameter log is off.
 *
 * The second one sends (master) or receives (slave) as many bytes as its
 * argument says, and returns how many it did. After X bytes of a file it starts
 * at the beginning of the page that a mapping at offset X shows. The published
 * programs map that page next, or have mapped it. After the buffer's last page,
 * bytes continue at its beginning. More bytes than the buffer holds
 * are EINVAL, and so are any on a last page that is not whole. Even in
 * asynchronous mode it waits until the bytes are transferred, and a file opened
 * with O_NONBLOCK gets EOPNOTSUPP.
 */
#define TOLL_DEVICE_PUBLISHED_PAGE 0x12345676
#define TOLL_DEVICE_PUBLISHED_TRANSFER 0x12345678

#endif /* _UAPI_LINUX_TOLL_DEVICE_H */
