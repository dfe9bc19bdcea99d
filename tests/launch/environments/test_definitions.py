"""Environments as data: those that ship, a user's file, and those named on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconcile.core.errors import UsageError
from reconcile.launch.environments import definitions
from reconcile.launch.environments.definitions import CURRENT, Environment, adhoc, load
from reconcile.launch.environments.provision import folder_of

GOOD = """
["tf-2.15.1"]
title = "TensorFlow 2.15.1"
python = "3.11"
frameworks = ["tf"]
requirements = ["tensorflow==2.15.1"]
"""


def test_a_users_file_comes_behind_those(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(GOOD)
    found = load(file)
    assert list(found)[-1] == "tf-2.15.1"
    assert found["tf-2.15.1"] == Environment("tf-2.15.1", "TensorFlow 2.15.1", "3.11", ("tf",), ("tensorflow==2.15.1",))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[x", "is not valid TOML"),
        ("x = 1", r"table \[x\]: expected a table"),
        (GOOD.replace('"tf-2.15.1"', "tf-2.15.1", 1), r"table \[tf-2\]: unknown key '15'.*Quote a name with dots"),
        (GOOD + "pyton = 1", "unknown key 'pyton'; the keys are title, python, frameworks, requirements"),
        (GOOD.replace('title = "TensorFlow 2.15.1"', ""), "the key title is missing"),
        (GOOD.replace('python = "3.11"', "python = 3.11"), "python must be text, not 3.11"),
        (GOOD.replace('python = "3.11"', 'python = "3.11.7"'), "python must be a version such as 3.11 or the word current"),
        (GOOD.replace('["tf"]', '"tf"'), "frameworks must be a list of texts"),
        (GOOD.replace('["tf"]', '["mxnet"]'), "frameworks must be some of tf, torch, jax"),
        (GOOD.replace('["tf"]', "[]"), "frameworks must be some of tf, torch"),
        (GOOD.replace("==2.15.1", "=2.15.1"), "requirements: 'tensorflow=2.15.1' is not a requirement"),
        (GOOD + 'over = "current"', 'over must be "current" or left out, and python must be "current" if you give over'),
        (GOOD.replace('"3.11"', '"current"') + 'over = "3.11"', 'over must be "current" or left out'),
        (GOOD + 'unasked = "no"', "unasked must be true or false, not 'no'"),
        (GOOD.replace('["tf-2.15.1"]', '["a/b"]'), r"table \[a/b\]: a name has only letters"),
        (GOOD.replace('["tf-2.15.1"]', "[current]"), r"table \[current\]: this name is built in"),
    ],
)  # fmt: skip
def test_a_file_that_is_wrong_is_named_with_table_and_key(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=says) as caught:
        load(file)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value).strip()


def test_an_environment_that_runs_only_where_it_is_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    for text, unasked in ((GOOD, True), (GOOD + "unasked = false", False)):
        file.write_text(text)
        assert load(file)["tf-2.15.1"].unasked is unasked
    assert load()["timm"].unasked is False


OF_OLD_TENSORFLOW = ("protobuf<3.20", "numpy<2")
"""TensorFlow 2.4.4 asks for protobuf>=3.9.2 and 2.8.4 for numpy>=1.20: neither runs on the newest. From 2.12 on, it says so."""

BESIDE_TORCH = ("numpy", "setuptools")
"""What thop imports and does not name. PyTorch 2.14 asks for setuptools>=77, so that only PyTorch 1 may have its own bound."""


@pytest.mark.parametrize(
    ("with_", "python", "name", "frameworks", "added"),
    [
        (("tensorflow==2.15.1",), "3.11", "tensorflow-2.15.1-py3.11", ("tf",), ()),
        (("tensorflow==1.13.2", "protobuf<3.20"), "3.6", "tensorflow-1.13.2+protobuf-lt3.20-py3.6", ("tf",), ("numpy<2",)),
        (("tensorflow-cpu==2.4.4",), "3.8", "tensorflow-cpu-2.4.4-py3.8", ("tf",), OF_OLD_TENSORFLOW),
        (("tensorflow~=2.11.0",), "3.9", "tensorflow-like2.11.0-py3.9", ("tf",), OF_OLD_TENSORFLOW),
        (("tensorflow==2.8.*",), "3.9", "tensorflow-2.8.--py3.9", ("tf",), OF_OLD_TENSORFLOW),
        (("tensorflow==2.12.0",), "3.9", "tensorflow-2.12.0-py3.9", ("tf",), ()),
        (("tensorflow>=2.4",), "3.11", "tensorflow-ge2.4-py3.11", ("tf",), ()),
        (("torch==1.13.1", "thop"), "3.10", "torch-1.13.1+thop-py3.10", ("torch",), ("setuptools<70", "numpy<2")),
        (("torch==2.5", "setuptools"), "3.12", "torch-2.5+setuptools-py3.12", ("torch",), ("numpy",)),
        (("torch==2.5",), "3.12", "torch-2.5-py3.12", ("torch",), BESIDE_TORCH),
        (("torch==2.14.1",), "3.11", "torch-2.14.1-py3.11", ("torch",), BESIDE_TORCH),
        (("thop==0.1.0.post2207010342",), "3.11", "thop-0.1.0.post2207010342-py3.11", ("torch",), ("torch", *BESIDE_TORCH)),
        (("TensorFlow_CPU==2.16", "torch"), "3.11", "TensorFlow_CPU-2.16+torch-py3.11", ("tf", "torch"), BESIDE_TORCH),
        (("mylib>=1,<2",), "3.11", "mylib-ge1-lt2-py3.11", ("tf", "torch", "jax"), ("keras", *BESIDE_TORCH)),
    ],
)  # fmt: skip
def test_adhoc(
    with_: tuple[str, ...], python: str, name: str, frameworks: tuple[str, ...], added: tuple[str, ...]
) -> None:
    env = adhoc(with_, python)
    assert (env.name, env.python, env.frameworks, env.requirements) == (name, python, frameworks, with_ + added)


@pytest.mark.parametrize(
    ("with_", "models", "frameworks", "added"),
    [
        (("keras==3.12.0",), (), ("tf",), ("tensorflow-cpu",)),
        (("keras==3.12.0",), ("torch",), ("torch",), ("torch", *BESIDE_TORCH)),
        (("keras==3.12.0", "torch==2.5"), ("torch",), ("torch",), BESIDE_TORCH),
        (("fvcore",), (), ("torch",), ("torch", *BESIDE_TORCH)),
        (("dm-haiku",), (), ("jax",), ("jax", "keras")),
        (("jaxlib==0.10.1",), (), ("jax",), ("jax", "keras")),
        (("transformers==5.0.0",), ("torch",), ("torch",), ("torch", *BESIDE_TORCH)),
        (("numpy<2.3",), ("tf", "torch"), ("tf", "torch"), ("tensorflow-cpu", "torch", "setuptools")),
        (("tensorflow==2.15.1",), ("torch",), ("tf",), ()),  # refused later: it cannot be meant
    ],
)
def test_adhoc_has_the_framework_of_the_models(
    with_: tuple[str, ...],
    models: tuple[str, ...],
    frameworks: tuple[str, ...],
    added: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The name under which TensorFlow is installed here, where it is; else its usual one."""
    here = [object()]
    monkeypatch.setattr(
        definitions.metadata.Distribution, "discover", lambda name: iter(here if name == "tensorflow-cpu" else [])
    )
    env = adhoc(with_, CURRENT, models)
    assert (env.frameworks, env.requirements) == (frameworks, with_ + added)


def test_adhoc_refuses_what_it_cannot_make() -> None:
    with pytest.raises(UsageError, match="'torch 1' is not a requirement"):
        adhoc(("torch 1",), "3.11")
    with pytest.raises(UsageError, match=r"--python must be a version such as 3\.11"):
        adhoc(("torch",), "three")
    with pytest.raises(UsageError, match="at least one --with"):
        adhoc((), "3.11")


def test_the_folder_depends_on_python_and_requirements_only() -> None:
    env = load()["tf-2.3.1"]
    same = Environment(env.name, "another title", env.python, env.frameworks, env.requirements[::-1])
    assert folder_of(same) == folder_of(env)
    others = [
        Environment(env.name, env.title, "3.7", env.frameworks, env.requirements),
        Environment(env.name, env.title, env.python, env.frameworks, (*env.requirements, "six")),
    ]
    assert len({folder_of(e) for e in (env, *others)}) == 3
    assert folder_of(env).name.startswith("tf-2.3.1-")
