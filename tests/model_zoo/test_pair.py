"""A pair is an object of one class, whether its file defines functions or a subclass; what it leaves out has a default."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reconcile.core.errors import UsageError
from reconcile.core.framework import adapter_of
from reconcile.launch.runner import RunRequest, collect
from reconcile.model_zoo.loading import check_names, load_pair, resolve, zoo_names
from reconcile.model_zoo.pair import FromModule, Input, Layer, Pair, PairError, Params
from reconcile.work import work_of
from tests.workers import request, user_model

PACKAGES = {"tf": "tensorflow", "torch": "torch", "onnx": "onnx"}

FUNCTIONS = '''"""One dense layer."""
from reconcile.model_zoo.pair import Input, Layer, Pair, Published

PAIR = Pair(
    "dense", {"batch": 2, "units": 4}, (Layer("dense", tf="dense", torch="dense"),), ("a note",),
    (Published("8", "MACs", "a paper"),),
)
PROOF = {"units": "3"}
TRAINING = {"batch": "5", "device": "meta"}
NOT_EQUIVALENT = "one has a bias"
WITHOUT_EFFECT = ("dense/bias",)
name = notes = layers = "names of helpers, which are no members"


def inputs(p):
    return [Input("x", (p.batch, 3))]


def build_torch(p):
    import torch

    model = torch.nn.Sequential()
    model.add_module("dense", torch.nn.Linear(3, p.units, bias=False))
    return model
'''

SUBCLASS = '''"""One dense layer."""
from reconcile.model_zoo.pair import Input, Layer, Pair


class Dense(Pair):
    name = "dense"
    params = {"batch": 2, "units": 4}

    def layers_for(self, p):
        return [Layer("dense of %d" % p.units, tf="dense", torch="dense")]

    def inputs(self, p):
        return [Input("x", (p.batch, 3))]

    def build_torch(self, p):
        import torch

        model = torch.nn.Sequential()
        model.add_module("dense", torch.nn.Linear(3, p.units, bias=False))
        return model


PAIR = Dense()
'''


def written(folder: Path, text: str) -> str:
    path = folder / "mine.py"
    path.write_text(text)
    return str(path)


def test_what_a_pair_leaves_out_has_a_default() -> None:
    pair, p = Pair("bare", {"batch": 2}), Params({"batch": 2})
    stated = (pair.layers, pair.notes, pair.published, dict(pair.proof), dict(pair.training), pair.without_effect)
    assert stated == ((), (), (), {}, {}, ())
    assert (pair.not_equivalent, pair.user_model, pair.layers_for(p)) == ("", False, ())
    assert (pair.frameworks(tuple(PACKAGES)), pair.builder("tf")) == ((), None)
    assert pair.called_notes(lambda: "never asked") == ()
    assert [pair.ready("", print), pair.tried(print, str), pair.may_run(None)] == [None, None, None]
    with pytest.raises(PairError, match=r"bare does not state its inputs: define inputs\(p\)"):
        pair.arguments(p)
    with pytest.raises(PairError, match="bare does not copy weights"):
        pair.copy_weights(None, None)
    assert resolve(Pair("without parameters"), {}) == {}


def test_defaults_follow_what_a_pair_does_define() -> None:
    class Mine(Pair):
        layers = (Layer("a", tf="a", torch="b"),)

        def build_tf(self, p: Any) -> Any:
            return p.batch

        def inputs(self, p: Any) -> list[Input]:
            return [Input("x", (p.batch,))]

    pair, p = Mine("mine"), Params({"batch": 7})
    assert pair.build_tf_session(p) == 7
    assert pair.layers_for(p) == Mine.layers
    assert pair.arguments(p) == ((Input("x", (7,)),), {})
    assert pair.frameworks(("torch", "tf")) == ("tf",)


def test_functions_of_a_file_are_methods_constants_attributes(tmp_path: Path) -> None:
    pair = load_pair(written(tmp_path, FUNCTIONS))
    assert isinstance(pair, FromModule)
    assert (pair.name, pair.notes, [layer.name for layer in pair.layers]) == ("dense", ("a note",), ["dense"])
    assert [tuple(each) for each in pair.published] == [("8", "MACs", "a paper")]
    assert (pair.proof, pair.training) == ({"units": "3"}, {"batch": "5", "device": "meta"})
    assert (pair.not_equivalent, pair.without_effect) == ("one has a bias", ("dense/bias",))
    assert pair.inputs(Params({"batch": 5})) == [Input("x", (5, 3))]
    assert pair.module.__doc__ == "One dense layer."


def test_a_subclass_in_a_file_is_the_pair(tmp_path: Path) -> None:
    pair = load_pair(written(tmp_path, SUBCLASS))
    p = Params(resolve(pair, {"units": "9"}))
    assert (type(pair).__name__, pair.name, pair.layers_for(p)[0].name) == ("Dense", "dense", "dense of 9")
    assert pair.module.__doc__ == "One dense layer."


@pytest.mark.parametrize("text", [FUNCTIONS, SUBCLASS], ids=["functions", "subclass"])
def test_a_pair_of_one_framework_has_that_side_alone(tmp_path: Path, text: str) -> None:
    assert load_pair(written(tmp_path, text)).frameworks(tuple(PACKAGES)) == ("torch",)


def test_sides_of_unknown_frameworks_are_asked_by_their_names(tmp_path: Path) -> None:
    pair = load_pair(written(tmp_path, FUNCTIONS + "\n\ndef build_numpy(p):\n    return p\n"))
    assert pair.frameworks(("numpy", "tf", "torch")) == ("numpy", "torch")
    build = pair.builder("numpy")
    assert build is not None
    assert build(Params({})) is not None


@pytest.mark.frameworks
@pytest.mark.usefixtures("warmed")
@pytest.mark.parametrize(("text", "layer"), [(FUNCTIONS, "dense"), (SUBCLASS, "dense of 5")])
def test_either_runs_beside_its_framework(tmp_path: Path, text: str, layer: str) -> None:
    """There the pair file's ``Pair`` is a class of another module than the worker's. Another framework's counter stands back."""
    asked = ("flop_counter", *(["tf.profiler@frozen"] if text == FUNCTIONS else []))
    found = collect(RunRequest(written(tmp_path, text), {"units": "5"}, counters=asked))
    (trace,) = found.traces
    assert [ledger.counter for ledger in found.ledgers] == ["flop_counter"]
    assert (found.meta["name"], found.meta["frameworks"], found.meta["doc"]) == ("dense", ["torch"], "One dense layer.")
    assert [row[0] for row in found.meta["layers"]] == [layer]
    assert found.meta["inputs"] == [["x", [2, 3], "float32"]]
    assert sum(work_of(op).mac * op.calls for op in trace.ops) == 2 * 3 * 5  # type: ignore[union-attr]


