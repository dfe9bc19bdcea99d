"""What tiny counts."""

from reconcile.adapters.counters.rulebook import RuleBook, size
from reconcile.work import Work, prod

BOOK = RuleBook("tiny", "tiny", {"T": "tiny.py"})


@BOOK.rule("torch.nn.modules.linear.Linear", source="T:15", formula="O in_features, bias left out")
def linear(op):
    return Work(mac=size(op.outputs[0].shape) * op.attrs["in_features"])


@BOOK.rule("torch.nn.modules.conv.Conv2d", source="T:15", formula="O Cin/groups K, bias left out")
def conv(op):
    return Work(mac=size(op.outputs[0].shape) * prod(op.attrs["weight"][1:]))
