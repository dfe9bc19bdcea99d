"""Lists of layers of which ranks have a part, and count from 0."""

from __future__ import annotations

from reconcile.products.ranks.rank_calls import alike


def test_experts_of_a_rank_are_of_one_device_s_list() -> None:
    one = {"router", *(f"experts.{i}.{j}" for i in range(4) for j in (0, 2))}
    ranks = {"router", "experts.0.0", "experts.0.2"}
    assert alike(one, ranks) == {
        "router": "router", **{f"experts.{i}.{j}": f"experts.*.{j}" for i in range(4) for j in (0, 2)}
    }  # fmt: skip


def test_the_number_that_differs_is_the_list_s() -> None:
    one = {f"layers.{i}.experts.{j}" for i in range(2) for j in range(4)}
    ranks = {f"layers.{i}.experts.{j}" for i in range(2) for j in range(2)}
    assert alike(one, ranks) == {name: f"{name[:-1]}*" for name in one}


def test_layers_of_one_side_are_left_out() -> None:
    assert alike({"head", "norm"}, {"norm", "out.0"}) == {"norm": "norm"}
    assert alike({"layers.0", "layers.1"}, {"layers.0", "layers.1"}) == {f"layers.{i}": f"layers.{i}" for i in range(2)}


def test_a_layer_that_could_be_of_two_lists_is_left_out() -> None:
    assert alike({"a.0.0"}, {"a.1.0", "a.0.1"}) == {"a.1.0": "a.*.0", "a.0.1": "a.0.*"}
