"""A user's FLOP counter, as people write them: hooks on three classes, multiply-adds, biases left out."""

import torch

__version__ = "1.2"


def count(model, inputs):
    """{path: multiply-adds}."""
    counts = {}

    def hook(name):
        def add(module, _inputs, output):
            weight = module.weight[0].numel() if isinstance(module, torch.nn.Conv2d) else module.in_features
            counts[name] = counts.get(name, 0) + output.numel() * weight

        return add

    hooked = {name: m for name, m in model.named_modules() if type(m) in (torch.nn.Linear, torch.nn.Conv2d)}
    handles = [module.register_forward_hook(hook(name)) for name, module in hooked.items()]
    with torch.no_grad():
        model(*inputs)
    for handle in handles:
        handle.remove()
    return counts
