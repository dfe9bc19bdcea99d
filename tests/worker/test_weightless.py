"""An installed package's factory is told to load no weights; one of the user's own is called as it is."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from reconcile.worker.introspect import weightless

MODULE = """
import enum
import functools

class Weights(enum.Enum):
    V1 = "url"

def net(weights="imagenet", *, weights_backbone=Weights.V1, include_top=True, name="net", plain_weights=None):
    return weights, weights_backbone

@functools.wraps(net)
def wrapped(*args, **kwargs):
    return net(*args, **kwargs)

"""


def module_in(folder: Path) -> Any:
    folder.mkdir(parents=True)
    (folder / "package.py").write_text(MODULE)
    spec = importlib.util.spec_from_file_location("package", folder / "package.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["net", "wrapped"])
def test_parameters_that_name_weights_are_found(tmp_path: Path, name: str) -> None:
    package = module_in(tmp_path / "site-packages")
    factory = getattr(package, name)
    found = weightless(factory)
    assert found == {"weights": "imagenet", "weights_backbone": package.Weights.V1}
    assert factory(**dict.fromkeys(found)) == (None, None)


def test_only_of_an_installed_package(tmp_path: Path) -> None:
    assert weightless(module_in(tmp_path / "mine").net) == {}


def test_what_has_no_signature_is_called_as_it_is() -> None:
    assert weightless(dict) == {}
