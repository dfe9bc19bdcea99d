"""Takes from this process, and whatever it becomes or starts, what no model file needs: for workers that load one.

Two layers, each where the system has it. *Files*: Landlock (Linux 5.13, docs.kernel.org/userspace-api/landlock.html) refuses
to write, create, empty, rename or delete anything outside one folder. *Calls*: a seccomp filter (libseccomp) leaves the calls
of ``system_calls.py``: no network, no signal to other processes, nothing that looks into them. Neither can be taken off
again, also not by another program that this process becomes. What is read is not limited: frameworks read all over the system.
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
"""What anybody may write to, since it goes nowhere."""
ACCELERATORS = ("/dev/nvidia*", "/dev/dri/*", "/dev/kfd")
"""Devices of GPUs, which are driven by writing."""

NAMESPACES = 0x7E020000
"""Flags of ``clone`` that make one (linux/sched.h): mount, cgroup, uts, ipc, user, pid and network."""
UNIX, STREAM, KIND = 1, 1, 0xF
"""AF_UNIX and SOCK_STREAM, and the bits of a socket's type that are no flags (linux/net.h)."""
INTEGER = 0xFFFFFFFF
"""The bits of an argument that the kernel reads where it takes an int."""

FILES, CALLS = "files", "calls"


def confine(folder: str, accelerators: bool) -> dict[str, str]:
    """Confine this process for good. Returns per layer why it is not in force, '' where it is."""
    if sys.platform != "linux":
        return dict.fromkeys((FILES, CALLS), "only Linux has it")
    found = {}
    layers: dict[str, Callable[[], None]] = {FILES: partial(_files, folder, accelerators), CALLS: _calls}
    for layer, put in layers.items():
        try:
            put()
            found[layer] = ""
        except ImportError as error:
            found[layer] = f"the package {error.name} is not installed"
        except Exception as error:  # whatever a kernel or a libseccomp lacks; the other layer holds all the same
            found[layer] = getattr(error, "strerror", None) or str(error)
    return found


def said(held: Mapping[str, str]) -> str:
    """What ``confine`` has found, as the end of a sentence on a process."""
    forbidden = {FILES: "it writes only to its own folder", CALLS: "it reaches no network and no other process"}
    layers = [f"{text}{f' does not hold: {held[layer]}' * bool(held[layer])}" for layer, text in forbidden.items()]
    return "; ".join(layers)


def _files(folder: str, accelerators: bool) -> None:
    """Landlock: files and folders come, change and go below ``folder`` alone, and no links, devices, pipes or sockets."""
    from landlock import FSAccess, Ruleset

    reading = FSAccess.READ_FILE | FSAccess.READ_DIR | FSAccess.EXECUTE
    writing = FSAccess.all() & ~reading
    special = FSAccess.MAKE_SYM | FSAccess.MAKE_CHAR | FSAccess.MAKE_BLOCK | FSAccess.MAKE_FIFO | FSAccess.MAKE_SOCK
    device = writing & (FSAccess.WRITE_FILE | FSAccess.TRUNCATE | FSAccess.IOCTL_DEV)
    rules = Ruleset(writing)
    rules.allow(folder, rules=writing & ~special & ~FSAccess.IOCTL_DEV)
    rules.allow(*_existing(DEVICES), rules=device & ~FSAccess.IOCTL_DEV)
    if accelerators:
        rules.allow(*_existing(ACCELERATORS), rules=device)
    rules.apply()


def _existing(patterns: Sequence[str]) -> Iterator[str]:
    return (path for pattern in patterns for path in glob(pattern) if not os.path.isdir(path))


def _calls() -> None:
    """seccomp: the calls of the lists, and of some of them the harmless forms only."""
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