@pytest.mark.frameworks
@pytest.mark.usefixtures("warmed")
def test_a_counter_of_a_framework_without_a_model_is_refused_alone(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no TensorFlow model for tf\.profiler@frozen"):
        collect(RunRequest(written(tmp_path, FUNCTIONS), {}, counters=("tf.profiler@frozen",)))


MISSPELT = {
    "def build_pytorch(p):": ("build_pytorch", "build_torch"),
    "def build_tf_sesion(p):": ("build_tf_sesion", "build_tf_session"),
    "def layer_for(p):": ("layer_for", "layers_for"),
    "def copy_weight(a, b):": ("copy_weight", "copy_weights"),
}
BARE = "from reconcile.model_zoo.pair import Pair\n"


@pytest.mark.parametrize("head", MISSPELT)
@pytest.mark.parametrize("subclass", [False, True])
def test_a_misspelt_method_is_refused_with_the_nearest_name(tmp_path: Path, head: str, subclass: bool) -> None:
    text = f"{BARE}PAIR = Pair('mine', {{}})\n{head} pass\n"
    if subclass:
        method = head.replace("(", "(self, ")
        text = f"{BARE}class Mine(Pair):\n    name = 'mine'\n    {method} pass\nPAIR = Mine()\n"
    path = written(tmp_path, text)
    with pytest.raises(PairError) as refused:
        check_names(load_pair(path), PACKAGES)
    wrong, meant = MISSPELT[head]
    assert f"it defines {wrong}, " in str(refused.value)
    assert f"Did you mean {meant}?" in str(refused.value)


HELPERS = (
    "build_block build_fc build_rnn build_cnn build_tower build_layers build_transformer layers layers_of layer_names"
)


def test_a_helper_function_is_not_taken_for_a_misspelling(tmp_path: Path) -> None:
    for helper in (*HELPERS.split(), "inputs_of", "copy_weights_of", "build_numpy"):
        path = written(tmp_path, f"{BARE}PAIR = Pair('mine', {{}})\ndef {helper}(p): pass\n")
        check_names(load_pair(path), {**PACKAGES, "numpy": "numpy"})


def test_nothing_is_misspelt_beside_the_method_or_imported(tmp_path: Path) -> None:
    both = "def build_torch(p): pass\ndef build_touch(p): pass\nfrom textwrap import dedent as build_tff\n"
    check_names(load_pair(written(tmp_path, f"{BARE}PAIR = Pair('mine', {{}})\n{both}")), PACKAGES)
    inherited = "class A(Pair):\n    name = 'a'\n    def build_torch(self, p): pass\n"
    inherited += "class B(A):\n    def build_touch(self, p): pass\nPAIR = B()\n"
    check_names(load_pair(written(tmp_path, BARE + inherited)), PACKAGES)


def test_no_pair_of_the_zoo_is_refused() -> None:
    root = Path(__file__).parents[2] / "model_zoo"
    for name in zoo_names():
        pair = load_pair(str(root / f"{name}.py"))
        check_names(pair, PACKAGES)
        assert (pair.name, pair.frameworks(tuple(PACKAGES))) == (name, ("tf", "torch"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it defines no PAIR"),
        ("PAIR = 3\n", "its PAIR is of type int"),
        (f"{BARE}PAIR = Pair\n", "its PAIR is of type type"),
        ("class Pair: name = 'mine'\nPAIR = Pair()\n", "its PAIR is of type Pair"),
    ],
)
def test_a_file_that_states_no_pair_is_refused(tmp_path: Path, text: str, why: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(PairError) as refused:
        load_pair(path)
    assert str(refused.value).startswith(
        f"the pair file {path} cannot be used: {why}; write PAIR = Pair(...), or PAIR ="
    )


def test_a_pair_without_a_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PairError, match="its PAIR has no name"):
        load_pair(written(tmp_path, f"{BARE}PAIR = Pair()\n"))


def test_a_subclass_may_be_called_pair(tmp_path: Path) -> None:
    text = "from reconcile.model_zoo import pair\nclass Pair(pair.Pair):\n    name = 'mine'\nPAIR = Pair()\n"
    assert not isinstance(load_pair(written(tmp_path, text)), FromModule)


def test_the_worker_refuses_a_misspelt_pair(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Did you mean build_torch"):
        collect(RunRequest(written(tmp_path, FUNCTIONS.replace("build_torch", "build_touch")), {}))


def test_a_user_s_model_is_a_pair_of_its_framework() -> None:
    from reconcile.worker.factory import FactoryPair

    asked = request("torch", model=user_model("net:make"))
    given = FactoryPair(asked, adapter_of(asked.framework))
    assert isinstance(given, Pair)
    assert (given.name, given.user_model, given.frameworks(tuple(PACKAGES))) == ("net.make", True, ("torch",))
    assert given.called_notes(lambda: "x float32 (1,)")[0].endswith("x float32 (1,)")
    calls = SimpleNamespace(count=0)
    given.tried(lambda: setattr(calls, "count", 1), lambda: "x")
    assert calls.count == 1
