"""The files of the package are read once, also where pytest runs in several processes."""

from __future__ import annotations

import pickle

import pytest

from tests.conftest import _locked
from tests.home import modules


@pytest.fixture(scope="session")
def facts(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> None:
    """What every module says is known: read here, or by another process of this session."""
    base = tmp_path_factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent
    with _locked(shared / "facts.lock"):
        path = shared / "facts.pickle"
        if path.exists():
            modules.FACTS.update(pickle.loads(path.read_bytes()))
        else:
            path.write_bytes(pickle.dumps({module: modules.facts(module) for module in modules.MODULES}))
