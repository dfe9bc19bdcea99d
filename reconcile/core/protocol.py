"""The request that the main process ("home") sends to a worker process, as a record with a schema, and the names of its tasks.

Home writes it with :func:`to_text`, a worker reads it with :func:`from_text`.  Python 3.6 and standard library only.
"""

from json import dumps, loads
from typing import Any, Dict, NamedTuple, Optional, Tuple

from .framework import Framework

SCHEMA = 2

TRACE = "trace"
"""The task whose outcome is a trace; any other is the name of a counter, whose outcome is a ledger."""
RUNNING = "running.%d"
"""A file in the folder where ranks exchange what they send: the rank of that number runs now, so that others may wait for it."""


POINT = "~"


def at_point(task: str, index: int) -> str:
    """The name of a task at the point of that index of a request; at the first one it is the task's own."""
    return task + POINT + str(index) if index else task


def point_of(task: str) -> Tuple[str, int]:
    """The task that :func:`at_point` named, and the index of the point."""
    name, _, index = task.partition(POINT)
    return name, int(index or 0)


NONE: Dict[str, Any] = {}  # the default of fields; never written to


class ModelFile(NamedTuple):
    """A model in a file, which a product reads.

    Attributes:
        path: The absolute path of the file.
        kind: A name from a framework's ``files``.
        size: Its unpacked size in bytes.
        trusted: Whether the user trusts it.
        signature: Which signature of a SavedModel to use; '' for the default.
        reader: The module whose ``FromFile`` is the model's pair in a worker, written like a framework's ``adapter``.
        confinement: The module that confines a worker which loads such a file, unless it is trusted; written the same way.
    """

    path: str
    kind: str
    size: int
    trusted: bool = False
    signature: str = ""
    reader: str = ""
    confinement: str = ""


class UserModel(NamedTuple):
    """A user's own model.

    Attributes:
        factory: ``module:function``, or the path of the file that ``file`` describes.
        name: The model's name in reports.
        params: The parameters that reports show.
        frameworks: The frameworks in which the run has a model.
        inputs: What it is called with, (name, shape, dtype): the name '' for an input by position, the dtype '' for the model's
            default.
        arguments: The factory's arguments.
        file: What is known of a model's file; None if a function makes the model.
        example: The ``module:function`` that returns the model's arguments; '' for none.
    """

    factory: str
    name: str
    params: Dict[str, Any]
    frameworks: Tuple[str, ...] = ()
    inputs: Tuple[Tuple[str, Tuple[int, ...], str], ...] = ()
    arguments: Dict[str, Any] = NONE
    file: Optional[ModelFile] = None
    example: str = ""


class WorkerRequest(NamedTuple):
    """The work of one worker. The model is a pair file with ``overrides`` of its parameters, or ``model``.

    Attributes:
        framework: The framework that it works beside.
        tasks: ``trace`` and names of counters.
        out: The folder for its results.
        counters: For each of the counters its package of adapters and the package to import.
        pair: The path of the pair file; '' for a user's own model.
        overrides: The pair's parameters as text.
        model: A user's own model; None for a pair.
        known: All frameworks that a pair may have a side for, each with the package to import.
        paths: Folders with the user's own modules.
        lent: A folder of counters that the worker's environment lacks; '' for none.
        brought: Other people's adapters: top-level package -> the folder that holds it.
        device: Where counters run the model.
        recipe: Another way of building it; '' for the framework's current one.
        training: The optimiser of a training step; '' for a call.
        standard: Whether a compiled model takes that step in place of its own.
        context: The number of tokens in the model's cache before the call: 0 for the call that fills it, None for a call
            without a cache.
        quick: Whether a PyTorch model is called once.
        lacking: The message if the framework is missing.
        trial: Whether to make a plain call before anything else.
        died: How each earlier process ended that traced.
        points: Other sizes of the model, each as overrides of the pair's parameters, the inputs of ``model``, and whether that is
            fused: with them, a task is named by :func:`at_point`.
    """

    framework: Framework
    tasks: Tuple[str, ...]
    out: str
    counters: Dict[str, Tuple[str, str]] = NONE
    pair: str = ""
    overrides: Dict[str, str] = NONE
    model: Optional[UserModel] = None
    known: Dict[str, str] = NONE
    paths: Tuple[str, ...] = ()
    lent: str = ""
    brought: Dict[str, str] = NONE
    device: str = "cpu"
    recipe: str = ""
    training: str = ""
    standard: bool = False
    context: Optional[int] = None
    quick: bool = False
    lacking: str = ""
    trial: bool = False
    died: Tuple[str, ...] = ()
    points: Tuple[Tuple[Dict[str, str], Tuple[Tuple[str, Tuple[int, ...], str], ...], bool], ...] = ()

    @property
    def file(self) -> Optional[ModelFile]:
        """The model's file, None if a function makes the model."""
        return self.model.file if self.model is not None else None


NESTED: Dict[Any, Any] = {WorkerRequest: {"framework": Framework, "model": UserModel}, UserModel: {"file": ModelFile}}
"""The fields of each record that are records themselves."""


def to_text(request: WorkerRequest) -> str:
    """The request as JSON text, with its schema."""
    return dumps(dict(_plain(request), schema=SCHEMA))


def from_text(text: str) -> Any:
    """Read :func:`to_text` back. Raises ValueError for another schema, and for fields that are missing or unknown."""
    data = loads(text)
    if not isinstance(data, dict) or data.pop("schema", None) != SCHEMA:
        raise ValueError(f"a worker's request of this version has the schema {SCHEMA}")
    return _record(WorkerRequest, data)


def _plain(record: Any) -> Dict[str, Any]:
    return {name: _plain(value) if hasattr(value, "_asdict") else value for name, value in record._asdict().items()}


def _record(kind: Any, data: Any) -> Any:
    wrong = sorted(set(data) ^ set(kind._fields)) if isinstance(data, dict) else [str(data)]
    if wrong:
        raise ValueError(f"{kind.__name__}: missing or unknown: {', '.join(wrong)}")
    values, nested = {}, NESTED.get(kind, {})
    for name, value in data.items():
        values[name] = _record(nested[name], value) if name in nested and value is not None else _frozen(value)
    return kind(**values)


def _frozen(value: Any) -> Any:
    """Turn lists back into tuples; the contents of a mapping stay as JSON has them."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
