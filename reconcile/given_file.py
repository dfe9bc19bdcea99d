"""A model that somebody gives as a file: it stands where a factory stands, and is loaded afresh wherever one would be called.

What the file is, and that its archive or folder may be opened, home has seen already (files/). Here it is read beside its
framework, with guards around: nothing is unpickled, no process is started, no connection made, and memory is limited, so
that a file that means harm fails rather than the machine. ``--trust-file`` takes the guards away.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .given import FactoryError, Given, said
from .model_zoo.pair import Input

MEMORY = 4 << 30
"""Bytes that the worker may allocate beyond what its framework took to start, and beside ``COPIES`` of the file."""
NO_MEMORY = ("OOM when allocating", "bad_alloc", "can't allocate memory", "Cannot allocate memory")
"""How TensorFlow, C++, PyTorch and the system say that there is none left."""
OUT_OF_MEMORY = "it asks for more memory than it may; --trust-file lets it"
COPIES = 8
"""The file's own bytes, the tensors made of them, those of the frozen graph, of its import and of a run."""

LONGEST_RUN = 10_000_000
"""Executions of one op beyond which a counter that runs the model is not started."""


RUNNING = ("tf.profiler@runmeta",)
"""Counters that run a TensorFlow graph; the others read it."""
STATIC = ("tf.profiler@function", "tf.profiler@frozen")

PATIENCE = 120
"""Seconds for loading a file and tracing it: what runs for longer may never end."""


class FileError(FactoryError):
    """A file that cannot be used; the message is one sentence."""


class Wanted(NamedTuple):
    """One input of the model in a file: its name there, shape (None where it is open, or as a whole) and dtype ('' for any)."""

    name: str
    shape: tuple[int | None, ...] | None
    dtype: str


class FromFile(Given):
    """One framework's model file and the inputs given on the command line."""

    def __init__(self, framework: str, request: dict[str, Any]) -> None:
        super().__init__(framework, request)
        self.file: dict[str, Any] = request["files"][framework]
        self.tasks: list[str] = list(request["tasks"])

    def _build(self, _params: Any) -> Any:
        loader = importlib.import_module(f".adapters.load_{self.framework}", __package__)
        loader.ready()
        with guarded(self.file):
            try:
                model, self._arguments = loader.load(self.file, self.given)
            except FactoryError:
                raise
            except MemoryError as error:
                raise FileError(f"{self.where} cannot be loaded: {OUT_OF_MEMORY}.") from error
            except Exception as error:
                traceback.print_exc()
                why = OUT_OF_MEMORY if any(word in str(error) for word in NO_MEMORY) else _without_place(error)
                raise FileError(f"{self.where} cannot be loaded: {why}.") from error
        return model

    def tried(self, call: Any, inputs: str) -> None:
        """Call the model with no counter near. Raises FileError if that fails, too."""
        try:
            call()
        except Exception as error:
            traceback.print_exc()
            text = f"{self.where}, called with ({inputs}), {_without_place(error)}."
            raise FileError(text) from error

    @contextlib.contextmanager
    def impatiently(self, refuse: Callable[[str], None]) -> Iterator[None]:
        """Meanwhile end this process with a refusal when it takes too long, whatever it is at."""

        def give_up() -> None:
            refuse(
                f"{self.where} was not loaded and traced after {PATIENCE} seconds; --trust-file lets it take as long as "
                "--timeout says."
            )
            os._exit(0)

        timer = threading.Timer(PATIENCE, give_up)
        timer.daemon = True
        if not self.file["trusted"]:
            timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def may_run(self, trace: Any) -> None:
        """Raise FileError where a counter that runs the model was asked for, and that would take forever."""
        longest = max(trace.ops, key=lambda op: op.calls, default=None)
        running = [name for name in self.tasks if name in RUNNING]
        if longest is not None and running and longest.calls > LONGEST_RUN:
            raise FileError(
                f"a loop in {self.where} runs {longest.calls:,} times, and {running[0]} runs the model: ask for counters "
                f"that do not, with {' '.join('--counter ' + name for name in STATIC)}."
            )


def _without_place(error: BaseException) -> str:
    """What an error says of itself; where in our own code it was is of no use to anybody."""
    text = said(error)
    return text if len(text) < 300 else text[:300] + "..."


@contextlib.contextmanager
def guarded(file: Mapping[str, Any]) -> Iterator[None]:
    """While a file is loaded: no pickle finds a class, nothing is started or connected to; memory is limited from then on."""
    if file["trusted"]:
        yield
        return
    limit_memory(file["size"])
    _Audit.install()
    _Audit.watching += 1
    try:
        yield
    finally:
        _Audit.watching -= 1


