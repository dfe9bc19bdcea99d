"""A list of models as a file: everything that it may hold, and each fault in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconcile.core.errors import UsageError
from reconcile.products.sweep.cells import Cell
from tests.products.sweep.nets import THERE, listed

pytestmark = pytest.mark.usefixtures("folder")


def test_a_list_of_everything(folder: Path) -> None:
    cells = listed(
        folder,
        """
        [[model]]
        package = "nets"
        without = ["anything"]
        arguments = { width = 5 }

        [[model]]
        factory = "nets:small"
        name = "wide"
        inputs = ["ids=1,8:int64"]
        frameworks = ["torch"]

        [[model]]
        tf = "a:make"
        torch = "b:make"
        environments = ["current", "tf-2.3.1"]

        [[model]]
        zoo = "gru_demo"
        set = { batch = 8 }
        """,
    )
    assert [cell.name for cell in cells] == [
        "nets.made", "nets.small", "wide", "a.make+b.make", "a.make+b.make@tf-2.3.1", "gru_demo",
    ]  # fmt: skip
    assert cells[1].arguments == {"width": 5}
    assert cells[2] == Cell("wide", factories={"torch": "nets:small"}, inputs=(("ids", (1, 8), "int64"),))
    assert dict(cells[4].factories) == {"tf": "a:make"}  # there is no PyTorch in it
    assert cells[4].place == THERE["tf-2.3.1"]
    assert cells[5].overrides == {"batch": "8"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it has no [[model]] table"),
        ("[model]\nzoo = 'gru_demo'", "it has no [[model]] table"),
        ("[[model]]\nname = 'x'", "number 1: it names no model: give one of zoo, package, factory, tf, torch, jax."),
        ("models = 3", "unknown key 'models'"),
        ("[[model]", "is not valid TOML"),
        ("[[model]]\nzoo = 'gru_dem'", "number 1: unknown model 'gru_dem'. Did you mean gru_demo"),
        ("[[model]]\nzoo = 'gru_demo'\nset = { frame = 3 }", "gru_demo has no parameter 'frame'"),
        ("[[model]]\nzoo = 'gru_demo'\n[[model]]\nfactory = 3", "number 2: factory must be a text, not 3."),
        ("[[model]]\nfactory = 'a:b'\nset = { a = 1 }", "'set' does not go with factory; expected frameworks"),
        ("[[model]]\nfactory = 'a:b'\ninputs = '1,2'", "inputs must be a list of texts, not '1,2'."),
        ("[[model]]\nfactory = 'a:b'\ninputs = ['x']", "number 1: --input 'x' cannot be read"),
        ("[[model]]\nfactory = 'a'", "does not name a factory. Write MODULE:FUNCTION"),
        ("[[model]]\nfactory = 'a:b'\nframeworks = ['mxnet']", "frameworks are some of tf, torch, jax"),
        ("[[model]]\nfactory = 'a:b'\nenvironments = ['tf-1']", "unknown environment 'tf-1'"),
        ("[[model]]\ntorch = 'a:b'\nenvironments = ['tf-2.3.1']", "a.b: the environment tf-2.3.1 has none of torch."),
        ("[[model]]\nfactory = 'a:b'\narguments = { day = 2020-01-01 }", "arguments must be texts, numbers"),
        ("[[model]]\npackage = 'nets'\nwithout = ['smal']", "unknown model of nets 'smal'. Did you mean small"),
    ],
)
def test_each_fault_of_a_list_in_a_sentence(folder: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        listed(folder, text)
    assert said in str(error.value)
    assert str(error.value).count("list.toml") == 1
