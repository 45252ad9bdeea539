/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Shared definitions of count_calls.c and src/layout.rs.
 */
#ifndef TOLL_BPF_COUNT_CALLS_H
#define TOLL_BPF_COUNT_CALLS_H

#include <stdbool.h>

#define CALLS_MAX 512
/*
 * Sizes of the caches in a thread's state. With them most calls need no map
 * lookup.
 */
#define RECENT_FILES 4
#define RECENT_SUMS 16
/* Reading the clock is a third of the cost of counting. So after ALWAYS_TIMED calls
 * of a thread only one in TIMED_ONE_IN is timed. */
#define ALWAYS_TIMED 1024
#define TIMED_ONE_IN 8
#define SUMS_MAX (1 << 20)
/* Largest number of names in a path, including mount points. */
#define DEPTH_MAX 64
#define NAME_BYTES 256
#define TEXT_MASK 4095
#define HEAD_BYTES 32

#define CALL_EXIT 60
#define CALL_EXIT_GROUP 231
/* TS_COMPAT of arch/x86: the call came through the 32-bit entry. */
#define COMPAT_CALL 2
/* Numbers of calls that do not exist. A process makes them where a region begins and
 * ends: the characters "toll", and that number plus 1. toll_wire defines them, too. */
#define CALL_REGION_BEGINS 0x746f6c6c
#define CALL_REGION_ENDS 0x746f6c6d
#define ERRORS_MAX 4095

/* Program of threads whose calls are not part of the trace. */
#define PROGRAM_NOT_TRACED 0xffffffffu

/* Outcome of a call. If it moved bytes: the bucket of its size, and OUTCOME_WHOLE if
 * it moved all that was requested. If it failed: OUTCOME_ERROR and the error. Else
 * 0. */
#define OUTCOME_WHOLE 0x80
#define OUTCOME_ERROR 0x1000

/* Return values of a bpf_loop() callback. */
#define GO_ON 0
#define STOP 1

#define EVENT_FILE 1
#define EVENT_PROGRAM 2
#define EVENT_END 3

struct shape {
	/* Number of arguments that are descriptors of counted files, 0 to 2. */
	u8 ends;
	s8 places[2];
	/* Argument with the number of requested bytes, or -1. */
	s8 asked;
	bool is_seek;
	/* Whether open descriptors may refer to other files after the call. */
	bool is_closing;
};

/* The file of a descriptor, and the number of closing calls when it was looked up. */
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
	/* How many calls were timed, and their time on the CPU. */
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
	/* When the thread went off the CPU in this call, or 0; and its time off the CPU
	 * before that. */
	u64 off_since_ns;
	u64 off_cpu_ns;
	struct recent recent[RECENT_FILES];
	struct recent_sum sums[RECENT_SUMS];
};

/* Identifies an open file while the kernel has it. Addresses are reused, but not
 * with the same inode number and generation. */
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
	/* Number of the file, the program or the thread. */
	u32 number;
	u32 mode;
	u32 magic;
	u64 inode;
	/* Length of the text. Kept here and not in a variable, because the verifier
	 * would track each of its values. */
	u64 length;
	/* Room for one name more than the mask allows. */
	char text[TEXT_MASK + 1 + NAME_BYTES];
};

#endif