FORBIDDEN = {
    "pickle.find_class": "unpickles something",
    "os.system": "starts a process",
    "os.exec": "starts a process",
    "os.posix_spawn": "starts a process",
    "os.spawn": "starts a process",
    "os.fork": "starts a process",
    "os.forkpty": "starts a process",
    "subprocess.Popen": "starts a process",
    "socket.connect": "connects to somewhere",
    "ctypes.dlopen": "loads a library",
}
"""Audit events (docs.python.org/3/library/audit_events.html), and what they are."""


class _Audit:
    """Refuses what no file has to do, by the interpreter's audit events (PEP 578), which nothing in it can get around."""

    watching = 0
    installed = False

    @classmethod
    def install(cls) -> None:
        if not cls.installed and hasattr(sys, "addaudithook"):
            cls.installed = True
            sys.addaudithook(cls.hear)

    @classmethod
    def hear(cls, event: str, _arguments: Sequence[Any]) -> None:
        if cls.watching and event in FORBIDDEN:
            raise FileError(f"the file {FORBIDDEN[event]} as it is loaded; --trust-file lets it.")


_limited = False


def limit_memory(size: int) -> None:
    """Let this process allocate so much more than it has by now, once; the kernel refuses what goes beyond (Linux)."""
    global _limited
    if _limited or not sys.platform.startswith("linux"):
        return
    import resource

    with open("/proc/self/status") as status:
        data = next(int(line.split()[1]) << 10 for line in status if line.startswith("VmData"))
    allowed = data + MEMORY + COPIES * size
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    if hard == resource.RLIM_INFINITY or allowed < hard:
        resource.setrlimit(resource.RLIMIT_DATA, (allowed, hard))
    _limited = True


def matched(where: str, wanted: Sequence[Wanted], given: Sequence[Input] | None) -> list[Input]:
    """The file's inputs with every dimension known: its own, else what was given. Raises FileError, with what to type."""
    rest = list(given or ())
    named = {plain(i.name): i for i in rest if i.name}
    unnamed = [i for i in rest if not i.name]
    if rest and len(rest) != len(wanted) and not named:
        raise FileError(f"{where} takes {_count(wanted)}; {len(rest)} were given. {_type(wanted)}")
    unknown = next((name for name in named if name not in [plain(w.name) for w in wanted]), None)
    if unknown:
        raise FileError(f"{where} has no input {unknown!r}; it takes {_count(wanted)}. {_type(wanted)}")
    found = []
    for want in wanted:
        mine = named.get(plain(want.name)) or (unnamed.pop(0) if unnamed else None)
        if mine is None:
            if want.shape is None or None in want.shape:
                raise FileError(
                    f"the input {want.name} of {where} is {_shown(want)}: say how large it is. {_type(wanted)}"
                )
            found.append(Input(want.name, tuple(s for s in want.shape if s is not None), want.dtype))
            continue
        fits = want.shape is None or (
            len(mine.shape) == len(want.shape) and all(s in (None, size) for s, size in zip(want.shape, mine.shape))  # noqa: B905
        )
        dtype = want.dtype or mine.dtype
        if not fits or mine.dtype not in ("float32", dtype):
            got = f"{mine.dtype} {mine.shape}"
            raise FileError(f"the input {want.name} of {where} is {_shown(want)}, not {got}.")
        found.append(Input(want.name, tuple(mine.shape), dtype))
    return found


def plain(name: str) -> str:
    """An input's name as it can be typed: ``x`` of ``x:0``, ``a_b`` of ``a/b``."""
    return "".join(c if c.isalnum() or c == "_" else "_" for c in name.split(":")[0])


def _shown(want: Wanted) -> str:
    if want.shape is None:
        return f"{want.dtype or 'a tensor'} of any rank"
    sizes = ", ".join("?" if size is None else str(size) for size in want.shape)
    return "{} ({}{})".format(want.dtype, sizes, "," if len(want.shape) == 1 else "")


def _count(wanted: Sequence[Wanted]) -> str:
    return ", ".join(f"{plain(w.name)}={_shown(w)}" for w in wanted) or "no input"


def _type(wanted: Sequence[Wanted]) -> str:
    """What to type, a 1 for every dimension that is open."""
    words = []
    for want in wanted:
        shape = (1, 3, 224, 224) if want.shape is None else want.shape
        sizes = ",".join("1" if size is None else str(size) for size in shape) or "()"
        words.append(
            "--input {}={}{}".format(plain(want.name), sizes, "" if want.dtype in ("", "float32") else ":" + want.dtype)
        )
    return "Such as: {}".format(" ".join(words)) if words else "Give it no --input."


def member(path: str) -> str:
    """The last part of a path."""
    return os.path.basename(path.rstrip(os.sep))
