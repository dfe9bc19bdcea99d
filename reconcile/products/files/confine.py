"""Sandbox for loading a model file: this process permanently loses all rights that loading does not need.

There are two layers, and a file that is not trusted is loaded only where both are in force. *Files*: Landlock (Linux 5.13,
docs.kernel.org/userspace-api/landlock.html) refuses to write, create, empty, rename or delete anything outside one folder, and to
read anything but programs, libraries and the file itself. *Calls*: two seccomp filters (libseccomp) leave only the calls of
``ALLOWED``, without ``COMMANDS``: no network, no new processes, no signals to others, no access to their memory. Neither layer
can be removed again, not even by another program that this process becomes. What root may do beyond opening files is given up,
and limits hold what is written (``LARGEST``) and how much memory is taken (worker.py).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from glob import glob
from pathlib import Path
from typing import Any

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
"""Landlock, not this list, decides where a process may read and write."""

MEMORY = """
brk get_mempolicy madvise mbind membarrier memfd_create mincore mlock mlock2 mlockall mmap mprotect mremap msync munlock
munlockall munmap pkey_alloc pkey_free pkey_mprotect set_mempolicy
"""

PROCESSES = """
arch_prctl capget execve execveat exit exit_group futex futex_waitv get_robust_list get_thread_area getcpu getegid
geteuid getgid getgroups getpgid getpgrp getpid getppid getpriority getresgid getresuid getrlimit getrusage getsid gettid getuid
prctl restart_syscall rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigreturn rt_sigsuspend rt_sigtimedwait
sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler
sched_rr_get_interval sched_yield set_robust_list set_thread_area set_tid_address setpgid setrlimit setsid sigaltstack sysinfo
uname wait4 waitid
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

COMMANDS = {"fcntl": (8, 10, 15, 1024, 1026), "ioctl": (0x8901, 0x8902)}
"""Commands of allowed calls that are denied (EPERM), because with them the kernel signals any process of the user, for instance
when a pipe has data: F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY (linux/fcntl.h); FIOSETOWN, SIOCSPGRP (asm/sockios.h).
"""

SYSTEM = """
/usr /lib /lib32 /lib64 /bin /sbin /opt /nix /sys /dev /etc/alternatives /etc/group /etc/ld.so.cache /etc/localtime
/etc/nsswitch.conf /etc/OpenCL /etc/os-release /etc/passwd /proc/cpuinfo /proc/driver /proc/filesystems /proc/loadavg
/proc/meminfo /proc/mounts /proc/self /proc/stat /proc/sys /proc/version
"""
"""Folders and files of the system that any confined process may read: programs, libraries and facts of the machine. Folders of
users, those of services and other processes are not among them."""
OF_PYTHON = ("bin", "include", "lib", "lib64", "nvvm", "pyvenv.cfg", "share", "targets")
"""What is read of the folder that an interpreter is installed in, which may be a user's home or the root of all files."""
LOCATIONS = "import json, sys; print(json.dumps([[sys.prefix, sys.base_prefix, sys.base_exec_prefix], sys.path]))"
"""A program that prints where its interpreter is installed and imports from; ``*.pth`` files and PYTHONPATH add to these."""
VARIABLES = re.compile(
    r"HOME|LANG|LC_\w+|LD_LIBRARY_PATH|PATH|PYTHON\w+|TMPDIR|TZ|XDG_CACHE_HOME|(CUDA|JAX|KERAS|KMP|MKL|OMP|ONEDNN|OPENBLAS|PYTORCH"
    r"|RECONCILE|TORCH\w*|TRITON|XLA|TF_(CPP|CUDNN|DETERMINISTIC|ENABLE|FORCE|GPU|NUM|ONEDNN|USE|XLA))_\w+"
)
"""Variables that a confined process has, which set up Python and frameworks. Others may be secrets, and reports show what a file
calls its layers."""
LARGEST = 4 << 30
"""Bytes that a confined process may write: to a file, such as its log, and to its folder in all."""
ENTRY = 1 << 12
"""Bytes that each file and folder in its folder is taken to need beside what is in it."""

OPENS = 0b110
"""What a confined process keeps of root's capabilities: CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH (linux/capability.h), with which
it opens what belongs to another user; Landlock decides which files it opens."""
CAPABILITIES = 0x20080522
"""_LINUX_CAPABILITY_VERSION_3: the layout of a process' capabilities, three words for the first 32 and three for the others."""
SIGNALS, SCOPED = 0b10, 6
"""LANDLOCK_SCOPE_SIGNAL (linux/landlock.h), and the first ABI that has it: no signal leaves a confined process. Before it,
``COMMANDS`` alone holds that."""

