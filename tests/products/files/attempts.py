"""What a confined process tries: ``python attempts.py INSIDE OUTSIDE PORT`` prints {attempt: "done" or why not}, for harm and for
work, and the capabilities that it has.

INSIDE and OUTSIDE are folders, the latter with a file; something listens on the PORT. The other process is its reaper.
Standard library only.
"""

import ctypes
import fcntl
import json
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading

inside, outside = sys.argv[1:3]
port, other = int(sys.argv[3]), os.getppid()
theirs, mine = os.path.join(outside, "theirs"), os.path.join(inside, "mine")
libc = ctypes.CDLL(None, use_errno=True)


def write(path, mode="w"):
    with open(path, mode) as file:
        file.write("x")


def passing(path):
    write(path)
    os.unlink(path)


def moved(place):
    os.rename(theirs, place)
    os.rename(place, theirs)


def call(name, *arguments):
    """A function of the C library that is to return something else than -1."""
    if getattr(libc, name)(*arguments) == -1:
        raise OSError(ctypes.get_errno(), name)


def forked():
    """A process of its own, which ends at once."""
    if not os.fork():
        os._exit(0)


def enlarged():
    """A file that takes no room, longer than any that may be written."""
    write(mine + "8")
    os.truncate(mine + "8", 1 << 40)


def opened(family, kind=socket.SOCK_STREAM, call=lambda _socket: None):
    with socket.socket(family, kind) as made:
        call(made)


def owned_socket(command):
    """Have the kernel send a signal to the other process when a socket has data."""
    fcntl.ioctl(socket.socketpair()[0], command, struct.pack("i", other))


def owned(command):
    """The same of a pipe, by fcntl's structure of an owner: F_OWNER_PID, and the process."""
    fcntl.fcntl(os.pipe()[0], command, struct.pack("ii", 1, other))


SETOWN, SETOWN_EX, FIOSETOWN, SIOCSPGRP = 8, 15, 0x8901, 0x8902
UNSHARE, PTRACE_SEIZE, IO_URING = 0x10000000, 0x4206, 425

HARM = {
    "read": lambda: open(theirs).close(),
    "create": lambda: write(os.path.join(outside, "new")),
    "create hidden in a path": lambda: write(os.path.join(inside, "..", "..", os.path.basename(outside), "hidden")),
    "overwrite": lambda: write(theirs, "r+"),
    "append": lambda: write(theirs, "a"),
    "empty": lambda: os.truncate(theirs, 0),
    "empty as it is opened": lambda: os.close(os.open(theirs, os.O_RDONLY | os.O_TRUNC)),
    "rename": lambda: moved(theirs + "2"),
    "move in": lambda: moved(mine + "3"),
    "link in": lambda: os.link(theirs, mine + "4"),
    "make a folder": lambda: os.mkdir(os.path.join(outside, "folder")),
    "permissions": lambda: os.chmod(theirs, 0o777),
    "times": lambda: os.utime(theirs, (1, 1)),
    "attributes": lambda: os.setxattr(theirs, "user.x", b"x"),
    "symbolic link": lambda: os.symlink(theirs, mine + "5"),
    "pipe by name": lambda: os.mkfifo(mine + "6"),
    "a process": forked,
    "a program": lambda: subprocess.run(["true"], check=True),
    "a large file": enlarged,
    "a limit of its own": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2),
    "remove": lambda: os.unlink(theirs),
    "shared memory": lambda: passing(f"/dev/shm/reconcile-{os.getpid()}"),
    "memory of another": lambda: open(f"/proc/{other}/mem", "r+b").close(),
    "connect": lambda: opened(socket.AF_INET, call=lambda s: s.connect(("127.0.0.1", port))),
    "listen": lambda: opened(socket.AF_INET, call=lambda s: s.bind(("127.0.0.1", 0))),
    "datagram": lambda: opened(socket.AF_INET6, socket.SOCK_DGRAM),
    "abstract socket": lambda: opened(socket.AF_UNIX, call=lambda s: s.bind(f"\0reconcile-{os.getpid()}")),
    "netlink": lambda: opened(socket.AF_NETLINK, socket.SOCK_RAW),
    "pair that can send anywhere": lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM),
    "signal to another": lambda: os.kill(other, 0),
    "signal to all": lambda: os.kill(0, 0),
    "signal by a pipe's owner": lambda: fcntl.fcntl(os.pipe()[0], SETOWN, other),
    "signal by a pipe's owner, as a structure": lambda: owned(SETOWN_EX),
    "signal by a socket's owner": lambda: owned_socket(FIOSETOWN),
    "signal by a socket's group": lambda: owned_socket(SIOCSPGRP),
    "signal of a kind": lambda: fcntl.fcntl(os.pipe()[0], 10, signal.SIGKILL),
    "processors of another": lambda: os.sched_setaffinity(other, os.sched_getaffinity(other)),
    "list": lambda: os.listdir(outside),
    "variables of another": lambda: open(f"/proc/{other}/environ").close(),
    "a secret variable": lambda: os.environ["SECRET_TOKEN"],
    "namespace": lambda: call("unshare", UNSHARE),
    "trace another": lambda: call("ptrace", PTRACE_SEIZE, other, None, None),
    "io_uring": lambda: call("syscall", IO_URING, 1, ctypes.create_string_buffer(120)),
}


def tidy():
    write(mine)
    os.mkdir(mine + "7")
    os.rename(mine, os.path.join(mine + "7", "mine"))
    os.unlink(os.path.join(mine + "7", "mine"))
    os.rmdir(mine + "7")


def paired():
    one, two = socket.socketpair()
    one.sendall(b"x")
    assert two.recv(1) == b"x"


WORK = {
    "own files": tidy,
    "reading": lambda: open(__file__).close(),
    "/dev/null": lambda: write("/dev/null"),
    "a thread": lambda: threading.Thread(target=int).start(),
    "a pair": paired,
    "signal to itself": lambda: os.kill(os.getpid(), 0),
    "ignored signals": lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN),
}


def tried(attempt):
    try:
        attempt()
    except (LookupError, OSError, ValueError) as error:  # of a variable, of a call, of a limit
        return str(error)
    return "done"


if __name__ == "__main__":
    found = [{name: tried(attempt) for name, attempt in attempts.items()} for attempts in (HARM, WORK)]
    with open("/proc/self/status") as file:
        status = dict(line.split(":", 1) for line in file)
    print(json.dumps([*found, int(status["CapPrm"], 16)]))
