"""The published numbers by name, from what is committed and from real runs; where the data comes from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconcile.core.causes import State
from reconcile.core.errors import UsageError
from reconcile.core.records import Ledger
from reconcile.core.registry import known_counters
from reconcile.drift import baselines
from reconcile.engine.reconcile import Missing
from reconcile.engine.settle import Collected
from reconcile.launch.request import RunRequest
from reconcile.products.decode.grammar import Source
from reconcile.products.decode.printed_figure import figure
from reconcile.products.decode.search import Decoded, find_release_bounds, search
from reconcile.products.decode.sources import gather
from tests.products.decode import data


def decoded(model: str, text: str, *more: Source) -> Decoded:
    return search(model, figure(text), [*data.saved(model), *more])


@pytest.mark.parametrize(
    ("model", "text", "what", "where"),
    [
        ("gru_demo", "25150826", "tf.profiler@session, as reported", "tf-1.12"),
        ("gru_demo", "22752165", "tf.profiler@session, as reported", "tf-2.3.1"),
        ("gru_demo", "22938560", "thop × 2 (it counts MACs)", "torch-1.10.1-thop-2001"),
        ("gru_demo", "250840448", "thop × 2 (it counts MACs)", "torch-1.10.1-thop-2005"),
        ("gru_demo", "250052032", "thop × 2 (it counts MACs)", "current"),
        ("gru_demo", "249809920", "flop_counter, as reported", "current"),
        ("resnet50", "51112224", "tf.profiler@batch_none, as reported", "tf-2.3.1"),
    ],
)
def test_published(model: str, text: str, what: str, where: str) -> None:
    best = decoded(model, text).matches[0]
    assert (best.what, best.where[0].partition(" (")[0]) == (what, where)


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        # thop counts no GRU before May 2020, and one product of a Linear twice; from September 2022 on a GRU without its gates
        ("22938560", ("thop", "", "0.0.31.post2005241907")),
        ("250840448", ("thop", "0.0.31.post2001170342", "0.1.1.post2209072238")),
        ("250052032", ("thop", "0.0.31.post2005241907", "")),
        ("249809920", ("", "", "")),  # flop_counter, of which one release was looked at
    ],
)
def test_which_releases_it_can_come_from(text: str, limits: tuple[str, str, str]) -> None:
    assert find_release_bounds(decoded("gru_demo", text).matches[0], data.saved("gru_demo")) == limits


def test_a_release_between_that_gives_another_number_is_no_bound() -> None:
    """Taken in environments of the same counter: the first and the last alike, the one between otherwise."""
    sources = data.saved("gru_demo")
    old, mid, new = (
        next(s for s in sources if s.name == name)
        for name in ("torch-1.10.1-thop-2001", "torch-1.10.1-thop-2005", "torch-1.10.1")
    )
    (versions,) = [x.versions for x in new.collected.ledgers if isinstance(x, Ledger) and x.counter == "thop"]
    ledgers = [x for x in old.collected.ledgers if isinstance(x, Ledger) and x.counter == "thop"]
    same = [ledger._replace(versions=versions) for ledger in ledgers]
    again = replace(old, name="newest", collected=replace(old.collected, ledgers=tuple(same)))
    best = decoded("gru_demo", "22938560").matches[0]
    assert find_release_bounds(best, [old, mid, again]) == ("", "", "")


def test_s4_has_nothing_of_the_network_and_is_the_model_twice() -> None:
    once = decoded("resnet50", "51112224").matches[0]
    assert once.how.startswith(
        "106,346 of ops that no output depends on (Sub 53,226, Mul 53,120) + 51,005,878 of initialisers"
    )
    assert once.note == "Nothing of the 54 layers that convolve or multiply matrices is in it."
    twice = next(c for c in decoded("resnet50", "102224449").matches if "second time" in c.what)
    assert twice.how == "2 × 51,112,224 + 1 = 102,224,449"
    backward = next(c for c in decoded("resnet50", "51112225").matches if "backward" in c.what)
    assert backward.value == 51_112_225


@pytest.mark.frameworks
@pytest.mark.slow
def test_matmul_init_from_a_run(tmp_path: Path) -> None:
    wanted = figure("8288")
    sources, notes = gather(
        data.request("matmul_init"),
        (tmp_path,),
        thorough=True,
        close=lambda sources: search("matmul_init", wanted, sources).close,
    )
    assert not notes
    found = search("matmul_init", wanted, sources, notes=notes)
    assert found.matches[0].what == "tf.profiler@session, as reported"
    assert found.matches[0].how.startswith("7,200 of the model (MatMul) + 1,088 of initialisers and random input")
    assert search("matmul_init", figure("7200"), sources).matches


GRU = data.request()
RECIPES = tuple(
    name for name, counter in known_counters().items() if counter.recipe and counter.family == "tf.profiler"
)


class Stub:
    """In place of the runner: remembers what it was asked. ``recipes`` is what those of a recipe give."""

    def __init__(self, usual: Collected, recipes: Collected | None = None) -> None:
        self.usual, self.recipes = usual, recipes or usual
        self.asked, self.traced = list[RunRequest](), list[RunRequest]()

    def __call__(self, request: RunRequest, progress: object) -> Collected:
        self.asked.append(request)
        return self.recipes if set(request.counters) & set(RECIPES) else self.usual

    def at(self, request: RunRequest, points: object, progress: object, counting: bool) -> list[Collected]:
        """The traces alone, as the runner's collect_at gives them."""
        assert not counting
        self.traced.append(request)
        return [replace(self.usual, ledgers=())]


