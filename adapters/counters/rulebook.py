"""Rules and rule books: a counter's model, as pure integer functions from an op that it saw to the work that it includes.

A rule cites the counter's source and holds for a range of its versions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from traceback import extract_stack

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from ...core.causes import Cause
from ...core.errors import ReconcileError, UsageError, describe_error
from ...core.records import IN_PLACE, Op, Shape
from ...work import ZERO, UnknownWork, Work, check_work, known_shape, prod

Compute = Callable[[Op], Work]
WhyNot = Callable[[Op], str]


ANY = SpecifierSet()
DRAFT = "draft"
"""The source of a rule that `reconcile counter draft` fitted to numbers, without the counter's source."""


class NotCounted(Exception):
    """Raised by a rule if the counter counts nothing here; gives the reason."""

    def __init__(self, cause: Cause, reason: str) -> None:
        super().__init__(reason)
        self.cause = cause
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Rule:
    """What one counter counts for one kind of op. ``source`` is the counter's own file and line.

    ``versions`` are the releases by name, ``places`` the same range in the order in which they came out.
    """

    id: str
    op: str
    versions: SpecifierSet
    compute: Compute
    source: str
    formula: str
    places: SpecifierSet = ANY

    def holds(self, place: Version) -> bool:
        """Whether the release at this place of the order counts so."""
        return self.places.contains(place, prereleases=True)


@dataclass(frozen=True, eq=False, slots=True)
class RuleBook:
    """The rules of one counter family.

    Attributes:
        name: The family's name.
        package: The distribution whose version selects among the rules.
        files: Spells out short names in sources: with {"J": "fvcore/nn/jit_handles.py"}, "J:82" is line 82 of that file.
        place: Puts releases in the order in which they came out, if their version numbers do not.
        of_library: Gives the rule of an op whose library taught it to the counter; None if no library can.
        base: The rules of the counter that this one runs, for ops of which it has none of its own; None without one.
        inherited: Whether the counter takes a module of another class for one of the nearest base that it knows: the bases are in
            the module's record.
        _rules: The rules of each op by its name, one for each range of releases.
        _patterns: The rules of ops that have none by name, each with the test of the ops that it is for, in order of precedence.
        _found: The rule of an op's name in a release, of those that were looked for.
    """

    name: str
    package: str
    files: dict[str, str]
    place: Callable[[Version], Version] = lambda version: version
    of_library: Callable[[Op], Rule | None] | None = None
    base: RuleBook | None = None
    inherited: bool = False
    _rules: dict[str, list[Rule]] = field(default_factory=dict, init=False)
    _patterns: list[tuple[Callable[[Op], bool], Rule]] = field(default_factory=list, init=False)
    _found: dict[tuple[str, str], Rule | None] = field(default_factory=dict, init=False)

    def rule(self, *ops: str, source: str = "", formula: str, versions: str = "") -> Callable[[Compute], Compute]:
        """Register a rule for these op names. Raises ValueError if one with the same version range exists.

        Raises UsageError for a rule that is a draft: it may not explain anything.
        """
        if source == DRAFT:
            raise UsageError(
                f"the rule of {self.name} for {', '.join(ops)} is a draft, which explains nothing: read the counter's source, "
                'correct the rule, and cite the file and the line in place of source="draft".'
            )

        def register(compute: Compute) -> Compute:
            self._found.clear()
            for op in ops:
                registered = self._rules.setdefault(op, [])
                spec = SpecifierSet(versions)
                if any(r.versions == spec for r in registered):
                    raise ValueError(f"{self.name} already has a rule for {op} {versions or '(any version)'}")
                registered.append(self._make_rule(op, versions, compute, source, formula))
            return compute

        return register

    def pattern(
        self, name: str, matches: Callable[[Op], bool], *, source: str, formula: str, versions: str = ""
    ) -> Callable[[Compute], Compute]:
        """Register a rule for every op that ``matches`` and that has no rule of its own; the first pattern that matches holds.

        It is for a counter that itself goes by a pattern ("Conv" in the name of a class, any module with parameters).
        ``name`` says in print which ops these are, and ``matches`` reads the record alone. Raises ValueError if a pattern of that
        name and version range exists.
        """

        def register(compute: Compute) -> Compute:
            made = self._make_rule(name, versions, compute, source, formula)
            if any(known.id == made.id for known in self.rules()):
                raise ValueError(f"{self.name} already has a rule for {name} {versions or '(any version)'}")
            self._patterns.append((matches, made))
            return compute

        return register

    def _make_rule(self, op: str, versions: str, compute: Compute, source: str, formula: str) -> Rule:
        spec = SpecifierSet(versions)
        suffix = f" ({versions})" if versions else ""
        places = SpecifierSet(",".join(f"{s.operator}{self.place(Version(s.version))}" for s in spec))
        return Rule(f"{self.name}/{op}{suffix}", op, spec, compute, self.cite(source), formula, places)

    def cite(self, source: str) -> str:
        """``J:82, A:28`` with the files spelled out. Raises UsageError for a short name that is not in ``files``."""
        parts = [part.partition(":") for part in source.split(", ")]
        if unknown := [short for short, _, _ in parts if short not in self.files]:
            at = next(frame for frame in reversed(extract_stack()) if frame.filename != __file__)
            raise UsageError(
                f"{at.filename} line {at.lineno}: a rule of {self.name} has source={source!r}, and {unknown[0]!r} is none of its "
                f"files: {', '.join(self.files) or 'none'}."
            )
        return ", ".join(f"{self.files[short]}:{line}" for short, _, line in parts)

    def find(self, op: str, versions: Mapping[str, str]) -> Rule | None:
        """The rule for this op in the counter's version, or None. Raises ValueError if two apply."""
        key = (op, versions.get(self.package, "0"))
        if key not in self._found:
            version = self._version(versions)
            place = self.place(version)
            matching = [r for r in self._rules.get(op, ()) if r.holds(place)]
            if len(matching) > 1:
                raise ValueError(f"rules {[r.id for r in matching]} both hold for {self.package} {version}")
            self._found[key] = next(iter(matching), None)
        found = self._found[key]
        return self.base.find(op, versions) if found is None and self.base is not None else found

    def _version(self, versions: Mapping[str, str]) -> Version:
        text = versions.get(self.package, "0")
        try:
            return Version(text)
        except InvalidVersion as error:
            raise UsageError(
                f"the rules for {self.name} depend on the version of {self.package}, and {text!r} is not a version."
            ) from error

    def of(self, op: Op, versions: Mapping[str, str]) -> Rule | None:
        """The rule for this record: that of its op or, if the counter goes by bases, of the first of its bases that has one.

        A product in place has a name of its own (``addmm_``), which no counter's list has.
        """
        if op.attrs.get(IN_PLACE):
            return None
        bases = op.attrs.get("bases", ()) if self.inherited else ()
        records = (op, *(op._replace(op=name) for name in bases))
        return next((rule for record in records if (rule := self._of_one(record, versions)) is not None), None)

    def _of_one(self, op: Op, versions: Mapping[str, str]) -> Rule | None:
        """The counter's own rule for this op, the one that the op's library taught it, or a pattern's."""
        own = self.find(op.op, versions)
        if own is None and self.of_library is not None:
            own = self.of_library(op)
        if own is not None or not self._patterns:
            return own
        place = self.place(self._version(versions))
        return next((rule for matches, rule in self._patterns if rule.holds(place) and matches(op)), None)

    def counts(self, op: Op, versions: Mapping[str, str]) -> Work:
        """What the counter counts for one call; nothing without a rule, or where the rule has a reason."""
        return apply(self.of(op, versions), op, lambda op: "")[0]

    def rules(self) -> tuple[Rule, ...]:
        """All rules, for listings and tests: those for one op, then those for a pattern."""
        return (*(rule for of_op in self._rules.values() for rule in of_op), *(rule for _, rule in self._patterns))


