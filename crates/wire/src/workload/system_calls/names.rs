//! Names of system calls, errors and constants, with their numbers on x86-64, and the parser of
//! numbers.

/// System calls from number 0, in the order of their numbers
/// (arch/x86/entry/syscalls/syscall_64.tbl).
const FROM_0: &str = "\
    read write open close stat fstat lstat poll lseek mmap mprotect munmap brk rt_sigaction \
    rt_sigprocmask rt_sigreturn ioctl pread64 pwrite64 readv writev access pipe select sched_yield \
    mremap msync mincore madvise shmget shmat shmctl dup dup2 pause nanosleep getitimer alarm \
    setitimer getpid sendfile socket connect accept sendto recvfrom sendmsg recvmsg shutdown bind \
    listen getsockname getpeername socketpair setsockopt getsockopt clone fork vfork execve exit \
    wait4 kill uname semget semop semctl shmdt msgget msgsnd msgrcv msgctl fcntl flock fsync \
    fdatasync truncate ftruncate getdents getcwd chdir fchdir rename mkdir rmdir creat link unlink \
    symlink readlink chmod fchmod chown fchown lchown umask gettimeofday getrlimit getrusage \
    sysinfo times ptrace getuid syslog getgid setuid setgid geteuid getegid setpgid getppid \
    getpgrp setsid setreuid setregid getgroups setgroups setresuid getresuid setresgid getresgid \
    getpgid setfsuid setfsgid getsid capget capset rt_sigpending rt_sigtimedwait rt_sigqueueinfo \
    rt_sigsuspend sigaltstack utime mknod uselib personality ustat statfs fstatfs sysfs \
    getpriority setpriority sched_setparam sched_getparam sched_setscheduler sched_getscheduler \
    sched_get_priority_max sched_get_priority_min sched_rr_get_interval mlock munlock mlockall \
    munlockall vhangup modify_ldt pivot_root _sysctl prctl arch_prctl adjtimex setrlimit chroot \
    sync acct settimeofday mount umount2 swapon swapoff reboot sethostname setdomainname iopl \
    ioperm create_module init_module delete_module get_kernel_syms query_module quotactl \
    nfsservctl getpmsg putpmsg afs_syscall tuxcall security gettid readahead setxattr lsetxattr \
    fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr \
    lremovexattr fremovexattr tkill time futex sched_setaffinity sched_getaffinity set_thread_area \
    io_setup io_destroy io_getevents io_submit io_cancel get_thread_area lookup_dcookie \
    epoll_create epoll_ctl_old epoll_wait_old remap_file_pages getdents64 set_tid_address \
    restart_syscall semtimedop fadvise64 timer_create timer_settime timer_gettime timer_getoverrun \
    timer_delete clock_settime clock_gettime clock_getres clock_nanosleep exit_group epoll_wait \
    epoll_ctl tgkill utimes vserver mbind set_mempolicy get_mempolicy mq_open mq_unlink \
    mq_timedsend mq_timedreceive mq_notify mq_getsetattr kexec_load waitid add_key request_key \
    keyctl ioprio_set ioprio_get inotify_init inotify_add_watch inotify_rm_watch migrate_pages \
    openat mkdirat mknodat fchownat futimesat newfstatat unlinkat renameat linkat symlinkat \
    readlinkat fchmodat faccessat pselect6 ppoll unshare set_robust_list get_robust_list splice \
    tee sync_file_range vmsplice move_pages utimensat epoll_pwait signalfd timerfd_create eventfd \
    fallocate timerfd_settime timerfd_gettime accept4 signalfd4 eventfd2 epoll_create1 dup3 pipe2 \
    inotify_init1 preadv pwritev rt_tgsigqueueinfo perf_event_open recvmmsg fanotify_init \
    fanotify_mark prlimit64 name_to_handle_at open_by_handle_at clock_adjtime syncfs sendmmsg \
    setns getcpu process_vm_readv process_vm_writev kcmp finit_module sched_setattr sched_getattr \
    renameat2 seccomp getrandom memfd_create kexec_file_load bpf execveat userfaultfd membarrier \
    mlock2 copy_file_range preadv2 pwritev2 pkey_mprotect pkey_alloc pkey_free statx io_pgetevents \
    rseq";

/// System calls from number [`LATER`]. The numbers between the end of `FROM_0` and `LATER` are not
/// used.
const FROM_LATER: &str = "\
    pidfd_send_signal io_uring_setup io_uring_enter io_uring_register open_tree move_mount fsopen \
    fsconfig fsmount fspick pidfd_open clone3 close_range openat2 pidfd_getfd faccessat2 \
    process_madvise epoll_pwait2 mount_setattr quotactl_fd landlock_create_ruleset \
    landlock_add_rule landlock_restrict_self memfd_secret process_mrelease futex_waitv \
    set_mempolicy_home_node cachestat fchmodat2 map_shadow_stack futex_wake futex_wait \
    futex_requeue statmount listmount lsm_get_self_attr lsm_set_self_attr lsm_list_modules mseal";

const LATER: i64 = 424;

