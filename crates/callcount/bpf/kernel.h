/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Declares what count_calls.c uses of the kernel: helpers (bpf-helpers(7)), and the
 * structure fields that it reads. The loader fills in the offsets of these fields in
 * the running kernel from its type information (BTF).
 */
#ifndef TOLL_BPF_KERNEL_H
#define TOLL_BPF_KERNEL_H

#include <linux/bpf.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s8 s8;
typedef __s64 s64;

#define SECTION(name) __attribute__((section(name), used))
#define RELOCATED __attribute__((preserve_access_index))
#define INLINE static inline __attribute__((always_inline))

/* Attributes of a map, as the loader reads them from the types. */
#define NUMBER(name, value) int(*name)[value]
#define TYPE(name, value) typeof(value) *name

static void *(*bpf_map_lookup_elem)(void *map, const void *key) =
	(void *)BPF_FUNC_map_lookup_elem;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value,
				   u64 flags) = (void *)BPF_FUNC_map_update_elem;
static u64 (*bpf_ktime_get_ns)(void) = (void *)BPF_FUNC_ktime_get_ns;
static long (*bpf_probe_read_kernel)(void *to, u32 size, const void *from) =
	(void *)BPF_FUNC_probe_read_kernel;
static long (*bpf_probe_read_kernel_str)(void *to, u32 size, const void *from) =
	(void *)BPF_FUNC_probe_read_kernel_str;
static long (*bpf_ringbuf_output)(void *ring, void *from, u64 size, u64 flags) =
	(void *)BPF_FUNC_ringbuf_output;
static long (*bpf_loop)(u32 turns, void *function, void *context, u64 flags) =
	(void *)BPF_FUNC_loop;
static void *(*bpf_task_storage_get)(void *map, void *task, void *value, u64 flags) =
	(void *)BPF_FUNC_task_storage_get;

struct qstr {
	const unsigned char *name;
} RELOCATED;

struct super_block {
	unsigned long s_magic;
} RELOCATED;

struct inode {
	unsigned short i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
	u32 i_generation;
} RELOCATED;

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
} RELOCATED;

struct vfsmount {
	struct dentry *mnt_root;
} RELOCATED;

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
} RELOCATED;

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
} RELOCATED;

struct file {
	const void *f_op;
	struct inode *f_inode;
	struct path f_path;
} RELOCATED;

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
} RELOCATED;

struct files_struct {
	struct fdtable *fdt;
} RELOCATED;

struct thread_info {
	u32 status;
} RELOCATED;

struct mm_struct {
	struct file *exe_file;
} RELOCATED;

struct task_struct {
	struct thread_info thread_info;
	struct mm_struct *mm;
	struct task_struct *group_leader;
	struct files_struct *files;
} RELOCATED;

struct bpf_iter__task {
	struct task_struct *task;
} RELOCATED;

struct linux_binprm {
	const char *filename;
} RELOCATED;

struct pt_regs {
	unsigned long di, si, dx, r10, r8, r9;
} RELOCATED;

static long (*bpf_current_task_under_cgroup)(void *cgroups, u32 place) =
	(void *)BPF_FUNC_current_task_under_cgroup;
static struct task_struct *(*bpf_get_current_task_btf)(void) =
	(void *)BPF_FUNC_get_current_task_btf;

/* Reads a field through an address of which the verifier knows nothing. */
#define READ(from, field)                                                       \
	({                                                                      \
		typeof((from)->field) value = 0;                                \
		bpf_probe_read_kernel(&value, sizeof(value),                    \
				      __builtin_preserve_access_index(          \
					      &(from)->field));                 \
		value;                                                          \
	})

#endif
