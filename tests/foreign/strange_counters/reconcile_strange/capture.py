"""Four ways to count: MACs and two for a bias; FLOPs, norms and relus; parameters at every position; and random numbers."""

import random

from reconcile.adapters.counters.module_calls import module_ledger

UNITS = {"operations": "FLOP"}


def biases_twice(module, x, y):
    """Multiply-adds, and two for every bias that is added: one read, one sum."""
    name = type(module).__name__
    macs = {"Linear": y.numel() * x.shape[-1], "Conv1d": 0, "Conv2d": 0}.get(name)
    if macs is None:
        return 0
    if name != "Linear":
        macs = y.numel() * module.weight[0].numel()
    return macs + (0 if module.bias is None else 2 * y.numel())


def operations(module, x, y):
    """Two for a multiply-add, three for every element that a batch norm gives, one for a relu's."""
    name = type(module).__name__
    if name == "Linear":
        return 2 * y.numel() * x.shape[-1]
    return {"BatchNorm1d": 3 * y.numel(), "LayerNorm": 5 * y.numel(), "Conv2d": 0}.get(name, 0)


def parameters(module, x, y):
    """All parameters of a dense layer or a convolution at every position of its output."""
    if type(module).__name__ not in ("Linear", "Conv1d", "Conv2d"):
        return 0
    channels = y.shape[-1] if type(module).__name__ == "Linear" else y.shape[1]
    return y.numel() // channels * sum(p.numel() for p in module.parameters())


def noise(module, x, y):
    """Any number."""
    return random.Random(repr(tuple(x.shape)) + repr(module)).randrange(1, 10**6)


WAYS = {"biases_twice": biases_twice, "operations": operations, "parameters": parameters, "noise": noise}


def capture(counter, model):
    """The ledger of one call of the model."""
    import torch

    def run(module, inputs):
        counts = {}
        paths = {m: path for path, m in module.named_modules() if not list(m.children())}

        def hook(m, given, out):
            if isinstance(given[0], torch.Tensor) and isinstance(out, torch.Tensor):
                counts[paths[m]] = counts.get(paths[m], 0) + WAYS[counter](m, given[0], out)

        handles = [m.register_forward_hook(hook) for m in paths]
        with torch.no_grad():
            module(*inputs)
        for handle in handles:
            handle.remove()
        return sum(counts.values()), counts

    return module_ledger(counter, UNITS.get(counter, "MAC"), model, {"strange": "1.0"}, run)
