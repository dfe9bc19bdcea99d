"""A node that wants to be beside one that is not there, as Keras 2.15 exports an Embedding."""

from __future__ import annotations

import pytest

tf = pytest.importorskip("tensorflow")
pytestmark = pytest.mark.frameworks

from reconcile.adapters.tensorflow.graphs.shapes import _drop_colocation  # noqa: E402


def test_a_wish_is_dropped_where_no_graph_is_made_of_it() -> None:
    definition = tf.compat.v1.GraphDef()
    for name, beside in (("a", ""), ("b", "loc:@a"), ("c", "loc:@a/115")):
        node = definition.node.add(name=name, op="NoOp")
        if beside:
            node.attr["_class"].list.s.append(beside.encode())
    with pytest.raises(ValueError, match="expects to be colocated with unknown node"), tf.Graph().as_default():
        tf.import_graph_def(definition, name="")
    _drop_colocation(definition)
    assert {node.name: list(node.attr["_class"].list.s) for node in definition.node if "_class" in node.attr} == {
        "b": [b"loc:@a"]
    }
    with tf.Graph().as_default():
        tf.import_graph_def(definition, name="")
