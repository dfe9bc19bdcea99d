"""Files on disk, whole or not at all: every text is made first, written beside its place, then moved there."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Callable, Container, Mapping
from pathlib import Path

from ..core.errors import UsageError, brief, reason
from ..core.records import TRAINING
from ..core.results import RunResult, Statement
from . import foot

FORMATS = ("md", "csv", "json", "html")
PICTURES = ("svg", "png")
PART = 1 << 20
LONGEST = 100
"""Bytes of a name that a file gets; what says its format, and that it is being written, comes on top."""
DIGITS = 12
"""Hexadecimal digits of the hash in a name."""
PAGE_OPS = 200_000
"""Ops of traces beyond which there is no HTML page: a browser would take minutes over it and run out of memory."""


def prepare(folder: Path) -> None:
    """Prove that files can be written there, or the folder be made. Raises UsageError; leaves nothing behind."""
    try:
        nearest = folder.absolute()
        while not _there(nearest) and nearest != nearest.parent:
            nearest = nearest.parent
        probe = _beside(nearest / "probe")
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        raise _refused(folder, error) from error


def _there(path: Path) -> bool:
    """Whether anything is there, a link that leads nowhere included. Raises OSError for a path that can be none."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    return True


def render(
    result: RunResult, formats: tuple[str, ...], statement: Statement | None = None, command: str = ""
) -> dict[str, str | bytes]:
    """The reports by what ends their file names; ``svg`` and ``png`` make pictures, which the Markdown then shows.

    A page of more than ``PAGE_OPS`` ops is left out (``left_out`` says so). Raises ValueError if the books do not add up,
    UsageError where pictures are asked for and cannot be drawn.
    """
    foot.check(result)
    if left_out(result, formats):
        formats = tuple(name for name in formats if name != "html")
    drawn = _drawn(result, statement, formats)
    makers: dict[str, Callable[[], str]] = {
        "md": lambda: _markdown(result, statement, command, tuple(drawn)),
        "csv": lambda: _csv(result),
        "json": lambda: _json(result),
        "html": lambda: _html(result, statement, command),
    }
    return {**{name: makers[name]() for name in FORMATS if name in formats}, **drawn}


def left_out(result: RunResult, formats: tuple[str, ...]) -> str:
    """A sentence where a page is asked for that no browser could show; '' where all can be written."""
    ops = sum(len(trace.rows) for trace in result.traces)
    if "html" not in formats or ops <= PAGE_OPS:
        return ""
    return (
        f"There is no HTML page of {ops:,} ops: a browser takes up to {PAGE_OPS:,}. Everything is in the other formats "
        "(--format md,csv,json)."
    )


def lying(folder: Path, stem: str) -> tuple[str, ...]:
    """The formats of this model's reports that lie in a folder already."""
    ends = {path.name.rpartition(".")[2] for path in folder.glob(f"{safe(stem)}.*")}
    return tuple(name for name in (*FORMATS, *PICTURES) if name in ends)


def stem(model: str, *, training: bool) -> str:
    """What the names of a run's files begin with; a training step does not take the place of a call."""
    return f"{model}-training" if training else model


def with_pictures(folder: Path, stem: str, formats: tuple[str, ...]) -> tuple[str, ...]:
    """``formats`` and the pictures of this report that lie there: old ones would stand beside new numbers.

    Where nothing can draw them they stay, and the Markdown does without.
    """
    from .pictures import can_draw

    there = tuple(name for name in lying(folder, stem) if name in PICTURES and name not in formats)
    return (*formats, *there) if there and can_draw() else formats


