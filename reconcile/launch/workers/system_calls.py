"""System calls that a confined process may make: those with which Python and the frameworks compute, read and wait.

The list follows that of container runtimes (moby, profiles/seccomp/default.json) and is shorter: no sockets except the two
ends of a pipe, no devices, no namespaces, no access to other processes, no changes of permissions or times. Any call that is
not listed fails as if it did not exist (ENOSYS), so programs behave as on an older kernel. A name that the machine or its
libseccomp does not know is left out, which forbids it.
"""

from __future__ import annotations

FILES = """
access chdir close close_range copy_file_range creat dup dup2 dup3 faccessat faccessat2 fadvise64 fallocate fchdir fcntl
fdatasync fgetxattr flistxattr flock fstat fstatfs fsync ftruncate getcwd getdents getdents64 getxattr inotify_add_watch
inotify_init inotify_init1 inotify_rm_watch ioctl lgetxattr link linkat listxattr llistxattr lseek lstat mkdir mkdirat
newfstatat open openat openat2 pread64 preadv preadv2 pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv
rename renameat renameat2 rmdir sendfile splice stat statfs statx sync_file_range tee truncate umask unlink unlinkat vmsplice
write writev
"""
"""Landlock, not this list, decides where a process may write."""

MEMORY = """
brk get_mempolicy madvise mbind membarrier memfd_create mincore mlock mlock2 mlockall mmap mprotect mremap msync munlock
munlockall munmap pkey_alloc pkey_free pkey_mprotect set_mempolicy
"""

PROCESSES = """
arch_prctl capget execve execveat exit exit_group fork futex futex_waitv get_robust_list get_thread_area getcpu getegid geteuid
getgid getgroups getpgid getpgrp getpid getppid getpriority getresgid getresuid getrlimit getrusage getsid gettid getuid prctl
restart_syscall rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigreturn rt_sigsuspend rt_sigtimedwait sched_get_priority_max
sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval
sched_setaffinity sched_yield set_robust_list set_thread_area set_tid_address setpgid setrlimit setsid sigaltstack sysinfo uname
vfork wait4 waitid
"""

WAITING = """
alarm clock_getres clock_gettime clock_nanosleep epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2
epoll_wait epoll_wait_old eventfd eventfd2 getitimer getrandom gettimeofday nanosleep pause pipe pipe2 poll ppoll pselect6
select setitimer signalfd signalfd4 time timer_create timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create
timerfd_gettime timerfd_settime times
"""

CONNECTED = """
getpeername getsockname getsockopt recvfrom recvmmsg recvmsg sendmmsg sendmsg sendto setsockopt shutdown
"""
"""For the two ends of a ``socketpair``, which is the only way to get a socket."""

ALLOWED = FILES + MEMORY + PROCESSES + WAITING + CONNECTED

DENIED = """
accept accept4 bind chmod chown connect fchmod fchmodat fchmodat2 fchown fchownat fremovexattr fsetxattr futimesat lchown
listen lremovexattr lsetxattr mknod mknodat process_vm_readv process_vm_writev ptrace removexattr setxattr socket symlink
symlinkat tkill utime utimensat utimes
"""
"""Calls that programs expect to be denied (EPERM), but not to be missing."""
