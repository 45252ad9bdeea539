/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Rare events go through the ring buffer: the first use of a file, an executed program,
 * the end of a thread.
 */
#ifndef TOLL_BPF_EVENTS_H
#define TOLL_BPF_EVENTS_H

struct totals totals;

/* A file that was dropped from this map gets a new number and is reported again. */
struct {
	NUMBER(type, BPF_MAP_TYPE_LRU_HASH);
	NUMBER(max_entries, 65536);
	TYPE(key, struct identity);
	TYPE(value, u32);
} files SECTION(".maps");

struct {
	NUMBER(type, BPF_MAP_TYPE_RINGBUF);
	NUMBER(max_entries, 4 << 20);
} events SECTION(".maps");

/* Events are assembled here, because the stack is too small. Tracepoints run without
 * preemption, so one per CPU is enough. */
struct {
	NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct event);
} drafts SECTION(".maps");

INLINE struct event *draft(u32 kind, u32 number)
{
	u32 zero = 0;
	struct event *event = bpf_map_lookup_elem(&drafts, &zero);

	if (event) {
		event->kind = kind;
		event->number = number;
		event->mode = 0;
		event->magic = 0;
		event->inode = 0;
		event->length = 0;
	}
	return event;
}

INLINE bool is_sent(struct event *event)
{
	return !bpf_ringbuf_output(&events, event, HEAD_BYTES + (event->length & TEXT_MASK), 0);
}

/* Position of write_name() on the way from a file to the root. */
struct walk {
	struct mount *mount;
	struct dentry *dentry;
	struct event *event;
};

/* One step: writes a name or, at the root of a mount, continues at its mount point. */
static long write_name(u32 depth __attribute__((unused)), struct walk *walk)
{
	struct event *event = walk->event;
	struct mount *mount = walk->mount;
	struct dentry *dentry = walk->dentry;
	struct dentry *parent = READ(dentry, d_parent);
	long size;

	if (dentry == READ(mount, mnt.mnt_root)) {
		walk->dentry = READ(mount, mnt_mountpoint);
		walk->mount = READ(mount, mnt_parent);
		return walk->mount == mount ? STOP : GO_ON;
	}
	size = bpf_probe_read_kernel_str(event->text + (event->length & TEXT_MASK), NAME_BYTES,
					 READ(dentry, d_name.name));
	if (size > 0)
		event->length += size;
	walk->dentry = parent;
	/* A dentry that is in no tree, such as that of a pipe, is its own parent. */
	return parent == dentry || event->length > TEXT_MASK - NAME_BYTES ? STOP : GO_ON;
}

/* Reports a file and its path, last name first. Returns its number, or 0 if the ring
 * buffer is full: then the next call reports it. Global, so that the verifier checks
 * it only once. */
u32 tell_file(u64 address, struct identity *identity)
{
	u32 number = __sync_fetch_and_add(&totals.files, 1) + 1;
	struct event *event = draft(EVENT_FILE, number);
	struct file *file = (void *)address;
	struct inode *inode = READ(file, f_inode);
	struct super_block *super = READ(inode, i_sb);
	struct walk walk = {
		.mount = (void *)READ(file, f_path.mnt) -
			 __builtin_preserve_field_info(((struct mount *)0)->mnt, 0),
		.dentry = READ(file, f_path.dentry),
		.event = event,
	};

	if (!event || !identity)
		return 0;
	event->mode = READ(inode, i_mode);
	event->magic = READ(super, s_magic);
	event->inode = READ(inode, i_ino);
	bpf_loop(DEPTH_MAX, write_name, &walk, 0);
	if (!is_sent(event))
		return 0;
	bpf_map_update_elem(&files, identity, &number, 0);
	return number;
}

/* Reports the program of a process that executed it before the trace. */
INLINE u32 tell_program(struct task_struct *task)
{
	u32 program = __sync_fetch_and_add(&totals.programs, 1) + 1;
	struct event *event = draft(EVENT_PROGRAM, program);
	struct mm_struct *memory = READ(task, mm);
	struct file *file = READ(memory, exe_file);
	struct dentry *dentry = READ(file, f_path.dentry);
	long length;

	if (!event)
		return program;
	length = bpf_probe_read_kernel_str(event->text, NAME_BYTES, READ(dentry, d_name.name));
	event->length = length < 0 ? 0 : length;
	if (!is_sent(event))
		__sync_fetch_and_add(&totals.programs_lost, 1);
	return program;
}

#endif
