"""PyTorch model files that attack, as a worker loads them: none is run, and all of them would have run.

The attacks are made and loaded by processes of their own (attacks.py); the texts that PyTorch would evaluate,
import, print into source or call are also held to their rules here, one by one, where no framework is needed.
"""

from __future__ import annotations

import copy
import json
import zipfile
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

import pytest

from reconcile.products.files import archive
from reconcile.products.files.model_file import FileError
from reconcile.products.files.pytorch.program import looked_at
from tests.products.files.processes import found_by

WAY_OUT = "; --trust-file lets it."
ATTACKS = {
    "names.pt2": "names.pt2 has the name \"x=__import__('pathlib').Path('exploded').touch()\", which PyTorch would run as code",
    "factory.pt2": "factory.pt2 takes or gives back something else than tensors in lists and dictionaries "
    "(collections.defaultdict)" + WAY_OUT,
    "enum.pt2": "enum.pt2 takes or gives back something else than tensors in lists and dictionaries" + WAY_OUT,
    "filed.pt2": "filed.pt2, called with (float32 (2, 8)), raised ",
    "case.pt2": "case.pt2: it has two members called 'a/Models/model.json', ignoring case.",
    "locator.pt2": f"{2 * 2 * 8 * 4} FLOP",  # of what Python finds: PyTorch's own reader would find the other one
    "filed.pt": "filed.pt, called with (float32 (2, 8)), raised ",
    "case.pt": "case.pt: it has two members called 'a/Code/__torch__.py', ignoring case.",
    "coding.pt": "coding.pt",
    "locator.pt": "0 FLOP",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where attacks are made."""
    return tmp_path_factory.mktemp("attacks")


def judge(found: dict[str, Any]) -> None:
    """Hold what became of attacks and of honest files against what is said of them."""
    assert [f[1:] for f in (found.pop("good.pt2"), found.pop("good.pt"))] == [[False, False]] * 2
    for name, (said, harmed, trusted) in found.items():
        assert said.startswith(ATTACKS[name])
        assert said.endswith((".", "FLOP"))
        assert "\n" not in said
        assert not harmed, name
        assert trusted, f"{name} is no attack"


@pytest.fixture(scope="module")
def attacked(folder: Path) -> dict[str, Any]:
    """One attack of each kind of file, and an honest one of each."""
    found: dict[str, Any] = found_by("pytorch.attacks", folder, ".", "good.pt2", "names.pt2", "good.pt", "filed.pt")
    return found


@pytest.mark.frameworks
def test_an_attack_of_each_kind(attacked: dict[str, Any]) -> None:
    judge(dict(attacked))


@pytest.mark.slow
@pytest.mark.frameworks
def test_attacks(tmp_path: Path) -> None:
    found = found_by("pytorch.attacks", tmp_path, ".")
    assert set(found) == {*ATTACKS, "good.pt2", "good.pt"}
    judge(found)


@pytest.mark.slow
@pytest.mark.frameworks
def test_what_is_unusual_and_honest(tmp_path: Path) -> None:
    """Multiply-adds: three products; one; a convolution and a recurrent layer of both directions; three products."""
    layers = 2 * 4 * (3 * 9) * (3 * 3 * 3) + 2 * 27 * 2 * (3 * 5 * (4 + 5))
    same = ("layers.pt2", "again.pt2", "traced.pt", "layers.pt", "lite.pt")
    assert found_by("pytorch.honest", tmp_path, ".") == {
        "named.pt2": 6 * 8 * 8 + 2 * (6 * 8 * 4),
        "open.pt2": (6 // 2 + 1) * 8 * 8,
        "control.pt": (2 + 1) * 6 * 8 * 8,
        **dict.fromkeys(same, layers),
    }


@pytest.mark.frameworks
@pytest.mark.parametrize("number", [400, pytest.param(4000, marks=pytest.mark.slow)])
def test_pytorch_finds_what_python_found(number: int) -> None:
    """In the archive that is made anew of one in which readers disagree."""
    pytest.importorskip("torch")
    from tests.fuzz import zips
    from tests.fuzz.archives import same

    members = {
        "a/version": b"3\n",
        "a/byteorder": b"little",
        "a/data/0": bytes(range(64)),
        "a/code/a.py": b"x = 1\n" * 9,
    }
    chance, passing = Random(1), 0
    for _ in range(number):
        data = zips.mutated(chance, members, dict.fromkeys(members, b"evil"))
        with suppress(archive.Hostile):
            same(archive.pack_members(archive.contents(BytesIO(data), 1 << 16, members.__contains__)).getvalue())
            passing += 1
    assert passing > number // 8


NODE = {
    "target": "_operator.add",
    "inputs": [{"name": "a", "arg": {"as_tensor": {"name": "x"}}, "kind": 1}],
    "outputs": [{"as_tensor": {"name": "y"}}],
    "metadata": {
        "nn_module_stack": "L__self__,,M",
        "stack_trace": "a\nb",
        "source_fn_stack": "a,torch.hub.load",
        "torch_fn": "x",
    },
    "name": "y",
}
TREE = {
    "type": "builtins.tuple",
    "context": "null",
    "children_spec": [
        {
            "type": "builtins.tuple",
            "context": "null",
            "children_spec": [{"type": None, "context": None, "children_spec": []}],
        },
        {
            "type": "builtins.dict",
            "context": '["mask"]',
            "children_spec": [{"type": None, "context": None, "children_spec": []}],
        },
    ],
}
SIGNATURE = {"in_spec": json.dumps([1, TREE]), "out_spec": json.dumps([1, TREE]), "forward_arg_names": ["x", "größe"]}
PROGRAM: dict[str, Any] = {
    "graph_module": {
        "graph": {"nodes": [NODE], "tensor_values": {"target": {"dtype": 7}, "inputs": {}}},
        "signature": {"input_specs": [{"parameter": {"arg": {"name": "p"}, "parameter_name": "a b.0-1/größe.weight"}}]},
        "module_call_graph": [{"fqn": "a b.0-1", "signature": SIGNATURE}],
        "metadata": {"custom": "{}"},
    },
    "guards_code": ["__import__('os')"],
    "torch_version": "2.13.0+cpu",
}


def loaded(program: Any) -> Any:
    """What is left of a program that may be loaded."""
    return json.loads(looked_at("m.pt2", "models/model.json", json.dumps(program).encode()))


def test_what_is_left_of_a_program() -> None:
    expected = copy.deepcopy(PROGRAM)
    expected["guards_code"], expected["graph_module"]["metadata"] = [], {}
    expected["graph_module"]["graph"]["nodes"][0]["metadata"] = {"nn_module_stack": "L__self__,,M"}
    assert loaded(PROGRAM) == expected


def at(*place: Any, value: Any) -> Any:
    """The program with one of its parts replaced."""
    made = copy.deepcopy(PROGRAM)
    item = made
    for key in place[:-1]:
        item = item[key]
    item[place[-1]] = value
    return made


GRAPH, CALL = ("graph_module", "graph"), ("graph_module", "module_call_graph", 0)
NODES = (*GRAPH, "nodes", 0)
HARM = "x=print()"


def spec(context: Any, kind: str = "builtins.dict") -> str:
    """A tree of arguments whose second part is this container."""
    node = {"type": kind, "context": context, "children_spec": []}
    return json.dumps([1, {**TREE, "children_spec": [*TREE["children_spec"][:1], node]}])


@pytest.mark.parametrize(
    "program",
    [
        at(*NODES, "name", value=HARM),
        at(*NODES, "name", value="x y"),
        at(*NODES, "inputs", 0, "name", value=HARM),
        at(*NODES, "inputs", 0, "arg", value={"as_tensor": {"name": HARM}}),
        at(*NODES, "inputs", 0, "arg", value={"as_operator": "torch.hub.load"}),
        at(*NODES, "inputs", 0, "arg", value={"as_sym_int": {"as_name": HARM}}),
        at(*NODES, "inputs", 0, "arg", value={"as_float": HARM}),
        at(*NODES, "inputs", 0, "arg", value={"as_graph": {"name": HARM, "graph": {}}}),
        at(*NODES, "inputs", 0, "arg", value={"as_device": {"type": HARM}}),
        at(*NODES, "inputs", 0, "arg", value={"as_string_to_argument": {'"': {"as_int": 1}}}),
        at(*NODES, "outputs", value=[{"as_tensor": {"name": HARM}}]),
        at(*NODES, "metadata", value={"nn_module_stack": 'a,b"),__import__("os"),'}),
        at(*NODES, "target", value="torch.hub.load"),
        at(*NODES, "target", value="#a:b"),
        at(*GRAPH, "tensor_values", value={"x": {"sizes": [{"as_expr": {"expr_str": "print()"}}]}}),
        at(*GRAPH, "tensor_values", value={'x"': {}}),
        at("graph_module", "signature", value={"parameter_name": 'a.b")+print("'}),
        at("graph_module", "signature", value={"buffer_name": "a\\"}),
        at("graph_module", "signature", value={"whatever": HARM}),
        at(*CALL, "fqn", value='a"'),
        at(*CALL, "signature", "forward_arg_names", value=[HARM]),
        at(*CALL, "signature", "in_spec", value=spec(f'["{HARM}"]')),
        at(*CALL, "signature", "out_spec", value=spec('["\\""]')),
        at(*CALL, "signature", "out_spec", value=spec('[{"fqn": "os:x"}]')),
        at(*CALL, "signature", "out_spec", value=spec('{"fqn": "os:x"}')),
        at(*CALL, "signature", "out_spec", value=spec("os", "collections.namedtuple")),
        at(*CALL, "signature", "out_spec", value=spec({}, "collections.defaultdict")),
        at(*CALL, "signature", "in_spec", value="print()"),
        at("verifiers", value=[HARM]),
        at("graph_module", value=[]),
        [],
    ],
)  # fmt: skip
def test_what_no_program_says(program: Any) -> None:
    with pytest.raises(FileError, match=r"^m\.pt2 (calls|has|takes|cannot be loaded: its) .*\.$"):
        loaded(program)


@pytest.mark.frameworks
@pytest.mark.parametrize(
    "target", ["aten.no_such_operator.default", "aten.add.no_such_overload", "load_library.a.b", "aten"]
)
def test_what_is_no_operator_is_not_called(target: str) -> None:
    with pytest.raises(FileError, match=r"^m\.pt2 calls torch\.ops\..*, which is no operator of the installed PyTorch"):
        loaded(at(*NODES, "target", value=f"torch.ops.{target}"))
    assert loaded(at(*NODES, "target", value="torch.ops.aten.add.Tensor"))


def test_a_program_nested_without_end() -> None:
    deep = at(*GRAPH, "tensor_values", value=json.loads('{"a":' * 300 + "1" + "}" * 300))
    with pytest.raises(FileError, match="nested too deep"):
        loaded(deep)
    for text in (b"{", b"[" * 100_000, b"\xff", b"\xff\xfe{\0}\0"):
        with pytest.raises(FileError, match="is no JSON"):
            looked_at("m.pt2", "models/model.json", text)


@pytest.mark.parametrize(
    "entry",
    [
        {"path_name": "weight_0", "use_pickle": True},
        {"path_name": "weight_0", "use_pickle": 1},
        {"path_name": "custom_obj_0", "use_pickle": False},
        {"path_name": "opaque_obj_0"},
        {"path_name": "tensor_0/../../extra/x"},
        {"path_name": "tensor_\u0661"},
    ],
)
def test_a_tensor_that_is_pickled(entry: dict[str, Any]) -> None:
    data = json.dumps({"config": {"a": entry}}).encode()
    with pytest.raises(FileError, match="holds something pickled"):
        looked_at("m.pt2", "data/weights/model_weights_config.json", data)


CONTAINERS = """
from torch.utils import _pytree

class Output:
    def __init__(self, values):
        self.values = values

_pytree.register_pytree_node(
    Output, lambda it: ([it.values], None), lambda values, _: Output(*values), serialized_type_name="containers_of_mine.Output"
)
"""


@pytest.mark.frameworks
def test_a_foreign_container_is_imported_if_trusted_or_named(
    attacked: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reconcile.products.files.pytorch.load import _import_containers

    path = folder / "foreign.pt2"
    with pytest.raises(
        FileError, match=r"gives back a containers_of_mine\.Output, which torch\.utils\._pytree does not"
    ):
        _import_containers(str(path))
    (folder / "containers_of_mine.py").write_text(CONTAINERS)
    monkeypatch.syspath_prepend(str(folder))
    _import_containers(str(path))
    with zipfile.ZipFile(path) as file:
        (program,) = [file.read(name) for name in file.namelist() if name.endswith("/models/model.json")]
    with pytest.raises(FileError, match=r"dictionaries \(containers_of_mine.Output\); --trust-file lets it"):
        looked_at("foreign.pt2", "models/model.json", program)
