"""Takes away from this process, and from whatever it becomes or starts, all rights that loading a model file does not need.

There are two layers, each used if the system has it. *Files*: Landlock (Linux 5.13,
docs.kernel.org/userspace-api/landlock.html) refuses to write, create, empty, rename or delete anything outside one folder.
*Calls*: a seccomp filter (libseccomp) leaves only the calls of ``system_calls.py``: no network, no signals to other processes,
no access to their memory. Neither layer can be removed again, not even by another program that this process becomes. Reading
is not limited, because frameworks read files all over the system.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from glob import glob

from .system_calls import ALLOWED, DENIED

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
