"""Random networks of the families' bricks: how one is drawn, and the pair file that builds it in both frameworks.

Nothing here knows what a network's work is: a network is a plan of brick names, and every choice is drawn.
"""

from __future__ import annotations

import json
from math import prod

from reconcile.model_zoo.bricks.net import Net, Node
from reconcile.model_zoo.pair import Input
from tests.zoo.family_forms import BRICKS, FAMILIES, macs

LARGEST = 3000
"""Elements per sample that a value may have."""

CHANNELS = (1, 3, 4, 5, 6, 8, 12)


def starts(rng):
    """An input: a vector, a sequence, a map, a volume or token ids, of odd sizes."""
    few = rng.choice(CHANNELS)
    shapes = (
        (rng.randint(1, 12),),
        (rng.randint(1, 9), few),
        (rng.randint(1, 9), few),
        (rng.randint(1, 11), rng.randint(1, 11), few),
        (rng.randint(1, 11), rng.randint(1, 11), few),
        (rng.randint(1, 6), rng.randint(1, 6), rng.randint(1, 6), rng.randint(1, 4)),
    )
    return ((rng.randint(1, 7),), "int64") if rng.random() < 0.15 else (rng.choice(shapes), "float32")


def network(rng, branches=9, longest=7):
    """A plan of several networks side by side, each from an input of its own: chains, branches, sums, shared layers."""
    inputs, nodes = [], []
    for index in range(branches):
        given = Input(f"x{index}", *starts(rng))
        inputs.append(given)
        nodes += _branch(rng, given, f"n{index}", longest)
    return Net(tuple(inputs), tuple(nodes))


def _branch(rng, given, prefix, longest):
    shapes, nodes = {given.name: given.shape}, []
    for index in range(rng.randint(2, longest)):
        name = f"{prefix}_{index}"
        make = rng.choice((_sum, _again, _brick, _brick, _brick))
        node = make(rng, name, shapes, nodes, given) or _brick(rng, name, shapes, nodes, given)
        if node is None:
            break
        nodes.append(node)
        first = shapes[node.sources[0]]
        shapes[name] = first if node.brick is None else node.brick.out(first)
    return nodes


def _sum(rng, name, shapes, _nodes, given):
    """A sum of two different values of one shape; of token ids, none."""
    values = [v for v in shapes if given.dtype == "float32" or v != given.name]
    pairs = [(a, b) for a in values for b in values if a < b and shapes[a] == shapes[b]]
    return Node(name, None, rng.choice(pairs)) if pairs else None


def _again(rng, name, shapes, nodes, given):
    """A layer of this network once more, on a value of the shape it was made for."""
    held = [n for n in nodes if n.brick is not None and not n.like and n.sources[0] != given.name]
    options = [(n, v) for n in held for v in shapes if v != given.name and shapes[v] == shapes[n.sources[0]]]
    if not options:
        return None
    node, value = rng.choice(options)
    return Node(name, node.brick, (value,), node.name)


def _brick(rng, name, shapes, _nodes, given):
    """A new layer, on the newest value more often than not."""
    value = rng.choice((rng.choice(list(shapes)), list(shapes)[-1]))
    dtype = given.dtype if value == given.name else "float32"
    fitting = [
        brick
        for brick in BRICKS.values()
        if brick.takes(shapes[value], dtype) and 0 < prod(brick.out(shapes[value])) <= LARGEST
    ]
    return Node(name, rng.choice(fitting), (value,)) if fitting else None


def work(net, batch):
    """(TensorFlow's, PyTorch's) multiply-adds of a plan, by the closed forms."""
    shapes = net.shapes()
    found = [macs(node.brick.name, shapes[node.sources[0]]) for node in net.nodes if node.brick is not None]
    return tuple(batch * sum(side) for side in zip(*found, strict=True))


TEMPLATE = '''"""A random network."""

import importlib
import json

from reconcile.model_zoo.bricks.net import Net, Node, pair
from reconcile.model_zoo.pair import Input

FAMILIES = {families!r}
BRICKS = {{b.name: b for f in FAMILIES for b in importlib.import_module("reconcile.model_zoo.family_" + f).BRICKS}}
PLAN = json.loads({plan!r})
NET = Net(
    tuple(Input(name, tuple(shape), dtype) for name, shape, dtype in PLAN["inputs"]),
    tuple(Node(name, BRICKS.get(brick), tuple(sources), like) for name, brick, sources, like in PLAN["nodes"]),
)
PAIR, inputs, build_tf, build_torch, copy_weights = pair("random", NET, params={{"batch": {batch}}})
'''


def pair_file(net, batch):
    """The text of a pair file that builds this plan."""
    nodes = [(n.name, n.brick.name if n.brick else "", n.sources, n.like) for n in net.nodes]
    plan = json.dumps({"inputs": net.inputs, "nodes": nodes})
    return TEMPLATE.format(families=FAMILIES, plan=plan, batch=batch)
