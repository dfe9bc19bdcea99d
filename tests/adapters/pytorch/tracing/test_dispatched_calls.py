"""Equal calls share a record; a call whose record shows values of its tensors has one of its own."""

from __future__ import annotations

import torch

from reconcile.adapters.pytorch.tracing.dispatched_calls import DispatchedCall, SharedRecords, Tally
from reconcile.core.records import LENGTHS


def test_equal_calls_share_a_record_in_any_layer():
    records, tally = SharedRecords(), Tally()
    for layer, x in (
        ("one", torch.ones(2, 3)), ("two", torch.zeros(2, 3)), ("one", torch.ones(2, 4)), ("one", torch.ones(2, 3)),
    ):  # fmt: skip
        tally.add(records.record(DispatchedCall(torch.ops.aten.relu.default, (x,), {}, x.relu()), layer))
    ops = list(tally.merge_ops(lambda op: op).values())
    assert [(op.id, op.layer, op.inputs[0].shape, op.calls) for op in ops] == [
        ("op0", "one", (2, 3), 2),
        ("op1", "two", (2, 3), 1),
        ("op2", "one", (2, 4), 1),
    ]
    assert ops[0].attrs is ops[1].attrs


def test_lengths_of_packed_sequences_are_those_of_each_call():
    records, x = SharedRecords(), torch.ones(5, 2, 4)
    found = []
    for offsets in ([0, 2, 5], [0, 4, 5]):
        ends = torch.tensor(offsets, dtype=torch.int32)
        args = (x, x, x, ends, ends, 4, 4, 0.0, False, False)
        call = DispatchedCall(torch.ops.aten._flash_attention_forward.default, args, {}, (x,))
        found.append(records.record(call, "").attrs[LENGTHS])
    assert found == [[[2, 3], [2, 3]], [[4, 1], [4, 1]]]
