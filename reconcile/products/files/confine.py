"""Sandbox for loading a model file: this process and its children permanently lose all rights that loading does not need.

There are two layers, each used if the system has it. *Files*: Landlock (Linux 5.13,
docs.kernel.org/userspace-api/landlock.html) refuses to write, create, empty, rename or delete anything outside one folder.
*Calls*: a seccomp filter (libseccomp) leaves only the calls of ``ALLOWED``: no network, no signals to other processes,
no access to their memory. Neither layer can be removed again, not even by another program that this process becomes. Reading
is not limited, because frameworks read files all over the system.
"""

from __future__ import annotations

import errno
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from glob import glob
from pathlib import Path

LIBRARIES = ("landlock", "pyseccomp")
"""The packages that this needs, beside the standard library."""
PATIENCE = 120
"""Seconds that a confined worker may take to load and trace a file, which might never end. Home counts them: one operation in the
worker, such as a power of large numbers, can keep every thread there from running."""

# Calls that a confined process may make: those with which Python and the frameworks compute, read and wait. The list
# follows that of container runtimes (moby, profiles/seccomp/default.json) and is shorter: no sockets except the two
# ends of a pipe, no devices, no namespaces, no access to other processes, no changes of permissions or times. Any
# call that is not listed fails as if it did not exist (ENOSYS), so programs behave as on an older kernel. A name that
# the machine or its libseccomp does not know is left out, which forbids it.
ON_FILES = """
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

ALLOWED = ON_FILES + MEMORY + PROCESSES + WAITING + CONNECTED

DENIED = """
accept accept4 bind chmod chown connect fchmod fchmodat fchmodat2 fchown fchownat fremovexattr fsetxattr futimesat lchown
listen lremovexattr lsetxattr mknod mknodat process_vm_readv process_vm_writev ptrace removexattr setxattr socket symlink
symlinkat tkill utime utimensat utimes
"""
"""Calls that programs expect to be denied (EPERM), but not to be missing."""


DEVICES = ("/dev/null", "/dev/zero", "/dev/full")
"""Devices that any process may write to, because they store nothing."""
ACCELERATORS = ("/dev/nvidia*", "/dev/dri/*", "/dev/kfd")
"""Devices of GPUs: programs drive them by writing to them."""

NAMESPACES = 0x7E020000
"""Flags of ``clone`` that make a namespace (linux/sched.h): mount, cgroup, uts, ipc, user, pid and network."""
UNIX, STREAM, KIND = 1, 1, 0xF
"""AF_UNIX and SOCK_STREAM, and the bits of a socket's type that are not flags (linux/net.h)."""
INTEGER = 0xFFFFFFFF
"""The bits of an argument that the kernel reads as an int."""

FILES, CALLS = "files", "calls"
LIMITS = {
    FILES: ("it can write only to its own folder", "it can write to any folder"),
    CALLS: ("it cannot reach the network or other processes", "it can reach the network and other processes"),
}
"""For each layer, how a process is limited if the layer is in force, and how it is not if the layer is missing."""


def find_libraries() -> list[Path]:
    """The folders from which ``LIBRARIES`` are imported."""
    specs = [importlib.util.find_spec(name) for name in LIBRARIES]
    packages = [Path(spec.origin) for spec in specs if spec is not None and spec.origin is not None]
    return [path.parents[1] if path.name == "__init__.py" else path.parent for path in packages]


def describe_late() -> str:
    """What a file did that was not traced within ``PATIENCE``."""
    return (
        f"was not loaded and traced within {PATIENCE:g} seconds; --trust-file lets it take as long as --timeout allows."
    )


def confine(folder: str, accelerators: bool) -> dict[str, str]:
    """Confine this process permanently. Returns for each layer why it is not in force, or '' if it is."""
    if sys.platform != "linux":
        return dict.fromkeys((FILES, CALLS), "only Linux can prevent it")
    reasons = {}
    layers: dict[str, Callable[[], None]] = {FILES: partial(_files, folder, accelerators), CALLS: _calls}
    for layer, put in layers.items():
        try:
            put()
            reasons[layer] = ""
        except ImportError as error:
            reasons[layer] = f"the package {error.name} is not installed"
        except Exception as error:  # a feature that the kernel or libseccomp lacks; the other layer still holds
            reasons[layer] = getattr(error, "strerror", None) or str(error)
    return reasons


def sentence(reasons: Mapping[str, str]) -> str:
    """The result of ``confine`` as the end of a sentence about a process."""
    texts = [f"{free} ({reasons[layer]})" if reasons[layer] else limited for layer, (limited, free) in LIMITS.items()]
    return "; ".join(texts)


def _files(folder: str, accelerators: bool) -> None:
    """Landlock: files and folders can be made, changed and removed only below ``folder``; no links, devices, pipes or sockets."""
    from landlock import FSAccess, Ruleset

    reading = FSAccess.READ_FILE | FSAccess.READ_DIR | FSAccess.EXECUTE
    writing = FSAccess.all() & ~reading
    special = FSAccess.MAKE_SYM | FSAccess.MAKE_CHAR | FSAccess.MAKE_BLOCK | FSAccess.MAKE_FIFO | FSAccess.MAKE_SOCK
    device = writing & (FSAccess.WRITE_FILE | FSAccess.TRUNCATE | FSAccess.IOCTL_DEV)
    rules = Ruleset(writing)
    rules.allow(folder, rules=writing & ~special & ~FSAccess.IOCTL_DEV)
    rules.allow(*_find_existing(DEVICES), rules=device & ~FSAccess.IOCTL_DEV)
    if accelerators:
        rules.allow(*_find_existing(ACCELERATORS), rules=device)
    rules.apply()


def _find_existing(patterns: Sequence[str]) -> Iterator[str]:
    return (path for pattern in patterns for path in glob(pattern) if not os.path.isdir(path))


def _calls() -> None:
    """seccomp: the calls of the lists, some of them only in their harmless forms."""
    from pyseccomp import ALLOW, ERRNO, MASKED_EQ, Arch, Arg, SyscallFilter, resolve_syscall

    rules = SyscallFilter(ERRNO(errno.ENOSYS))
    for names, action in ((ALLOWED, ALLOW), (DENIED, ERRNO(errno.EPERM))):
        for name in names.split():
            if resolve_syscall(Arch.NATIVE, name) >= 0:
                rules.add_rule(action, name)
    rules.add_rule(ALLOW, "clone", Arg(0, MASKED_EQ, NAMESPACES, 0))
    rules.add_rule(ALLOW, "socketpair", Arg(0, MASKED_EQ, INTEGER, UNIX), Arg(1, MASKED_EQ, KIND, STREAM))
    for name, numbers in (("kill", (os.getpid(),)), ("tgkill", (os.getpid(),)), ("prlimit64", (0, os.getpid()))):
        for number in numbers:
            rules.add_rule(ALLOW, name, Arg(0, MASKED_EQ, INTEGER, number))
    rules.load()