def printed_name(op: Op) -> str:
    """The op's name as its counter meets it."""
    return op.op + ("_" if op.attrs.get(IN_PLACE) else "")


def size(shape: Shape) -> int:
    """Elements of a shape that the counter must know; if it does not, it counts nothing.

    Raises NotCounted(shape-unknown).
    """
    return prod(dims(shape))


def dims(shape: Shape) -> tuple[int, ...]:
    """The shape as ints. Raises NotCounted(shape-unknown) if any dimension is unknown."""
    try:
        return known_shape(shape)
    except UnknownWork as error:
        raise NotCounted(Cause.SHAPE_UNKNOWN, str(error)) from error


def apply(rule: Rule | None, op: Op, why_not: WhyNot) -> tuple[Work, NotCounted | None]:
    """The work that the rule includes for one call, or the reason why the counter counts nothing."""
    if rule is None:
        return ZERO, NotCounted(Cause.OP_NOT_COUNTED, why_not(op))
    try:
        return check_work(rule.compute(op), signed=True), None
    except NotCounted as missed:
        return ZERO, missed
    except (UnknownWork, ReconcileError):
        raise
    except Exception as error:
        within = error.__traceback__ and error.__traceback__.tb_next  # the rule's own frame; none if it is of C
        if within and not within.tb_frame.f_globals.get("__name__", "").startswith(__name__.partition(".")[0] + "."):
            raise UsageError(
                f"{within.tb_frame.f_code.co_filename} line {within.tb_lineno}: "
                f"the rule {rule.id} fails for {op.id!r}: {describe_error(error)}. "
                f"Attributes of {op.op}: {', '.join(sorted(op.attrs)) or 'none'}."
            ) from error
        raise misfit(f"the rule {rule.id}", op, error) from error


def misfit(reader: str, op: Op, error: Exception) -> UsageError:
    """The error for a record that ``reader`` cannot read: its file is damaged, or reconcile has a defect."""
    return UsageError(
        f"{reader} does not fit {op.op} {op.id!r} as it is recorded: {describe_error(error)}. If it was read from a file, "
        "create that file again; otherwise this is a defect of reconcile: please report it."
    )
