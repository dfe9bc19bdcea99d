"""The pytest plugin: ``flops``, a fixture that counts a model and compares it with a baseline file beside the test.

    def test_my_model(flops):
        flops.check(MyModule(), torch.ones(1, 3, 224, 224))
        flops.check("my_pair.py", units=64)
        flops.budget(MyModule(), torch.ones(1, 3, 224, 224), max_flops=250_000_000)
        assert flops.snapshot(MyModule(), torch.ones(1, 3, 224, 224)) == 249_809_920

The baseline of ``test_x.py`` lies in ``test_x.flops/``, one file per model and set of parameters.  ``pytest --flops-update``
accepts the result of a run.  pytest loads this file in every project where reconcile is installed, so it imports nothing
else until a test asks for the fixture.  docs/pytest.md has a whole example.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    from .api.snapshot import Snapshot
    from .core.conventions import Convention
    from .drift.changes import Drift
    from .engine.settle import Collected
    from .launch.request import RunRequest
    from .launch.workers.supervisor import Event

PROPERTY = "flops accepted"
WRITTEN = "flops written"
UPDATE = "--flops-update"

_Collect = Callable[["RunRequest", Callable[["Event"], None]], "Collected"]
_CollectedRuns = dict[tuple[str, ...], list[tuple[tuple[str, ...], "Collected"]]]
_COLLECTED: pytest.StashKey[_CollectedRuns] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option ``--flops-update`` to pytest."""
    group = parser.getgroup("flops", "FLOP baselines (reconcile)")
    group.addoption(UPDATE, action="store_true", help="Accept what the flops fixture finds as the new baselines.")


