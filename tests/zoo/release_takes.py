"""What each release of a counter's package gives on the layers of the zoo's families, each in an environment of its own.

An environment is deleted after its use. What it gave is kept in the cache, so an interrupted run goes on.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from packaging.version import Version

from reconcile.core.atomic import write_file
from reconcile.core.errors import UsageError
from reconcile.core.protocol import TRACE, to_text
from reconcile.core.records import Trace, from_json
from reconcile.core.registry import known_counters
from reconcile.launch.environments.definitions import CURRENT, Environment
from reconcile.launch.environments.definitions import load as environments
from reconcile.launch.environments.provision import cache_root, folder_of
from reconcile.launch.environments.runs import make_interpreter
from reconcile.model_zoo.loading import pair_path
from reconcile.products.authors.conform import families
from reconcile.products.upgrade.run import sides
from tests.workers import request

ROOT = Path(__file__).resolve().parents[2]
OLD, NEW = "3.8", "3.13"
FRAMEWORKS = {
    "flop_counter": ("torch", (NEW, CURRENT), "torch=={0}"),
    "xla@lowered": ("jaxlib", (NEW, CURRENT), "jax=={0} jaxlib=={0}"),
    "tf.profiler@frozen": ("tensorflow-cpu", (OLD, NEW, CURRENT), "tensorflow-cpu=={0}"),
}
"""Counters that a framework brings: its package, the Pythons that its releases run on (of several the last one), and what to
install. Their releases have traces of their own, and the last of each minor release is looked at."""
LEGACY = ("gru_demo", "crnn", "mobilenet_v2")
"""Pairs that also run on Python 3.8, beside the families, which need 3.10."""
OLDER = "torch-1.10.1"
"""The environment, of Python 3.8, where a release is tried that asks the packages here for what they no longer have."""
LIMIT = 600.0
"""Seconds for the families of one release."""
Found = dict[str, Any]
"""By family, its record and what its pair says of itself, or an error; ``{"": {"error"}}`` if nothing ran at all."""


def on_index(package: str, python: str = CURRENT) -> list[str]:
    """The releases of a package that the index has for that Python, oldest first, without pre-releases."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "index", "versions", package]
    command += [] if python == CURRENT else ["--python-version", python]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    listed = said.partition("Available versions: ")[2].splitlines()[0].split(", ")
    return sorted((text for text in listed if text.replace(".", "").replace("post", "").isdigit()), key=age)


def age(release: str) -> tuple[str, Version]:
    """Sorts releases by the day in their post tag, if they have one (2206102148 and 20220610 are both 220610): thop 0.0.4 of 2021
    is younger than its 0.0.31 of 2020."""
    tag = str(Version(release).post or "")
    day = {6: tag, 8: tag[2:], 10: tag[:6]}.get(len(tag), "")
    return day, Version(release)


def chosen(found: Sequence[str]) -> list[str]:
    """The releases to look at: all; of more than fifty, the last of each minor release, or else one in every few."""
    if len(found) <= 50:
        return list(found)
    last = minors(found)
    return last if len(last) > 10 else list(found)[:: -(len(found) // 25)][::-1]


def minors(found: Sequence[str]) -> list[str]:
    """The last of each minor release."""
    return list({Version(text).release[:2]: text for text in found}.values())


def looked_at(counter: str) -> tuple[dict[str, str], int]:
    """The releases to look at, each with its Python, oldest first, and how many the index has."""
    if counter not in FRAMEWORKS:
        listed = on_index(known_counters()[counter].distribution)
        return dict.fromkeys(chosen(listed), CURRENT), len(listed)
    package, pythons, _pins = FRAMEWORKS[counter]
    by_python = {python: on_index(package, python) for python in pythons}
    newest = {release: python for python, found in by_python.items() for release in found}
    return {release: newest[release] for release in minors(sorted(newest, key=age))}, len(newest)


def package_of(counter: str) -> str:
    """The name of its package on the index."""
    return FRAMEWORKS[counter][0] if counter in FRAMEWORKS else known_counters()[counter].distribution


def of_release(counter: str, release: str, python: str) -> dict[str, Any]:
    """What one release gives: its ledgers ("families"), the traces of a framework's release ("traces"), and the environment."""
    kept = cache_root().parent / "releases" / counter / f"{release}.json"
    if kept.is_file():
        held: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
        return held
    whole = _of_framework(counter, release, python) if counter in FRAMEWORKS else _of_counter(counter, release)
    kept.parent.mkdir(parents=True, exist_ok=True)
    write_file(kept, json.dumps(whole))
    return whole


def _of_counter(counter: str, release: str) -> dict[str, Any]:
    """Over the packages that run here; what does not run there is tried on an older Python and PyTorch."""
    known = known_counters()[counter]
    pin, names = [f"{known.distribution}=={release}"], (*families(counter), *LEGACY)
    (found,) = _in(sides(pin, [], CURRENT, (counter,))[1], lambda python: [_layers(python, counter, names)])
    if not all("cannot import name" in one.get("error", "") for one in found.values()):
        return {"families": found, "where": CURRENT}
    (found,) = _in(environments()[OLDER].with_(pin), lambda python: [_layers(python, counter, LEGACY)])
    return {"families": found, "where": OLDER}


def _of_framework(counter: str, release: str, python: str) -> dict[str, Any]:
    env = sides(FRAMEWORKS[counter][2].format(release).split(), [], python, (counter,))[1]
    names = LEGACY if python == OLD else (*families(counter), *LEGACY)
    found = _in(env, lambda at: [_layers(at, counter, names), _layers(at, counter, names, TRACE)])
    where = CURRENT if python == CURRENT else f"Python {python}"
    return {"families": found[0], "traces": found[-1], "where": where}


def _in(env: Environment, take: Callable[[Path], list[Found]]) -> list[Found]:
    """What that gives in an environment, which is made for this and deleted after it."""
    try:
        return take(make_interpreter(env, lambda _step: None))
    except (UsageError, subprocess.TimeoutExpired) as error:
        return [{"": {"error": str(error)}}]
    finally:
        shutil.rmtree(folder_of(env), ignore_errors=True)


def _layers(python: Path, counter: str, names: Sequence[str], task: str = "") -> Found:
    """What release_layers.py prints there, of the counter or of that task. Raises UsageError if it prints nothing."""
    framework = known_counters()[counter].framework
    asked = request(framework, *([] if task else [counter]), tasks=(task or counter,))
    requests = {name: to_text(asked._replace(pair=str(pair_path(name)))) for name in names}
    done = subprocess.run(
        [str(python), "-W", "ignore", "-m", "tests.zoo.release_layers", framework],
        input=json.dumps(requests),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    line = next((line for line in done.stdout.splitlines() if line.startswith("FOUND ")), None)
    if line is None:
        raise UsageError((done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1][:300])
    found: Found = json.loads(line.removeprefix("FOUND "))
    return found


@cache
def _traces_here(framework: str) -> Found:
    """The traces of the families, on the framework that runs here."""
    first = next(name for name, c in known_counters().items() if c.framework == framework)
    return _layers(Path(sys.executable), first, (*families(), *LEGACY), TRACE)


def traces(counter: str, taken: Mapping[str, Any]) -> dict[str, tuple[Trace, dict[str, Any]]]:
    """The traces that a release is compared with, its own or those taken here, each with its pair's description."""
    found = taken["traces"] if "traces" in taken else _traces_here(known_counters()[counter].framework)
    return {name: (from_json(held["record"]), held["meta"]) for name, held in found.items() if "record" in held}
