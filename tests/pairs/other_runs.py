"""A torch model that does not do the same whenever it is called: a table in a cache (of functools, or a dict of its own), or a
branch taken in the first call alone.

``dropped`` does the same each time, but decides by a product on which no output depends.
"""

import functools
import itertools

from reconcile.model_zoo.pair import Input, Layer, Pair

PAIR = Pair(
    name="other_runs",
    params={"how": "cache", "rows": 4, "width": 8},
    layers=(Layer("first", tf="first", torch="first"), Layer("second", tf="second", torch="second")),
)

RUNS = itertools.count()
KEPT = {}


def inputs(p):
    return [Input("x", (p.rows, p.width))]


@functools.lru_cache
def angles(rows, width, device):
    """The angles of a rotary embedding, by a product: rows x 1 x width."""
    import torch

    positions = torch.arange(rows, dtype=torch.float32, device=device)
    steps = torch.arange(width, dtype=torch.float32, device=device)
    return positions[:, None] @ steps[None, :]


def kept_angles(rows, width, device):
    """The same, kept in an unknown place."""
    if (rows, width) not in KEPT:
        KEPT[rows, width] = angles.__wrapped__(rows, width, device)
    return KEPT[rows, width]


def build_torch(p):
    import torch

    class Rotary(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Linear(p.width, p.width)

        def forward(self, x):
            return self.first(x) * (angles if p.how == "cache" else kept_angles)(p.rows, p.width, x.device)

    class Branches(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Linear(p.width, p.width)
            self.second = torch.nn.Linear(p.width, 2 * p.width)

        def forward(self, x):
            return self.second(x) if next(RUNS) else self.first(x)

    class Dropped(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Linear(p.width, p.width)

        def forward(self, x):
            y = self.first(x)
            return y.relu() if (x @ x.T).sum() > 0 else y.tanh()

    return {"cache": Rotary, "dict": Rotary, "branch": Branches, "dropped": Dropped}[p.how]()