DEVICES = ("/dev/null", "/dev/zero", "/dev/full")
"""Devices that any process may write to, because they store nothing."""
ACCELERATORS = ("/dev/nvidia*", "/dev/dri/*", "/dev/kfd")
"""Devices of GPUs: programs drive them by writing to them."""

THREAD, NAMESPACES = 0x00010000, 0x7E020000
"""Flags of ``clone`` (linux/sched.h): what makes a thread, and a namespace: mount, cgroup, uts, ipc, user, pid and network."""
UNIX, STREAM, KIND = 1, 1, 0xF
"""AF_UNIX and SOCK_STREAM, and the bits of a socket's type that are not flags (linux/net.h)."""
INTEGER = 0xFFFFFFFF
"""The bits of an argument that the kernel reads as an int."""

FILES, CALLS = "files", "calls"
LIMITS = {
    FILES: (
        "it can write only to its own folder and read only programs and the file",
        "it can read and write any file",
    ),
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


def list_readable(python: Path, variables: Mapping[str, str], *others: str) -> list[str]:
    """What a worker with this interpreter and these environment variables reads beside the system's own files: the interpreter's
    programs, the folders that it imports from, Keras' settings, and ``others``. A relative PYTHONPATH is that of wherever home
    stands, which may be all that the user has: nothing of it is read."""
    imported = [path for path in variables.get("PYTHONPATH", "").split(os.pathsep) if os.path.isabs(path)]
    variables = {**variables, "PYTHONPATH": os.pathsep.join(imported)}
    answer = subprocess.run(
        [str(python), "-c", LOCATIONS], env=variables, cwd=os.sep, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )  # fmt: skip
    prefixes, imported = json.loads(answer.stdout or "[[], []]")
    found = [python.absolute().parent, *(Path(prefix, name) for prefix in prefixes for name in OF_PYTHON)]
    found += [Path(path) for path in (*imported, *others) if path]
    found.append(Path(os.environ.get("KERAS_HOME", Path.home() / ".keras"), "keras.json"))
    return [str(path) for path in dict.fromkeys(found) if path.exists()]


def confine(folder: str, readable: Sequence[str], accelerators: bool) -> dict[str, str]:
    """Confine this process permanently: it can write to ``folder``, and read that and ``readable``. It forgets all but
    ``VARIABLES``. Returns for each layer why it is not in force, or '' if it is."""
    if sys.platform != "linux":
        return dict.fromkeys((FILES, CALLS), "only Linux can prevent it")
    for name in [name for name in os.environ if not VARIABLES.fullmatch(name)]:
        del os.environ[name]
    for name in LIBRARIES:  # while they can be read: they stand beside home's Python, and the worker's may be another
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    reasons = {}
    layers: dict[str, Callable[[], None]] = {FILES: partial(_files, folder, readable, accelerators), CALLS: _calls}
    for layer, put in layers.items():
        try:
            put()
            reasons[layer] = ""
        except ImportError as error:
            reasons[layer] = f"the package {error.name} is not installed"
        except Exception as error:  # a feature that the kernel or libseccomp lacks; the other layer still holds
            reasons[layer] = getattr(error, "strerror", None) or str(error)
    return reasons


def is_full(folder: Path) -> bool:
    """Whether a confined process has written more than ``LARGEST`` bytes to its folder."""
    total, pending = 0, [str(folder)]
    while pending and total <= LARGEST:
        with contextlib.suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                total += ENTRY + entry.stat(follow_symlinks=False).st_blocks * 512
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
    return total > LARGEST


def describe_full() -> str:
    """What a file did whose process has filled its folder, as a predicate."""
    return f"made its process write more than {LARGEST >> 30} GiB; --trust-file lets it."


def holds(reasons: Mapping[str, str]) -> bool:
    """Whether every layer is in force, so that a file that is not trusted may be loaded."""
    return not any(reasons.values())


def refusal(reasons: Mapping[str, str]) -> str:
    """Why a file is not loaded in a process of which ``holds`` is not true, as a predicate."""
    lacking = "; ".join(f"{LIMITS[layer][1]} ({why})" for layer, why in reasons.items() if why)
    return f"is not loaded, because its process cannot be confined here: {lacking}. If you trust the file, pass --trust-file."


def sentence(reasons: Mapping[str, str]) -> str:
    """The result of ``confine`` as the end of a sentence about a process."""
    texts = [f"{free} ({reasons[layer]})" if reasons[layer] else limited for layer, (limited, free) in LIMITS.items()]
    return "; ".join(texts)


def _files(folder: str, readable: Sequence[str], accelerators: bool) -> None:
    """Landlock: files and folders can be made, changed and removed only below ``folder``; no links, devices, pipes or sockets.
    Only ``readable``, the system's files and the folder can be read. No file grows beyond ``LARGEST``."""
    import resource

    from landlock import FSAccess

    reading = FSAccess.READ_FILE | FSAccess.READ_DIR | FSAccess.EXECUTE
    special = FSAccess.MAKE_SYM | FSAccess.MAKE_CHAR | FSAccess.MAKE_BLOCK | FSAccess.MAKE_FIFO | FSAccess.MAKE_SOCK
    all_ = FSAccess.all()  # that the kernel knows
    device = all_ & (FSAccess.READ_FILE | FSAccess.WRITE_FILE | FSAccess.TRUNCATE | FSAccess.IOCTL_DEV)
    rules = _make_rules(all_)
    for path in filter(os.path.exists, (*SYSTEM.split(), *readable)):
        rules.allow(path, rules=reading if os.path.isdir(path) else reading & ~FSAccess.READ_DIR)
    rules.allow(folder, rules=all_ & ~special & ~FSAccess.IOCTL_DEV)
    rules.allow(*_find_existing(DEVICES), rules=device & ~FSAccess.IOCTL_DEV)
    if accelerators:
        rules.allow(*_find_existing(ACCELERATORS), rules=device)
    rules.apply()
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    largest = LARGEST if hard == resource.RLIM_INFINITY else min(LARGEST, hard)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))


