"""The named environments, really made: what each is pinned to imports, and the files that travel load there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reconcile.launch.environments.definitions import Environment, load
from reconcile.launch.environments.interpreters import EnvironmentError_
from reconcile.launch.environments.provision import ensure
from tests.home.legacy import RUFF, legacy_files
from tests.matrix.reports import answer_of

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(1800)]

ROOT = Path(__file__).resolve().parents[2]
NAMED = {name: env for name, env in load().items() if env.unasked and name != "current"}
MODULES = {"tf": ("tensorflow",), "torch": ("torch", "thop", "fvcore.nn")}
IMPORT = """
import importlib, json, sys
sys.path[:] = [p for p in sys.path if p] + sys.argv[1:2]
for name in sys.argv[2:]:
    importlib.import_module(name)
print(json.dumps("%d.%d" % sys.version_info[:2]))
"""
VERSIONS = """
import json, sys
try:
    from importlib.metadata import version
except ImportError:
    from importlib_metadata import version
print(json.dumps({name: version(name) for name in sys.argv[1:]}))
"""


@pytest.mark.parametrize("name", NAMED)
def test_it_imports_what_it_is_pinned_to(name: str) -> None:
    env = NAMED[name]
    assert answer_of(ensure(env), IMPORT, "", *(m for f in env.frameworks for m in MODULES[f])) == env.python
    pins = dict(r.split("==") for r in env.requirements if "==" in r)
    found = answer_of(ensure(env), VERSIONS, *pins)
    # thop's metadata has the old spelling 0.0.31-2001170342, torch's a local part.
    assert {k: re.sub(r"-(?=\d)", ".post", v).partition("+")[0] for k, v in found.items()} == pins


def needs_torch(module: str) -> bool:
    """Whether a file imports PyTorch, by itself or through one of ours that does."""
    if re.search(r"torch|\.thop|\.fvcore", module):
        return True
    source = (ROOT / (module.replace(".", "/") + ".py")).read_text()
    return bool(re.search(r"^(?:import torch|from \S*torch)", source, re.MULTILINE))


@pytest.mark.parametrize("name", NAMED)
def test_the_files_that_travel_load_there(name: str, tmp_path: Path) -> None:
    """Each file for this Python by itself, without the captures of the other framework."""
    env = NAMED[name]
    files = [file for python in RUFF if python <= env.python for file in legacy_files(python)]
    names = [file.removesuffix(".py").replace("/", ".") for file in files]
    if "torch" not in env.frameworks:
        names = [n for n in names if not needs_torch(n)]
    modules = [
        n if n.startswith("reconcile") else f"reconcile.{n}" for n in (n.removesuffix(".__init__") for n in names)
    ]
    (tmp_path / "reconcile").symlink_to(ROOT / "reconcile", target_is_directory=True)
    assert len(modules) > 8
    assert answer_of(ensure(env), IMPORT, str(tmp_path), *modules) == env.python


def test_what_cannot_be_installed_gives_uvs_reason() -> None:
    env = Environment("wrong", "TensorFlow 1.12 has no wheel for 3.8", "3.8", ("tf",), ("tensorflow==1.12.0",))
    with pytest.raises(EnvironmentError_, match=r"^uv: .*tensorflow==1\.12\.0"):
        ensure(env)
