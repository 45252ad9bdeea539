// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Counts the system calls of traced threads for `toll trace`.
 *
 * Each call adds to a sum that belongs to its thread alone, so no lock is needed. Rare
 * events are sent separately: see events.h.
 */
#include "kernel.h"
#include "count_calls.h"
#include "events.h"

char LICENSE[] SECTION("license") = "Dual MIT/GPL";

/* Meaning of the arguments and the result of each system call. */
const volatile struct shape shapes[CALLS_MAX];

/* Whether the calls of a cgroup are counted. */
const volatile bool is_of_cgroup;

/* Whether calls count only in regions. */
const volatile bool has_regions;

struct {
	NUMBER(type, BPF_MAP_TYPE_TASK_STORAGE);
	NUMBER(map_flags, BPF_F_NO_PREALLOC);
	TYPE(key, int);
	TYPE(value, struct thread);
} threads SECTION(".maps");

struct {
	NUMBER(type, BPF_MAP_TYPE_HASH);
	NUMBER(map_flags, BPF_F_NO_PREALLOC);
	NUMBER(max_entries, SUMS_MAX);
	TYPE(key, struct sum_key);
	TYPE(value, struct sum);
} sums SECTION(".maps");

struct {
	NUMBER(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, u32);
} cgroups SECTION(".maps");

INLINE u32 file_of(struct task_struct *task, u32 descriptor)
{
	struct fdtable *table = task->files->fdt;
	struct file *file = 0;
	struct inode *inode;
	u32 *known;

	if (descriptor >= table->max_fds)
		return 0;
	bpf_probe_read_kernel(&file, sizeof(file), table->fd + descriptor);
	if (!file)
		return 0;
	inode = READ(file, f_inode);
	struct identity identity = {
		.dentry = (u64)READ(file, f_path.dentry),
		.operations = (u64)READ(file, f_op),
		.inode = READ(inode, i_ino),
		.generation = READ(inode, i_generation),
	};
	known = bpf_map_lookup_elem(&files, &identity);
	return known ? *known : tell_file((u64)file, &identity);
}

/* Returns the file of a descriptor, from the cache unless a call may have closed a
 * descriptor since. The cache is wrong if one thread closes a descriptor while
 * another opens and uses the same number, all before the first has returned. */
INLINE u32 known_file_of(struct thread *thread, struct task_struct *task, u32 descriptor)
{
	struct recent *recent = &thread->recent[descriptor % RECENT_FILES];
	u64 closings = totals.closings + 1;

	if (recent->descriptor != descriptor || recent->closings != closings) {
		recent->descriptor = descriptor;
		recent->closings = closings;
		recent->file = file_of(task, descriptor);
	}
	return recent->file;
}

INLINE u64 argument(struct pt_regs *regs, s8 place)
{
	switch (place) {
	case 0:
		return regs->di;
	case 1:
		return regs->si;
	case 2:
		return regs->dx;
	default:
		return regs->r10;
	}
}

INLINE struct thread *begin_thread(struct thread *thread)
{
	thread->number = __sync_fetch_and_add(&totals.threads, 1) + 1;
	__sync_fetch_and_add(&totals.alive, 1);
	return thread;
}

/*
 * Checked at each call, because a thread may enter or leave the cgroup at any
 * time.
 */
INLINE bool is_outside(struct thread *thread)
{
	if (!is_of_cgroup || bpf_current_task_under_cgroup(&cgroups, 0) == 1)
		return false;
	return !thread || thread->program != PROGRAM_NOT_TRACED;
}

/* Returns the state of a thread, or 0 if it is not traced. A thread that existed
 * before the trace is traced if the leader of its process is. */
INLINE struct thread *traced(struct task_struct *task)
{
	struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);
	struct thread *leader;

	if (is_outside(thread))
		return 0;
	if (thread)
		return thread->number ? thread : begin_thread(thread);
	leader = bpf_task_storage_get(&threads, task->group_leader, 0, 0);
	if (!leader && is_of_cgroup) {
		leader = bpf_task_storage_get(&threads, task->group_leader, 0,
					      BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (leader)
			leader->program = tell_program(task);
	}
	if (!leader)
		return 0;
	thread = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!thread)
		return 0;
	thread->program = leader->program;
	return begin_thread(thread);
}

/* Chosen at random, because programs repeat themselves. */
INLINE bool is_timed(struct thread *thread)
{
	thread->random = thread->random * 1103515245 + 12345;
	return thread->calls < ALWAYS_TIMED || (thread->random >> 16) % TIMED_ONE_IN == 0;
}

