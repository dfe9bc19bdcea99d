"""What tiny counts, and where: it hooks exact classes, and modules below a hooked one, too."""

from functools import partial

from reconcile.adapters.counters.module_bridge import Hooks, bridge_modules
from reconcile.adapters.counters.rulebook import RuleBook, size
from reconcile.work import Work, prod

BOOK = RuleBook("tiny", "tiny", {"T": "tiny.py"})
bridge = partial(bridge_modules, hooks=Hooks("tiny", BOOK, hides=False))


@BOOK.rule("torch.nn.modules.linear.Linear", source="T:15", formula="O in_features, bias left out")
@BOOK.rule("torch.nn.modules.conv.Conv2d", source="T:15", formula="O Cin/groups K, bias left out")
def product(op):
    return Work(mac=size(op.outputs[0].shape) * prod(op.attrs["weight"][1:]))
