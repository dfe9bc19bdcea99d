"""Environments to run in, read from the built-in TOML file, a user's file, counters' requirements, or --with and --python.

An ``Environment`` is a description; provision.py installs it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from ...core import user_files
from ...core.counter import Counter
from ...core.errors import UsageError, short, unknown
from ...core.framework import Framework
from ...core.registry import frameworks, known_counters
from . import CURRENT as CURRENT
from .interpreters import user_interpreter

BUILT_IN_FILE = Path(__file__).with_name("environments.toml")

_OPERATORS = {"==": "", "===": "", "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "!=": "ne", "~=": "like"}


@dataclass(frozen=True, slots=True)
class Environment:
    """One environment.

    Attributes:
        name: Its name on the command line and in reports.
        title: What it is, in a line.
        python: The version of Python, such as "3.8"; "current" for the running one.
        frameworks: The sides of a pair that run in it.
        requirements: The packages to install, as pip writes them; () for none.
        counters: The counters that run there; () for all counters of its frameworks.
        interpreter: The interpreter of an environment that the user already has, which is used as it is; None for others.
        over: "current" if the packages are installed over the running interpreter's own packages, without their dependencies; ''
            otherwise.
        unasked: Whether ``reconcile matrix`` runs it if you name none.
    """

    name: str
    title: str
    python: str
    frameworks: tuple[str, ...]
    requirements: tuple[str, ...]
    counters: tuple[str, ...] = ()
    interpreter: Path | None = None
    over: str = ""
    unasked: bool = True

    def with_(self, requirements: Sequence[str]) -> Environment:
        """The environment with these requirements instead of its own on the same packages. Raises UsageError."""
        label = "+".join(_label(_requirement("", text)) for text in requirements)
        replaced = packages_of(requirements)
        kept = [text for text in self.requirements if not packages_of([text]) <= replaced]
        return replace(
            self,
            name=f"{self.name}+{label}",
            title=f"{self.title}, with {', '.join(requirements)}",
            requirements=(*kept, *requirements),
        )


def load(path: Path | None = None) -> dict[str, Environment]:
    """The environments that ship with the tool, those of counters that need one of their own, and those of a user's file.

    Raises UsageError, naming the file, table and key, for a file that cannot be read or holds anything else.
    """
    environments = {
        name: _environment("environments.toml", name, table)
        for name, table in user_files.read_toml(BUILT_IN_FILE, "the environment file").items()
    }
    environments.update(_of_counters())
    if path is not None:
        for name, table in user_files.read_toml(path, "the environment file").items():
            if name in environments:
                raise UsageError(f"{_where(str(path), name)}: this name is built in; choose another.")
            environments[name] = _environment(str(path), name, table)
    return environments


def _of_counters() -> dict[str, Environment]:
    """For each family of counters with requirements, an environment of its name over the running interpreter's packages."""
    families: dict[str, list[Counter]] = {}
    for counter in known_counters().values():
        if counter.requirements:
            families.setdefault(counter.family, []).append(counter)
    installable = tuple(record.name for record in _installable())
    return {
        family: Environment(
            family,
            f"{', '.join(members[0].requirements)} over the running interpreter's own packages",
            CURRENT,
            tuple(dict.fromkeys((*installable, *(counter.framework for counter in members)))),
            tuple(dict.fromkeys(text for counter in members for text in counter.requirements)),
            tuple(counter.name for counter in members if not counter.rare),
            over=CURRENT,
            unasked=False,
        )
        for family, members in families.items()
    }


def adhoc(with_: tuple[str, ...], python: str, models: Collection[str] = ()) -> Environment:
    """An environment of these requirements, named after them, with the packages that their frameworks need and do not declare.

    ``models`` are the frameworks of the models that run there, if these are the user's own. A framework that the requirements
    do not name is added, because few of the packages around it declare it.

    Raises UsageError for text that is not a requirement, and for a Python version that is not written like 3.11.
    """
    if not with_:
        raise UsageError(
            "--python needs at least one --with, such as --with 'tensorflow==2.15.1', or the path of an interpreter."
        )
    parsed = [_requirement("", text) for text in with_]
    _check_python("--python", python)
    names = {canonicalize_name(r.name) for r in parsed}
    installable = _installable()
    named = [record for record in installable if names & set(record.distributions)]
    touched = [record for record in installable if names & {*record.distributions, *record.around}]
    needed = (named or [record for record in installable if record.name in models]) if models else touched
    required = needed or installable
    lacking = [record for record in needed if record.distributions and not names & set(record.distributions)]
    bounds = [text for record in required for text in _bounds(record, parsed) if Requirement(text).name not in names]
    beside = {name for record in required for name in record.beside} - names - {Requirement(b).name for b in bounds}
    requirements = (*with_, *map(_distribution, lacking), *sorted(beside), *bounds)
    label = "+".join(_label(r) for r in parsed) + ("" if python == CURRENT else f"-py{python}")
    title = f"{', '.join(with_)} on {'the running Python' if python == CURRENT else f'Python {python}'}"
    return Environment(label, title, python, tuple(record.name for record in required), requirements)