def fresh() -> Collected:
    return data.load(data.SAVED / "gru_demo/current.json").collected


@pytest.fixture
def stub() -> Stub:
    return Stub(fresh())


def far(sources: object) -> bool:
    """A figure that no data comes close to."""
    return False


def gathered(stub: Stub, *folders: Path, request: RunRequest = GRU, **more: Any) -> tuple[Any, Any]:
    """What is gathered of a model with this stub, for a figure that nothing comes close to unless told otherwise."""
    return gather(request, folders, **{"close": far, "take": stub, "take_at": stub.at, **more})


def own(*names: str) -> set[str]:
    """The counters that run here, of these frameworks, when nothing comes close."""
    return {
        n
        for n, c in known_counters().items()
        if c.framework in names and not (c.recipe or c.requirements or c.quoted or "witness" in c.leads)
    }


def test_a_run_and_everything_saved(stub: Stub) -> None:
    sources, _ = gathered(stub, data.SAVED)
    # The saved baseline of this very run is not looked at twice.
    assert [s.name for s in sources].count("current") == 1
    assert {"tf-1.12", "tf-2.3.1", "torch-1.10.1-thop-2001"} <= {s.name for s in sources}
    assert len(stub.asked) == 1


def test_nothing_runs_where_saved_data_comes_close(stub: Stub, tmp_path: Path) -> None:
    gathered(stub, data.SAVED, close=bool)
    assert (stub.traced, stub.asked) == ([], [])
    gather(data.request(units="128"), (data.SAVED,), take=stub, take_at=stub.at)  # saved with other parameters
    assert (len(stub.traced), stub.asked) == (1, [])


def test_no_counter_runs_where_the_traces_come_close(stub: Stub, tmp_path: Path) -> None:
    (source,), notes = gathered(stub, tmp_path, close=bool)
    assert ([r.device for r in stub.traced], stub.asked, notes) == (["meta"], [], ())
    assert (len(source.collected.traces), source.collected.ledgers) == (2, ())


def test_every_counter_that_runs_here_is_read(stub: Stub, tmp_path: Path) -> None:
    """Those that run unasked, and every other one, on the device that was asked for: a counter may count meta otherwise."""
    (source,), notes = gathered(stub, tmp_path)
    (asked,) = stub.asked
    assert (asked.device, asked.trace) == (RunRequest().device, False)
    assert set(asked.counters) == own("tf", "torch")
    assert {"torchinfo", "ptflops@pytorch", "thop", "tf.profiler@runmeta"} <= set(asked.counters)
    assert source.collected.ledgers == fresh().ledgers
    assert [name for name in RECIPES if name not in notes[0]] == []