def _make_rules(access: Any) -> Any:
    """A Landlock ruleset about this access to files, and about signals where the kernel knows those: landlock has no scopes."""
    from landlock import Ruleset, landlock_abi_version, plumbing

    rules = Ruleset(access)
    if landlock_abi_version() >= SCOPED:
        asked = (ctypes.c_uint64 * 3)(access, 0, SIGNALS)  # struct landlock_ruleset_attr: files, network, scopes
        of_files = ctypes.cast(asked, ctypes.POINTER(plumbing.RulesetAttr))
        made = plumbing.get_create_ruleset()(of_files, ctypes.sizeof(asked), 0)
        os.dup2(made, rules._fd, inheritable=False)
        os.close(made)
    return rules


def _drop_capabilities() -> None:
    """Give up what root may do, such as raise the limits of its process, but for ``OPENS``."""
    libc = ctypes.CDLL(None, use_errno=True)
    process, held = (ctypes.c_uint32 * 2)(CAPABILITIES), (ctypes.c_uint32 * 6)()
    libc.capget(process, held)
    kept = held[1] & OPENS
    if libc.capset(process, (ctypes.c_uint32 * 6)(kept, kept)):
        raise OSError(ctypes.get_errno(), "root's capabilities cannot be given up")


def _find_existing(patterns: Sequence[str]) -> Iterator[str]:
    return (path for pattern in patterns for path in glob(pattern) if not os.path.isdir(path))


def _calls() -> None:
    """seccomp: the calls of the lists, some of them only in their harmless forms. No process is started."""
    from pyseccomp import ALLOW, ERRNO, MASKED_EQ, Arch, Arg, SyscallFilter, resolve_syscall

    _drop_capabilities()
    commands = SyscallFilter(ALLOW)
    for name, numbers in COMMANDS.items():
        for number in numbers:
            commands.add_rule(ERRNO(errno.EPERM), name, Arg(1, MASKED_EQ, INTEGER, number))
    rules = SyscallFilter(ERRNO(errno.ENOSYS))
    for names, action in ((ALLOWED, ALLOW), (DENIED, ERRNO(errno.EPERM))):
        for name in names.split():
            if resolve_syscall(Arch.NATIVE, name) >= 0:
                rules.add_rule(action, name)
    rules.add_rule(ALLOW, "clone", Arg(0, MASKED_EQ, THREAD | NAMESPACES, THREAD))
    rules.add_rule(ALLOW, "socketpair", Arg(0, MASKED_EQ, INTEGER, UNIX), Arg(1, MASKED_EQ, KIND, STREAM))
    rules.add_rule(ALLOW, "sched_setaffinity", Arg(0, MASKED_EQ, INTEGER, 0))
    for name, numbers in (("kill", (os.getpid(),)), ("tgkill", (os.getpid(),)), ("prlimit64", (0, os.getpid()))):
        for number in numbers:
            rules.add_rule(ALLOW, name, Arg(0, MASKED_EQ, INTEGER, number))
    commands.load()
    rules.load()