SECTION("tp_btf/sys_enter")
int enter(u64 *context)
{
	struct pt_regs *regs = (void *)context[0];
	u64 call = context[1];
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = traced(task);

	if (!thread)
		return 0;
	if (has_regions) {
		if (call == CALL_REGION_BEGINS || call == CALL_REGION_ENDS)
			totals.is_in_region = call == CALL_REGION_BEGINS;
		if (!totals.is_in_region)
			return 0;
	}
	if (call >= CALLS_MAX)
		return 0;
	if (task->thread_info.status & COMPAT_CALL) {
		__sync_fetch_and_add(&totals.calls_of_32_bit, 1);
		return 0;
	}
	const volatile struct shape *shape = &shapes[call];

	thread->call = call;
	thread->is_in_call = true;
	thread->asked = shape->asked < 0 ? 0 : argument(regs, shape->asked);
	thread->files[0] = thread->files[1] = 0;
	/* lseek(fd, 0, SEEK_CUR) only asks for the position. */
	if (shape->ends > 0 && !(shape->is_seek && regs->si == 0 && regs->dx == 1))
		thread->files[0] = known_file_of(thread, task, argument(regs, shape->places[0]));
	if (shape->ends > 1)
		thread->files[1] = known_file_of(thread, task, argument(regs, shape->places[1]));
	thread->off_cpu_ns = thread->off_since_ns = 0;
	thread->begin_ns = is_timed(thread) ? bpf_ktime_get_ns() : 0;
	return 0;
}

/* Returns 0 for 0, else the index of the highest set bit plus 1. */
INLINE u32 bucket_of(u64 bytes)
{
	u32 bucket = !!bytes;

#define HALVE(bits)                 \
	if (bytes >> bits) {        \
		bytes >>= bits;     \
		bucket += bits;     \
	}
	HALVE(32) HALVE(16) HALVE(8) HALVE(4) HALVE(2) HALVE(1)
#undef HALVE
	return bucket;
}

/* Only the thread itself adds to its sums, so they need no lock. */
static __attribute__((noinline)) void put_away(struct recent_sum *recent)
{
	struct sum *own = &recent->sum;
	struct sum *sum;

	if (!own->calls)
		return;
	sum = bpf_map_lookup_elem(&sums, &recent->key);
	if (sum) {
		sum->calls += own->calls;
		sum->bytes += own->bytes;
		sum->off_cpu_ns += own->off_cpu_ns;
		sum->timed_calls += own->timed_calls;
		sum->timed_ns += own->timed_ns;
		if (own->least_bytes < sum->least_bytes)
			sum->least_bytes = own->least_bytes;
		if (own->most_bytes > sum->most_bytes)
			sum->most_bytes = own->most_bytes;
	} else if (bpf_map_update_elem(&sums, &recent->key, own, BPF_NOEXIST)) {
		__sync_fetch_and_add(&totals.calls_lost, own->calls);
	}
	own->calls = 0;
}

static void put_all_away(struct thread *thread)
{
	for (int place = 0; place < RECENT_SUMS; place++)
		put_away(&thread->sums[place]);
}

INLINE bool is_same(struct sum_key *one, struct sum_key *other)
{
	return one->call == other->call && one->outcome == other->outcome &&
	       one->files[0] == other->files[0] && one->files[1] == other->files[1] &&
	       one->program == other->program;
}

INLINE void add(struct thread *thread, u32 outcome, u64 bytes, u64 timed_ns)
{
	struct sum_key key = {
		.thread = thread->number,
		.program = thread->program,
		.files = { thread->files[0], thread->files[1] },
		.call = thread->call,
		.outcome = outcome,
	};
	/* A read and a write never share a slot, whatever their files are. */
	struct recent_sum *recent =
		&thread->sums[(thread->call + 4 * thread->files[0]) % RECENT_SUMS];
	struct sum *sum = &recent->sum;

	if (!sum->calls || !is_same(&recent->key, &key)) {
		struct sum none = { .least_bytes = bytes, .most_bytes = bytes };

		put_away(recent);
		recent->key = key;
		*sum = none;
	}
	sum->calls++;
	sum->bytes += bytes;
	if (bytes < sum->least_bytes)
		sum->least_bytes = bytes;
	if (bytes > sum->most_bytes)
		sum->most_bytes = bytes;
	sum->off_cpu_ns += thread->off_cpu_ns;
	if (thread->begin_ns) {
		sum->timed_calls++;
		sum->timed_ns += timed_ns;
	}
	thread->calls++;
}

