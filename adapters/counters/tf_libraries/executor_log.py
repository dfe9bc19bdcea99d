"""Parser of the log of one TensorFlow run: the nodes that its executor computed, each with the products that oneDNN wrote.

The executor writes a line before it computes a node (core/common_runtime/executor.cc, ``VLOG(1) << "Process node: "``), and
oneDNN one after each product. With one inter-op thread nothing else runs meanwhile, so a product belongs to the node named before
it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from ...shared.refusal import CannotCount
from ..cpu_libraries.log_lines import is_of_library, product_of

_NODE = re.compile(r"\S+ \S+ +(\d+) executor\.cc:\d+\] Process node: \d+ step -?\d+ \{\{node ([^}]*)\}\} = (\w+)")
DEAD = " is dead device: "
SEVERAL_THREADS_RAN = "TensorFlow's executor ran in %d threads, so which op a line of oneDNN is about is not known"
PRODUCT_BEFORE_NODE = "oneDNN wrote a product before TensorFlow's executor named a node"


class ExecutedNode(NamedTuple):
    """A node: its type after all rewriting, how often it was computed, and how many of these times it left which products.

    ``lines`` has the text of the products, ``products`` what each text stands for, as records of the log's Product in lists.
    """

    name: str
    kind: str
    calls: int
    lines: dict[str, int]
    products: dict[str, list[Any]]


class _Node:
    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.calls = 0
        self.lines: Counter[str] = Counter()
        self.products: dict[str, list[Any]] = {}

    def wrote(self, products: list[Any]) -> None:
        if products:
            text = repr(products)
            self.lines[text] += 1
            self.products[text] = products


def nodes_in(lines: Iterable[str]) -> list[ExecutedNode]:
    """The nodes of a log, in the order in which they first ran. Raises CannotCount where lines cannot be placed."""
    nodes: dict[str, _Node] = {}
    threads: set[str] = set()
    node: _Node | None = None
    open_: list[Any] = []
    for line in lines:
        found = _NODE.match(line)
        if found is not None:
            if node is not None:
                node.wrote(open_)
            open_ = []
            thread, name, kind = found.groups()
            threads.add(thread)
            node = nodes.setdefault(name, _Node(kind))
            node.calls += DEAD not in line
        elif is_of_library(line):
            product = product_of(line)
            if product is not None and node is None:
                raise CannotCount(PRODUCT_BEFORE_NODE)
            if product is not None:
                open_.append(list(product))
    if node is not None:
        node.wrote(open_)
    if len(threads) > 1:
        raise CannotCount(SEVERAL_THREADS_RAN % len(threads))
    return [ExecutedNode(name, n.kind, n.calls, dict(n.lines), n.products) for name, n in nodes.items()]
