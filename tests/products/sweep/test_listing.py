"""Names from the command line as cells: words, packages and files, each fault in one sentence."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

import pytest

from reconcile.core import registry
from reconcile.core.errors import UsageError
from reconcile.launch import user_models
from reconcile.model_zoo.loading import zoo_names
from reconcile.model_zoo.pair import Input
from reconcile.products.sweep import listfile, listing
from reconcile.products.sweep.cells import (
    Cell,
    Manner,
    distinct,
    in_environments,
    manner_of,
    read_cell,
    request_of,
    sources,
)
from tests.outside import NUMPY
from tests.products.sweep.nets import HERE, THERE, listed

pytestmark = pytest.mark.usefixtures("folder")


def test_a_package_lists_what_can_be_called_without_anything() -> None:
    """In a process of its own; neither its printing nor its neighbours disturb."""
    cells = listing.cells_of("nets")
    assert [cell.name for cell in cells] == ["nets.anything", "nets.made", "nets.small"]
    assert dict(cells[0].factories) == {"tf": "nets:anything", "torch": "nets:anything"}
    assert [cell.name for cell in listing.cells_of("torch=nets")][-1] == "nets.torch_alone"
    assert listing.cells_of("tf=nets.inner", [Input("", (1, 2), "")]) == [
        Cell("nets.inner.made", factories={"tf": "nets.inner:made"}, inputs=(("", (1, 2), ""),)),
        Cell("nets.inner.other", factories={"tf": "nets.inner:other"}, inputs=(("", (1, 2), ""),)),
    ]


def test_a_package_that_prints_over_its_list_is_one_sentence(folder: Path) -> None:
    (folder / "ends.py").write_text("import os\ndef make(): ...\nprint('[1, 2')\nos._exit(0)\n")
    with pytest.raises(UsageError, match=r"^ends cannot be listed: what was imported wrote to stdout or exited"):
        listing.cells_of("ends")


def test_what_cannot_be_imported_beside_a_model_is_not_read(folder: Path) -> None:
    """A broken link (an editor's lock), a folder and a pipe; a file that changes gives another key."""
    cell = Cell("a", factories={"torch": "breaks:make"})
    (folder / ".#breaks.py").symlink_to("nowhere")
    (folder / "folder.py").mkdir()
    os.mkfifo(folder / "pipe.py")
    before = sources(cell, ())
    assert {f"{folder.name}/{name}" for name in (".#breaks.py", "folder.py", "pipe.py", "json.py")} <= set(before)
    (folder / "breaks.py").write_text("")
    assert [name for name, digest in sources(cell, ()).items() if digest != before[name]] == [
        f"{folder.name}/breaks.py"
    ]


def test_factories_pairs_and_the_zoo(folder: Path) -> None:
    (folder / "mine.py").touch()
    assert listing.cells_of("torch=net:make") == [Cell("net.make", factories={"torch": "net:make"})]
    assert listing.cells_of("gru_demo") == [Cell("gru_demo", model="gru_demo")]
    assert listing.cells_of("./mine.py") == [Cell("mine", model=str(folder / "mine.py"))]
    assert [cell.model for cell in listing.cells_of("zoo")] == zoo_names()


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("gru_dem", "unknown model 'gru_dem'. Did you mean gru_demo"),
        ("nets.gone", "nets.gone cannot be listed: there is no module nets.gone."),
        ("nope.gone", "nope.gone cannot be listed: there is no module nope."),
        ("breaks", "breaks cannot be listed: ValueError: not today."),
        ("os.path:", "the factory 'os.path:': '' is not a function name."),
        ("a b:make", "the factory 'a b:make': 'a b' is not a module name."),
        ("mxnet=net:make", "'mxnet=net:make' cannot be read: expected tf, torch or jax before ="),
        ("gone.py", "there is no pair file gone.py"),
        ("antigravity=1", "cannot be read"),
    ],
)
def test_a_word_that_names_nothing(word: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        listing.cells_of(word)
    assert said in str(error.value)


def test_a_registered_framework_has_a_word_and_a_kind(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its models are made by functions; Keras does not run on it, so one definition still means the other two."""
    monkeypatch.setitem(registry.frameworks(), "numpy", NUMPY)
    assert listing.both() == ("tf", "torch")
    assert listing.cells_of("numpy=net:make") == [Cell("net.make", factories={"numpy": "net:make"})]
    (folder / "plain.py").write_text("import os\nassert 'KERAS_BACKEND' not in os.environ\ndef made(): ...\n")
    assert [cell.name for cell in listing.cells_of("numpy=plain")] == ["plain.made"]
    (cell,) = listed(folder, "[[model]]\nnumpy = 'a:make'\ntorch = 'b:make'")
    assert dict(cell.factories) == {"torch": "b:make", "numpy": "a:make"}
    with pytest.raises(
        UsageError, match="expected tf, torch, jax or numpy before =, for a model in that framework alone"
    ):
        listing.cells_of("mxnet=net:make")
    with pytest.raises(UsageError, match="frameworks are some of tf, torch, jax, numpy, not 'onnx'"):
        listed(folder, "[[model]]\nfactory = 'a:b'\nframeworks = ['onnx']")
    (cell,) = listed(folder, "[[model]]\nfactory = 'a:b'\nframeworks = ['numpy', 'tf', 'torch']")
    assert list(cell.factories) == ["tf", "torch", "numpy"]


def test_one_definition_in_the_frameworks_that_are_asked_for(folder: Path) -> None:
    """Of a word and of an entry that names none; a word for one framework, and an entry with its own, say it themselves."""
    three = listing.select_frameworks(["jax", "tf", "torch", "jax"])
    assert three == ("tf", "torch", "jax")
    assert [list(cell.factories) for cell in listing.cells_of("net:make", among=three)] == [["tf", "torch", "jax"]]
    assert {tuple(cell.factories) for cell in listing.cells_of("nets", among=three)} == {three}
    assert [list(cell.factories) for cell in listing.cells_of("jax=net:make", among=three[:2])] == [["jax"]]
    (folder / "own.toml").write_text(
        "[[model]]\nfactory = 'a:b'\n[[model]]\nfactory = 'a:c'\nframeworks = ['jax', 'torch']"
    )
    cells = listfile.read_list(Path("own.toml"), THERE, HERE, among=three)
    assert [list(cell.factories) for cell in cells] == [["tf", "torch", "jax"], ["torch", "jax"]]
    for names in ([], ["tf", ""], ["keras"]):
        with pytest.raises(UsageError, match="frameworks are some of tf, torch, jax, not"):
            listing.select_frameworks(names)


def test_a_manner_has_the_options_that_are_not_at_their_defaults(folder: Path) -> None:
    (folder / "f.py").write_text("x = 1")
    asked = {
        "convention": "matmul",
        "device": "meta",
        "timeout": 600.0,
        "counters": ("thop",),
        "formulas": (Path("f.py"),),
    }
    manner = manner_of({**asked, "convention_files": ()}, ("md",))
    assert manner == Manner({"device": "meta", "counters": ["thop"]}, {"formulas": {"0-f.py": "x = 1"}})
    assert manner_of({**asked, "timeout": 5.0, "formulas": ()}, ("md",)).decisive_options == manner.options


def test_two_models_of_one_name_are_one_or_refused() -> None:
    one, other = Cell("a", model="gru_demo"), Cell("A", model="gru_demo", overrides={"batch": "2"})
    assert distinct([one, one]) == [one]
    with pytest.raises(UsageError, match="give one of them another name"):
        distinct([one, other])
    with pytest.raises(UsageError, match="give it another name"):
        distinct([Cell("Readme", model="gru_demo")])


def test_what_travels_comes_back_as_it_was() -> None:
    import json

    (cell,) = in_environments(Cell("x", factories={"tf": "a:b"}, inputs=(("", (1, 2), ""),)), [THERE["tf-2.3.1"]])
    manner = Manner({"counters": ["tf.profiler@frozen"]}, {"formulas": {"0-f.py": "x = 1"}}, ("md", "csv"))
    assert read_cell(json.loads(json.dumps(request_of(cell, manner, ())))) == (cell, manner)


def test_a_key_says_what_determines_a_result(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cell, manner = Cell("n", factories={"torch": "nets:small"}), Manner()

    def key(cell: Cell = cell, manner: Manner = manner) -> str:
        found: str = request_of(cell, manner, ())["key"]
        return found

    first = key()
    assert key() == first
    assert key(manner=Manner({"timeout": 3.0})) == first  # how long it may take says nothing of what it finds
    others = [
        key(Cell("n", factories={"torch": "nets:made"})),
        key(Cell("n", factories={"torch": "nets:small"}, arguments={"width": 4})),
        key(Cell("n", factories={"torch": "nets:small"}, inputs=(("", (2,), ""),))),
        key(in_environments(cell, [THERE["torch-1.10.1"]])[0]),
        key(manner=Manner({"convention": "all"})),
        key(manner=Manner({"counters": ["thop"]})),
        key(manner=Manner(formats=("md", "csv"))),
        key(manner=Manner(texts={"formulas": {"0-f.py": "x = 1"}})),
    ]
    for file in ("nets/inner.py", "breaks.py"):  # what its module may import lies in its package or beside it
        with (folder / file).open("a") as source:
            source.write("# changed\n")
        others.append(key())
    monkeypatch.setattr("reconcile.products.sweep.cells.source_digest", lambda: "another tool")
    others.append(key())
    monkeypatch.setattr("reconcile.products.sweep.cells.versions", lambda _cell: {"torch": "0"})
    others.append(key())
    assert len({first, *others}) == 1 + len(others)


AUTO = """
MODEL_FOR_CAUSAL_LM_MAPPING_NAMES = {"a": "AForCausalLM", "b": "BForCausalLM"}
MODEL_FOR_QUESTION_ANSWERING_MAPPING_NAMES = {"a": "AForQuestionAnswering", "c": "CForQuestionAnswering"}
MODEL_MAPPING_NAMES = {"a": "AModel", "c": ("CModel", "CDecoder"), "d": "DModel", "e": "Hidden"}
"""


@pytest.mark.frameworks
def test_a_library_lists_one_class_per_architecture(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For its most usual task; and only those that the library exports."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "transformers"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(listing, "_call", lambda _m, function, **_: import_module(function.partition(":")[0]).names())
    auto = folder / "transformers" / "models" / "auto"
    auto.mkdir(parents=True)
    (auto / "modeling_auto.py").write_text(AUTO)
    names = ("AForCausalLM", "BForCausalLM", "AModel", "CModel", "CForQuestionAnswering", "DModel")
    (folder / "transformers" / "__init__.py").write_text("".join(f"class {name}: pass\n" for name in names))
    for package in (auto.parent, auto):
        (package / "__init__.py").touch()
    wanted = ["AForCausalLM", "BForCausalLM", "CModel", "DModel"]
    cells = listing.cells_of("transformers")
    assert [dict(cell.factories) for cell in cells] == [{"torch": f"transformers:{name}"} for name in wanted]
    assert listing.cells_of("torch=transformers") == cells
    for name in [name for name in sys.modules if name.partition(".")[0] == "transformers"]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("diffusers", "pip install diffusers"), ("timm", "pip install timm, .* or add --environment timm, ")],
)
def test_a_library_that_is_not_there(monkeypatch: pytest.MonkeyPatch, name: str, remedy: str) -> None:
    monkeypatch.setattr(listing, "is_there", lambda _name, _paths: False)
    with pytest.raises(UsageError, match=f"^{name} is not installed in this environment: {remedy}"):
        listing.cells_of(name)


LISTER = """
def names():
    return [("small", ("1,3,8,8",)), ("video.two", ("1,3,2,8,8", "ids=1,4:int64"))]
"""


def test_functions_that_a_module_lists_with_their_inputs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "lister.py").write_text(LISTER)
    torch = registry.frameworks()["torch"]
    stub = torch._replace(functions=(("nets", "nets.inner", "lister"),))
    monkeypatch.setattr(listing, "frameworks", lambda: {"torch": stub})
    monkeypatch.setattr(user_models, "frameworks", lambda: {"torch": stub})
    monkeypatch.setattr(listing, "absolute", lambda name: name)
    cells = listing.cells_of("nets")
    assert [(dict(cell.factories), cell.inputs) for cell in cells] == [
        ({"torch": "nets.inner:small"}, (("", (1, 3, 8, 8), ""),)),
        ({"torch": "nets.inner:video.two"}, (("", (1, 3, 2, 8, 8), ""), ("ids", (1, 4), "int64"))),
    ]
    given = Input("", (2, 2), "")
    assert {cell.inputs for cell in listing.cells_of("nets", [given])} == {(("", (2, 2), ""),)}
    (one,) = listing.cells_of("nets:small", [given])
    assert dict(one.factories) == {"torch": "nets.inner:small"}
    with pytest.raises(UsageError, match=r"unknown model of nets 'tiny'"):
        listing.package("nets", ("torch",), without=("tiny",))


def test_another_interpreter_lists_a_package(folder: Path) -> None:
    """Nothing of it has to be installed here."""
    other = folder / "other"
    other.write_text("#!/bin/sh\necho '[[\"made\"]]'\n")
    other.chmod(0o755)
    (cell,) = listing.cells_of("torch=elsewhere", python=str(other))
    assert dict(cell.factories) == {"torch": "elsewhere:made"}