SECTION("tp_btf/sys_exit")
int leave(u64 *context)
{
	s64 result = context[1];
	struct thread *thread =
		bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);
	u64 timed_ns = 0, bytes = 0;
	u32 outcome = 0;

	if (!thread || !thread->is_in_call)
		return 0;
	const volatile struct shape *shape = &shapes[thread->call % CALLS_MAX];

	if (thread->begin_ns)
		timed_ns = bpf_ktime_get_ns() - thread->begin_ns - thread->off_cpu_ns;
	thread->is_in_call = false;
	if (shape->is_closing)
		__sync_fetch_and_add(&totals.closings, 1);
	if (result < 0 && result >= -ERRORS_MAX) {
		thread->files[0] = thread->files[1] = 0;
		outcome = OUTCOME_ERROR | -result;
	} else if (shape->ends && !shape->is_seek) {
		bytes = result;
		outcome = bucket_of(bytes);
		if (bytes && bytes >= thread->asked)
			outcome |= OUTCOME_WHOLE;
	}
	add(thread, outcome, bytes, timed_ns);
	return 0;
}

SECTION("tp_btf/sched_process_fork")
int fork(u64 *context)
{
	struct task_struct *child = (void *)context[1];
	struct thread *parent =
		bpf_task_storage_get(&threads, (void *)context[0], 0, 0);
	struct thread *thread;

	if (!parent)
		return 0;
	thread = bpf_task_storage_get(&threads, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!thread) {
		__sync_fetch_and_add(&totals.threads_lost, 1);
		return 0;
	}
	thread->program = parent->program;
	begin_thread(thread);
	return 0;
}

SECTION("tp_btf/sched_process_exec")
int exec(u64 *context)
{
	struct linux_binprm *binary = (void *)context[2];
	struct thread *thread =
		bpf_task_storage_get(&threads, (void *)context[0], 0, 0);
	struct event *event;
	long length;

	/* A thread without a number was marked during this execve(): the call began
	 * before that, and the mark says how the thread counts. */
	if (!thread || !thread->number)
		return 0;
	thread->program = __sync_fetch_and_add(&totals.programs, 1) + 1;
	event = draft(EVENT_PROGRAM, thread->program);
	if (!event)
		return 0;
	length = bpf_probe_read_kernel_str(event->text, TEXT_MASK, READ(binary, filename));
	event->length = length < 0 ? 0 : length;
	if (!is_sent(event))
		__sync_fetch_and_add(&totals.programs_lost, 1);
	return 0;
}

SECTION("tp_btf/sched_process_exit")
int end(u64 *context)
{
	struct thread *thread =
		bpf_task_storage_get(&threads, (void *)context[0], 0, 0);
	struct event *event;

	if (!thread || !thread->number)
		return 0;
	/* The call in progress counts as made, though it never returns. */
	if (thread->is_in_call &&
	    (thread->call == CALL_EXIT || thread->call == CALL_EXIT_GROUP))
		add(thread, 0, 0, 0);
	put_all_away(thread);
	event = draft(EVENT_END, thread->number);
	/* Without the event, the sums of the thread stay until the end of the trace. */
	if (event)
		is_sent(event);
	__sync_fetch_and_sub(&totals.alive, 1);
	return 0;
}

/* Time off the CPU is measured in all calls, also in those that are not timed. */
SECTION("tp_btf/sched_switch")
int switch_thread(u64 *context)
{
	struct thread *leaving = bpf_task_storage_get(&threads, (void *)context[1], 0, 0);
	struct thread *coming = bpf_task_storage_get(&threads, (void *)context[2], 0, 0);

	if (leaving && leaving->is_in_call)
		leaving->off_since_ns = bpf_ktime_get_ns();
	if (coming && coming->off_since_ns) {
		coming->off_cpu_ns += bpf_ktime_get_ns() - coming->off_since_ns;
		coming->off_since_ns = 0;
	}
	return 0;
}

/* Flushes the sums of threads that are still alive, once no call is counted any
 * longer. */
SECTION("iter/task")
int put_away_rest(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;
	struct thread *thread;

	if (!task)
		return 0;
	thread = bpf_task_storage_get(&threads, task, 0, 0);
	if (thread)
		put_all_away(thread);
	return 0;
}