def test_a_model_of_ones_own_is_read_back_frozen(tmp_path: Path) -> None:
    only = replace(fresh(), meta={**fresh().meta, "frameworks": ["tf"]})
    stub = Stub(only)
    gather(RunRequest(factories={"tf": "net:make"}), (tmp_path,), close=far, take=stub, take_at=stub.at)
    assert set(stub.asked[0].counters) == {*own("tf"), "tf.profiler@frozen_pb"}


def test_the_counters_of_a_large_model_run_on_request(
    stub: Stub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("reconcile.products.decode.runs.LITTLE", 124_904_959)  # gru_demo multiplies one more
    _, notes = gathered(stub, tmp_path)
    assert stub.asked == []
    assert [name for name in own("tf", "torch") if name not in notes[0]] == []
    gathered(stub, tmp_path, thorough=True)
    assert set(stub.asked[0].counters) == own("tf", "torch")


def test_a_model_that_meta_refuses_runs_as_it_is_asked_to(stub: Stub, tmp_path: Path) -> None:
    def refusing(request: RunRequest, points: object, progress: object, counting: bool) -> list[Collected]:
        raise UsageError("no values on meta.")

    (source,), _ = gather(data.request(), (tmp_path,), take=stub, take_at=refusing)
    assert [(r.device, r.trace, r.counters) for r in stub.asked] == [(RunRequest().device, True, ())]
    assert source.collected == fresh()


def test_every_recipe_is_read_on_request(stub: Stub, tmp_path: Path) -> None:
    gathered(stub, tmp_path, thorough=True)
    assert sorted(name for r in stub.asked[1:] for name in r.counters) == sorted(RECIPES)
    assert RECIPES


def test_recipes_end_where_one_comes_close(stub: Stub, tmp_path: Path) -> None:
    close = lambda sources: len(sources) == 3  # noqa: E731
    gathered(stub, tmp_path, thorough=True, close=close)
    assert [r.counters for r in stub.asked[1:]] == [(name,) for name in RECIPES[:2]]


def test_a_recipe_that_does_not_run_is_told(tmp_path: Path) -> None:
    lost = Missing(RECIPES[0], "tf", State.FAILED, "AttributeError: no")
    stub = Stub(fresh(), replace(fresh(), traces=(), ledgers=(lost,)))
    sources, notes = gathered(stub, tmp_path, thorough=True)
    assert len(sources) == 1
    names = ", ".join([RECIPES[0]] * len(RECIPES))  # the stub's answer to each
    assert notes == (f"current: {names} (tf): AttributeError: no.",)


def test_a_recipe_that_is_refused_is_told(stub: Stub, tmp_path: Path) -> None:
    def refusing(request: RunRequest, progress: object) -> Collected:
        if set(request.counters) & set(RECIPES):
            raise UsageError("the pair has no way to build it.")
        return stub(request, progress)

    _, notes = gather(data.request(), (tmp_path,), thorough=True, close=far, take=refusing, take_at=stub.at)
    assert notes == (f"current: {', '.join(RECIPES)} (tf): the pair has no way to build it.",)


def test_recipes_of_a_framework_that_is_not_there_are_not_run(tmp_path: Path) -> None:
    lost = tuple(Missing(x.counter, "tf", State.SKIPPED, "absent") for x in fresh().ledgers if x.framework == "tf")
    kept = tuple(x for x in fresh().ledgers if x.framework == "torch")
    stub = Stub(replace(fresh(), ledgers=(*lost, *kept)))
    gathered(stub, tmp_path, thorough=True)
    assert len(stub.asked) == 1


def test_a_recipe_needs_a_pair(stub: Stub) -> None:
    mine = RunRequest(factories={"tf": "net:make"})
    _, (note,) = gathered(stub, data.SAVED, request=mine, thorough=True)
    assert len(stub.asked) == 1
    assert [name for name in RECIPES if name not in note] == ["tf.profiler@frozen_pb"]  # which any model has
    assert "which needs a pair: see `reconcile zoo new`" in note
    for request, close in ((mine, bool), (RunRequest(factories={"torch": "net:make"}), far)):
        assert gather(request, (data.SAVED,), close=close, take=stub, take_at=stub.at)[1] == ()


def test_named_environments_only(stub: Stub) -> None:
    sources, _ = gather(data.request(), (data.SAVED,), ["tf-1.12"], take=stub)
    assert [s.name for s in sources] == ["tf-1.12"]
    assert not stub.asked
    with pytest.raises(UsageError, match="unknown environment"):
        gather(data.request(), (data.SAVED,), ["tf-1.1"], take=stub)


def test_named_counters_only(stub: Stub) -> None:
    sources, _ = gathered(stub, data.SAVED, request=replace(GRU, counters=("thop",)), thorough=True)
    assert [request.counters for request in stub.asked] == [("thop",)]  # neither a recipe nor another counter
    saved_counters = {ledger.counter for s in sources if s.remark for ledger in s.collected.ledgers}  # type: ignore[union-attr]
    assert saved_counters == {"thop"}
    assert {"tf", "torch"} <= {trace.framework for s in sources if s.remark for trace in s.collected.traces}


def test_a_named_counter_runs_where_saved_data_lacks_it(
    stub: Stub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("reconcile.products.decode.runs.ensure", lambda *_: tmp_path / "python")
    for counter, runs in (("thop", 0), ("torchinfo", 1)):
        asked = replace(data.request(), counters=(counter,))
        gathered(stub, data.SAVED, request=asked, names=["torch-1.10.1-thop-2001"], thorough=True)
        assert [request.counters for request in stub.asked] == [(counter,)] * runs


def test_an_unknown_counter_is_refused_before_anything_runs(stub: Stub) -> None:
    for is_fresh in (True, False):
        with pytest.raises(UsageError, match=r"unknown counter 'ptflop@aten'\. Did you mean ptflops@aten"):
            gather(replace(data.request(), counters=("ptflop@aten",)), (data.SAVED,), fresh=is_fresh, take=stub)
    assert not stub.asked


def test_saved_data_alone(stub: Stub, tmp_path: Path) -> None:
    sources, _ = gather(data.request(units="128"), (data.SAVED,), fresh=False, take=stub)
    assert not stub.asked
    assert {s.remark for s in sources} == {"saved with units=96"}
    with pytest.raises(UsageError, match="there is no data on gru_demo"):
        gather(data.request(), (tmp_path,), fresh=False, take=stub)
    with pytest.raises(UsageError, match=r"unknown parameter 'unitz'\. Did you mean units\?"):
        gather(data.request(unitz="128"), (data.SAVED,), fresh=False, take=stub)
    with pytest.raises(UsageError, match="unknown model"):
        gather(data.request("gru_dem"), (tmp_path,), fresh=False, take=stub)


def test_what_failed_is_told_and_the_saved_data_stands() -> None:
    lost = tuple(Missing(x.counter, x.framework, State.SKIPPED, "not installed") for x in fresh().ledgers)
    stub = Stub(replace(fresh(), traces=(), ledgers=lost))
    sources, notes = gathered(stub, data.SAVED)
    notes = tuple(note for note in notes if "not installed" in note)
    by_framework = {f: [x.counter for x in fresh().ledgers if x.framework == f] for f in ("tf", "torch")}
    assert notes == tuple(f"current: {', '.join(names)} ({f}): not installed." for f, names in by_framework.items())
    assert [s.remark for s in sources if s.name == "current"] == ["", "saved"]


def test_any_file_is_picked_up(tmp_path: Path) -> None:
    path = baselines.baseline_path(tmp_path, "gru_demo", "anything")
    baselines.save(path, fresh(), "anything")
    (only,), _ = gather(data.request(), (tmp_path,), fresh=False)
    assert only.name == "anything"
    path.write_text("{")
    with pytest.raises(UsageError, match="damaged"):
        gather(data.request(), (tmp_path,), fresh=False)
