"""``on_meta.py MODEL COUNTER``: one counter on a model of ``models/``, made on meta, as its user would call it."""

import sys
from importlib import import_module
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "models"))
make = import_module(sys.argv[1]).make

with torch.device("meta"):
    model, example = make()
model.eval()
if sys.argv[2] == "thop":
    import thop

    print(int(thop.profile(model, (example,), verbose=False)[0]))
elif sys.argv[2] == "fvcore":
    from fvcore.nn import FlopCountAnalysis

    analysis = FlopCountAnalysis(model, example).unsupported_ops_warnings(False).uncalled_modules_warnings(False)
    print(int(analysis.total()))
else:
    from torch.utils.flop_counter import FlopCounterMode

    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(example)
    print(counter.get_total_flops())
