/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What count_calls.c and src/layout.rs agree on.
 */
#ifndef TOLL_BPF_COUNT_CALLS_H
#define TOLL_BPF_COUNT_CALLS_H

#include <stdbool.h>

#define CALLS_MAX 512
/* What a thread keeps at hand, so that most calls need no map. */
#define RECENT_FILES 4
#define RECENT_SUMS 16
/* Reading the clock is a third of what counting costs, so that a thread that makes
 * many calls has one in so many timed. */
#define ALWAYS_TIMED 1024
#define TIMED_ONE_IN 8
#define SUMS_MAX (1 << 20)
/* Names in a path, mounts among them. */
#define DEPTH_MAX 64
#define NAME_BYTES 256
#define TEXT_MASK 4095
#define HEAD_BYTES 32

#define CALL_EXIT 60
#define CALL_EXIT_GROUP 231
/* TS_COMPAT of arch/x86: the call came through the entry for 32 bits. */
#define COMPAT_CALL 2
/* Numbers of calls that do not exist, by which a process says where a region begins and
 * ends: "toll" and what follows it. toll_wire has them, too. */
#define CALL_REGION_BEGINS 0x746f6c6c
#define CALL_REGION_ENDS 0x746f6c6d
#define ERRORS_MAX 4095

/* Program of threads whose calls are no part of the trace. */
#define PROGRAM_NOT_TRACED 0xffffffffu

/* Of a call that moved bytes, the bucket of its size, and whether all that was
 * asked for; of one that failed, its error; else 0. */
#define OUTCOME_WHOLE 0x80
#define OUTCOME_ERROR 0x1000

/* What a function under bpf_loop() gives. */
#define GO_ON 0
#define STOP 1

#define EVENT_FILE 1
#define EVENT_PROGRAM 2
#define EVENT_END 3

struct shape {
	/* Arguments that are descriptors of files that are counted, 0 to 2. */
	u8 ends;
	s8 places[2];
	/* Argument that says how many bytes are asked for, or -1. */
	s8 asked;
	bool is_seek;
	/* Whether descriptors that are open may be others behind it. */
	bool is_closing;
};

/* File of a descriptor when so many calls had closed some. */
struct recent {
	u32 descriptor;
	u32 file;
	u64 closings;
};

struct sum_key {
	u32 thread;
	u32 program;
	u32 files[2];
	u32 call;
	u32 outcome;
};

struct sum {
	u64 calls;
	u64 bytes;
	u64 least_bytes;
	u64 most_bytes;
	/* Time off the CPU, in all calls. */
	u64 off_cpu_ns;
	/* Time on it, in those calls that were timed. */
	u64 timed_calls;
	u64 timed_ns;
};

struct recent_sum {
	struct sum_key key;
	struct sum sum;
};

/* State of a traced thread. */
struct thread {
	/* 0 before its first call. */
	u32 number;
	u32 program;
	u32 call;
	u32 is_in_call;
	u32 files[2];
	u64 asked;
	/* 0 in a call that is not timed. */
	u64 begin_ns;
	u64 calls;
	u32 random;
	u32 padding;
	/* When it went off the CPU in this call, or 0, and how long it was before. */
	u64 off_since_ns;
	u64 off_cpu_ns;
	struct recent recent[RECENT_FILES];
	struct recent_sum sums[RECENT_SUMS];
};

/* A name of an open file, as long as the kernel has it: addresses are used again,
 * but not together with the number of the inode and its generation. */
struct identity {
	u64 dentry;
	u64 operations;
	u64 inode;
	u64 generation;
};

struct totals {
	u64 threads;
	u64 programs;
	u64 files;
	u64 alive;
	u64 calls_lost;
	u64 threads_lost;
	u64 programs_lost;
	u64 calls_of_32_bit;
	/* Calls that closed descriptors. */
	u64 closings;
	u64 is_in_region;
};

struct event {
	u32 kind;
	/* Of the file, the program or the thread. */
	u32 number;
	u32 mode;
	u32 magic;
	u64 inode;
	/* Of the text. It lies here, and not in a variable, since the verifier would
	 * follow each of its values. */
	u64 length;
	/* Room for one name more than fits under the mask. */
	char text[TEXT_MASK + 1 + NAME_BYTES];
};

#endif
