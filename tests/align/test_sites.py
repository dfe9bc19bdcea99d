"""What a layer is recognised by: when it runs, what it multiplies by."""

from __future__ import annotations

from reconcile.align.automatic import align_layers
from reconcile.align.layer_names import Name
from reconcile.align.sites import paths_of, sites_of
from reconcile.core.records import Op, Tensor, Trace
from tests.align.models import F32, dense, pair, relu, trace


def of(*ops: Op, framework: str = "tf") -> Trace:
    return trace(framework, ())._replace(ops=ops, layers=tuple(dict.fromkeys(op.layer for op in ops)))


def test_a_layer_runs_when_its_product_does() -> None:
    """An attention layer that scales its queries first still comes behind the layer that makes its values."""
    scaled = relu("tf", "attn", 7)
    ops = (scaled, dense("tf", "attn.value", 4, 4), dense("tf", "attn", 4, 9), relu("tf", "out", 2))
    assert paths_of(of(*ops)) == ("attn.value", "attn", "out")


def test_a_transposed_convolution_takes_filter_before_input() -> None:
    """(sizes, filter, input) in TensorFlow, (input, filter) in PyTorch: 3 x 3 of 4 to 5, over 7 x 8 places."""
    tensors = (Tensor((4,), "int32"), Tensor((3, 3, 5, 4), F32), Tensor((1, 7, 8, 4), F32))
    attrs = {"data_format": "NHWC", "strides": [1, 1, 1, 1], "padding": "SAME", "dilations": [1, 1, 1, 1]}
    op = Op("up", "Conv2DBackpropInput", "up", tensors, (Tensor((1, 7, 8, 5), F32),), attrs)
    (site,) = sites_of(of(op), ["up"], {"up": Name(("up",))}, ())
    assert site.filters == {(3, 3, 4, 5)}
    assert site.single


def test_dimensions_that_are_not_known_are_no_filter() -> None:
    tf, torch = pair([("a", 4, 5)], [("b", 4, 5)])
    vague = tf.ops[0]._replace(inputs=(tf.ops[0].inputs[0], Tensor(None, F32)))
    assert [row.by for row in align_layers(tf._replace(ops=(vague,)), torch)] == ["order+work"]
    assert [row.by for row in align_layers(tf, torch)] == ["order+shape+work"]
