"""``reconcile upgrade``: what it runs where, what it prints, and how it ends."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from reconcile.cli import cli
from reconcile.core.causes import State
from reconcile.core.errors import UsageError
from reconcile.core.registry import list_default_counters
from reconcile.engine.reconcile import Missing
from reconcile.engine.settle import Collected
from reconcile.launch.environments import runs
from reconcile.launch.environments.definitions import CURRENT, Environment
from reconcile.launch.request import RunRequest
from reconcile.products.authors import draft_rules
from reconcile.products.upgrade import run as upgrade
from tests.drift.takes import GRU, NEW, OLD, take


def test_the_package_of_a_counter_goes_over_what_is_here() -> None:
    """No framework is fetched, and nothing else differs."""
    before, after, counters = upgrade.sides(["thop==0.1.0"], [], CURRENT, ())
    assert (before.name, before.requirements) == (CURRENT, ())
    assert (after.over, after.requirements, counters) == (CURRENT, ("thop==0.1.0",), ("thop",))
    older, _, counters = upgrade.sides(["ptflops==0.7.5"], ["ptflops==0.7.3"], CURRENT, ())
    assert (older.over, older.requirements) == (CURRENT, ("ptflops==0.7.3",))
    assert counters == ("ptflops@pytorch", "ptflops@aten")


def test_a_framework_moves_the_counters_that_run_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrade, "installed_version", lambda names: "" if names[0] in ("", "fvcore") else "1.2")
    _, after, counters = upgrade.sides(["torch==2.15.0"], [], CURRENT, ())
    assert (after.over, after.frameworks) == ("", ("torch",))
    assert counters == list_default_counters("torch")
    assert "thop==1.2" in after.requirements  # or nothing but the release itself would be compared
    assert "fvcore" not in " ".join(after.requirements)  # it is not here either
    _, after, _ = upgrade.sides(["torch==2.15.0", "thop==0.1.0"], [], CURRENT, ())
    assert [text for text in after.requirements if text.startswith("thop")] == ["thop==0.1.0"]
    _, _, counters = upgrade.sides(["tensorflow==2.20.0"], [], CURRENT, ())
    assert counters == list_default_counters("tf")


@pytest.mark.parametrize(
    ("asked", "models", "moved"),
    [
        ("keras==3.12.0", (), "tf"),
        ("keras==3.12.0", ("torch",), "torch"),  # Keras runs on each of them
        ("numpy==2.3.0", ("tf",), "tf"),
        ("torchvision==0.27.0", (), "torch"),
        ("transformers==5.0.0", ("torch",), "torch"),
    ],
)
def test_a_package_beside_a_framework_goes_over_what_is_here(asked: str, models: tuple[str, ...], moved: str) -> None:
    """Nothing of it brings the framework, and another release of that would move counts as well."""
    before, after, counters = upgrade.sides([asked], [], CURRENT, (), models)
    assert (before.name, after.over, after.requirements) == (CURRENT, CURRENT, (asked,))
    assert (after.frameworks, counters) == ((moved,), list_default_counters(moved))
    older, _, _ = upgrade.sides([asked], [asked], CURRENT, (), models)
    assert (older.over, older.requirements) == (CURRENT, (asked,))


@pytest.mark.parametrize("asked", ["equinox==0.13.0", "optax==0.2.7", "keras==3.12.0", "numpy==2.3.0"])
def test_what_jax_models_use_goes_into_the_environment_of_its_counter(asked: str) -> None:
    before, after, counters = upgrade.sides([asked], [], CURRENT, (), ("jax",))
    assert (before.name, counters, after.over) == ("xla", list_default_counters("jax"), CURRENT)
    assert asked in after.requirements


@pytest.mark.parametrize(("asked", "kept"), [("calflops==0.3.1", "calflops"), ("wandb==0.31.0", "wandb")])
def test_in_its_own_environment_it_takes_the_place_of_the_pin(asked: str, kept: str) -> None:
    before, after, counters = upgrade.sides([asked], [], CURRENT, ())
    assert (before.name, before.title.partition("==")[0]) == (kept, kept)
    assert {name.partition("@")[0] for name in counters} == {kept}
    package = asked.partition("=")[0]
    assert [text for text in after.requirements if text.startswith(f"{package}==")] == [asked]
    assert set(before.requirements) - set(after.requirements) <= {
        text for text in before.requirements if text.startswith(f"{package}==")
    }
    assert after.name != before.name


def test_counters_of_two_environments_are_refused() -> None:
    with pytest.raises(UsageError, match=r"^calflops, thop run in environments of their own"):
        upgrade.sides(["torch==2.15.0"], [], CURRENT, ("calflops", "thop"))


@pytest.mark.parametrize(
    ("asked", "python", "framework"),
    [("calflops==0.3.1", "3.12", "torch"), ("jax==0.12.0", CURRENT, "jax"), ("jax<1", "3.12", "jax")],
)
def test_another_python_or_framework_needs_other_packages(asked: str, python: str, framework: str) -> None:
    """JAX runs with a jaxlib of its own release alone, and wheels are for one Python."""
    before, after, _ = upgrade.sides([asked], [], python, ())
    assert (before.python, after.python, after.over, after.frameworks) == (CURRENT, python, "", (framework,))
    assert [text for text in after.requirements if "=" in text or "<" in text] == [asked]
    assert set(map(packages_of_one, before.requirements)) <= set(map(packages_of_one, after.requirements))


def packages_of_one(requirement: str) -> str:
    return canonicalize_name(Requirement(requirement).name)


@pytest.mark.parametrize("asked", ["calflops==0.3.1", "thop==0.1.0"])
def test_what_is_no_requirement_is_said(asked: str) -> None:
    with pytest.raises(UsageError, match="is not a requirement such as"):
        upgrade.sides([asked], ["a b"], CURRENT, ())


class Releases:
    """What each of the two environments hands out."""

    def __init__(self) -> None:
        self.before, self.after = take(OLD), take(NEW)
        self.requests: list[RunRequest] = []

    def collect_in(self, env: Environment, _say: object) -> Callable[..., Collected]:
        def collect(request: RunRequest, _progress: object) -> Collected:
            self.requests.append(request)
            return self.before if env.name == CURRENT else self.after

        return collect

    def call(self, *args: str, asked: str = f"thop=={NEW}") -> Result:
        return CliRunner().invoke(cli, ["upgrade", asked, *args], prog_name="reconcile")


@pytest.fixture
def releases(monkeypatch: pytest.MonkeyPatch) -> Releases:
    made = Releases()
    monkeypatch.setattr(runs, "collect_in", made.collect_in)
    monkeypatch.setattr(runs, "make_interpreter", lambda env, say: Path("python"))
    return made


def test_what_moved_is_said_layer_by_layer(releases: Releases) -> None:
    result = releases.call("--case", "family_dense", "--pass", "forward")
    assert result.exit_code == 1, result.output
    assert f"thop {OLD} -> {NEW}" in result.stdout
    assert f"gru  torch.nn.modules.rnn.GRU: no entry -> {GRU:,}" in result.stdout
    assert result.stdout.strip().endswith(f"to thop=={NEW} on the running Python")
    assert "draft" not in result.stdout
    assert {request.counters for request in releases.requests} == {("thop",)}


def test_pre_asks_the_index_for_the_newest(releases: Releases, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """uv is given a folder of wheels for an index, in which the release candidate is the newest."""
    for version in ("0.2.0", "0.3.0rc1", "0.3.0.dev2"):
        with zipfile.ZipFile(tmp_path / f"thop-{version}-py3-none-any.whl", "w") as wheel:
            wheel.writestr(
                f"thop-{version}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: thop\nVersion: {version}\n"
            )
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path))
    result = releases.call("--pre", "--case", "family_dense", "--pass", "forward", asked="thop")
    assert result.stdout.strip().endswith("to thop==0.3.0rc1 on the running Python")
    monkeypatch.setattr(upgrade, "installed_version", lambda names: "0.3.0rc1" if names[0] else "")
    same, ran = releases.call("--pre", asked="thop"), len(releases.requests)
    assert (same.exit_code, same.stdout.count("\n"), len(releases.requests)) == (0, 1, ran), same.output
    gone = releases.call("--pre", asked="thop>1")
    assert (gone.exit_code, gone.stderr.startswith("Error: the index has no release of thop>1")) == (2, True)
    monkeypatch.delenv("UV_OFFLINE")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")  # nobody listens there
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    away = releases.call("--pre", asked="thop>1")
    assert (away.exit_code, "cannot be looked up: uv: " in away.stderr) == (2, True), away.stderr


@pytest.mark.parametrize(
    ("why", "hint"), [("Python (3.11.7) does not satisfy Python>=3.12", True), ("no space left", False)]
)
def test_a_release_for_another_python_says_the_option(
    releases: Releases, monkeypatch: pytest.MonkeyPatch, why: str, hint: bool
) -> None:
    def refuse(_env: Environment, _say: object) -> Path:
        raise UsageError(why)

    monkeypatch.setattr(runs, "make_interpreter", refuse)
    result = releases.call()
    assert (result.exit_code, "--python" in result.stderr) == (2, hint), result.output


def test_an_own_model_takes_the_place_of_the_families(releases: Releases) -> None:
    result = releases.call("--torch", "net:Net", "--input", "1,3,8,8")
    assert result.exit_code == 1, result.output
    assert [dict(request.factories) for request in releases.requests] == [{"torch": "net:Net"}] * 2  # before and after
    assert {(request.training, request.counters) for request in releases.requests} == {("", ("thop",))}
    assert "\n1 of 1 moved from" in result.stdout
    for wrong, said in (
        (("--torch", "net:Net", "--case", "family_dense"), "--case names layers of the zoo"),
        (("--tf", "net:make"), f"thop=={NEW} moves no counter of this model"),
        (("--input", "1,3"), "name a model"),
    ):
        refused = releases.call(*wrong)
        assert (refused.exit_code, said in refused.stderr) == (2, True), refused.stderr


def test_nothing_moved_is_a_line_a_family(releases: Releases) -> None:
    releases.after = releases.before
    result = releases.call("--case", "family_dense", "--case", "family_norm")
    assert result.exit_code == 0, result.output
    assert result.stdout.count("unchanged") == 4
    assert "\n0 of 4 moved from" in result.stdout
    assert [(r.model, r.training, r.device) for r in releases.requests[-2:]] == [("family_norm", "sgd", "meta")] * 2


def test_rules_that_do_not_hold_any_more_are_drafted(releases: Releases, monkeypatch: pytest.MonkeyPatch) -> None:
    (ledger,) = releases.before.ledgers
    assert not isinstance(ledger, Missing)
    first = ledger.entries[0]
    changed = (first._replace(value=first.value + 7), *ledger.entries[1:])
    doubled = ledger._replace(entries=changed, total=ledger.total + 7)
    releases.after = replace(releases.before, ledgers=(doubled,))
    asked: list[str] = []
    monkeypatch.setattr(draft_rules, "draft_of", lambda name, families, take: asked.append(name) or "the draft\n")
    result = releases.call("--case", "family_dense", "--pass", "forward")
    assert result.exit_code == 1, result.output
    assert asked == ["thop"]
    assert f"The rules of thop do not hold at thop=={NEW} on the running Python. A draft" in result.stdout
    assert "the draft\n" in result.stdout


def test_a_counter_that_fails_is_3_and_one_that_stops_has_moved(releases: Releases) -> None:
    for state, code in ((State.FAILED, 3), (State.NOT_COMPARABLE, 1)):
        releases.after = replace(releases.before, ledgers=(Missing("thop", "torch", state, "it is new"),))
        result = releases.call("--case", "family_dense", "--pass", "forward")
        assert result.exit_code == code, result.output
        assert "it is new" in result.stdout


def test_what_was_not_counted_before_is_not_called_unchanged(releases: Releases) -> None:
    absent = (Missing("thop", "torch", State.SKIPPED, "thop is not installed"),)
    releases.before = replace(releases.before, ledgers=absent)
    releases.after = replace(releases.after, traces=releases.before.traces, ledgers=absent)
    result = releases.call("--case", "family_dense", "--pass", "forward")
    assert result.exit_code == 3, result.output
    said = "family_dense, forward: thop has nothing to compare with: thop is not installed\n"
    assert said in result.stdout
    for args, code in (((), 0), (("--counter", "thop"), 3)):  # torch does not ask for thop
        result = releases.call("--case", "family_dense", "--pass", "forward", *args, asked="torch==2.15.0")
        assert (result.exit_code, said in result.stdout) == (code, True), result.output
    releases.before, releases.after = (replace(take, traces=()) for take in (releases.before, releases.after))
    assert "unchanged" not in releases.call("--case", "family_dense", "--pass", "forward").stdout


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("--case", "family_dens"), "Did you mean family_dense"),
        (("--counter", "thip"), "unknown counter 'thip'"),
    ],
)
def test_a_wrong_name_is_said_before_anything_runs(releases: Releases, args: tuple[str, ...], sentence: str) -> None:
    result = releases.call(*args)
    assert (result.exit_code, sentence in result.stderr) == (2, True), result.stderr
    assert releases.requests == []
