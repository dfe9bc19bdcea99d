"""The LaTeX table: its rows add up to its total, and what is not known is a dash."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import reconcile
from reconcile.core.escaping import escape_latex
from reconcile.products.cards.formats import to_latex
from tests.report import samples


def rows(text: str) -> list[list[str]]:
    """The cells of the rows below the head."""
    cells = [line.removesuffix(r" \\").split(" & ") for line in text.splitlines() if " & " in line]
    return [row for row in cells if row[0] != "layer"]


def whole(cell: str) -> int:
    return int(cell.replace(",", ""))


def test_the_rows_of_each_table_add_up_to_its_total() -> None:
    result = samples.clean()
    parameters = {"dense": 12, "table_of_words": 100}
    result = replace(result, traces=tuple(replace(trace, parameters=parameters) for trace in result.traces))
    tables = to_latex(result).split(r"\end{tabular}")[:-1]
    assert len(tables) == len(result.traces) == 2
    for table, trace in zip(tables, result.traces, strict=True):
        *layers, total = rows(table)
        assert [row[0] for row in layers] == ["dense", "loop", r"table\_of\_words"]
        assert [whole(row[1]) for row in (*layers, total)] == [12, 0, 100, 112]
        assert sum(whole(row[2]) for row in layers) == whole(total[2]) == sum(row.work.mac for row in trace.rows)
        assert float(total[3]) == float(f"{trace.totals['matmul'] / 1e9:.4g}")


def test_what_is_not_known_is_a_dash_or_has_no_column() -> None:
    """The work of an op without a formula in one layer, and parameters that no trace has."""
    result = samples.clean()
    dense, *others = result.layers
    torch = result.traces[-1]
    result = replace(result, layers=(replace(dense, work={}), *others), traces=(replace(torch, totals={}),))
    first, *_, total = rows(to_latex(result))
    assert (first[1:3], total[1:]) == (["--", "--"], ["--"] * 3)
    assert "parameters" not in to_latex(result)


def test_names_are_text() -> None:
    assert re.sub(r"[a-z]", "", escape_latex("a_b<lambda>#{}%&$~^")) == r"\_$<$$>$\#\{\}\%\&\$\{}\{}"


@pytest.mark.frameworks
def test_parameters_are_those_that_a_layer_owns() -> None:
    """A shared weight counts under its first path, and a layer that does not run has its own."""
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = torch.nn.Linear(3, 4), torch.nn.Linear(3, 4)
            self.second.weight = self.first.weight
            self.unused = torch.nn.Embedding(7, 3)

        def forward(self, x: object) -> object:
            return self.first(x) + self.second(x)

    (trace,) = reconcile.run(torch=Net(), inputs="2,3", counters=["flop_counter"]).result.traces
    assert trace.parameters == {"first": 3 * 4 + 4, "second": 4, "unused": 7 * 3}


@pytest.mark.frameworks
def test_a_keras_layer_owns_its_weights() -> None:
    """A convolution, the four vectors of a batch norm, and the cells of a GRU in both directions, whose bias is doubled; a layer
    that is shared counts once, a frozen one as any other."""
    keras = pytest.importorskip("keras")
    if keras.config.backend() != "tensorflow":
        pytest.skip("another backend")
    layers = keras.layers
    dense = layers.Dense(5, name="dense")
    inside = keras.Input((6, 6, 3), batch_size=1)
    x = layers.BatchNormalization(name="norm")(layers.Conv2D(4, 3, name="conv", trainable=False)(inside))
    x = layers.Bidirectional(layers.GRU(7), name="gru")(layers.Reshape((16, 4), name="flat")(x))
    model = keras.Model(inside, dense(layers.Dense(5, name="wide")(dense(layers.Dense(5, name="first")(x)))))
    (trace,) = reconcile.run(tf=model, inputs="1,6,6,3", counters=["tf.profiler@frozen"]).result.traces
    gru = 2 * 3 * (7 * 4 + 7 * 7 + 2 * 7)
    expected = {
        "conv": 3 * 3 * 3 * 4 + 4,
        "norm": 4 * 4,
        "gru": gru,
        "first": 14 * 5 + 5,
        "dense": 5 * 5 + 5,
        "wide": 5 * 5 + 5,
    }
    found: dict[str, int] = {}
    for path, elements in trace.parameters.items():
        layer = path.partition(".")[0]
        found[layer] = found.get(layer, 0) + elements
    assert found == expected
    assert sum(expected.values()) == model.count_params()