/// Returns the number of a system call.
pub(super) fn system_call(name: &str) -> Option<i64> {
    let place = |list: &str| list.split_whitespace().position(|one| one == name);
    let number = |place: usize| i64::try_from(place).expect("the list is short");
    place(FROM_0)
        .map(number)
        .or_else(|| place(FROM_LATER).map(|place| LATER + number(place)))
}

/// Errors and constants, each followed by its value.
const CONSTANTS: &str = "\
    AF_INET 2 AF_INET6 10 AF_NETLINK 16 AF_UNIX 1 ARCH_GET_FS 0x1003 AT_EMPTY_PATH 0x1000 \
    AT_FDCWD -100 CLOCK_BOOTTIME 7 CLOCK_MONOTONIC 1 CLOCK_PROCESS_CPUTIME_ID 2 CLOCK_REALTIME 0 \
    CLONE_FILES 0x400 CLONE_VM 0x100 EACCES 13 EAGAIN 11 EBADF 9 EBUSY 16 ECHILD 10 \
    ECONNREFUSED 111 EEXIST 17 EFAULT 14 EFBIG 27 EFD_NONBLOCK 2048 EINPROGRESS 115 EINTR 4 \
    EINVAL 22 EIO 5 EISDIR 21 EMFILE 24 ENODATA 61 ENODEV 19 ENOENT 2 ENOMEM 12 ENOSPC 28 \
    ENOSYS 38 ENOTDIR 20 ENOTEMPTY 39 ENOTTY 25 ENXIO 6 EOPNOTSUPP 95 EOVERFLOW 75 EPERM 1 \
    EPIPE 32 EPOLLIN 1 EPOLLOUT 4 EPOLL_CTL_ADD 1 EPOLL_CTL_DEL 2 EPOLL_CTL_MOD 3 ERANGE 34 \
    EROFS 30 ESPIPE 29 ESRCH 3 ETIMEDOUT 110 FALLOC_FL_KEEP_SIZE 1 FALLOC_FL_PUNCH_HOLE 2 \
    FIONREAD 0x541b F_ADD_SEALS 0x409 F_DUPFD 0 F_GETFD 1 F_GETFL 3 F_GETLK 5 F_GET_SEALS 0x40a \
    F_OFD_SETLK 37 F_SETLEASE 0x400 F_SETLK 6 F_SETPIPE_SZ 0x407 IN_CREATE 0x100 IN_MODIFY 2 \
    LOCK_EX 2 LOCK_UN 8 MADV_DONTNEED 4 MADV_HUGEPAGE 14 MADV_SEQUENTIAL 2 MADV_WILLNEED 3 \
    MAP_ANONYMOUS 32 MAP_FIXED 16 MAP_POPULATE 0x8000 MAP_PRIVATE 2 MAP_SHARED 1 \
    MFD_ALLOW_SEALING 2 MS_ASYNC 1 MS_SYNC 4 O_APPEND 02000 O_CLOEXEC 02000000 O_CREAT 0100 \
    O_DIRECT 040000 O_DIRECTORY 0200000 O_DSYNC 010000 O_EXCL 0200 O_NONBLOCK 04000 \
    O_PATH 010000000 O_RDONLY 0 O_RDWR 2 O_SYNC 04010000 O_TMPFILE 020200000 O_TRUNC 01000 \
    O_WRONLY 1 POLLIN 1 POLLOUT 4 POSIX_FADV_DONTNEED 4 POSIX_FADV_SEQUENTIAL 2 PROT_EXEC 4 \
    PROT_NONE 0 PROT_READ 1 PROT_WRITE 2 PR_GET_DUMPABLE 3 PR_GET_NAME 16 PR_SET_NAME 15 \
    PTRACE_CONT 7 PTRACE_PEEKUSER 3 PTRACE_TRACEME 0 RLIMIT_NOFILE 7 SEEK_DATA 3 SEEK_END 2 \
    SEEK_SET 0 SIGALRM 14 SIGCHLD 17 SIGCONT 18 SIGKILL 9 SIGSTOP 19 SIGTERM 15 SIGUSR1 10 \
    SIGUSR2 12 SIG_BLOCK 0 SIG_SETMASK 2 SIG_UNBLOCK 1 SOCK_CLOEXEC 0x80000 SOCK_DGRAM 2 \
    SOCK_NONBLOCK 0x800 SOCK_STREAM 1 SOL_SOCKET 1 S_IFIFO 010000 S_IFREG 0100000";

/// Returns the value of a constant or of an error.
pub(super) fn constant(name: &str) -> Option<u64> {
    let mut words = CONSTANTS.split_whitespace();
    while let (Some(known), Some(value)) = (words.next(), words.next()) {
        if known == name {
            return number(value).ok();
        }
    }
    None
}

/// Parses a number as C does; a negative number becomes its 64-bit two's complement.
pub(super) fn number(word: &str) -> Result<u64, String> {
    let (digits, is_negative) = match word.strip_prefix('-') {
        Some(digits) => (digits, true),
        None => (word, false),
    };
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x', ..] => (&digits[2..], 16),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    let wrong = |_| format!("{word:?} is neither a number nor a known constant");
    let value = u64::from_str_radix(digits, radix).map_err(wrong)?;
    Ok(if is_negative {
        value.wrapping_neg()
    } else {
        value
    })
}