def write(folder: Path, stem: str, texts: Mapping[str, str | bytes], by: str = "") -> list[Path]:
    """Write ``<stem>.<format>`` files. Whatever interrupts this leaves every file as it was or as it shall be.

    What kills this process may leave temporary files; ``left_by`` finds them by the word ``by`` in their names.
    """
    targets = {folder / f"{safe(stem)}.{name}": text for name, text in texts.items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _place(targets, by)
    except OSError as error:
        raise _refused(folder, error) from error
    return list(targets)


def one(file: Path, text: str, *, new: bool = False) -> Path:
    """Write this one file, whole or not at all; with ``new``, only if nothing is there.

    Raises UsageError where it cannot be written, FileExistsError where it is there.
    """
    try:
        _place({file: text}, new=new)
    except FileExistsError:
        raise
    except OSError as error:
        raise UsageError(f"cannot write {brief(file)}: {reason(error)}.") from error
    return file


def left_by(by: str, folder: Path, names: Container[str]) -> list[Path]:
    """Temporary files of ``write``, with that word, for files of these names in a folder."""
    ours = re.compile(rf"\.(.+)\.{by}-[0-9a-f]{{8}}\.tmp")
    with os.scandir(folder) as entries:
        files = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
    return [folder / name for name in files if (match := ours.fullmatch(name)) and match[1] in names]


def _place(targets: Mapping[Path, str | bytes], by: str = "", new: bool = False) -> None:
    waiting: dict[Path, Path] = {}
    try:
        for target, text in targets.items():
            waiting[target] = _beside(target, by)
            with waiting[target].open("xb") as file:
                for start in range(0, len(text), PART):  # a text and all of its bytes at once are twice the memory
                    part = text[start : start + PART]
                    file.write(part if isinstance(part, bytes) else part.encode("utf-8", "backslashreplace"))
                file.flush()
                os.fsync(file.fileno())
        for target, temporary in waiting.items():
            _link(temporary, target) if new else temporary.replace(target)
    finally:
        for temporary in waiting.values():
            temporary.unlink(missing_ok=True)


def safe(name: str) -> str:
    """A model's name as a file name: no separators, not hidden, not empty, not too long for a file system.

    Where it cannot stay as it is, a hash of the whole name makes two different names two different files.
    """
    kept = re.sub(r"[^\w.+=@-]", "_", name).lstrip(".").encode()[:LONGEST].decode(errors="ignore")
    if name and kept == name:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]
    return f"{kept.encode()[: LONGEST - DIGITS - 1].decode(errors='ignore') or 'model'}-{digest}"


def _link(waiting: Path, target: Path) -> None:
    """Give the file its name if no other has it; a file system that has no hard links is asked first instead."""
    try:
        target.hardlink_to(waiting)
    except FileExistsError:
        raise
    except OSError:
        if os.path.lexists(target):
            raise FileExistsError(target) from None
        waiting.replace(target)


def _beside(target: Path, by: str = "") -> Path:
    return target.with_name(f".{target.name}.{by and by + '-'}{secrets.token_hex(4)}.tmp")


def _refused(folder: Path, error: OSError) -> UsageError:
    return UsageError(f"cannot write reports to {brief(folder)}: {reason(error)}. Choose another folder with --out.")


def _drawn(result: RunResult, statement: Statement | None, formats: tuple[str, ...]) -> dict[str, str | bytes]:
    wanted = [name for name in PICTURES if name in formats]
    if not wanted:
        return {}
    from . import pictures, view

    pictures.require()
    return pictures.draw(result, view.default_statement(result) if statement is None else statement, wanted)


def _markdown(result: RunResult, statement: Statement | None, command: str, drawn: tuple[str, ...]) -> str:
    from .markdown import to_markdown
    from .pictures import embedded

    return to_markdown(
        result, statement, command, embedded(safe(stem(result.model, training=result.pass_ == TRAINING)), drawn)
    )


def _csv(result: RunResult) -> str:
    from .csv import to_csv

    return to_csv(result)


def _json(result: RunResult) -> str:
    from .json import to_json

    return to_json(result)


def _html(result: RunResult, statement: Statement | None, command: str) -> str:
    from .page import to_html

    return to_html(result, statement, command)