def _distribution(record: Framework) -> str:
    """The name under which the framework is installed here; where it is not, its usual one."""
    here = (name for name in record.distributions if list(metadata.Distribution.discover(name=name)))
    return next(here, record.distributions[0])


def packages_of(requirements: Sequence[str]) -> set[str]:
    """The normalised package names of these requirements, all of which can be parsed."""
    return {str(canonicalize_name(Requirement(text).name)) for text in requirements}


def at(python: str) -> Environment:
    """The environment of the interpreter at that path, named after its folder. Raises UsageError if it is not an interpreter."""
    path, version = user_interpreter(python)
    folder = path.parents[1].name if path.parent.name == "bin" else path.name
    name = f"python-{re.sub(r'[^A-Za-z0-9._+-]', '-', folder).strip('.-') or path.name}"
    return Environment(name, str(path), version, tuple(frameworks()), (), (), path)


def _where(file: str, name: str) -> str:
    return f"the environment file {file}, table [{name}]"


def _environment(file: str, name: str, table: object) -> Environment:
    where = _where(file, name)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", name):
        raise UsageError(
            f"{where}: a name has only letters, digits and . _ + - in it, and starts with a letter or digit."
        )
    keys = ("title", "python", "frameworks", "requirements")
    if not isinstance(table, dict):
        raise UsageError(
            f'{where}: expected a table with the keys {", ".join(keys)}; quote a name with dots: ["{name}.1"].'
        )
    for key in table:
        if key not in (*keys, "counters", "over", "unasked"):
            raise UsageError(
                f"{where}: unknown key {short(key)}; the keys are {', '.join(keys)}, counters, over and unasked. "
                "Quote a name with dots."
            )
    for key in keys:
        if key not in table:
            raise UsageError(f"{where}: the key {key} is missing.")
    for key in ("title", "python"):
        if not isinstance(table[key], str):
            raise UsageError(f"{where}: {key} must be text, not {short(table[key])}.")
    table = {"counters": [], **table}
    if table.get("over", CURRENT) != CURRENT or ("over" in table and table["python"] != CURRENT):
        raise UsageError(
            f'{where}: over must be "{CURRENT}" or left out, and python must be "{CURRENT}" if you give over.'
        )
    unasked = table.get("unasked", True)
    if not isinstance(unasked, bool):
        raise UsageError(f"{where}: unasked must be true or false, not {short(unasked)}.")
    for key in ("frameworks", "requirements", "counters"):
        if not isinstance(table[key], list) or not all(isinstance(item, str) for item in table[key]):
            raise UsageError(f"{where}: {key} must be a list of texts, not {short(table[key])}.")
    _check_python(f"{where}: python", table["python"])
    installable = [record.name for record in _installable()]
    if not table["frameworks"] or set(table["frameworks"]) - set(installable):
        raise UsageError(f"{where}: frameworks must be some of {', '.join(installable)}.")
    for text in table["requirements"]:
        _requirement(f"{where}: requirements: ", text)
    chosen = tuple(f for f in installable if f in table["frameworks"])
    for counter in table["counters"]:
        if counter not in known_counters():
            raise UsageError(f"{where}: counters: {unknown('counter', counter, known_counters())}")
    requirements, counters = tuple(table["requirements"]), tuple(table["counters"])
    over = table.get("over", "")
    return Environment(
        name, table["title"], table["python"], chosen, requirements, counters, over=over, unasked=unasked
    )


def _check_python(where: str, python: str) -> None:
    if python != CURRENT and not re.fullmatch(r"3\.[0-9]{1,3}", python):
        raise UsageError(f"{where} must be a version such as 3.11 or the word {CURRENT}, not {short(python)}.")


def _requirement(where: str, text: str) -> Requirement:
    try:
        return Requirement(text)
    except InvalidRequirement as error:
        raise UsageError(f"{where}{short(text)} is not a requirement such as tensorflow==2.15.1.") from error


def _installable() -> list[Framework]:
    """The frameworks whose side of a pair an environment can run."""
    return [record for record in frameworks().values() if record.factories]


def _bounds(record: Framework, requirements: Sequence[Requirement]) -> Iterator[str]:
    """The requirements that the framework does not declare, for the newest of its versions that these requirements allow."""
    own = [r for r in requirements if f"{canonicalize_name(r.name)}-".startswith(f"{record.package}-")]
    specifiers = [s for r in own for s in r.specifier]
    newest = [s.version.removesuffix(".*") for s in specifiers if s.operator in ("==", "~=", "<", "<=")]
    for versions, bounds in record.bounds:
        if any(SpecifierSet(versions).contains(version, prereleases=True) for version in newest):
            yield from bounds


def _label(requirement: Requirement) -> str:
    """``tensorflow-2.15.1`` for a pin, ``protobuf-lt3.20`` for a bound: safe in file names and tables."""
    parts = sorted(_OPERATORS[s.operator] + s.version for s in requirement.specifier)
    return re.sub(r"[^A-Za-z0-9._-]", "-", "-".join([requirement.name, *parts]))