def pytest_configure(config: pytest.Config) -> None:
    """Have the tests of a session share what was collected of a model."""
    config.stash[_COLLECTED] = {}


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print what ``--flops-update`` accepted, and write the numbers of snapshots, including tests that ran in another process."""
    properties = [
        (name, value)
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if getattr(report, "when", "") == "call"
    ]
    found = [value for name, value in properties if name == PROPERTY]
    if numbers := [value for name, value in properties if name == WRITTEN]:
        from .api.snapshot import Literal, write_literals

        found += write_literals(Literal(*value) for value in numbers)
    if found:
        terminalreporter.section("FLOP baselines accepted")
        for text in dict.fromkeys(found):
            terminalreporter.write_line(text)


@pytest.fixture
def flops(request: pytest.FixtureRequest) -> Flops:
    """Count a model: ``flops.check(model)`` compares it with a baseline, ``budget`` limits its FLOPs, ``snapshot`` is them."""
    node = request.node

    def record_acceptance(found: object, name: str = PROPERTY) -> None:
        node.user_properties.append((name, found))

    return Flops(
        request.path, bool(request.config.getoption(UPDATE)), request.config.stash[_COLLECTED], record_acceptance
    )


class Flops:
    """The value of the ``flops`` fixture. A model is a pair file, relative to the test's folder, a name of the zoo, or a model at
    hand, which is counted in this process."""

    def __init__(
        self, test: Path, update: bool, collected: _CollectedRuns, record_acceptance: Callable[..., None]
    ) -> None:
        self.test = test
        self.update = update
        self._collected = collected
        self._accepted = record_acceptance

    def __getattr__(self, name: str) -> Any:
        """A function that a product adds."""
        from .api import fixture
        from .core.errors import ReconcileError
        from .core.registry import product_function

        function = product_function(name, "fixture_functions")
        if function is None:
            raise AttributeError(f"the fixture flops has no {name}")

        def call(*args: Any, **options: Any) -> Any:
            try:
                return function(self.test.parent, *args, **options)
            except (ReconcileError, AssertionError) as error:
                _fail(fixture.describe_for_test(error, function))

        return call

    def baseline(
        self, model: str | Path, /, *, pass_: str = "forward", optimizer: Any = None, **params: object
    ) -> Path:
        """The path of the baseline of a model with these parameters and this pass."""
        from .core.atomic import safe
        from .launch.request import read_optimizer

        name = Path(model).stem if str(model).endswith(".py") else str(model)
        step = read_optimizer(pass_, optimizer)
        name += f"-training-{step}" if step else ""
        name += "".join(f"+{key}={value}" for key, value in sorted(params.items()))
        return self.test.with_name(f"{self.test.stem}.flops") / f"{safe(name)}.json"

    def check(
        self,
        model: Any,
        inputs: Any = None,
        /,
        *,
        name: str = "",
        counters: tuple[str, ...] = (),
        convention: str = "matmul",
        framework: str = "",
        timeout: float = 600,
        pass_: str = "forward",
        optimizer: Any = None,
        **params: object,
    ) -> Drift | None:
        """Count a model and compare it with its baseline, entry by entry; with ``--flops-update``, accept the result.

        A model at hand (a ``torch.nn.Module``, a Keras model) is called with ``inputs``, as ``reconcile.run`` takes them, and its
        baseline is called after its class, or ``name``: two models of one class in a file of tests need two names, unless they
        are of two frameworks.
        ``framework`` is needed only for a function that several imported frameworks could call.
        ``counters`` are those of the baseline unless given, ``timeout`` is in seconds per counter, ``pass_="training"`` is a
        training step with ``optimizer`` (``"adamw"``, or one at hand), and ``params`` are the pair's.  Fails the test if anything
        moved, with layer, cause and counter, or if there is no usable baseline.  Returns the comparison, or None if there was no
        baseline yet.
        """
        from .api import fixture
        from .core.errors import UsageError
        from .drift.baselines import path_of_framework
        from .drift.check import check
        from .drift.report import describe_check
        from .launch.request import run_request

        remedy = f"pytest {UPDATE} {self.test.name}"
        take: _Collect
        try:
            asked = {"convention": convention, "counters": counters, "pass_": pass_, "optimizer": optimizer}
            asked |= fixture.pop_options(params, Flops.check)
            if isinstance(model, (str, Path)):
                if inputs is not None or name:
                    raise UsageError("inputs and name= are for a model at hand; a pair has both.")
                if framework:
                    raise UsageError(
                        "framework= is for a model at hand; the baseline of a pair has all that the pair has."
                    )
                path = self.baseline(model, pass_=pass_, optimizer=optimizer, **params)
                request = run_request(model=self._model(model), overrides=params, timeout=timeout, **asked)
                take = self._collect
            else:
                path = self.baseline(name or type(model).__name__, pass_=pass_, optimizer=optimizer)
                request, take = fixture.request_for_model(model, inputs, path.stem, framework, params, asked)
                path = path_of_framework(path, *request.factories)
            done = check(request, path, remedy=remedy, update=self.update, take=take)
        except UsageError as error:
            _fail(fixture.describe_for_test(error, Flops.check).replace("with --update", f"with {UPDATE}"))
        if done.exit_code:
            _fail("\n".join(describe_check(done, done.path.name, remedy, update=self.update)))
        if done.written:
            self._accepted("\n".join(fixture.describe_accepted(done)))
        return done.drift

    def budget(
        self,
        model: Any,
        inputs: Any = None,
        /,
        *,
        max_flops: float,
        convention: str | Convention = "matmul",
        framework: str = "",
        timeout: float = 600,
        pass_: str = "forward",
        optimizer: Any = None,
        **params: object,
    ) -> dict[str, int]:
        """Assert that the work that runs is at most ``max_flops``, in every framework of the pair or in one (tf, torch).

        A model is given as to ``check``: a pair, or a model at hand with its ``inputs``.

        The work is that of the traces under a convention, not the total of a counter.  Fails the test, layer by layer, if
        it is more or partly unknown.  Returns the FLOPs by framework.
        """
        from .api import fixture
        from .core.conventions import NAMED, choose
        from .core.errors import UsageError
        from .launch.request import run_request

        try:
            chosen = choose(convention, NAMED) if isinstance(convention, str) else convention
            asked = {"pass_": pass_, "optimizer": optimizer, **fixture.pop_options(params, Flops.check)}
            if isinstance(model, (str, Path)):
                if inputs is not None:
                    raise UsageError("inputs are for a model at hand; a pair has its own.")
                request = run_request(model=self._model(model), overrides=params, timeout=timeout, **asked)
                found = self._collect_cached(request)
            else:
                name = type(model).__name__
                request, take = fixture.request_for_model(model, inputs, name, framework, params, asked)
                found = take(request, lambda _event: None)
            traces = fixture.complete_traces(found, framework)
        except UsageError as error:
            _fail(fixture.describe_for_test(error, Flops.budget))
        totals = {}
        for trace in traces:
            try:
                totals[trace.framework], layers = fixture.flops_by_layer(trace, found, chosen)
            except UsageError as error:
                _fail(fixture.describe_for_test(error, Flops.budget))
            over = totals[trace.framework] - max_flops
            if over > 0:
                said = f"{found.meta['name']} does {totals[trace.framework]:,} FLOPs in {trace.framework} "
                said += f"(convention {chosen.name}); the budget is {max_flops:,}: {over:,} too many"
                _fail("\n".join([said, *layers]))
        return totals

    def snapshot(self, model: Any, inputs: Any = None, /, *, name: str = "", **options: Any) -> Snapshot:
        """The FLOPs that run, for a test to compare with a number: ``assert flops.snapshot(model, x) == 3_632_960``.

        ``--flops-update`` writes the number into the test, in place of another one or of ``...``, and takes a baseline. Later, a
        model that does not have this number fails the test with what moved since, its layers and causes.
        The model, its ``inputs`` and ``options`` are as for ``budget``, ``name`` is as for ``check``.
        """
        from .api.snapshot import Snapshot, find_literal

        totals = set(self.budget(model, inputs, max_flops=math.inf, **options).values())
        if len(totals) != 1:
            _fail(f"{model} does {' and '.join(f'{total:,}' for total in totals)} FLOPs: choose one with framework=.")
        pair = isinstance(model, (str, Path))
        checked = {key: value for key, value in options.items() if not (pair and key == "framework")}
        checked |= {"name": name} if name else {}
        found = Snapshot(totals.pop())

        def settle(other: object, path: Path, line: int) -> bool:
            same = int(found) == other
            if same and not self.update:
                return True
            said = f"{path.name}:{line}: {int(found):,} FLOPs run. Write this number with: pytest {UPDATE} {self.test.name}"
            try:
                self.check(model, inputs, **checked)
            except pytest.fail.Exception as moved:
                _fail(f"{said}\n{moved}")
            place = find_literal(other, path, line, int(found)) if self.update and not same else None
            if place:
                self._accepted(tuple(place), WRITTEN)
            return same or bool(place) or _fail(said)

        found.settle = settle
        return found

    def _model(self, model: str | Path) -> str:
        if isinstance(model, Path) or model.endswith(".py"):
            return str(self.test.parent / model)
        return model

    def _collect_cached(self, request: RunRequest) -> Collected:
        """What was collected of this model with these parameters, with whichever counters; else it is collected with all."""
        held = self._collected.get(_key(request), [])
        return held[0][1] if held else self._collect(request, lambda _event: None)

    def _collect(self, request: RunRequest, progress: Callable[[Event], None]) -> Collected:
        from .launch.runner import collect

        held = self._collected.setdefault(_key(request), [])
        for counters, found in held:
            if counters == request.counters:
                return found
        found = collect(request, progress)
        held.append((request.counters, found))
        return found


def _fail(text: str) -> NoReturn:
    """Fail the test; escape sequences in names of layers do not reach the terminal."""
    from .core.escaping import escape_lines

    raise pytest.fail.Exception(escape_lines(text), pytrace=False) from None  # an error that is said needs no context


def _key(request: RunRequest) -> tuple[str, ...]:
    """What a collected run depends on, but for its counters: the fields of the options that change a baseline."""
    from .launch.options import known_options

    deciding = (option.field for option in known_options().values() if option.baseline and option.field)
    values = {field: getattr(request, field) for field in deciding}
    return tuple(str(sorted(value.items()) if isinstance(value, dict) else value) for value in values.values())
